"""Conservative backfilling: every waiting job is promised a start; promises only move earlier.

A job is promised the earliest start that delays nobody who was promised one before. Whenever there
is more capacity than was known all are promised anew in the queue's order, each with its own
promise lifted first, again and again until nothing moves. A promise is moved later only where its
place is gone: a job runs on past its expected end, a node is lost, or preemption took it. Where a
policy preempts, promises are made around a plan for the first job that cannot start
(`windtunnel.kernel.head_plan`).
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.head_plan import HeadPlan
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.line_merge import LineMerge
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.outlook import Outlook
from windtunnel.kernel.powered_search import PoweredSearch
from windtunnel.kernel.preemption import PreemptingRule, Preemption
from windtunnel.kernel.promise_limits import PromiseLimits
from windtunnel.kernel.promise_search import PromiseSearch
from windtunnel.kernel.promises import PROMISE_NEVER, PROMISE_PLANNED, Promises
from windtunnel.kernel.reservation import Reservation
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
        by_device: nodes have devices.
        preemption: chooses who runs before anything is promised; None = nobody is preempted.

    Attributes:
        promises: what waiting jobs are promised, what running ones hold.
        search: makes new promises.
        risen: lets jobs start earlier.
        rises: where there is more capacity than at the last decision.
        outlook: what has changed since then.
        plan: of the first job that cannot start, where there is preemption.
        limits: who may be promised a start.
        unpromised: who is to be promised one.
        merge: goes along the queue.
    """

    promises: Promises
    search: PoweredSearch
    risen: Risen
    rises: Rises
    outlook: Outlook
    plan: HeadPlan
    limits: PromiseLimits
    unpromised: Unpromised
    merge: LineMerge
    num_nodes: cython.int
    some: JobList
    broken: JobList
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
        by_device: bool,
        preemption: Preemption | None = None,
    ) -> None:
        PreemptingRule.__init__(self, state, admission, preemption)
        self.num_nodes = num_nodes
        num_sets = num_sets if withholds and not is_pool else 0
        self.promises = Promises(state, num_nodes, num_sets)
        search = PromiseSearch(self.promises, num_nodes)
        self.search = PoweredSearch(search, admission)
        self.risen = Risen(search)
        self.rises = self.risen.rises
        self.outlook = Outlook(
            self.promises,
            self.rises,
            announced,
            num_nodes=num_nodes,
            num_sets=num_sets,
            withholds=withholds,
            is_pool=is_pool,
        )
        reservation = Reservation(state, admission, announced, preemption, by_device=by_device)
        self.plan = HeadPlan(self.outlook, reservation)
        self.limits = PromiseLimits(self.promises)
        self.unpromised = Unpromised(self.limits)
        self.merge = LineMerge(self.lines)
        self.some, self.broken = JobList(), JobList()
        lines = max(self.lines.num_lines, 1) if state.has_power else 1
        self.refused = numpy.full(lines, -1, dtype=numpy.int64)

    def planned_starts(self) -> list:
        """Return what is promised; see `Rule.planned_starts`."""
        promised = [self.promises.queue.job[at] for at in range(self.promises.queue.count)]
        if self.plan.head >= 0:
            promised.append(self.plan.head)
        return [self.promises.promise_of(job) for job in promised]

    @compiled
    def decide(self) -> cython.void:
        """Promise, and start what was promised for now."""
        changes: cython.longlong = self.free.changes
        head: cython.int = -1
        if self.preempts:
            self.plan.lift()
            head = self.preemption.walk(False)
        self.broken.count = 0
        self.outlook.look(changes)
        if self.preempts:
            self.plan.make(head)
        if self.outlook.is_new:
            self._enter_kept(self.outlook.lifted)
        elif self.outlook.has_fallen:
            self._break()
        while self._promise_and_start():
            pass  # under quotas each start may use up what others need
        self.outlook.close()
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
        return self.state.has_quotas and (self.state.stays.count > stays or self.rises.count > 0)

    # Quotas.

    @compiled
    def _keep_within_quotas(self) -> cython.void:
        """Lift the promises of those whose quota does not suffice; some are promised anew."""
        self.limits.see_first_over()
        self._gather_beyond_quotas()
        for at in range(self.some.count):
            job = self.some.job[at]
            self.outlook.let_go(job)
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
                if self.promises.is_promised(job) and not self.limits.may_keep(job):
                    self.some.add(job)
        self.some.sort(self.lines)

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
            self.outlook.lossy[at] = False
        for at in range(self.some.count):
            self.promises.lift(self.some.job[at])
        self._enter_kept(self.some)

    @compiled
    def _may_be_lost(self, job: cython.int) -> cython.bint:
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            if self.outlook.lossy[self.promises.places.node[at]]:
                return True
        return False

    @compiled
    def _enter_kept(self, lifted: JobList) -> cython.void:
        """Make promises that were lifted again, in the queue's order, as far as there is room."""
        lifted.sort(self.lines)
        for at in range(lifted.count):
            job = lifted.job[at]
            if self.promises.what[job] == PROMISE_PLANNED:
                continue
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
            if self.promises.is_promised(job):
                self.some.add(job)

    # New promises, and starts.

    @compiled
    def _promise_fresh(self) -> cython.void:
        """Promise those a start who have none."""
        self.unpromised.begin()
        while self.unpromised.goes_on():
            job = self.unpromised.pass_first()
            self.promises.span[job] = self.state.expected.span(job, self.state.left[job])
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
        self.outlook.run(job)
        self.outlook.known_end[job] = self.promises.stop[job]

    @compiled
    def _start_in_order(self) -> cython.void:
        """Do what `_start_due` does where one may hold up others, or have power alone to wait for.

        Notes whether anybody does that.
        """
        self._gather()
        for at in range(self.some.count):
            job = self.some.job[at]
            if self.admission.blocks() and self.admission.is_over(job):
                self.outlook.let_go(job)
                return
            if self.promises.start[job] > self.state.now:
                if self.state.has_power:
                    self._note_capped(job)
            elif self.limits.may_keep(job):
                self.promises.keep(job)
                self._start(job)
            else:
                self.outlook.let_go(job)

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
        whose end is an event. So does a head that this decision has let others be ranked ahead of,
        and those behind it: nothing is new just after now.
        """
        soon: cython.double = nextafter(self.state.now, ENDLESS)
        after: cython.double = soon if self.outlook.is_late else self.state.now
        if self.plan.head >= 0 and self.promises.start[self.plan.head] == soon:
            after = soon
        self.alarm = ENDLESS
        if self.plan.head >= 0 and self.promises.start[self.plan.head] > after:
            self.alarm = self.promises.start[self.plan.head]
        if self.promises.queue.count > 0 and self.promises.queue.time[0] > after:
            self.alarm = min(self.alarm, self.promises.queue.time[0])
            return
        for at in range(self.promises.queue.count):
            if after < self.promises.queue.time[at] < self.alarm:
                self.alarm = self.promises.queue.time[at]
