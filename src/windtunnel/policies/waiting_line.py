"""The waiting jobs of one queue, by priority and time, with a limit to waiting at its head.

Order: larger priority first (none counts as 0), then the job's time in the queue (its submit time,
or when it was put back), then arrival. Jobs of one demand class fit in the same places, so a class
whose first job cannot start is done with for this instant.

*Gang time-out.* The first job of a line that cannot start waits *at the head*, from the first
decision at which it is there. After ``gang_timeout`` seconds in a row it is put back: it leaves the
line for ``backoff`` seconds, doubled each further time up to ``backoff_max``, and then joins it
again at the time at which it was put back (``Eviction``: behind whoever waited by then, within its
priority) or at its old one (``Creation``). So do Kueue (``waitForPodsReady``, requeuing strategy)
and, with their own timers, Volcano and its kin keep a gang that does not fit from holding up the
rest.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.sim.jobs import JobView

    #: (negated priority, time in the queue, arrival number): lower first.
    Place = tuple[float, float, int]

#: Time at which a job that was put back joins its line again.
REQUEUING_TIMESTAMPS: tuple[str, ...] = ("Eviction", "Creation")


@dataclass(frozen=True)
class GangWait:
    """How long a job may wait at the head, and what happens then; see the module.

    Attributes:
        timeout: seconds; inf = no limit.
        backoff: seconds out of the line after the first time.
        backoff_max: most seconds out of the line.
        timestamp: ``Eviction`` or ``Creation``.
    """

    timeout: float = math.inf
    backoff: float = 60.0
    backoff_max: float = 60.0
    timestamp: str = "Eviction"

    def pause(self, times: int) -> float:
        """Return seconds out of the line after being put back so many times."""
        return float(min(self.backoff * 2.0 ** min(times - 1, 1000), self.backoff_max))


def priority_of(job: JobView) -> float:
    """Return a job's priority; none counts as 0."""
    priority = float(job.priority)
    return 0.0 if math.isnan(priority) else priority


class WaitingLine:
    """The waiting jobs of one queue.

    Args:
        strict: its first job holds up the others.
        wait: the limit to waiting at the head.

    Attributes:
        num_timeouts: how often a job was put back.
    """

    def __init__(self, wait: GangWait, *, strict: bool) -> None:
        self.wait = wait
        self.strict = strict
        self.num_timeouts = 0
        self.jobs: dict[int, JobView] = {}
        self._classes: dict[int, list[Place]] = {}
        self._class_of: dict[int, int] = {}
        self._tried: set[int] = set()
        self._closed = False
        self._since: dict[int, float] = {}
        self._resting: list[tuple[float, int, JobView]] = []
        self._timestamp: dict[int, float] = {}
        self._times: dict[int, int] = {}

    def add(self, job: JobView, demand_class: int) -> None:
        """Let a job wait."""
        number = job.number
        self.jobs[number] = job
        self._class_of[number] = demand_class
        time = self._timestamp.get(number, job.submit_time)
        place = (-priority_of(job), time, number)
        heapq.heappush(self._classes.setdefault(demand_class, []), place)

    def open(self, now: float) -> None:
        """Begin a decision: whoever has been out long enough is back, and everybody may try."""
        while self._resting and self._resting[0][0] <= now:
            job = heapq.heappop(self._resting)[2]
            self.add(job, self._class_of[job.number])
        self.reopen()

    def reopen(self) -> None:
        """Let everybody try again: somebody was preempted."""
        self._tried.clear()
        self._closed = False

    def first(self) -> Place | None:
        """Return the place of the first job that has not been refused in this decision."""
        if self._closed:
            return None
        tried = self._tried
        return min(
            (places[0] for kind, places in self._classes.items() if places and kind not in tried),
            default=None,
        )

    def remove(self, job: JobView) -> None:
        """Forget the first job, which starts."""
        self._leave(job)
        self._timestamp.pop(job.number, None)
        self._times.pop(job.number, None)

    def refuse(self, job: JobView, now: float) -> None:
        """Note that the first job cannot start.

        A job that has waited at the head for too long is put back here, and the next one is first.
        """
        number = job.number
        at_head = self.strict or not self._tried
        if at_head and self.wait.timeout < math.inf:
            if number not in self._since:
                self._since = {number: now}  # whoever was at the head before is so no longer
            if self._since[number] + self.wait.timeout <= now:
                self._put_back(job, now)
                return
        self._refused(number)

    def next_time_out(self) -> float:
        """Return when the one at the head, or one who is out, has waited for long enough."""
        ends = [since + self.wait.timeout for since in self._since.values()]
        return min([*ends, *(back for back, _, _ in self._resting[:1])], default=math.inf)

    def __len__(self) -> int:
        return len(self.jobs)

    def _refused(self, number: int) -> None:
        self._tried.add(self._class_of[number])
        self._closed = self.strict

    def _put_back(self, job: JobView, now: float) -> None:
        self._leave(job)
        number = job.number
        self._times[number] = self._times.get(number, 0) + 1
        self.num_timeouts += 1
        if self.wait.timestamp == "Eviction":
            self._timestamp[number] = now
        pause = self.wait.pause(self._times[number])
        if pause == 0:
            self.add(job, self._class_of[number])
        else:
            heapq.heappush(self._resting, (now + pause, number, job))

    def _leave(self, job: JobView) -> None:
        heapq.heappop(self._classes[self._class_of[job.number]])
        del self.jobs[job.number]
        self._since.pop(job.number, None)
