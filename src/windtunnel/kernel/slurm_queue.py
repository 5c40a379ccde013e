"""`SlurmQueue`: the jobs that wait, by partition, in slurmctld's order."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer
from windtunnel.kernel.slurm_jobs import SLURM_PENDING, SlurmJobs
from windtunnel.kernel.slurm_victims import SlurmVictims


@cython.final
@cython.cclass
class SlurmQueue:
    """Entries in order: a job in one of the partitions in which it may start.

    Args:
        victims: who may take whose place.
        part_tier: by partition.

    Attributes:
        count: how many entries there are.
        job, part: the entries.
    """

    jobs: SlurmJobs
    victims: SlurmVictims
    part_tier: cython.int[::1]
    count: cython.int
    capacity: cython.int
    job: cython.int[::1]
    part: cython.int[::1]

    def __init__(self, victims: SlurmVictims, part_tier: list[int]) -> None:
        self.jobs, self.victims = victims.jobs, victims
        self.part_tier = numpy.array(part_tier, dtype=numpy.int32)
        self.count = 0
        self.capacity = 64
        self.job = numpy.zeros(self.capacity, dtype=numpy.int32)
        self.part = numpy.zeros(self.capacity, dtype=numpy.int32)

    @compiled
    def comes_before(
        self, job: cython.int, part: cython.int, other: cython.int, other_part: cython.int
    ) -> cython.bint:
        """Return whether an entry of the queue stands before another."""
        if self.victims.may_preempt(job, part, other, other_part):
            return True
        if self.victims.may_preempt(other, other_part, job, part):
            return False
        if (self.jobs.hold[job] >= 0) != (self.jobs.hold[other] >= 0):
            return self.jobs.hold[job] >= 0
        if self.part_tier[part] != self.part_tier[other_part]:
            return self.part_tier[part] > self.part_tier[other_part]
        if self.jobs.priority[job] != self.jobs.priority[other]:
            return self.jobs.priority[job] > self.jobs.priority[other]
        if self.jobs.submitted[job] != self.jobs.submitted[other]:
            return self.jobs.submitted[job] < self.jobs.submitted[other]
        if self.jobs.identity[job] != self.jobs.identity[other]:
            return self.jobs.identity[job] < self.jobs.identity[other]
        if self.jobs.task[job] != self.jobs.task[other]:
            return self.jobs.task[job] < self.jobs.task[other]
        return part < other_part

    def _grow(self) -> None:
        capacity = 2 * self.capacity
        self.job = longer(self.job, capacity)
        self.part = longer(self.part, capacity)
        self.capacity = capacity

    @compiled
    def enqueue(self, job: cython.int) -> cython.void:
        """Let a job wait, in each of its partitions."""
        self.jobs.status[job] = SLURM_PENDING
        for at in range(self.jobs.first_part[job], self.jobs.first_part[job + 1]):
            self._insert(job, self.jobs.parts[at])

    @compiled
    def _insert(self, job: cython.int, part: cython.int) -> cython.void:
        low: cython.int = 0
        high: cython.int = self.count
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        while low < high:
            middle = (low + high) // 2
            if self.comes_before(job, part, self.job[middle], self.part[middle]):
                high = middle
            else:
                low = middle + 1
        at = self.count
        while at > low:
            self.job[at] = self.job[at - 1]
            self.part[at] = self.part[at - 1]
            at -= 1
        self.job[low] = job
        self.part[low] = part
        self.count += 1

    @compiled
    def sweep(self) -> cython.void:
        """Drop the entries of jobs that wait no longer."""
        kept: cython.int = 0
        for at in range(self.count):
            if self.jobs.status[self.job[at]] == SLURM_PENDING:
                self.job[kept] = self.job[at]
                self.part[kept] = self.part[at]
                kept += 1
        self.count = kept

    @compiled
    def reorder(self) -> cython.void:
        """Put the queue in order again: priorities have changed."""
        for at in range(1, self.count):
            job = self.job[at]
            part = self.part[at]
            to = at
            while to > 0 and self.comes_before(job, part, self.job[to - 1], self.part[to - 1]):
                self.job[to] = self.job[to - 1]
                self.part[to] = self.part[to - 1]
                to -= 1
            self.job[to] = job
            self.part[to] = part
