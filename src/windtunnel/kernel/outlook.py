"""`Outlook`: what is known at a decision of the time to come, for promises that are kept.

The profile is brought up to now: who has left, who is expected to end at another time, what is
withheld or back. Where there is more capacity than at the last decision is a rise, where there is
less promises may be lost.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.profile import PROFILE_COMMON, Profile
from windtunnel.kernel.promises import PROMISE_MADE, PROMISE_NONE, Promises
from windtunnel.kernel.ranked import RANKED_CAPACITY
from windtunnel.kernel.rises import Rises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class Outlook:
    """What has changed since the last decision, entered in a profile.

    Args:
        promises: what waiting jobs are promised, what running ones hold.
        rises: where there is more capacity than at the last decision.
        announced: capacity that is known to come and go.
        num_nodes: nodes or pools.
        num_sets: access sets.
        withholds: anything may ever be withheld.
        is_pool: there are no nodes, but pools.

    Attributes:
        running: jobs whose hold is entered.
        stay_of: the stay that it is for.
        known_end: when they were expected to end.
        seen_stays: those that have been looked at.
        is_new: all promises were lifted at this decision, most often as the profile is made anew.
        lifted: promises that were lifted for the time being.
        has_fallen: somewhere there is less capacity.
        lossy: the nodes for which that is so.
        is_late: somebody runs on past an expected end.
    """

    state: State
    free: Free
    promises: Promises
    profile: Profile
    on: NodeSteps
    rises: Rises
    announced: Announced
    num_nodes: cython.int
    num_sets: cython.int
    withholds: cython.bint
    is_pool: cython.bint
    running: JobList
    stay_of: cython.int[::1]
    known_end: cython.double[::1]
    seen_stays: cython.int
    seen_changes: cython.longlong
    seen_calls: cython.longlong
    is_begun: cython.bint
    is_new: cython.bint
    lifted: JobList
    has_fallen: cython.bint
    is_late: cython.bint
    lossy: cython.char[::1]

    def __init__(
        self,
        promises: Promises,
        rises: Rises,
        announced: Announced,
        *,
        num_nodes: int,
        num_sets: int,
        withholds: bool,
        is_pool: bool,
    ) -> None:
        self.promises, self.rises, self.announced = promises, rises, announced
        self.state, self.free = promises.state, promises.state.free
        self.profile, self.on = promises.profile, promises.on
        self.is_pool, self.withholds = is_pool, withholds
        self.num_nodes, self.num_sets = num_nodes, num_sets
        count = max(self.state.num_jobs, 1)
        self.running, self.lifted = JobList(), JobList()
        self.stay_of = numpy.full(count, -1, dtype=numpy.int32)
        self.known_end = numpy.zeros(count)
        self.lossy = numpy.zeros(max(num_nodes, 1), dtype=numpy.int8)

    @compiled
    def look(self, changes: cython.longlong) -> cython.void:
        """Bring the profile up to now.

        Args:
            changes: of the free state, before anybody was preempted.
        """
        self.has_fallen = self.is_late = self.is_new = False
        self.lifted.count = 0
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
    def close(self) -> cython.void:
        """End a decision: what has happened until now is known."""
        self.seen_stays = self.state.stays.count
        self.seen_changes = self.free.changes
        self.seen_calls = self.announced.calls

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
                self.state.expected.end[job] != self.known_end[job]
                or self.state.expected.end[job] <= self.state.now
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
                if self.state.expected.end[job] != self.known_end[job]:
                    self._expect(job, self.state.expected.end[job])
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
            self.lose(job)

    @compiled
    def lose(self, job: cython.int) -> cython.void:
        """Note that there is less capacity on a job's nodes."""
        self.has_fallen = True
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            self.lossy[self.promises.places.node[at]] = True

    @compiled
    def doubt_all(self) -> cython.void:
        """Lift all promises into ``lifted``: power, which has no place, may be lacking for any."""
        if self.is_new:
            return
        self.is_new = self.rises.everywhere = True
        self.lifted.count = 0
        for at in range(self.promises.queue.count):
            self.lifted.add(self.promises.queue.job[at])
        for at in range(self.lifted.count):
            self.promises.lift(self.lifted.job[at])

    @compiled
    def _look_at_stays(self) -> cython.void:
        """Enter what jobs hold that others than this rule have begun."""
        self._let_go_of_started()
        for stay in range(self.seen_stays, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.state.stay[job] != stay:
                continue
            self.promises.hold(job, self.state.expected.end[job], False)
            self.run(job)
            self.lose(job)
        self.seen_stays = self.state.stays.count

    @compiled
    def _let_go_of_started(self) -> cython.void:
        """Lift the promises of jobs that others than this rule have begun."""
        for stay in range(self.seen_stays, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.promises.is_promised(job):
                self.let_go(job)

    @compiled
    def let_go(self, job: cython.int) -> cython.void:
        """Lift the promise of a job that does not wait any more."""
        if self.promises.what[job] == PROMISE_MADE:
            self.rises.note(job, self.promises.start[job], self.promises.stop[job], -1)
        self.promises.lift(job)

    @compiled
    def run(self, job: cython.int) -> cython.void:
        """Note that a job runs whose hold is entered."""
        self.running.add(job)
        self.stay_of[job] = self.state.stay[job]
        self.known_end[job] = self.state.expected.end[job]

    @compiled
    def _look_at_late(self) -> cython.void:
        """Let those who run on past their expected end hold their place until just after now."""
        for place in range(self.state.expected.ranked.used):
            for at in range(
                self.state.expected.ranked.length[self.state.expected.ranked.block[place]]
            ):
                entry = self.state.expected.ranked.block[place] * RANKED_CAPACITY + at
                if self.state.expected.ranked.key[entry] > self.state.now:
                    return
                job = self.state.expected.ranked.job[entry]
                self.is_late = True
                if self.promises.stop[job] != nextafter(self.state.now, ENDLESS):
                    self._expect(job, self.state.expected.end[job])

    @compiled
    def _look_at_due(self) -> cython.void:
        """Move promises that were missed to now; see which nodes are withheld or back."""
        while self.promises.queue.count > 0 and (
            self.promises.queue.time[0] < self.state.now
            or (self.withholds and self.promises.queue.time[0] == self.state.now)
        ):
            job = self.promises.queue.job[0]
            self.promises.lift(job)
            self.lifted.add(job)
        if self.withholds:
            self._look_at_nodes()
        for at in range(self.lifted.count):
            job = self.lifted.job[at]
            if self.promises.start[job] < self.state.now:
                self.lose(job)
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
        """Make the profile anew, from what is free, what runs, and what is announced.

        The promises of ``lifted`` have yet to be entered.
        """
        self.is_begun = self.is_new = True
        for at in range(self.promises.queue.count):
            self.lifted.add(self.promises.queue.job[at])
        with cython.gil:
            self.promises.forget_all()
        self.profile.begin(
            self.state.now, self.free, self.state.power.floor_sum if self.state.has_power else 0
        )
        job = self.state.first_running
        while job >= 0:
            self.is_late = self.is_late or self.state.expected.end[job] <= self.state.now
            self.promises.hold(job, self.state.expected.end[job], True)
            self.run(job)
            job = self.state.following[job]
        self.seen_stays = self.state.stays.count
        for change in range(self.announced.next, self.announced.count):
            self._announce(change)
        for at in range(self.announced.num_asleep):
            step = self.profile.step_at(self.announced.ready_at(at, self.state.now))
            self.profile.need(step)
            self._close_from(self.announced.asleep[at], 0, -1, step)
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
