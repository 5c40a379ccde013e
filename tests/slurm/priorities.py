"""The priorities that jobs had in a recorded run, worked out from starts and ends alone."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING

from records import table
from world import REQUEUE

from windtunnel.sim.slurm.priority import Factors, Multifactor
from windtunnel.sim.slurm.shares import Shares

if TYPE_CHECKING:
    from records import Record
    from world import World

#: slurmctld is started so long before the workload, s; its clock of priorities begins then.
EARLIER = 360
#: A calculation comes so long after its second began, s: ends are recorded to 0.2 s, and those at
#: .2 are in its sums, those at .4 are not; jobs that a cycle starts then no longer wait.
AFTER = 0.3
#: A job is submitted within a second.
KNOWN = 0.1
#: How far off a priority may be, relatively.
TOLERANCE = 1e-4


class Priorities:
    """Priorities of a record's jobs at any time: given at submission, and at each calculation."""

    def __init__(self, record: Record, world: World) -> None:
        settings = record.site.settings.priority
        self.record, self.world = record, world
        self.multifactor = Multifactor(record.site)
        self.period = settings.period
        self.phase = 1
        self.times: list[list[float]] = [[] for _ in record.rows]
        self.known: list[list[Factors]] = [[] for _ in record.rows]
        self.first = [int(s) if s < 1e9 else -1 for s in world.eligible]
        self.since = list(self.first)
        self.starts: list[list[int]] = [[] for _ in record.rows]
        for stay in record.stays:
            self.starts[stay.job].append(int(stay.start))
        self.order = sorted(range(len(record.rows)), key=lambda j: int(record.rows[j]["slurm_id"]))
        self._walk(Shares(record.site.associations, settings))

    def _walk(self, shares: Shares) -> None:  # noqa: C901, PLR0912 - three kinds of moments
        stays = self.record.stays
        last_end = int(max((s.end or s.start for s in stays), default=0))
        last = self.phase - EARLIER
        seconds = range(last, last_end + 2 * self.period, self.period)
        moments = [(second + AFTER, 1, 0) for second in seconds]
        moments += [(s.end, 0, at) for at, s in enumerate(stays) if s.end is not None]
        moments += [(self.first[job] + KNOWN, 2, job) for job in self.order if self.first[job] >= 0]
        stays_of: dict[int, list[int]] = {}
        for at, stay in enumerate(stays):
            stays_of.setdefault(stay.job, []).append(at)
        for attempts in stays_of.values():
            moments += [
                (int(stays[at].queued_again + REQUEUE) + KNOWN, 2, stays[at].job)
                for at in attempts[:-1]
            ]
        over: set[int] = set()
        for moment, kind, at in sorted(moments):
            now = math.floor(moment)
            if kind == 0:
                self._use(shares, at, last, now)
                over.add(at)
            elif kind == 1:
                shares.age(now - last)
                shares.settle()
                waiting = []
                for job in self.order:
                    for one in stays_of.get(job, []):
                        if one not in over and stays[one].start < now:
                            self._use(shares, one, last, now)
                    if 0 <= self.since[job] <= now < self._next_start(job):
                        waiting.append(job)
                        if shares.is_classic:
                            self._note(shares, job, moment)
                shares.calculate()
                if not shares.is_classic:
                    for job in waiting:
                        self._note(shares, job, moment)
                last = now
            else:
                self.since[at] = now
                self._note(shares, at, moment)

    def _next_start(self, job: int) -> int:
        """Return when a job starts that waits since then; far ahead if it never does."""
        return next((start for start in self.starts[job] if start >= self.since[job]), 10**9)

    def _note(self, shares: Shares, job: int, moment: float) -> None:
        request = self.record.requests[job]
        shares.look_up(request.account, request.user)
        self.times[job].append(moment)
        self.known[job].append(
            self.multifactor.of(
                request,
                age=math.floor(moment) - self.since[job],
                fair_share=shares.factor(request.account, request.user),
                limit=request.limit or 0,
            )
        )

    def _use(self, shares: Shares, at: int, last: int, now: int) -> None:
        stay = self.record.stays[at]
        since = max(int(stay.start), last)
        if now > since:
            row = self.record.rows[stay.job]
            shares.add(row["account"], row["user"], int(row["cpus"] or 0), now - since)

    def factors(self, job: int, now: float) -> Factors:
        """Return a job's factors as they stood at ``now``."""
        at = bisect.bisect_right(self.times[job], now) - 1
        return self.known[job][max(at, 0)] if self.known[job] else Factors()

    def priority(self, job: int, now: float) -> int:
        """Return a job's priority as it stood at ``now``."""
        return self.factors(job, now).total


def compare_priorities(record: Record, world: World) -> tuple[int, int, list[str]]:
    """Return how many recorded priorities there are, and how many are equal within 1 in 10,000."""
    priorities = Priorities(record, world)
    compared = equal = 0
    wrong = []
    for row in table(record.folder / "record/sprio.csv"):
        job = record.by_id.get(int(row["slurm_id"]))
        if job is None:
            continue
        mine, recorded = priorities.factors(job, float(row["second"])), int(row["priority"])
        compared += 1
        # Recorded ones are cut to whole numbers: how far is the sum from [recorded, recorded + 1)?
        if max(recorded - mine.sum, mine.sum - recorded - 1, 0) <= TOLERANCE * recorded:
            equal += 1
        else:
            wrong.append(f"{row['second']} job {row['slurm_id']}: {recorded}, here {mine}")
    return compared, equal, wrong
