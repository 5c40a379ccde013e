"""`SlurmStarts`: whom one call of a loop of slurmctld's starts, and whom it stops for them."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_parts import SlurmParts


@cython.final
@cython.cclass
class SlurmStarts(SlurmParts):
    """What a call has done so far.

    Args:
        parts: what the loops work on.

    Attributes:
        count, job, part: jobs that the call started, in order.
        num_stopped, stopped: jobs that it stopped so that others may start; their nodes are
            completing until they leave.
    """

    count: cython.int
    job: cython.int[::1]
    part: cython.int[::1]
    num_stopped: cython.int
    stopped: cython.int[::1]

    def __init__(self, parts: SlurmParts) -> None:
        self._share(parts)
        capacity = max(self.jobs.count, 1)
        self.job = numpy.zeros(capacity, dtype=numpy.int32)
        self.part = numpy.zeros(capacity, dtype=numpy.int32)
        self.stopped = numpy.zeros(capacity, dtype=numpy.int32)
        self.count = self.num_stopped = 0

    @compiled
    def begin(self) -> cython.void:
        """Begin a call."""
        self.count = self.num_stopped = 0

    @compiled
    def preempt_for(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.bint:
        """Stop those in whose place a job may start on the candidates; it starts in a later run.

        Returns:
            Whether there are such jobs. Where it has stopped some a moment ago (which may take
            until now), they are left alone.
        """
        since: cython.longlong = self.jobs.preempts_since[job]
        if not self.victims.any_rule:
            return False
        if self.victims.find(job, part, now, self.running.by_end, self.running.count) == 0:
            return False
        if not self.victims.pick(job, part) or self.victims.num_chosen == 0:
            return False
        self.choice.write(self.nodes, self.stays, job)
        if self.limits.admits_stay(self.stays, job):
            return False
        self.jobs.is_preempting[job] = True
        if since >= 0 and since > now - self.victims.patience:
            return True
        if since < 0:
            self.jobs.preempts_since[job] = now
        for at in range(self.victims.num_chosen):
            other = self.victims.chosen[at]
            if self.jobs.noticed[other] and now < self.jobs.end[other]:
                continue
            if not self.jobs.noticed[other] and self.victims.grace_of(other) > 0:
                self.jobs.noticed[other] = True
                self.running.expect(
                    other, min(self.jobs.end[other], now + self.victims.grace_of(other))
                )
                continue
            self.running.complete(other, now)
            self.stopped[self.num_stopped] = other
            self.num_stopped += 1
        return True

    @compiled
    def end(self) -> cython.void:
        """Drop those who have started from the queue; who preempts may be looked at again."""
        for at in range(self.queue.count):
            self.jobs.is_preempting[self.queue.job[at]] = False
        self.queue.sweep()

    @compiled
    def start(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        """Let a job run from now on, on the nodes of its stay."""
        self.running.run(job, part, now)
        self.job[self.count] = job
        self.part[self.count] = part
        self.count += 1
