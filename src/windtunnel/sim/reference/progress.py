"""Progress of a job during one stay on its GPUs: one formula for every feature.

A stay begins with what the job pays for resuming, and then works. Work is counted in seconds at
rate 1; between two changes of the rate (a *segment*) it grows by ``rate`` a second. After every
``interval`` of work the job writes a checkpoint of ``cost`` seconds, in which no work is done; none
is written when the work is done then. So at any time, in seconds of work or of the clock,

    seconds held = useful + overhead + lost + slowed,

``slowed`` being the seconds worked, each times 1 - rate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.disruptions.checkpoints import Checkpoints


class Reached(NamedTuple):
    """How far a stay has come.

    Attributes:
        done: work done in this stay.
        left: work left.
        written: checkpoints that are complete.
        writing: seconds that the one being written takes yet; 0 = none is.
    """

    done: float
    left: float
    written: int
    writing: float


class Place:
    """Nodes and grants that one job took, and that others may share with it.

    Attributes:
        where: the pairs.
        demand: what was taken; of an elastic job, the option in which it runs.
        jobs: who is there, in order of coming.
    """

    def __init__(self, where: Where, demand: Any) -> None:
        self.where, self.demand, self.jobs = where, demand, list[int]()


class Stay:
    """One uninterrupted stay of a job on its GPUs (a segment of the flight).

    ``overhead``: seconds that it pays before it works; ``rate``: work a second; ``slowed``: seconds
    lost to slow-downs in the job's stays before.

    Attributes:
        end: when it ended, s; NaN while it lasts.
        due: when the job completes as things are, s.
        expected: when its user expects that, s.
        base: the rate before what slows everybody.
        slowed: seconds lost to slow-downs in all of the job's segments that are over.
        reached: how far it had come when this segment began.
    """

    def __init__(
        self, job: int, number: int, now: float, place: Place, *, overhead: float,
        work: float, rate: float, checkpoints: Checkpoints, slowed: float,
    ) -> None:  # fmt: skip
        self.job, self.number, self.start, self.end = job, number, now, math.nan
        self.place, self.where = place, place.where
        self.overhead, self.resumed = overhead, now + overhead
        self.work, self.rate, self.base = work, rate, rate
        self.checkpoints, self.limit = checkpoints, checkpoints.within(work)
        self.since, self.reached = now, Reached(0.0, work, 0, 0.0)
        self.slowed, self.expected = slowed, math.nan
        self.due = self._project(now, overhead)

    def at(self, now: float) -> Reached:
        """Return how far the stay has come at ``now`` (s)."""
        interval, cost = self.checkpoints
        done, left, written, writing = self.reached
        if not cost:
            left = min(left, self._left_at(now))
            done = self.work - left
            return Reached(done, left, min(math.floor(done / interval), self.limit), 0.0)
        active = now - max(self.since, self.resumed)
        if active <= 0:
            return self.reached
        if writing and active < writing:
            return Reached(done, left, written, writing - active)
        return self._at_work(active - writing, done, written + (1 if writing else 0))

    def _left_at(self, now: float) -> float:
        """Return the work left at ``now`` (s), writing no checkpoints."""
        left = self.reached.left
        if self.rate != 1.0:
            active = now - max(self.since, self.resumed)
            done = active * self.rate if active > 0 else 0.0
            if done < left:  # the end is a quotient, whose rounding is no work
                return left - done
        return (self.due - now) * self.rate

    def _at_work(self, active: float, done: float, written: int) -> Reached:
        """Return the same, so many seconds after it had done so much, writing nothing just then."""
        interval, cost = self.checkpoints
        if written < self.limit and done != written * interval:  # within an interval
            first = ((written + 1) * interval - done) / self.rate + cost
            if active >= first:
                active -= first
                written += 1
                done = written * interval
        if done == written * interval:
            cycle = interval / self.rate + cost
            more = min(math.floor(active / cycle), self.limit - written)
            active = max(active - more * cycle, 0.0)  # by a rounding it could be less
            written += more
            done = written * interval
        writing = 0.0
        if written >= self.limit:
            done = min(done + active * self.rate, self.work)
        else:
            to_go = ((written + 1) * interval - done) / self.rate
            if active < to_go:
                done += active * self.rate
            else:
                done, writing = (written + 1) * interval, cost - (active - to_go)
                if writing <= 0:  # by a rounding
                    written, writing = written + 1, 0.0
        return Reached(done, self.work - done, written, writing)

    def advance(self, now: float, rate: float | None = None) -> None:
        """End the segment at ``now`` (s), and begin another, at another rate if one is given."""
        reached = self.at(now)
        worked = now - max(self.since, self.resumed)
        if self.checkpoints.cost:
            worked -= self.seconds_writing(reached) - self.seconds_writing(self.reached)
        if worked > 0:
            self.slowed += worked * (1.0 - self.rate)
        self.since, self.reached = now, reached
        if rate is not None:
            self.rate = rate
            self.due = self._project(now, max(self.resumed - now, 0.0))

    def complete(self, now: float) -> None:
        """End the last segment: all work is done."""
        self.advance(now)
        self.reached = Reached(self.work, 0.0, self.limit, 0.0)

    def kept(self, reached: Reached) -> float:
        """Return the work that a failure would leave of what was reached."""
        return reached.written * self.checkpoints.interval if reached.written else 0.0

    def to_write(self, reached: Reached, limit: int | None = None) -> float:
        """Return the seconds of checkpoints ahead of what was reached, if the stay has so many."""
        whole = (self.limit if limit is None else limit) - reached.written
        whole -= 1 if reached.writing else 0
        return reached.writing + max(whole, 0) * self.checkpoints.cost

    def seconds_writing(self, reached: Reached) -> float:
        """Return the seconds of checkpoints up to what was reached."""
        cost = self.checkpoints.cost
        return reached.written * cost + (cost - reached.writing if reached.writing else 0.0)

    def _project(self, now: float, overhead: float) -> float:
        """Return when the job completes, if nothing comes between."""
        return now + overhead + self.reached.left / self.rate + self.to_write(self.reached)
