"""`SlurmRunning`: the jobs that run under Slurm, in order of their expected ends."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_jobs import SLURM_OVER, SLURM_RUNNING, SlurmJobs
from windtunnel.kernel.slurm_limits import SlurmLicenses, SlurmLimits
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays


@cython.final
@cython.cclass
class SlurmRunning:
    """Who runs, and what that takes of nodes, limits, licences and arrays.

    Args:
        nodes, limits, licenses: parts of `SlurmLoops`.
        array_limit: by array: how many of its tasks may run at once; 0 = any number.

    Attributes:
        count, by_end: those who run, in order of their expected ends.
        array_running: by array: how many of its tasks run.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    limits: SlurmLimits
    licenses: SlurmLicenses
    count: cython.int
    by_end: cython.int[::1]
    array_limit: cython.int[::1]
    array_running: cython.int[::1]

    def __init__(
        self,
        nodes: SlurmNodes,
        limits: SlurmLimits,
        licenses: SlurmLicenses,
        array_limit: list[int],
    ) -> None:
        self.nodes, self.limits, self.licenses = nodes, limits, licenses
        self.jobs, self.stays = limits.jobs, limits.stays
        self.by_end = numpy.zeros(max(self.jobs.count, 1), dtype=numpy.int32)
        self.array_limit = numpy.array([*array_limit, 0], dtype=numpy.int32)
        self.clear()

    def clear(self) -> None:
        """Let nobody run."""
        self.count = 0
        self.licenses.clear()
        self.array_running = numpy.zeros(len(self.array_limit), dtype=numpy.int32)

    @compiled
    def run(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.void:
        """Let a job run on the nodes of its stay."""
        self.jobs.status[job] = SLURM_RUNNING
        self.jobs.part[job] = part
        self.jobs.start[job] = start
        self.jobs.end[job] = start + self.jobs.limit[job]
        self.jobs.noticed[job] = self.jobs.is_ending[job] = False
        self.jobs.preempts_since[job] = -1
        self.nodes.turn(self.stays, job, 1)
        self.limits.turn(job, 1)
        self.licenses.turn(job, 1)
        if self.jobs.array[job] >= 0:
            self.array_running[self.jobs.array[job]] += 1
        self._add(job)

    @compiled
    def _add(self, job: cython.int) -> cython.void:
        """Keep those who run in order of their ends; of equal ends, in order of their job ids."""
        at: cython.int = self.count
        while at > 0:
            other = self.by_end[at - 1]
            if self.jobs.end[other] < self.jobs.end[job]:
                break
            if (
                self.jobs.end[other] == self.jobs.end[job]
                and self.jobs.identity[other] < self.jobs.identity[job]
            ):
                break
            self.by_end[at] = other
            at -= 1
        self.by_end[at] = job
        self.count += 1

    @compiled
    def expect(self, job: cython.int, end: cython.longlong) -> cython.void:
        """Say when a running job is expected to end, if not at its time limit."""
        self._drop(job)
        self.jobs.end[job] = end
        self._add(job)

    @compiled
    def complete(self, job: cython.int, end: cython.longlong) -> cython.void:
        """Let a job's script have ended: its nodes are completing until `leave`."""
        self.expect(job, end)
        self.jobs.is_ending[job] = True
        self._count_completing(job, 1)

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Let a job have given back its nodes."""
        self._drop(job)
        self.jobs.status[job] = SLURM_OVER
        self.nodes.turn(self.stays, job, -1)
        self.limits.turn(job, -1)
        self.licenses.turn(job, -1)
        if self.jobs.array[job] >= 0:
            self.array_running[self.jobs.array[job]] -= 1
        if self.jobs.is_ending[job]:
            self._count_completing(job, -1)
            self.jobs.is_ending[job] = False

    @compiled
    def _count_completing(self, job: cython.int, sign: cython.int) -> cython.void:
        for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
            self.nodes.completing[self.stays.node[at]] += sign

    @compiled
    def _drop(self, job: cython.int) -> cython.void:
        kept: cython.int = 0
        for at in range(self.count):
            if self.by_end[at] != job:
                self.by_end[kept] = self.by_end[at]
                kept += 1
        self.count = kept

    @compiled
    def is_throttled(self, job: cython.int) -> cython.bint:
        """Return whether as many tasks of a job's array run as may."""
        array: cython.int = self.jobs.array[job]
        if array < 0 or self.array_limit[array] <= 0:
            return False
        return self.array_running[array] >= self.array_limit[array]
