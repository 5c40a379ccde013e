"""`Checkpoints`: how far jobs have got that stop to write checkpoints.

A checkpoint is written after every ``interval`` seconds of *work* (at full speed) of a stay, takes
``cost`` seconds, and is not written when the work is done then. Progress is kept by segments: a
segment is a time at one rate. See `windtunnel.sim.reference.progress` for the same in plain Python.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import floor

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class Checkpoints:
    """The stays of running jobs, checkpoint by checkpoint.

    Attributes:
        interval: seconds of work between checkpoints; inf = none.
        cost: seconds that one takes.
        work: work of each job's stay, from its begin to its end.
        done: work done when the segment began.
        complete: checkpoints complete then.
        writing: seconds of writing left then.
        now_done: found by `look`: work done now.
        now_complete: checkpoints complete now.
        now_writing: seconds of writing left now; 0 = not writing.
    """

    interval: cython.double
    cost: cython.double
    work: cython.double[::1]
    done: cython.double[::1]
    complete: cython.longlong[::1]
    writing: cython.double[::1]
    now_done: cython.double
    now_complete: cython.longlong
    now_writing: cython.double

    def __init__(self, num_jobs: int, interval: float, cost: float) -> None:
        self.interval = interval
        self.cost = cost
        self.work = numpy.zeros(num_jobs)
        self.done = numpy.zeros(num_jobs)
        self.complete = numpy.zeros(num_jobs, dtype=numpy.int64)
        self.writing = numpy.zeros(num_jobs)

    @compiled
    def in_all(self, work: cython.double) -> cython.longlong:
        """Return how many checkpoints are written during so much work."""
        if work <= self.interval:
            return 0
        parts: cython.double = work / self.interval
        many: cython.longlong = cython.cast(cython.longlong, parts)
        if many < parts:
            many += 1
        return many - 1

    @compiled
    def begin(self, job: cython.int, work: cython.double) -> cython.void:
        """Begin a stay with so much work."""
        self.work[job] = work
        self.done[job] = 0.0
        self.complete[job] = 0
        self.writing[job] = 0.0

    @compiled
    def to_write(self, job: cython.int, work: cython.double) -> cython.double:
        """Return the seconds of writing ahead of a job as its segment begins.

        Args:
            job: it runs.
            work: of its stay, from its begin to its end.
        """
        left: cython.longlong = self.in_all(work) - self.complete[job]
        if self.writing[job] > 0.0:
            left -= 1
        if left < 0:
            left = 0
        return self.writing[job] + left * self.cost

    @compiled
    def now_to_write(self, job: cython.int) -> cython.double:
        """Return the seconds of writing ahead of a job where `look` found it."""
        left: cython.longlong = self.in_all(self.work[job]) - self.now_complete
        if self.now_writing > 0.0:
            left -= 1
        return self.now_writing + left * self.cost

    @compiled
    def look(self, job: cython.int, active: cython.double, rate: cython.double) -> cython.void:
        """Find out how far a job is ``active`` seconds after its segment began."""
        done: cython.double = self.done[job]
        complete: cython.longlong = self.complete[job]
        self.now_writing = 0.0
        if self.writing[job] > 0.0:
            if active < self.writing[job]:
                self.now_done = done
                self.now_complete = complete
                self.now_writing = self.writing[job] - (active if active > 0.0 else 0.0)
                return
            active -= self.writing[job]
            complete += 1
        self._go_on(job, active, rate, done, complete)

    @compiled
    def _go_on(
        self,
        job: cython.int,
        active: cython.double,
        rate: cython.double,
        done: cython.double,
        complete: cython.longlong,
    ) -> cython.void:
        limit: cython.longlong = self.in_all(self.work[job])
        cycle: cython.double = self.interval / rate + self.cost
        if complete < limit and done != complete * self.interval:
            first = ((complete + 1) * self.interval - done) / rate + self.cost
            if active >= first:
                active -= first
                complete += 1
                done = complete * self.interval
        if complete < limit and done == complete * self.interval and active > 0.0:
            more = cython.cast(cython.longlong, floor(active / cycle))
            if more > limit - complete:
                more = limit - complete
            active -= more * cycle
            complete += more
            done = complete * self.interval
        self.now_complete = complete
        if active <= 0.0:
            self.now_done = done
        elif complete >= limit:
            self.now_done = done + active * rate
            if self.now_done > self.work[job]:
                self.now_done = self.work[job]
        else:
            first = ((complete + 1) * self.interval - done) / rate
            if active < first:
                self.now_done = done + active * rate
            else:
                self.now_done = (complete + 1) * self.interval
                self.now_writing = self.cost - (active - first)
                if self.now_writing <= 0.0:  # by a rounding
                    self.now_complete, self.now_writing = complete + 1, 0.0

    @compiled
    def end(self, job: cython.int) -> cython.void:
        """Find a job done that completes now, whatever rounding says."""
        self.now_done = self.work[job]
        self.now_complete = self.in_all(self.work[job])
        self.now_writing = 0.0

    @compiled
    def now_spent(self) -> cython.double:
        """Return the seconds of writing since the stay began."""
        return self._spent(self.now_complete, self.now_writing)

    @compiled
    def spent_since(self, job: cython.int) -> cython.double:
        """Return the seconds of writing since the job's segment began."""
        return self.now_spent() - self._spent(self.complete[job], self.writing[job])

    @compiled
    def _spent(self, complete: cython.longlong, writing: cython.double) -> cython.double:
        seconds: cython.double = complete * self.cost
        return seconds + (self.cost - writing) if writing > 0.0 else seconds

    @compiled
    def fold(self, job: cython.int) -> cython.void:
        """Begin another segment where `look` found the job."""
        self.done[job] = self.now_done
        self.complete[job] = self.now_complete
        self.writing[job] = self.now_writing
