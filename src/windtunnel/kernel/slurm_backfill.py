"""`SlurmBackfill`: slurmctld's backfill cycle, which reserves nodes for each job it tests.

A job that cannot start now gets whole nodes, in coarse slots of time, from when it could start.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_jobs import SLURM_ARRAY_LIMIT, SLURM_LICENSES, SLURM_PENDING
from windtunnel.kernel.slurm_loop import SlurmLoop
from windtunnel.kernel.slurm_nodes import SlurmNodes
from windtunnel.kernel.slurm_prospects import SlurmProspects
from windtunnel.kernel.slurm_slots import SlurmSlots

#: A group of ends that are simulated together begins with so many seconds, and has so many at most.
BACKFILL_WINDOW = cython.declare(cython.longlong, 30)
BACKFILL_GROUP = cython.declare(cython.int, 200)
#: Tries at later and later starts of one job, at most.
BACKFILL_TRIES = cython.declare(cython.int, 2000)


@cython.final
@cython.cclass
class SlurmBackfill(SlurmLoop):
    """The backfill cycle.

    Args:
        settings: whole numbers: those of ``bf_``, ``kill_wait``, ``over_time_limit``.
        parts: those of `SlurmLoop`.
    """

    future: SlurmNodes
    slots: SlurmSlots
    prospects: SlurmProspects
    resolution: cython.longlong
    window: cython.longlong
    window_linear: cython.longlong
    max_job_test: cython.int
    max_job_start: cython.int
    max_job_user: cython.int
    max_job_part: cython.int
    max_job_array: cython.int
    kill_wait: cython.longlong
    over_limit: cython.longlong
    # What this cycle has looked at or reserved for.
    user_tried: cython.int[::1]
    part_tried: cython.int[::1]
    array_reserved: cython.int[::1]
    # The test in hand: when the job could start, and whether others must be stopped for that.
    when: cython.longlong
    _must_preempt: cython.bint
    planned: cython.schar[::1]

    def __init__(self, settings: Any, *parts: Any) -> None:
        SlurmLoop.__init__(self, *parts)
        self.future = self.nodes.twin()
        self._take_settings(settings)
        self.slots = SlurmSlots(self.nodes.count, max(self.max_job_test, 1))
        self.prospects = SlurmProspects(*parts)
        users = int(numpy.asarray(self.jobs.user).max(initial=0)) + 1
        self.user_tried = numpy.zeros(users, dtype=numpy.int32)
        self.part_tried = numpy.zeros(self.candidates.parts, dtype=numpy.int32)
        self.array_reserved = numpy.zeros(len(self.running.array_limit), dtype=numpy.int32)
        self._must_preempt = False
        self.planned = numpy.zeros(max(self.nodes.count, 1), dtype=numpy.int8)

    def _take_settings(self, settings: Any) -> None:
        self.resolution = settings["bf_resolution"]
        self.window = settings["bf_window"]
        self.window_linear = settings["bf_window_linear"]
        self.max_job_test = settings["bf_max_job_test"]
        self.max_job_start = settings["bf_max_job_start"]
        self.max_job_user = settings["bf_max_job_user"]
        self.max_job_part = settings["bf_max_job_part"]
        self.max_job_array = settings["bf_max_job_array_resv"]
        self.kill_wait = settings["kill_wait"]
        self.over_limit = settings["over_time_limit"]

    @compiled
    def run(self, now: cython.longlong) -> cython.void:
        """Run one cycle."""
        tests: cython.int = 0
        is_over: cython.bint = False
        begin: cython.longlong = now // self.resolution * self.resolution
        end: cython.longlong = (now + self.window) // self.resolution * self.resolution
        self.begin()
        self.slots.clear(begin, end)
        self.prospects.begin()
        for at in range(self.array_reserved.shape[0]):
            self.array_reserved[at] = 0
        for at in range(self.user_tried.shape[0]):
            self.user_tried[at] = 0
        for at in range(self.candidates.parts):
            self.part_tried[at] = 0
        for at in range(self.queue.count):
            if self.jobs.status[self.queue.job[at]] != SLURM_PENDING:
                continue
            if self.jobs.is_preempting[self.queue.job[at]]:
                continue
            if self.max_job_start > 0 and self.started.count >= self.max_job_start:
                break
            if self.slots.records > self.slots.most:
                break
            if not self._may_test(self.queue.job[at], self.queue.part[at]):
                continue
            tests += 1
            if tests > self.max_job_test:
                break
            is_over = is_over or (not self.victims.any_rule and self.prospects.are_over(at, now))
            if is_over:
                self._note_limit(self.queue.job[at])
            else:
                self._test(self.queue.job[at], self.queue.part[at], now, begin)
        self.end()

    @compiled
    def _note_limit(self, job: cython.int) -> cython.void:
        """Note which limit keeps a job from running, if one does."""
        reason: cython.int = self.limits.admits_request(job)
        if reason:
            self.jobs.reason[job] = reason

    @compiled
    def _may_test(self, job: cython.int, part: cython.int) -> cython.bint:
        """Return whether a cycle looks at a job at all, by limits and by its own counts."""
        array: cython.int = self.jobs.array[job]
        if self.max_job_user > 0:
            self.user_tried[self.jobs.user[job]] += 1
            if self.user_tried[self.jobs.user[job]] > self.max_job_user:
                return False
        if self.max_job_part > 0:
            self.part_tried[part] += 1
            if self.part_tried[part] > self.max_job_part:
                return False
        if array >= 0:
            if self.running.is_throttled(job):
                self.jobs.reason[job] = SLURM_ARRAY_LIMIT
                return False
            if self.array_reserved[array] >= self.max_job_array:
                return False
            if (
                self.running.array_limit[array] > 0
                and self.running.array_running[array] + self.array_reserved[array]
                >= self.running.array_limit[array]
            ):
                return False
        reason = self.limits.admits(job)
        if reason:
            self.jobs.reason[job] = reason
            return False
        if self.running.licenses.are_short(job):
            self.jobs.reason[job] = SLURM_LICENSES
            return False
        return True

    @compiled
    def _test(
        self, job: cython.int, part: cython.int, now: cython.longlong, begin: cython.longlong
    ) -> cython.void:
        """Start a job now, or reserve its nodes from when it could start."""
        start: cython.longlong = now
        tries: cython.int = 0
        while tries < BACKFILL_TRIES:
            tries += 1
            later = self._narrow(job, part, start)
            if later < 0:
                return
            if self.candidates.count() < self.jobs.min_nodes[job]:
                if later == 0:
                    return
                start = later
                continue
            if not self._will_run(job, part, now):
                return
            self.when = max(self.when, start)
            if self.when > now:
                reason = self.limits.admits_request(job)
                if reason:
                    self.jobs.reason[job] = reason
                    return
            if self.when <= now:
                if self._is_completing():
                    self.when = now + 1
                    later = 0
                elif self._must_preempt:
                    self._preempt_there(job, part, now)
                    self.when = now
                    later = 0
                else:
                    self.choice.write(self.nodes, self.stays, job)
                    reason = self.limits.admits_stay(job)
                    if reason:
                        self.jobs.reason[job] = reason
                    else:
                        self.start(job, part, now)
                    return
            if later > 0 and self.when > later:
                start = later
                continue
            if self.when > now + self.window:
                return
            first = self.when // self.resolution * self.resolution
            last = (self.when + self.jobs.limit[job]) // self.resolution * self.resolution
            if last == first:
                last += self.resolution
            if self.slots.is_reserved(self.choice.chosen, first, last):
                start = self.when
                if later > 0:
                    start = max(start, later)
                if self._must_preempt:
                    return
                continue
            self.slots.reserve(self.choice.chosen, first, last)
            if first < self.slots.until:
                self.prospects.reserve(self.choice.chosen, first)
            if self.jobs.array[job] >= 0:
                self.array_reserved[self.jobs.array[job]] += 1
            return

    @compiled
    def _narrow(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.longlong:
        """Mark the nodes that a job may use from ``start`` to its end.

        Returns:
            When other nodes may be had, s; 0 = never, -1 = the job cannot start at all.
        """
        self.candidates.mark(job, part)
        if self.candidates.apply_holds(job, part, start):
            return -1
        later = self.slots.narrow(self.choice.candidate, start, start + self.jobs.limit[job])
        for hold in range(self.candidates.holds):
            change = self.candidates.hold_end[hold] + self.resolution - 1
            change = change // self.resolution * self.resolution
            if self.candidates.hold_start[hold] >= start + self.jobs.limit[job]:
                continue
            if change > start and (later == 0 or change < later) and change < self.slots.end[0]:
                later = change
        return later

    @compiled
    def _preempt_there(
        self, job: cython.int, part: cython.int, now: cython.longlong
    ) -> cython.void:
        """Stop others on the nodes chosen; they stay chosen."""
        for node in range(self.nodes.count):
            self.choice.candidate[node] = self.planned[node] = self.choice.chosen[node]
        self.preempt_for(job, part, now)
        for node in range(self.nodes.count):
            self.choice.chosen[node] = self.planned[node]

    @compiled
    def _is_completing(self) -> cython.bint:
        for node in range(self.nodes.count):
            if self.choice.chosen[node] and self.nodes.completing[node] > 0:
                return True
        return False

    @compiled
    def _will_run(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.bint:
        """Find when a job could start on the candidates, as those who run leave (``when``).

        If that is now, but for jobs that it may preempt, it must preempt them.
        """
        self._must_preempt = False
        if self.choice.fit(self.nodes, job, part):
            self.when = now
            return True
        self.future.copy_from(self.nodes)
        if self.victims.find(job, part, now, self.running.by_end, self.running.count) > 0:
            self.victims.without_all(self.future)
            if self.choice.fit(self.future, job, part):
                self._must_preempt = True
                self.when = now
                self.victims.unmark()
                return True
        fits = self._fits_later(job, part, now)
        self.victims.unmark()
        return fits

    @compiled
    def _fits_later(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.bint:
        """Find when a job could start as those who run end, in groups; candidates are gone."""
        at: cython.int = 0
        window: cython.longlong = BACKFILL_WINDOW
        first_end: cython.longlong = -1
        while at < self.running.count:
            last = -1
            group = 0
            while at < self.running.count:
                other = self.running.by_end[at]
                at += 1
                is_there = self.stays.is_on(other, self.choice.candidate)
                if self.victims.is_listed[other] or not is_there:
                    continue
                if first_end < 0:
                    first_end = (self.jobs.end[other] // BACKFILL_WINDOW + 1) * BACKFILL_WINDOW
                last = other
                self.future.turn(self.stays, other, -1)
                group += 1
                if group > BACKFILL_GROUP or at >= self.running.count:
                    break
                if self.jobs.end[self.running.by_end[at]] > first_end + window:
                    break
            if last < 0:
                return False
            if self.choice.fit(self.future, job, part):
                self.when = self._expected_end(last, now)
                return True
            while True:
                window = window + self.window_linear if self.window_linear > 0 else 2 * window
                if at >= self.running.count:
                    break
                if self.jobs.end[self.running.by_end[at]] <= first_end + window:
                    break
        return False

    @compiled
    def _expected_end(self, job: cython.int, now: cython.longlong) -> cython.longlong:
        """Return when a running job will end, as far as slurmctld can tell."""
        end: cython.longlong = self.jobs.end[job]
        if end > now:
            return end
        return max(end + self.kill_wait + self.over_limit, now + 1)
