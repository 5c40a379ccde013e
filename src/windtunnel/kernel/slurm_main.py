"""`SlurmMain`: slurmctld's main loop, which starts jobs from the front of the queue."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_jobs import (
    SLURM_ARRAY_LIMIT,
    SLURM_LICENSES,
    SLURM_NOT_AVAILABLE,
    SLURM_PENDING,
    SLURM_PRIORITY,
    SLURM_RESOURCES,
)
from windtunnel.kernel.slurm_loop import SlurmLoop
from windtunnel.kernel.slurm_nodes import SlurmNodes


@cython.final
@cython.cclass
class SlurmMain(SlurmLoop):
    """The main loop.

    Args:
        settings: ``default_queue_depth``, ``partition_job_depth``, ``sched_max_job_start``,
            ``assoc_limit_stop``.
        parts: those of `SlurmLoop`.
    """

    bare: SlurmNodes  # with nobody on them
    # Where nobody starts any more in this run, since one that comes before waits there.
    part_failed: cython.schar[::1]
    hold_failed: cython.schar[::1]
    blocked: cython.schar[::1]
    part_tried: cython.int[::1]
    queue_depth: cython.int
    part_depth: cython.int
    max_starts: cython.int
    limits_stop: cython.bint

    def __init__(self, settings: Any, *parts: Any) -> None:
        SlurmLoop.__init__(self, *parts)
        self.bare = self.nodes.twin()
        self.bare.empty()
        self.part_failed = numpy.zeros(self.candidates.parts, dtype=numpy.int8)
        self.part_tried = numpy.zeros(self.candidates.parts, dtype=numpy.int32)
        self.blocked = numpy.zeros(max(self.nodes.count, 1), dtype=numpy.int8)
        self.expect_holds()
        self.queue_depth = settings["default_queue_depth"]
        self.part_depth = settings["partition_job_depth"]
        self.max_starts = settings["sched_max_job_start"]
        self.limits_stop = bool(settings["assoc_limit_stop"])

    def expect_holds(self) -> None:
        """Allocate the reservations that there are now."""
        self.hold_failed = numpy.zeros(self.candidates.holds + 1, dtype=numpy.int8)

    @compiled
    def run(self, now: cython.longlong, is_full: cython.bint) -> cython.void:
        """Run the loop once.

        Args:
            now: s.
            is_full: look at the whole queue, and not only at its first jobs.
        """
        depth: cython.int = 0
        self.begin()
        for at in range(self.candidates.parts):
            self.part_failed[at] = False
            self.part_tried[at] = 0
        for at in range(self.candidates.holds):
            self.hold_failed[at] = False
        for at in range(self.nodes.count):
            self.blocked[at] = False
        for at in range(self.queue.count):
            job = self.queue.job[at]
            part = self.queue.part[at]
            if self.jobs.status[job] != SLURM_PENDING or self.jobs.is_preempting[job]:
                continue
            if self.max_starts > 0 and self.started.count >= self.max_starts:
                break
            if not is_full and depth > self.queue_depth:
                break
            depth += 1
            self._consider(job, part, now)
        self.end()

    @compiled
    def _consider(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        """Start the main loop's next job if it can; note what it blocks if it cannot."""
        hold: cython.int = self.jobs.hold[job]
        if self.running.is_throttled(job):
            self.jobs.reason[job] = SLURM_ARRAY_LIMIT
            return
        if self.part_failed[part] if hold < 0 else self.hold_failed[hold]:
            self._postpone(job)
            return
        if self.part_depth > 0:
            self.part_tried[part] += 1
            if self.part_tried[part] > self.part_depth:
                return
        reason = self.limits.admits(job)
        if reason:
            self.jobs.reason[job] = reason
            if self.limits_stop:
                self._fail(job, part)
            return
        if self.running.licenses.are_short(job):
            self.jobs.reason[job] = SLURM_LICENSES
            return
        reason = self._place_now(job, part, now)
        if reason == 0:
            limited = self.limits.admits_stay(job)
            if limited == 0:
                self.start(job, part, now)
                return
        else:
            limited = self.limits.admits_request(job)
        if limited:
            self.jobs.reason[job] = limited
            if self.limits_stop:
                self._fail(job, part)
            return
        self.jobs.reason[job] = reason
        if reason == SLURM_RESOURCES or reason == SLURM_NOT_AVAILABLE:
            self._fail(job, part)

    @compiled
    def _postpone(self, job: cython.int) -> cython.void:
        """Say that a job waits for those before it, unless something else is known of it."""
        reason: cython.int = self.jobs.reason[job]
        if reason == 0 or reason == SLURM_RESOURCES or reason == SLURM_NOT_AVAILABLE:
            self.jobs.reason[job] = SLURM_PRIORITY

    @compiled
    def _fail(self, job: cython.int, part: cython.int) -> cython.void:
        """Let nobody of a partition, or of a reservation, start any more in this run."""
        if self.jobs.hold[job] >= 0:
            self.hold_failed[self.jobs.hold[job]] = True
            return
        self.part_failed[part] = True
        for node in range(self.nodes.count):
            if self.candidates.part_node[part * self.nodes.count + node]:
                self.blocked[node] = True

    @compiled
    def _place_now(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.int:
        """Write where a job would start now as its stay; return why it cannot, 0 if it can."""
        self.candidates.mark(job, part)
        reason = self.candidates.apply_holds(job, part, now)
        if reason:
            return reason
        for node in range(self.nodes.count):
            if self.blocked[node]:
                self.choice.candidate[node] = False
        if self.candidates.count() < self.jobs.min_nodes[job]:
            return SLURM_NOT_AVAILABLE
        fits = self.choice.fit(self.bare, job, part)
        if not fits:
            return SLURM_NOT_AVAILABLE
        for node in range(self.nodes.count):
            if self.nodes.completing[node] > 0:
                self.choice.candidate[node] = False
        self.limits.mark_own(self.choice.preferred, job)
        fits = self.choice.fit(self.nodes, job, part)
        if not fits:
            self.preempt_for(job, part, now)
        for node in range(self.nodes.count):
            self.choice.preferred[node] = False
        if not fits:
            return SLURM_RESOURCES
        self.choice.write(self.nodes, self.stays, job)
        return 0
