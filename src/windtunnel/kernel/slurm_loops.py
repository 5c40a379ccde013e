"""`SlurmLoops`: the two loops of slurmctld that start jobs, the main loop and the backfill cycle.

Both look at the present state and start jobs; when they are called is another's business
(`windtunnel.kernel.slurm_rule`), so that they can be asked about a recorded state, too. All times
are whole seconds.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer
from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import (
    SLURM_ARRAY_LIMIT,
    SLURM_MAINTENANCE,
    SLURM_NOT_AVAILABLE,
    SLURM_OVER,
    SLURM_PENDING,
    SLURM_PRIORITY,
    SLURM_RESERVATION,
    SLURM_RESOURCES,
    SLURM_RUNNING,
    SlurmJobs,
)
from windtunnel.kernel.slurm_limits import SlurmLimits
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays
from windtunnel.kernel.slurm_slots import SlurmSlots
from windtunnel.kernel.slurm_victims import SlurmVictims

#: A group of ends that are simulated together begins with so many seconds, and has so many at most.
LOOPS_WINDOW = cython.declare(cython.longlong, 30)
LOOPS_GROUP = cython.declare(cython.int, 200)
#: Tries at later and later starts of one job, at most.
LOOPS_TRIES = cython.declare(cython.int, 2000)


@cython.final
@cython.cclass
class SlurmLoops:
    """The cluster's state, and the two loops.

    Args:
        nodes, jobs, stays, choice, limits, victims: the parts.
        site: partitions, reservations, masks: ``part_nodes`` (rows of 0/1), ``part_tier``,
            ``hold_nodes``, ``hold_start``, ``hold_end``, ``hold_covers`` (reservations by
            partitions: whether all of its nodes are closed), ``masks``, ``array_limit``.
        settings: whole numbers: ``default_queue_depth``, ``partition_job_depth``,
            ``sched_max_job_start``, ``assoc_limit_stop``, and those of ``bf_``.

    Attributes:
        entry_job, entry_part: the queue, jobs by partition, in order.
        started: jobs that the last call started, in order.
        stopped: jobs that the last call stopped so that others may start; their nodes are
            completing until `leave`.
    """

    nodes: SlurmNodes
    future: SlurmNodes
    bare: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    choice: SlurmChoice
    limits: SlurmLimits
    victims: SlurmVictims
    slots: SlurmSlots
    # The site.
    parts: cython.int
    part_node: cython.schar[::1]
    part_tier: cython.int[::1]
    part_failed: cython.schar[::1]
    part_tried: cython.int[::1]
    masks: cython.schar[::1]
    blocked: cython.schar[::1]
    holds: cython.int
    hold_node: cython.schar[::1]
    hold_start: cython.longlong[::1]
    hold_end: cython.longlong[::1]
    hold_covers: cython.schar[::1]
    hold_failed: cython.schar[::1]
    array_limit: cython.int[::1]
    array_running: cython.int[::1]
    array_reserved: cython.int[::1]
    # The queue, and who runs.
    entries: cython.int
    entry_room: cython.int
    entry_job: cython.int[::1]
    entry_part: cython.int[::1]
    num_running: cython.int
    running: cython.int[::1]
    by_end: cython.int[::1]
    is_sorted: cython.bint
    num_started: cython.int
    started: cython.int[::1]
    started_part: cython.int[::1]
    num_stopped: cython.int
    stopped: cython.int[::1]
    # Settings.
    queue_depth: cython.int
    part_depth: cython.int
    max_starts: cython.int
    limits_stop: cython.bint
    bf_resolution: cython.longlong
    bf_window: cython.longlong
    bf_max_test: cython.int
    bf_max_start: cython.int
    bf_max_user: cython.int
    bf_max_part: cython.int
    bf_max_array: cython.int
    bf_linear: cython.longlong
    kill_wait: cython.longlong
    over_limit: cython.longlong
    user_tried: cython.int[::1]
    part_cycle: cython.int[::1]
    # The test in hand: when the job could start, and whether others must be stopped for that.
    when: cython.longlong
    _needs_room: cython.bint
    planned: cython.schar[::1]

    def __init__(
        self,
        nodes: SlurmNodes,
        jobs: SlurmJobs,
        stays: SlurmStays,
        choice: SlurmChoice,
        limits: SlurmLimits,
        victims: SlurmVictims,
        site: Any,
        settings: Any,
    ) -> None:
        self.nodes, self.jobs, self.stays = nodes, jobs, stays
        self.choice, self.limits, self.victims = choice, limits, victims
        self.future, self.bare = nodes.twin(), nodes.twin()
        self.bare.empty()
        self._take_site(site)
        self._take_settings(settings)
        count = max(jobs.count, 1)
        self.slots = SlurmSlots(nodes.count, max(self.bf_max_test, 1))
        self.entries = 0
        self.entry_room = 64
        self.entry_job = numpy.zeros(self.entry_room, dtype=numpy.int32)
        self.entry_part = numpy.zeros(self.entry_room, dtype=numpy.int32)
        self.num_running = self.num_started = self.num_stopped = 0
        self.running = numpy.zeros(count, dtype=numpy.int32)
        self.by_end = numpy.zeros(count, dtype=numpy.int32)
        self.started = numpy.zeros(count, dtype=numpy.int32)
        self.started_part = numpy.zeros(count, dtype=numpy.int32)
        self.stopped = numpy.zeros(count, dtype=numpy.int32)
        users = int(numpy.asarray(jobs.user).max(initial=0)) + 1
        self.user_tried = numpy.zeros(users, dtype=numpy.int32)
        self._needs_room = False
        self.planned = numpy.zeros(max(nodes.count, 1), dtype=numpy.int8)

    def _take_site(self, site: Any) -> None:
        count = self.nodes.count
        self.parts = len(site["part_tier"])
        self.part_node = _rows(site["part_nodes"], count)
        self.part_tier = numpy.array(site["part_tier"], dtype=numpy.int32)
        self.part_failed = numpy.zeros(self.parts, dtype=numpy.int8)
        self.part_tried = numpy.zeros(self.parts, dtype=numpy.int32)
        self.part_cycle = numpy.zeros(self.parts, dtype=numpy.int32)
        self.masks = _rows(site["masks"], count)
        self.blocked = numpy.zeros(max(count, 1), dtype=numpy.int8)
        self.set_holds(site)
        self.array_limit = numpy.array([*site["array_limit"], 0], dtype=numpy.int32)
        self.array_running = numpy.zeros(len(self.array_limit), dtype=numpy.int32)
        self.array_reserved = numpy.zeros(len(self.array_limit), dtype=numpy.int32)

    def set_holds(self, site: Any) -> None:
        """Say which advance reservations there are."""
        self.holds = len(site["hold_start"])
        self.hold_node = _rows(site["hold_nodes"], self.nodes.count)
        self.hold_start = numpy.array([*site["hold_start"], 0], dtype=numpy.int64)
        self.hold_end = numpy.array([*site["hold_end"], 0], dtype=numpy.int64)
        self.hold_covers = _rows(site["hold_covers"], self.parts)
        self.hold_failed = numpy.zeros(self.holds + 1, dtype=numpy.int8)

    def _take_settings(self, settings: Any) -> None:
        self.queue_depth = settings["default_queue_depth"]
        self.part_depth = settings["partition_job_depth"]
        self.max_starts = settings["sched_max_job_start"]
        self.limits_stop = bool(settings["assoc_limit_stop"])
        self.bf_resolution = settings["bf_resolution"]
        self.bf_window = settings["bf_window"]
        self.bf_max_test = settings["bf_max_job_test"]
        self.bf_max_start = settings["bf_max_job_start"]
        self.bf_max_user = settings["bf_max_job_user"]
        self.bf_max_part = settings["bf_max_job_part"]
        self.bf_max_array = settings["bf_max_job_array_resv"]
        self.bf_linear = settings["bf_window_linear"]
        self.kill_wait = settings["kill_wait"]
        self.over_limit = settings["over_time_limit"]

    # The queue.

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
        if self.jobs.identity[job] != self.jobs.identity[other]:
            return self.jobs.identity[job] < self.jobs.identity[other]
        if self.jobs.task[job] != self.jobs.task[other]:
            return self.jobs.task[job] < self.jobs.task[other]
        return part < other_part

    def _grow(self) -> None:
        self.entry_room = 2 * self.entry_room
        self.entry_job = longer(self.entry_job, self.entry_room)
        self.entry_part = longer(self.entry_part, self.entry_room)

    @compiled
    def enqueue(self, job: cython.int) -> cython.void:
        """Let a job wait, in each of its partitions."""
        at: cython.int
        self.jobs.status[job] = SLURM_PENDING
        for at in range(
            self.jobs.first_part[job], self.jobs.first_part[job] + self.jobs.num_parts[job]
        ):
            self._insert(job, self.jobs.parts[at])

    @compiled
    def _insert(self, job: cython.int, part: cython.int) -> cython.void:
        low: cython.int = 0
        high: cython.int = self.entries
        middle: cython.int
        at: cython.int
        if self.entries == self.entry_room:
            with cython.gil:
                self._grow()
        while low < high:
            middle = (low + high) // 2
            if self.comes_before(job, part, self.entry_job[middle], self.entry_part[middle]):
                high = middle
            else:
                low = middle + 1
        at = self.entries
        while at > low:
            self.entry_job[at] = self.entry_job[at - 1]
            self.entry_part[at] = self.entry_part[at - 1]
            at -= 1
        self.entry_job[low] = job
        self.entry_part[low] = part
        self.entries += 1

    @compiled
    def sweep(self) -> cython.void:
        """Drop the entries of jobs that wait no longer."""
        at: cython.int
        kept: cython.int = 0
        for at in range(self.entries):
            if self.jobs.status[self.entry_job[at]] == SLURM_PENDING:
                self.entry_job[kept] = self.entry_job[at]
                self.entry_part[kept] = self.entry_part[at]
                kept += 1
        self.entries = kept

    @compiled
    def reorder(self) -> cython.void:
        """Put the queue in order again: priorities have changed."""
        at: cython.int
        to: cython.int
        job: cython.int
        part: cython.int
        for at in range(1, self.entries):
            job = self.entry_job[at]
            part = self.entry_part[at]
            to = at
            while to > 0 and self.comes_before(
                job, part, self.entry_job[to - 1], self.entry_part[to - 1]
            ):
                self.entry_job[to] = self.entry_job[to - 1]
                self.entry_part[to] = self.entry_part[to - 1]
                to -= 1
            self.entry_job[to] = job
            self.entry_part[to] = part

    # Who runs.

    @compiled
    def run(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.void:
        """Let a job run on the nodes of its stay."""
        self.jobs.status[job] = SLURM_RUNNING
        self.jobs.part[job] = part
        self.jobs.start[job] = start
        self.jobs.end[job] = start + self.jobs.limit[job]
        self.jobs.noticed[job] = self.jobs.is_ending[job] = False
        self.jobs.preempts_since[job] = -1
        self.nodes.take(self.stays, job)
        self.limits.turn(self.stays, job, 1)
        if self.jobs.array[job] >= 0:
            self.array_running[self.jobs.array[job]] += 1
        self._add_running(job)

    @compiled
    def _add_running(self, job: cython.int) -> cython.void:
        """Keep those who run in order of their ends; of equal ends, in order of their job ids."""
        at: cython.int = self.num_running
        other: cython.int
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
        self.num_running += 1

    @compiled
    def expect(self, job: cython.int, end: cython.longlong) -> cython.void:
        """Say when a running job is expected to end, if not at its time limit."""
        self._drop_running(job)
        self.jobs.end[job] = end
        self._add_running(job)

    @compiled
    def complete(self, job: cython.int, end: cython.longlong) -> cython.void:
        """Let a job's script have ended: its nodes are completing until `leave`."""
        at: cython.longlong
        self.expect(job, end)
        self.jobs.is_ending[job] = True
        for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
            self.nodes.completing[self.stays.node[at]] += 1

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Let a job have given back its nodes."""
        at: cython.longlong
        self._drop_running(job)
        self.jobs.status[job] = SLURM_OVER
        self.nodes.give(self.stays, job)
        self.limits.turn(self.stays, job, -1)
        if self.jobs.array[job] >= 0:
            self.array_running[self.jobs.array[job]] -= 1
        if self.jobs.is_ending[job]:
            for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
                self.nodes.completing[self.stays.node[at]] -= 1
            self.jobs.is_ending[job] = False

    @compiled
    def _drop_running(self, job: cython.int) -> cython.void:
        at: cython.int
        kept: cython.int = 0
        for at in range(self.num_running):
            if self.by_end[at] != job:
                self.by_end[kept] = self.by_end[at]
                kept += 1
        self.num_running = kept

    # What a job may use.

    @compiled
    def _mark_candidates(self, job: cython.int, part: cython.int) -> cython.void:
        """Mark the nodes of a partition that are up and that a job may use."""
        node: cython.int
        row: cython.longlong = cython.cast(cython.longlong, part) * self.nodes.count
        mask: cython.longlong = cython.cast(cython.longlong, self.jobs.mask[job]) * self.nodes.count
        for node in range(self.nodes.count):
            self.choice.candidate[node] = self.part_node[row + node] and self.nodes.up[node]
            if self.jobs.mask[job] >= 0:
                self.choice.candidate[node] &= self.masks[mask + node]

    @compiled
    def _apply_holds(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.int:
        """Take away the nodes that are reserved while a job would run.

        Returns:
            0, or why it cannot start then whatever nodes there are.
        """
        hold: cython.int
        node: cython.int
        own: cython.int = self.jobs.hold[job]
        end: cython.longlong = start + self.jobs.limit[job]
        for hold in range(self.holds):
            if hold == own:
                if start < self.hold_start[hold] or start >= self.hold_end[hold]:
                    return SLURM_RESERVATION
                for node in range(self.nodes.count):
                    self.choice.candidate[node] &= self.hold_node[hold * self.nodes.count + node]
            elif self.hold_start[hold] < end and self.hold_end[hold] > start:
                if own < 0 and self.hold_covers[hold * self.parts + part]:
                    return SLURM_MAINTENANCE
                for node in range(self.nodes.count):
                    if self.hold_node[hold * self.nodes.count + node]:
                        self.choice.candidate[node] = False
        return 0

    @compiled
    def _num_candidates(self) -> cython.int:
        node: cython.int
        found: cython.int = 0
        for node in range(self.nodes.count):
            found += self.choice.candidate[node]
        return found

    @compiled
    def _is_throttled(self, job: cython.int) -> cython.bint:
        array: cython.int = self.jobs.array[job]
        if array < 0 or self.array_limit[array] <= 0:
            return False
        return self.array_running[array] >= self.array_limit[array]

    # The main loop.

    @compiled
    def schedule(self, now: cython.longlong, is_full: cython.bint) -> cython.int:
        """Run the main loop once; return how many jobs it started.

        Args:
            now: s.
            is_full: look at the whole queue, and not only at its first jobs.
        """
        at: cython.int
        depth: cython.int = 0
        job: cython.int
        part: cython.int
        self.num_started = self.num_stopped = 0
        for at in range(self.parts):
            self.part_failed[at] = False
            self.part_tried[at] = 0
        for at in range(self.holds):
            self.hold_failed[at] = False
        for at in range(self.nodes.count):
            self.blocked[at] = False
        for at in range(self.entries):
            job = self.entry_job[at]
            part = self.entry_part[at]
            if self.jobs.status[job] != SLURM_PENDING or self.jobs.is_preempting[job]:
                continue
            if self.max_starts > 0 and self.num_started >= self.max_starts:
                break
            if not is_full and depth > self.queue_depth:
                break
            depth += 1
            self._consider(job, part, now)
        self._end_call()
        return self.num_started

    @compiled
    def _consider(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        """Start the main loop's next job if it can; note what it blocks if it cannot."""
        reason: cython.int
        limited: cython.int
        hold: cython.int = self.jobs.hold[job]
        if self._is_throttled(job):
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
        reason = self._place_now(job, part, now)
        if reason == 0:
            limited = self.limits.admits_stay(self.stays, job)
            if limited == 0:
                self._start(job, part, now)
                return
        else:
            limited = self.limits.admits_request(self.stays, job)
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
        node: cython.int
        if self.jobs.hold[job] >= 0:
            self.hold_failed[self.jobs.hold[job]] = True
            return
        self.part_failed[part] = True
        for node in range(self.nodes.count):
            if self.part_node[part * self.nodes.count + node]:
                self.blocked[node] = True

    @compiled
    def _place_now(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.int:
        """Write where a job would start now as its stay; return why it cannot, 0 if it can."""
        node: cython.int
        reason: cython.int
        fits: cython.bint
        self._mark_candidates(job, part)
        reason = self._apply_holds(job, part, now)
        if reason:
            return reason
        for node in range(self.nodes.count):
            if self.blocked[node]:
                self.choice.candidate[node] = False
        if self._num_candidates() < self.jobs.min_nodes[job]:
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
            self._make_room(job, part, now)
        for node in range(self.nodes.count):
            self.choice.preferred[node] = False
        if not fits:
            return SLURM_RESOURCES
        self.choice.write(self.nodes, self.stays, job)
        return 0

    @compiled
    def _make_room(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.bint:
        """Stop those in whose place a job may start on the candidates; it starts in a later run.

        Returns:
            Whether there are such jobs. Where it has stopped some a moment ago (which may take
            until now), they are left alone.
        """
        at: cython.int
        other: cython.int
        since: cython.longlong = self.jobs.preempts_since[job]
        if not self.victims.any_rule:
            return False
        if self.victims.find(job, part, now, self.by_end, self.num_running) == 0:
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
                self.expect(other, min(self.jobs.end[other], now + self.victims.grace_of(other)))
                continue
            self.complete(other, now)
            self.stopped[self.num_stopped] = other
            self.num_stopped += 1
        return True

    @compiled
    def _end_call(self) -> cython.void:
        """Drop those who have started from the queue; who preempts may be looked at again."""
        at: cython.int
        for at in range(self.entries):
            self.jobs.is_preempting[self.entry_job[at]] = False
        self.sweep()

    @compiled
    def _start(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        self.run(job, part, now)
        self.started[self.num_started] = job
        self.started_part[self.num_started] = part
        self.num_started += 1

    # The backfill cycle.

    @compiled
    def backfill(self, now: cython.longlong) -> cython.int:
        """Run one backfill cycle; return how many jobs it started."""
        at: cython.int
        tests: cython.int = 0
        begin: cython.longlong = now // self.bf_resolution * self.bf_resolution
        end: cython.longlong = (now + self.bf_window) // self.bf_resolution * self.bf_resolution
        self.num_started = self.num_stopped = 0
        self.slots.clear(begin, end)
        for at in range(self.array_reserved.shape[0]):
            self.array_reserved[at] = 0
        for at in range(self.user_tried.shape[0]):
            self.user_tried[at] = 0
        for at in range(self.parts):
            self.part_cycle[at] = 0
        for at in range(self.nodes.count):
            self.blocked[at] = False
        for at in range(self.entries):
            if self.jobs.status[self.entry_job[at]] != SLURM_PENDING:
                continue
            if self.jobs.is_preempting[self.entry_job[at]]:
                continue
            if self.bf_max_start > 0 and self.num_started >= self.bf_max_start:
                break
            if self.slots.records > self.slots.most:
                break
            if not self._may_test(self.entry_job[at], self.entry_part[at]):
                continue
            tests += 1
            if tests > self.bf_max_test:
                break
            self._test(self.entry_job[at], self.entry_part[at], now, begin)
        self._end_call()
        return self.num_started

    @compiled
    def _may_test(self, job: cython.int, part: cython.int) -> cython.bint:
        """Return whether a cycle looks at a job at all, by limits and by its own counts."""
        reason: cython.int
        array: cython.int = self.jobs.array[job]
        if self.bf_max_user > 0:
            self.user_tried[self.jobs.user[job]] += 1
            if self.user_tried[self.jobs.user[job]] > self.bf_max_user:
                return False
        if self.bf_max_part > 0:
            self.part_cycle[part] += 1
            if self.part_cycle[part] > self.bf_max_part:
                return False
        if array >= 0:
            if self._is_throttled(job):
                self.jobs.reason[job] = SLURM_ARRAY_LIMIT
                return False
            if self.array_reserved[array] >= self.bf_max_array:
                return False
            if (
                self.array_limit[array] > 0
                and self.array_running[array] + self.array_reserved[array]
                >= self.array_limit[array]
            ):
                return False
        reason = self.limits.admits(job)
        if reason:
            self.jobs.reason[job] = reason
            return False
        return True

    @compiled
    def _test(
        self, job: cython.int, part: cython.int, now: cython.longlong, begin: cython.longlong
    ) -> cython.void:
        """Start a job now, or reserve its nodes from when it could start."""
        start: cython.longlong = now
        later: cython.longlong
        tries: cython.int = 0
        reason: cython.int
        first: cython.longlong
        last: cython.longlong
        while tries < LOOPS_TRIES:
            tries += 1
            later = self._narrow(job, part, start)
            if later < 0:
                return
            if self._num_candidates() < self.jobs.min_nodes[job]:
                if later == 0:
                    return
                start = later
                continue
            if not self._will_run(job, part, now):
                return
            self.when = max(self.when, start)
            if self.when > now:
                reason = self.limits.admits_request(self.stays, job)
                if reason:
                    self.jobs.reason[job] = reason
                    return
            if self.when <= now:
                if self._is_completing():
                    self.when = now + 1
                    later = 0
                elif self._needs_room:
                    self._preempt_there(job, part, now)
                    self.when = now
                    later = 0
                else:
                    self.choice.write(self.nodes, self.stays, job)
                    reason = self.limits.admits_stay(self.stays, job)
                    if reason:
                        self.jobs.reason[job] = reason
                    else:
                        self._start(job, part, now)
                    return
            if later > 0 and self.when > later:
                start = later
                continue
            if self.when > now + self.bf_window:
                return
            first = self.when // self.bf_resolution * self.bf_resolution
            last = (self.when + self.jobs.limit[job]) // self.bf_resolution * self.bf_resolution
            if last == first:
                last += self.bf_resolution
            if self.slots.is_reserved(self.choice.chosen, first, last):
                start = self.when
                if later > 0:
                    start = max(start, later)
                if self._needs_room:
                    return
                continue
            self.slots.reserve(self.choice.chosen, first, last)
            if self.jobs.array[job] >= 0:
                self.array_reserved[self.jobs.array[job]] += 1
            return

    @compiled
    def _narrow(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.longlong:
        """Mark the nodes that a job may use from ``start`` to its end.

        Returns:
            When other nodes may be had, s; 0 = never, -1 = the job cannot start at all.
        """
        later: cython.longlong
        hold: cython.int
        change: cython.longlong
        self._mark_candidates(job, part)
        if self._apply_holds(job, part, start):
            return -1
        later = self.slots.narrow(self.choice.candidate, start, start + self.jobs.limit[job])
        for hold in range(self.holds):
            change = self.hold_end[hold] + self.bf_resolution - 1
            change = change // self.bf_resolution * self.bf_resolution
            if self.hold_start[hold] >= start + self.jobs.limit[job]:
                continue
            if change > start and (later == 0 or change < later) and change < self.slots.end[0]:
                later = change
        return later

    @compiled
    def _preempt_there(
        self, job: cython.int, part: cython.int, now: cython.longlong
    ) -> cython.void:
        """Make room on the nodes chosen; they stay chosen."""
        node: cython.int
        for node in range(self.nodes.count):
            self.choice.candidate[node] = self.planned[node] = self.choice.chosen[node]
        self._make_room(job, part, now)
        for node in range(self.nodes.count):
            self.choice.chosen[node] = self.planned[node]

    @compiled
    def _is_completing(self) -> cython.bint:
        node: cython.int
        for node in range(self.nodes.count):
            if self.choice.chosen[node] and self.nodes.completing[node] > 0:
                return True
        return False

    @compiled
    def _will_run(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.bint:
        """Find when a job could start on the candidates, as those who run leave (``when``).

        If that is now, but for jobs that it may preempt, it needs room.
        """
        fits: cython.bint
        self._needs_room = False
        if self.choice.fit(self.nodes, job, part):
            self.when = now
            return True
        self.future.copy_from(self.nodes)
        if self.victims.find(job, part, now, self.by_end, self.num_running) > 0:
            self.victims.without_all(self.future)
            if self.choice.fit(self.future, job, part):
                self._needs_room = True
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
        other: cython.int
        last: cython.int
        group: cython.int
        window: cython.longlong = LOOPS_WINDOW
        first_end: cython.longlong = -1
        while at < self.num_running:
            last = -1
            group = 0
            while at < self.num_running:
                other = self.by_end[at]
                at += 1
                if self.victims.is_listed[other] or not self._is_on_candidates(other):
                    continue
                if first_end < 0:
                    first_end = (self.jobs.end[other] // LOOPS_WINDOW + 1) * LOOPS_WINDOW
                last = other
                self.future.give(self.stays, other)
                group += 1
                if group > LOOPS_GROUP or at >= self.num_running:
                    break
                if self.jobs.end[self.by_end[at]] > first_end + window:
                    break
            if last < 0:
                return False
            if self.choice.fit(self.future, job, part):
                self.when = self._expected_end(last, now)
                return True
            while True:
                window = window + self.bf_linear if self.bf_linear > 0 else 2 * window
                if at >= self.num_running:
                    break
                if self.jobs.end[self.by_end[at]] <= first_end + window:
                    break
        return False

    @compiled
    def _is_on_candidates(self, job: cython.int) -> cython.bint:
        at: cython.longlong
        for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
            if self.choice.candidate[self.stays.node[at]]:
                return True
        return False

    @compiled
    def _expected_end(self, job: cython.int, now: cython.longlong) -> cython.longlong:
        """Return when a running job will end, as far as slurmctld can tell."""
        end: cython.longlong = self.jobs.end[job]
        if end > now:
            return end
        return max(end + self.kill_wait + self.over_limit, now + 1)

    # For Python.

    def clear(self) -> None:
        """Let nobody run or wait."""
        self.nodes.empty()
        self.nodes.completing = numpy.zeros(self.nodes.count, dtype=numpy.int32)
        self.limits.clear()
        self.array_running = numpy.zeros(len(self.array_limit), dtype=numpy.int32)
        self.entries = self.num_running = 0
        self.stays.count = 0

    def put_running(self, job: int, part: int, start: int, rows: Any) -> None:
        """Let a job run since ``start`` on these nodes: (node, cpus, memory, GPUs) rows."""
        self.stays.put(job, rows)
        self.run(job, part, start)

    def expect_end(self, job: int, end: int) -> None:
        """Say when a running job is expected to end, if not at its time limit."""
        self.expect(job, end)

    def notice(self, job: int, end: int) -> None:
        """Say that a running job was told to end by then: another wants its place."""
        self.jobs.noticed[job] = True
        self.expect(job, end)

    def is_noticed(self, job: int) -> bool:
        """Return whether a running job was told to end."""
        return bool(self.jobs.noticed[job])

    def noticed(self, now: int) -> list[int]:
        """Return the running jobs whose time after such a notice is over."""
        return [
            int(self.by_end[at])
            for at in range(self.num_running)
            if self.jobs.noticed[self.by_end[at]] and self.jobs.end[self.by_end[at]] <= now
        ]

    def first_notice(self) -> int:
        """Return when the first job that was told to end must have, s; -1 = none was told."""
        for at in range(self.num_running):
            if self.jobs.noticed[self.by_end[at]]:
                return int(self.jobs.end[self.by_end[at]])
        return -1

    def last_stopped(self) -> list[int]:
        """Return the jobs that the last call stopped for others; their nodes are completing."""
        return [int(self.stopped[at]) for at in range(self.num_stopped)]

    def put_pending(self, job: int) -> None:
        """Let a job wait."""
        self.enqueue(job)

    def first_end(self) -> int:
        """Return when the first of those who run is expected to end, s; -1 = nobody runs."""
        return int(self.jobs.end[self.by_end[0]]) if self.num_running else -1

    def fits_alone(self, job: int) -> bool:
        """Return whether a job could run in one of its partitions with nobody else there."""
        at: cython.int
        number: cython.int = job
        for at in range(
            self.jobs.first_part[number], self.jobs.first_part[number] + self.jobs.num_parts[number]
        ):
            self._mark_candidates(number, self.jobs.parts[at])
            if self._num_candidates() < self.jobs.min_nodes[number]:
                continue
            if self.choice.fit(self.bare, number, self.jobs.parts[at]):
                return True
        return False

    def leave_now(self, job: int) -> None:
        """Let a job that runs have given back its nodes."""
        self.leave(job)

    def withdraw(self, job: int) -> None:
        """Let a job wait no longer: it was cancelled."""
        self.jobs.status[job] = SLURM_OVER
        self.sweep()

    def sort_queue(self) -> None:
        """Put the queue in order again: priorities have changed."""
        self.reorder()

    def set_up(self, node: int, is_up: bool) -> None:
        """Say whether a node may be given to jobs."""
        self.nodes.up[node] = is_up

    def queue(self) -> list[tuple[int, int]]:
        """Return the jobs that wait, by partition, in order."""
        return [(int(self.entry_job[at]), int(self.entry_part[at])) for at in range(self.entries)]

    def run_main(self, now: int, *, is_full: bool = False) -> list[tuple[int, int]]:
        """Run the main loop; return the jobs that it started, and in which partition."""
        self.schedule(now, is_full)
        return self._last_started()

    def run_backfill(self, now: int) -> list[tuple[int, int]]:
        """Run a backfill cycle; return the jobs that it started, and in which partition."""
        self.backfill(now)
        return self._last_started()

    def plan(self) -> list[tuple[int, int, list[int]]]:
        """Return the last cycle's map: slots from, to, and the nodes reserved in each."""
        found = []
        slot = 0
        while True:
            row = slot * self.nodes.count
            taken = [n for n in range(self.nodes.count) if not self.slots.free[row + n]]
            found.append((int(self.slots.begin[slot]), int(self.slots.end[slot]), taken))
            slot = int(self.slots.following[slot])
            if slot == 0:
                return found

    def _last_started(self) -> list[tuple[int, int]]:
        return [
            (int(self.started[at]), int(self.started_part[at])) for at in range(self.num_started)
        ]


def _rows(rows: Any, width: int) -> numpy.ndarray:
    """Return rows of 0 and 1 as one array, one more of zeros at its end."""
    flat = numpy.zeros((len(rows) + 1, max(width, 1)), dtype=numpy.int8)
    if len(rows):
        flat[: len(rows), :width] = numpy.asarray(rows, dtype=numpy.int8).reshape(len(rows), width)
    return flat.reshape(-1)
