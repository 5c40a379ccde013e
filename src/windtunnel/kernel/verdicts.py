"""`Verdicts`: what was decided about jobs, row by row: the log of the flight recorder.

A row is written when a verdict changes; what a verdict means stands in
`windtunnel.sim.verdicts`, whose numbers these are.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer

VERDICT_NONE = cython.declare(cython.int, 0)
VERDICT_BEHIND = cython.declare(cython.int, 1)
VERDICT_NO_ROOM = cython.declare(cython.int, 2)
VERDICT_FIRST = cython.declare(cython.int, 3)
VERDICT_WOULD_DELAY = cython.declare(cython.int, 4)
VERDICT_POWER = cython.declare(cython.int, 5)
VERDICT_LIMIT = cython.declare(cython.int, 6)
VERDICT_CHOICE = cython.declare(cython.int, 7)
VERDICT_INTERVAL = cython.declare(cython.int, 8)
VERDICT_PREEMPTED = cython.declare(cython.int, 9)


@cython.final
@cython.cclass
class Verdicts:
    """The log.

    Args:
        num_jobs: of the run.

    Attributes:
        point: the number of the decision that is being made.
        last: the verdict that each job has; of one that does not wait what it was.
        causer: of each job that was preempted last for whom; -1 = nobody's name is known.
        fresh: jobs that came to wait since the last decision.
    """

    num_rows: cython.longlong
    capacity: cython.longlong
    time: cython.double[::1]
    points: cython.longlong[::1]
    job: cython.int[::1]
    verdict: cython.char[::1]
    blocker: cython.int[::1]
    promise: cython.double[::1]
    point: cython.longlong
    last: cython.char[::1]
    causer: cython.int[::1]
    fresh: JobList

    def __init__(self, num_jobs: int) -> None:
        count = max(num_jobs, 1)
        self.num_rows = self.capacity = 0
        self.time = self.promise = numpy.zeros(0)
        self.points = numpy.zeros(0, dtype=numpy.int64)
        self.job = self.blocker = numpy.zeros(0, dtype=numpy.int32)
        self.verdict = numpy.zeros(0, dtype=numpy.int8)
        self.last = numpy.zeros(count, dtype=numpy.int8)
        self.causer = numpy.full(count, -1, dtype=numpy.int32)
        self.point = 0
        self.fresh = JobList()

    def _grow(self) -> None:
        capacity = 2 * self.capacity + 1024
        self.time, self.promise = (
            longer(self.time, capacity),
            longer(self.promise, capacity),
        )
        self.points, self.job = longer(self.points, capacity), longer(self.job, capacity)
        self.verdict = longer(self.verdict, capacity)
        self.blocker = longer(self.blocker, capacity)
        self.capacity = capacity

    @compiled
    def add(
        self,
        time: cython.double,
        job: cython.int,
        verdict: cython.int,
        blocker: cython.int,
        promise: cython.double,
    ) -> cython.void:
        """Write a row, unless it says of a job what the last one did."""
        if self.last[job] == verdict:
            return
        self.last[job] = cython.cast(cython.char, verdict)
        if self.num_rows == self.capacity:
            with cython.gil:
                self._grow()
        self.time[self.num_rows] = time
        self.points[self.num_rows] = self.point
        self.job[self.num_rows] = job
        self.verdict[self.num_rows] = cython.cast(cython.char, verdict)
        self.blocker[self.num_rows] = blocker
        self.promise[self.num_rows] = promise
        self.num_rows += 1

    @compiled
    def waits(self, job: cython.int) -> cython.void:
        """Note that a job came to wait: nothing has been decided about it."""
        self.last[job] = VERDICT_NONE
        self.fresh.add(job)

    @compiled
    def preempted(self, time: cython.double, job: cython.int) -> cython.void:
        """Note that a running job was stopped for another."""
        self.last[job] = VERDICT_NONE
        self.add(time, job, VERDICT_PREEMPTED, self.causer[job], ENDLESS)
        self.causer[job] = -1

    def columns(self) -> tuple:
        """Return time, decision, job, verdict, blocker and promise of each row: arrays (k,)."""
        rows = self.num_rows
        return (
            numpy.asarray(self.time)[:rows],
            numpy.asarray(self.points)[:rows],
            numpy.asarray(self.job)[:rows],
            numpy.asarray(self.verdict)[:rows],
            numpy.asarray(self.blocker)[:rows],
            numpy.asarray(self.promise)[:rows],
        )
