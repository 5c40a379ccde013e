"""`SlurmProspects`: whether a backfill cycle can still start anybody.

Within a cycle, where nobody is preempted, nodes only fill up and reservations only grow. What a
cycle reserves is forgotten at its end. So once none of the jobs to come can begin now, by what is
free and not reserved, nothing it would do further has any consequence.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_candidates import SlurmCandidates
from windtunnel.kernel.slurm_jobs import SLURM_PENDING, SlurmJobs
from windtunnel.kernel.slurm_limits import SlurmLimits
from windtunnel.kernel.slurm_nodes import SlurmNodes
from windtunnel.kernel.slurm_queue import SlurmQueue
from windtunnel.kernel.slurm_running import SlurmRunning

#: Later than any reservation.
FOREVER = cython.declare(cython.longlong, 1 << 62)


@cython.final
@cython.cclass
class SlurmProspects:
    """Who of a cycle's queue could still begin in it.

    Attributes:
        reserved: from when on each node is reserved, s.
        last: the last entry of the queue that could begin.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    limits: SlurmLimits
    queue: SlurmQueue
    running: SlurmRunning
    candidates: SlurmCandidates
    reserved: cython.longlong[::1]
    last: cython.int

    def __init__(
        self, queue: SlurmQueue, running: SlurmRunning, candidates: SlurmCandidates
    ) -> None:
        self.nodes, self.jobs, self.limits = running.nodes, running.jobs, running.limits
        self.queue, self.running, self.candidates = queue, running, candidates
        self.reserved = numpy.zeros(max(self.nodes.count, 1), dtype=numpy.int64)
        self.last = -1

    @compiled
    def begin(self) -> cython.void:
        """Begin a cycle: nothing is reserved."""
        for node in range(self.nodes.count):
            self.reserved[node] = FOREVER
        self.last = self.queue.count - 1

    @compiled
    def reserve(self, chosen: cython.schar[::1], start: cython.longlong) -> cython.void:
        """Note that nodes are reserved from a time on."""
        for node in range(self.nodes.count):
            if chosen[node] and start < self.reserved[node]:
                self.reserved[node] = start

    @compiled
    def are_over(self, entry: cython.int, now: cython.longlong) -> cython.bint:
        """Return whether nobody from an entry of the queue on can begin now."""
        while self.last >= entry and not self._may_begin(self.last, now):
            self.last -= 1
        return self.last < entry

    @compiled
    def may_any_begin(self) -> cython.bint:
        """Return whether somebody who waits might find nodes, were nothing reserved."""
        self.begin()
        return not self.are_over(0, 0)

    @compiled
    def _may_begin(self, entry: cython.int, now: cython.longlong) -> cython.bint:
        """Return whether a job might find its nodes, and no limit forbids it."""
        job: cython.int = self.queue.job[entry]
        if self.jobs.status[job] != SLURM_PENDING:
            return False
        if not self._has_nodes(job, self.queue.part[entry], now + self.jobs.limit[job]):
            return False
        if self.running.is_throttled(job) or self.running.licenses.are_short(job):
            return False
        if self.limits.admits(job):
            return False
        return self.limits.refuses_anywhere(job) == 0

    @compiled
    def _has_nodes(self, job: cython.int, part: cython.int, end: cython.longlong) -> cython.bint:
        """Return whether as many nodes as a job needs have room and are not reserved until then."""
        found: cython.int = 0
        gpus: cython.int = self.jobs.node_gpus[job]
        cpus: cython.int = max(self.jobs.node_cpus[job], 1)
        row: cython.longlong = cython.cast(cython.longlong, part) * self.nodes.count
        mask: cython.longlong = cython.cast(cython.longlong, self.jobs.mask[job]) * self.nodes.count
        for node in range(self.nodes.count):
            if self.reserved[node] <= end or not self.candidates.part_node[row + node]:
                continue
            if self.nodes.free[node] < cpus or self.nodes.free_gpus[node] < gpus:
                continue
            if not self.nodes.up[node]:
                continue
            if mask >= 0 and not self.candidates.masks[mask + node]:
                continue
            found += 1
            if found >= self.jobs.min_nodes[job]:
                return True
        return False
