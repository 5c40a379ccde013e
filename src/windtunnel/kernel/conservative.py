"""Conservative backfilling: every waiting job is promised a start; promises only move earlier.

A job is promised the earliest start that delays nobody who was promised one before. Whenever there
is more capacity than was known all are promised anew in the queue's order, each with its own
promise lifted first, again and again until nothing moves. A promise is moved later only where its
place is gone: a job runs on past its expected end, a node is lost, or preemption took it.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.line_merge import LineMerge
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.powered_search import PoweredSearch
from windtunnel.kernel.preemption import PreemptingRule, Preemption
from windtunnel.kernel.profile import PROFILE_COMMON, Profile
from windtunnel.kernel.promise_limits import PromiseLimits
from windtunnel.kernel.promise_search import PromiseSearch
from windtunnel.kernel.promises import PROMISE_MADE, PROMISE_NEVER, PROMISE_NONE, Promises
from windtunnel.kernel.ranked import RANKED_CAPACITY
from windtunnel.kernel.risen import Risen
from windtunnel.kernel.rises import Rises
from windtunnel.kernel.state import State
from windtunnel.kernel.unpromised import Unpromised


@cython.final
@cython.cclass
class ConservativeRule(PreemptingRule):
    """Conservative backfilling.

    Args:
        state: the run.
        admission: knows when jobs are expected to end.
        announced: capacity that is known to come and go.
        num_nodes: nodes or pools.
        num_sets: access sets.
        withholds: anything may ever be withheld.
        is_pool: there are no nodes, but pools.
        preemption: chooses who runs before anything is promised; None = nobody is preempted.

    Attributes:
        promises: what waiting jobs are promised, what running ones hold.
        search: makes new promises.
        risen: lets jobs start earlier.
        rises: where there is more capacity than at the last decision.
        running: jobs whose hold is entered.
        stay_of: the stay that it is for.
        known_end: when they were expected to end.
        limits: who may be promised a start.
        unpromised: who is to be promised one.
        merge: goes along the queue.
        has_fallen: somewhere there is less capacity.
        lossy: the nodes for which that is so.
        is_late: somebody runs on past an expected end.
    """

    announced: Announced
    promises: Promises
    search: PoweredSearch
    profile: Profile
    on: NodeSteps
    risen: Risen
    rises: Rises
    limits: PromiseLimits
    unpromised: Unpromised
    merge: LineMerge
    is_pool: cython.bint
    withholds: cython.bint
    num_nodes: cython.int
    num_sets: cython.int
    running: JobList
    stay_of: cython.int[::1]
    known_end: cython.double[::1]
    seen_stays: cython.int
    some: JobList
    broken: JobList
    is_begun: cython.bint
    has_fallen: cython.bint
    is_late: cython.bint
    lossy: cython.char[::1]
    seen_changes: cython.longlong
    seen_calls: cython.longlong
    refused: cython.longlong[::1]

    def __init__(
        self,
        state: State,
        admission: Admission,
        announced: Announced,
        *,
        num_nodes: int,
        num_sets: int,
        withholds: bool,
        is_pool: bool,
        preemption: Preemption | None = None,
    ) -> None:
        PreemptingRule.__init__(self, state, admission, preemption)
        self.announced = announced
        self.is_pool, self.withholds = is_pool, withholds
        self.num_nodes = num_nodes
        self.num_sets = num_sets if withholds and not is_pool else 0
        self.promises = Promises(state, num_nodes, self.num_sets)
        search = PromiseSearch(self.promises, num_nodes)
        self.search = PoweredSearch(search, admission)
        self.profile, self.on = self.promises.profile, self.promises.on
        self.risen = Risen(search)
        self.rises = self.risen.rises
        self.limits = PromiseLimits(self.promises)
        self.unpromised = Unpromised(self.limits)
        self.merge = LineMerge(self.lines)
        count = max(state.num_jobs, 1)
        self.running = JobList()
        self.some, self.broken = JobList(), JobList()
        self.stay_of = numpy.full(count, -1, dtype=numpy.int32)
        self.known_end = numpy.zeros(count)
        self.lossy = numpy.zeros(max(num_nodes, 1), dtype=numpy.int8)
        lines = max(self.lines.num_lines, 1) if state.has_power else 1
        self.refused = numpy.full(lines, -1, dtype=numpy.int64)

    def planned_starts(self) -> list:
        """Return what is promised; see `Rule.planned_starts`."""
        return [
            self.promises.promise_of(self.promises.queue.job[at])
            for at in range(self.promises.queue.count)
        ]

    @compiled
    def decide(self) -> cython.void:
        """Promise, and start what was promised for now."""
        changes: cython.longlong = self.free.changes
        if self.state.has_power:
            self.search.know_cap()
        if self.preempts:
            self.preemption.walk(False)
        self._look(changes)
        if self.has_fallen:
            self._break()
        while self._promise_and_start():
            pass  # under quotas each start may use up what others need
        self.seen_changes = self.free.changes
        self.seen_calls = self.announced.calls
        self._set_alarm()

    @compiled
    def _promise_and_start(self) -> cython.bint:
        """Promise, and start who is due; return whether quotas may matter to others then."""
        stays: cython.int = self.state.stays.count
        if self.state.has_quotas:
            self._keep_within_quotas()
        self._promise_broken()
        if self.rises.everywhere or (self.state.has_power and self.rises.count > 0):
            self._improve_all()  # rises say nothing of power
        elif self.rises.count > 0:
            self.risen.improve()
        self.rises.clear()
        self._promise_fresh()
        if self.state.has_power or self.admission.blocks():
            self._start_in_order()
        else:
            self._start_due()
        self.seen_stays = self.state.stays.count
        return self.state.has_quotas and (self.state.stays.count > stays or self.rises.count > 0)

    # Quotas.

    @compiled
    def _keep_within_quotas(self) -> cython.void:
        """Lift the promises of those whose quota does not suffice; some are promised anew."""
        self.limits.see_first_over()
        self._gather_beyond_quotas()
        for at in range(self.some.count):
            job = self.some.job[at]
            self._let_go(job)
            if self.limits.may_be_promised(job):
                self.broken.add(job)
        if self.state.quotas.binds or (self.rises.count > 0 and self.state.has_power):
            # A job may be bound to a type for want of another's quota, which anybody may give
            # back, also one who was expected to; and rises say nothing of power.
            self.rises.everywhere = True

    @compiled
    def _gather_beyond_quotas(self) -> cython.void:
        """Write those into ``some`` whose quota does not suffice for their promise."""
        self.some.count = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.promises.promised_in[line] == 0 or self.limits.may_all_keep(line):
                continue
            for cell in range(
                self.lines.begin[line], self.lines.begin[line] + self.lines.length[line]
            ):
                job = self.lines.slab[cell]
                if self.promises.what[job] != PROMISE_NONE and not self.limits.may_keep(job):
                    self.some.add(job)
        self.some.sort(self.lines)

    # What has happened since the last decision.

    @compiled
    def _look(self, changes: cython.longlong) -> cython.void:
        """Bring the profile up to now.

        Args:
            changes: of the free state, before anybody was preempted.
        """
        self.has_fallen = False
        self.is_late = False
        self.broken.count = 0
        self.announced.pass_until(self.state.now, self.state.happened)
        if self.is_begun and not self._is_stale(changes):
            self.profile.forget(self.state.now)
            self._look_at_running()
            self._look_at_stays()
            self._look_at_late()
            self._look_at_due()
        else:
            self._let_go_of_started()
            self._forget_running()
            self._begin_anew()

    @compiled
    def _is_stale(self, changes: cython.longlong) -> cython.bint:
        """Return whether the profile is made anew: power or sleep, and anything that matters to it.

        What is announced for now and has yet to happen is in no free state. Nodes that sleep and
        were not called are back the later, the later it is. Under a power cap jobs may leave, on
        time or before: nobody's promise is lost by that.
        """
        at: cython.int = self.announced.num_asleep - 1
        if self.announced.is_due(self.state.now) or self.announced.calls != self.seen_calls:
            return True
        if at >= 0 and self.announced.ready[at] < 0.0:
            return True
        if at < 0 and not self.state.has_power:
            return False
        if self.state.stays.count != self.seen_stays:
            return True
        if changes != self.seen_changes and (at >= 0 or self.withholds):
            return True
        if self.promises.queue.count > 0 and self.promises.queue.time[0] < self.state.now:
            return True
        for at in range(self.running.count):
            job = self.running.job[at]
            if self.state.stay[job] == self.stay_of[job] and (
                self.state.expected[job] != self.known_end[job]
                or self.state.expected[job] <= self.state.now
            ):
                return True
        return False

    @compiled
    def _look_at_running(self) -> cython.void:
        """See who has left, and whose expected end is another."""
        at: cython.int = 0
        while at < self.running.count:
            job = self.running.job[at]
            if self.state.stay[job] == self.stay_of[job]:
                if self.state.expected[job] != self.known_end[job]:
                    self._expect(job, self.state.expected[job])
                at += 1
                continue
            self.running.count -= 1
            self.running.job[at] = self.running.job[self.running.count]
            self.rises.note(job, self.state.now, self.promises.stop[job], -1)
            self.promises.end_hold(job)

    @compiled
    def _expect(self, job: cython.int, end: cython.double) -> cython.void:
        """Let a running job be expected to end at another time."""
        old: cython.double = self.promises.stop[job]
        self.known_end[job] = end
        self.promises.move_end(job, end)
        if self.promises.stop[job] < old:
            self.rises.note(job, self.promises.stop[job], old, -1)
        elif self.promises.stop[job] > old:
            self._lose(job)

    @compiled
    def _lose(self, job: cython.int) -> cython.void:
        """Note that there is less capacity on a job's nodes."""
        self.has_fallen = True
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            self.lossy[self.promises.places.node[at]] = True

    @compiled
    def _look_at_stays(self) -> cython.void:
        """Enter what jobs hold that others than this rule have begun."""
        self._let_go_of_started()
        for stay in range(self.seen_stays, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.state.stay[job] != stay:
                continue
            self.promises.hold(job, self.state.expected[job], False)
            self._run(job)
            self._lose(job)
        self.seen_stays = self.state.stays.count

    @compiled
    def _let_go_of_started(self) -> cython.void:
        """Lift the promises of jobs that others than this rule have begun."""
        for stay in range(self.seen_stays, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.promises.what[job] == PROMISE_MADE or self.promises.what[job] == PROMISE_NEVER:
                self._let_go(job)

    @compiled
    def _let_go(self, job: cython.int) -> cython.void:
        """Lift the promise of a job that does not wait any more."""
        if self.promises.what[job] == PROMISE_MADE:
            self.rises.note(job, self.promises.start[job], self.promises.stop[job], -1)
        self.promises.lift(job)

    @compiled
    def _run(self, job: cython.int) -> cython.void:
        """Note that a job runs whose hold is entered."""
        self.running.add(job)
        self.stay_of[job] = self.state.stay[job]
        self.known_end[job] = self.state.expected[job]

    @compiled
    def _look_at_late(self) -> cython.void:
        """Let those who run on past their expected end hold their place until just after now."""
        for place in range(self.state.expects.used):
            for at in range(self.state.expects.length[self.state.expects.block[place]]):
                entry = self.state.expects.block[place] * RANKED_CAPACITY + at
                if self.state.expects.key[entry] > self.state.now:
                    return
                job = self.state.expects.job[entry]
                self.is_late = True
                if self.promises.stop[job] != nextafter(self.state.now, ENDLESS):
                    self._expect(job, self.state.expected[job])

    @compiled
    def _look_at_due(self) -> cython.void:
        """Move promises that were missed to now; see which nodes are withheld or back."""
        self.some.count = 0
        while self.promises.queue.count > 0 and (
            self.promises.queue.time[0] < self.state.now
            or (self.withholds and self.promises.queue.time[0] == self.state.now)
        ):
            job = self.promises.queue.job[0]
            self.promises.lift(job)
            self.some.add(job)
        if self.withholds:
            self._look_at_nodes()
        for at in range(self.some.count):
            job = self.some.job[at]
            if self.promises.start[job] < self.state.now:
                self._lose(job)
                self.promises.enter(job, self.state.now)
            else:
                self.promises.enter_until(job, self.state.now, self.promises.stop[job])

    @compiled
    def _look_at_nodes(self) -> cython.void:
        """Bring what is withheld unannounced, or back, into the profile; no promise is due."""
        if self.is_pool:
            self.free.store(self.profile.rows, PROFILE_COMMON)
        for node in range(self.num_nodes):
            for access in range(self.num_sets):
                at = self.on.first[node] * self.on.stride + self.profile.width + access
                change = self.free.closings(node, access) - self.on.value[at]
                if change != 0:
                    self.profile.close(
                        node, access, cython.cast(cython.int, change), self.profile.head
                    )
                    self._note_change(node, change < 0)
            if self.is_pool:
                change = (
                    self.profile.rows.cell[PROFILE_COMMON * self.profile.rows.columns + 2 * node]
                    - self.on.value[self.on.first[node] * self.on.stride]
                )
                if change != 0:
                    self.profile.withhold(node, -change, self.profile.head)
                    self._note_change(node, change > 0)

    @compiled
    def _note_change(self, node: cython.int, is_more: cython.bint) -> cython.void:
        if is_more:
            self.rises.note_node(node, self.state.now, ENDLESS)
        else:
            self.has_fallen = True
            self.lossy[node] = True

    # The profile from nothing.

    @compiled
    def _forget_running(self) -> cython.void:
        """Forget what running jobs hold."""
        for at in range(self.running.count):
            job = self.running.job[at]
            self.promises.what[job] = PROMISE_NONE
        self.running.count = 0

    @compiled
    def _begin_anew(self) -> cython.void:
        """Make the profile anew, from what is free, what runs, and what is announced."""
        self.is_begun = True
        self.some.count = 0
        for at in range(self.promises.queue.count):
            self.some.add(self.promises.queue.job[at])
        with cython.gil:
            self.promises.forget_all()
        self.profile.begin(
            self.state.now, self.free, self.state.power.floor_sum if self.state.has_power else 0
        )
        job = self.state.first_running
        while job >= 0:
            self.is_late = self.is_late or self.state.expected[job] <= self.state.now
            self.promises.hold(job, self.state.expected[job], True)
            self._run(job)
            job = self.state.following[job]
        self.seen_stays = self.state.stays.count
        for change in range(self.announced.next, self.announced.count):
            self._announce(change)
        for at in range(self.announced.num_asleep):
            step = self.profile.step_at(self.announced.ready_at(at, self.state.now))
            self.profile.need(step)
            self._close_from(self.announced.asleep[at], 0, -1, step)
        self._enter_kept()
        self.rises.everywhere = True

    @compiled
    def _announce(self, change: cython.int) -> cython.void:
        """Enter a change that is announced."""
        step: cython.int = self.profile.step_at(self.announced.time[change])
        sign: cython.int = 1 if self.announced.begins[change] else -1
        self.profile.need(step)
        if self.is_pool:
            self.profile.withhold(
                self.announced.node[change], sign * self.announced.units[change], step
            )
        else:
            self._close_from(self.announced.node[change], self.announced.group[change], sign, step)

    @compiled
    def _close_from(
        self, node: cython.int, group: cython.int, change: cython.int, step: cython.int
    ) -> cython.void:
        for access in range(self.num_sets):
            if not self.announced.in_group[access, group]:
                self.profile.close(node, access, change, step)

    # Promises that cannot be kept.

    @compiled
    def _break(self) -> cython.void:
        """Lift the promises of places that are too few, and make again those that can be kept."""
        self.some.count = 0
        for at in range(self.promises.queue.count):
            job = self.promises.queue.job[at]
            if self._may_be_lost(job) and self.promises.is_overdrawn(job):
                self.some.add(job)
        for at in range(self.num_nodes):
            self.lossy[at] = False
        for at in range(self.some.count):
            self.promises.lift(self.some.job[at])
        self._enter_kept()

    @compiled
    def _may_be_lost(self, job: cython.int) -> cython.bint:
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            if self.lossy[self.promises.places.node[at]]:
                return True
        return False

    @compiled
    def _enter_kept(self) -> cython.void:
        """Make the promises of ``some`` again, in the queue's order, as far as there is room."""
        self.some.sort(self.lines)
        for at in range(self.some.count):
            job = self.some.job[at]
            start, stop = self.promises.start[job], self.promises.stop[job]
            if start < self.state.now:
                start, stop = self.state.now, self.promises.stop_of(job, self.state.now)
            if self.search.is_there(job, start, stop):
                self.promises.enter_until(job, start, stop)
            else:
                self.rises.note(job, start, self.promises.stop[job], -1)
                self.broken.add(job)

    @compiled
    def _promise_broken(self) -> cython.void:
        """Promise those anew whose promise was lost, or who had none that they could wait for."""
        if self.promises.num_never > 0 and (self.rises.everywhere or self.rises.count > 0):
            self._gather()
            for at in range(self.some.count):
                if self.promises.what[self.some.job[at]] == PROMISE_NEVER:
                    self.promises.lift(self.some.job[at])
                    self.broken.add(self.some.job[at])
        self.broken.sort(self.lines)
        for at in range(self.broken.count):
            if self.limits.may_be_promised(self.broken.job[at]):
                self.search.promise(self.broken.job[at])
        self.broken.count = 0

    # Promises that can be better.

    @compiled
    def _improve_all(self) -> cython.void:
        """Promise everybody anew in order, only ever earlier, until nothing moves."""
        moved: cython.bint = True
        self._gather()
        while moved:
            moved = False
            for at in range(self.some.count):
                job = self.some.job[at]
                old, stop = self.promises.start[job], self.promises.stop[job]
                self.promises.lift(job)
                found = self.search.earliest(job, old)
                if found < old:
                    moved = True
                    self.promises.enter(job, found)
                else:
                    self.promises.enter_until(job, old, stop)

    @compiled
    def _gather(self) -> cython.void:
        """Write all that have a promise into ``some``, in the queue's order."""
        self.some.count = 0
        self.merge.count = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.promises.promised_in[line] > 0:
                self.merge.place[line] = 0
                self.merge.push(line)
        while self.merge.count > 0:
            job = self.merge.pass_first()
            if self.promises.what[job] != PROMISE_NONE:
                self.some.add(job)

    # New promises, and starts.

    @compiled
    def _promise_fresh(self) -> cython.void:
        """Promise those a start who have none."""
        self.unpromised.begin()
        while self.unpromised.goes_on():
            job = self.unpromised.pass_first()
            self.promises.span[job] = self.state.estimate_left(job, self.state.left[job])
            self.search.promise(job)
            self.unpromised.note_promise(job)

    @compiled
    def _start_due(self) -> cython.void:
        """Start those who were promised to by now, as far as quotas let them."""
        self.some.count = 0
        while self.promises.queue.count > 0 and (self.promises.queue.time[0] <= self.state.now):
            job = self.promises.queue.job[0]
            self.promises.keep(job)
            self.some.add(job)
        self.some.sort(self.lines)
        for at in range(self.some.count):
            job = self.some.job[at]
            if self.limits.may_keep(job):
                self._start(job)
            else:
                self.rises.note(job, self.promises.start[job], self.promises.stop[job], -1)
                self.promises.end_hold(job)

    @compiled
    def _start(self, job: cython.int) -> cython.void:
        """Start a job where it was promised to."""
        self.lines.remove(job)
        self.free.place.count = 0
        self.free.place.extend(
            self.promises.places, self.promises.first[job],
            self.promises.first[job] + self.promises.size[job],
        )  # fmt: skip
        self.state.begin(job, self.state.kind[job])
        self._run(job)
        self.known_end[job] = self.promises.stop[job]

    @compiled
    def _start_in_order(self) -> cython.void:
        """Do what `_start_due` does where one may hold up others, or have power alone to wait for.

        Notes whether anybody does that.
        """
        self._gather()
        for at in range(self.some.count):
            job = self.some.job[at]
            if self.admission.blocks() and self.admission.is_over(job):
                self._let_go(job)
                return
            if self.promises.start[job] > self.state.now:
                if self.state.has_power:
                    self._note_capped(job)
            elif self.limits.may_keep(job):
                self.promises.keep(job)
                self._start(job)
            else:
                self._let_go(job)

    @compiled
    def _note_capped(self, job: cython.int) -> cython.void:
        """Note whether a job would start now if there were more power."""
        line: cython.int = self.lines.line_of[job]
        if (
            self.refused[line] != self.free.version
            and not self.admission.fit(job)
            and not self.admission.by_job
        ):
            self.refused[line] = self.free.version

    @compiled
    def _set_alarm(self) -> cython.void:
        """Ask for a decision at the next promised start.

        While somebody is late those who are promised to start just after now wait for that job,
        whose end is an event.
        """
        soon: cython.double = nextafter(self.state.now, ENDLESS)
        self.alarm = ENDLESS
        if self.promises.queue.count > 0:
            self.alarm = self.promises.queue.time[0]
        if not self.is_late or self.alarm > soon:
            return
        self.alarm = ENDLESS
        for at in range(self.promises.queue.count):
            if soon < self.promises.queue.time[at] < self.alarm:
                self.alarm = self.promises.queue.time[at]
