"""EASY backfilling (Lifka, JSSPP 1995): the first job that does not fit holds a reservation.

The reservation is made anew at every decision: the *shadow* is the earliest expected time at which
the head of the queue fits. A later job starts now if it is expected to end by then, or if what it
takes is free beside the head then.

With a preemptive policy, preemption first chooses who runs up to the first job that cannot; that
one is the head, and running jobs ranked below it count as free at once in its reservation. Jobs
behind it preempt nobody.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.line_merge import LineMerge
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.preemption import PreemptingRule, Preemption
from windtunnel.kernel.ranked import RANKED_CAPACITY
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class EasyRule(PreemptingRule):
    """EASY; with ``shortest_first`` later jobs are tried by (estimate, number).

    Attributes:
        refused: version of the free state at which each line's jobs did not fit.
        stamp: rises with every reservation and every start.
        long_refused: stamp at which a line's jobs did not fit beside the head.
        merge: the jobs behind the head that have yet to be looked at.
        shortest: the same, by (estimate, number).
        beside: what is free at the shadow, less what the head and backfilled jobs take then.
        shadow: s.
        clear_until: when the first hold that is announced begins, s.
        left: nanowatts that backfilled jobs may add beside the head then.
        head: the job that holds the reservation.
        held: where.
        by_device: nodes have devices.
        is_reserved: the shadow is of this decision.
        is_held_up: a job behind the head waits for quota, and quotas are to block.
        has_quota: the head has its quota by itself, nobody giving way.
        is_robbed: a backfilled job took that.
        room, is_room: running jobs that count as gone at once beside the head.
    """

    head: cython.int
    is_reserved: cython.bint
    is_held_up: cython.bint
    has_quota: cython.bint
    is_robbed: cython.bint
    shortest_first: cython.bint
    by_device: cython.bint
    held: Pairs
    announced: Announced
    stamp: cython.longlong
    refused: cython.longlong[::1]
    long_refused: cython.longlong[::1]
    merge: LineMerge
    shortest: JobHeap
    beside: Free
    shadow: cython.double
    clear_until: cython.double
    left: cython.longlong
    drawn: cython.longlong
    last_end: cython.double
    room: JobList
    is_room: cython.char[::1]

    def __init__(
        self,
        state: State,
        admission: Admission,
        announced: Announced,
        *,
        shortest_first: bool,
        by_device: bool,
        preemption: Preemption | None = None,
    ) -> None:
        PreemptingRule.__init__(self, state, admission, preemption)
        self.shortest_first, self.by_device, self.head = shortest_first, by_device, -1
        self.held = Pairs()
        self.announced = announced
        lines = max(self.lines.num_lines, 1)
        self.refused = numpy.full(lines, -1, dtype=numpy.int64)
        self.long_refused = numpy.full(lines, -1, dtype=numpy.int64)
        self.merge = LineMerge(self.lines)
        self.shortest = JobHeap(state.num_jobs if shortest_first else 1)
        self.beside = state.free.twin()
        self.room = JobList()
        self.is_room = numpy.zeros(max(state.num_jobs, 1), dtype=numpy.int8)

    def planned_starts(self) -> list:
        """Return when and where the first in the queue starts; see `Rule.planned_starts`."""
        if self.head < 0:
            return []
        is_reserved, shadow = self.is_reserved, self.shadow
        self._reserve(self.head)
        start, self.is_reserved, self.shadow = self.shadow, is_reserved, shadow
        if start == ENDLESS:
            return []
        return [(start, [self.held.node[at] for at in range(self.held.count)])]

    @compiled
    def decide(self) -> cython.void:
        """Start what may start."""
        self.is_held_up = False
        if self.preempts:
            self.head = self.preemption.walk(False)
        else:
            self._start_in_order()
        while self._plan():
            self._start_in_order()
        if self.lines.num_closed > 0:
            self.lines.reopen()

    @compiled
    def _plan(self) -> cython.bint:
        """Reserve for the head, and backfill; return whether that took the quota it had."""
        self.is_reserved = self.is_robbed = False
        if self.head >= 0 and self.lines.count > 1 and self._is_worth_it():
            self.has_quota = not self.admission.is_over(self.head)
            self._reserve(self.head)
            if self.shortest_first:
                self._backfill_shortest()
            else:
                self._backfill()
        return self.is_robbed

    @compiled
    def _start_backfilled(self, job: cython.int) -> cython.void:
        """Start a job behind the head, which is out of its line."""
        self.stamp += 1
        self.state.begin(job, self.admission.kind)
        self.is_robbed = self.has_quota and self.admission.is_over(self.head)

    @compiled
    def _start_in_order(self) -> cython.void:
        """Start jobs up to the first that does not fit, which is the head; but for quotas."""
        self.head = -1
        while self.lines.num_tops > 0:
            line = self.lines.tops[0]
            job = self.lines.head(line)
            if self._fits(line, job):
                self.lines.pop(line)
                self.state.begin(job, self.admission.kind)
            elif not self.admission.is_over(job):
                self.head = job
                return
            elif self.admission.blocks():
                return
            else:
                self.lines.close(line)

    # The queue.

    @compiled
    def _fits(self, line: cython.int, job: cython.int) -> cython.bint:
        """Return whether a job fits now; its line is refused with it, if that says as much."""
        if self.refused[line] == self.free.version:
            return False
        if self.admission.fit(job):
            return True
        if not self.admission.by_job:
            self.refused[line] = self.free.version
        return False

    @compiled
    def _is_worth_it(self) -> cython.bint:
        """Return whether any job but the head may fit now.

        Where somebody does, or jobs may be held up, who lacks power alone is looked at in turn.
        """
        capped: cython.bint = self.admission.capped
        fits: cython.bint = self._may_any_fit()
        if self.admission.capped and not capped and (fits or self.admission.blocks()):
            self.admission.capped = False
            for top in range(self.lines.num_tops):
                self.refused[self.lines.tops[top]] = -1
            return True
        return fits

    @compiled
    def _may_any_fit(self) -> cython.bint:
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.refused[line] != self.free.version and (
                self._fits(line, self.lines.head(line)) or self.admission.by_job
            ):
                return True
        return False

    # The reservation.

    @compiled
    def promise(self) -> cython.double:
        """Return the shadow; with nobody to backfill it has yet to be found."""
        if not self.is_reserved:
            self._reserve(self.head)
        return self.shadow

    @compiled
    def _reserve(self, head: cython.int) -> cython.void:
        """Find the shadow, and what is free then beside the head; inf = it never fits."""
        self.is_reserved = True
        self.stamp += 1
        self.beside.copy_from(self.free)
        self.announced.pass_until(self.state.now, self.state.happened)
        self.clear_until = self.announced.first_begin()
        block: cython.int = 0
        index: cython.int = 0
        change: cython.int = self.announced.next
        woken: cython.int = 0
        row: cython.int = self.announced.next_row
        cap_w: cython.double = self.announced.cap_w
        if cap_w < 0.0:
            cap_w = self.state.budget.cap_w
        self.drawn = self.state.power.floor_sum if self.state.has_power else 0
        is_now: cython.bint = self.preempts and self._release_below(head)
        self.last_end = self._last_end() if self.state.has_power else self.state.now
        while True:
            if is_now:
                is_now = False
                if self._takes_at(head, self.state.now, self._spare_at(cap_w)):
                    return
            time = self._next_time(block, index, change, woken)
            if self.state.has_power:
                row = self.announced.provide_row(row, self.last_end)
                if row < self.announced.num_rows and self.announced.row_time[row] < time:
                    time = self.announced.row_time[row]
            if time == ENDLESS:
                break
            while block < self.state.expects.used and self._expected(block, index) <= time:
                if not self.is_room[self.state.expects.job[self._entry(block, index)]]:
                    self._release(self.state.expects.job[self._entry(block, index)])
                index += 1
                if index == self.state.expects.length[self.state.expects.block[block]]:
                    block += 1
                    index = 0
            while change < self.announced.count and self.announced.time[change] <= time:
                self.announced.happen(change, self.beside)
                change += 1
            while (
                woken < self.announced.num_asleep
                and self.announced.ready_at(woken, self.state.now) <= time
            ):
                self.beside.restore(self.announced.asleep[woken], self.announced.sleep_group, 0)
                woken += 1
            if self.state.has_power:
                while row < self.announced.num_rows and self.announced.row_time[row] <= time:
                    cap_w = self.announced.row_cap[row]
                    row = self.announced.provide_row(row + 1, self.last_end)
            if self._takes_at(head, time, self._spare_at(cap_w)):
                return
        self.shadow = ENDLESS
        self.left = self.state.spare() if self.state.has_power else 0
        self.beside.copy_from(self.free)

    @compiled
    def _spare_at(self, cap_w: cython.double) -> cython.longlong:
        """Return the nanowatts that a job may add to ``drawn`` under a cap."""
        if not self.state.has_power:
            return 0
        budget = self.state.budget.under(cap_w)
        return (budget if budget > 0 else 0) - self.drawn

    @compiled
    def _takes_at(
        self, head: cython.int, time: cython.double, spare: cython.longlong
    ) -> cython.bint:
        """Take what the head gets beside those that are left at a time, if it fits then."""
        if not self.admission.fit_in(self.beside, head, time, spare):
            return False
        if self.state.has_power:
            self.left = spare - self.admission.floor(self.beside, head)
        self.beside.take(self.admission.kind, self.beside.place, 0, self.beside.place.count)
        self._hold(self.beside.place)
        self.shadow = time
        return True

    @compiled
    def _hold(self, place: Pairs) -> cython.void:
        self.held.count = 0
        self.held.extend(place, 0, place.count)

    @compiled
    def _is_below(self, job: cython.int, head: cython.int) -> cython.bint:
        """Return whether a running job is ranked below the head, and may give way for it."""
        if self.state.has_quotas and not self.beside.quotas.may_give_way(head, job):
            return False
        key = self.preemption.running_key(job)
        return key > self.lines.key[head] or (key == self.lines.key[head] and job > head)

    @compiled
    def _release_below(self, head: cython.int) -> cython.bint:
        """Let running jobs that are ranked below the head be gone beside it; return if any is.

        The lowest rank first, as under quotas a queue's jobs give way as long as it borrows.
        """
        for at in range(self.room.count):
            self.is_room[self.room.job[at]] = False
        self.room.count = 0
        self.preemption.absorb()
        self.preemption.see_ranks()
        for place in range(self.preemption.ranks.used - 1, -1, -1):
            number = self.preemption.ranks.block[place]
            for index in range(self.preemption.ranks.length[number] - 1, -1, -1):
                job = self.preemption.ranks.job[number * RANKED_CAPACITY + index]
                if self._is_below(job, head):
                    self.room.add(job)
                    self.is_room[job] = True
                    self._release(job)
                    if self.state.has_quotas:
                        self.beside.quotas.lift(job)
        return self.room.count > 0

    @compiled
    def _entry(self, block: cython.int, index: cython.int) -> cython.int:
        return self.state.expects.block[block] * RANKED_CAPACITY + index

    @compiled
    def _expected(self, block: cython.int, index: cython.int) -> cython.double:
        """Return when the job there is expected to end: now, if that is past."""
        time: cython.double = self.state.expects.key[self._entry(block, index)]
        return time if time > self.state.now else self.state.now

    @compiled
    def _last_end(self) -> cython.double:
        """Return when the last running job is expected to end, s; of those above the head."""
        block: cython.int = self.state.expects.used - 1
        while block >= 0:
            index = self.state.expects.length[self.state.expects.block[block]] - 1
            while index >= 0:
                if not self.is_room[self.state.expects.job[self._entry(block, index)]]:
                    return self._expected(block, index)
                index -= 1
            block -= 1
        return self.state.now

    @compiled
    def _next_time(
        self, block: cython.int, index: cython.int, change: cython.int, woken: cython.int
    ) -> cython.double:
        time: cython.double = ENDLESS
        if block < self.state.expects.used:
            time = self._expected(block, index)
        if change < self.announced.count and self.announced.time[change] < time:
            time = self.announced.time[change]
        if woken < self.announced.num_asleep:
            ready: cython.double = self.announced.ready_at(woken, self.state.now)
            if ready < time:
                time = ready
        return time

    @compiled
    def _release(self, job: cython.int) -> cython.void:
        """Let a running job be gone beside the head."""
        if self.state.has_power:
            self.drawn -= self.state.power.floor[job]
        self.state.give_place(self.beside, job)

    @compiled
    def _takes_beside(self, job: cython.int) -> cython.bint:
        """Take what ``free.place`` has at the shadow, too; False = it is not free then."""
        kind: cython.int = self.admission.kind
        need: cython.longlong = 0
        if self.state.has_power:
            need = self.admission.floor(self.free, job)
            if need > self.left:
                return False
        if not self._is_beside(job, kind) and not self._makes_way(job, kind):
            return False
        self.beside.take(kind, self.free.place, 0, self.free.place.count)
        self.left -= need
        return True

    @compiled
    def _is_beside(self, job: cython.int, kind: cython.int) -> cython.bint:
        """Return whether what ``free.place`` has is free at the shadow, too."""
        fits: cython.bint
        access: cython.int = self.state.access[job] if self.state.has_access else 0
        opened: cython.bint = access > 0 and self.beside.open_for(access)
        fits = self.beside.is_free(kind, self.free.place, 0, self.free.place.count)
        if opened:
            self.beside.close()
        return fits

    @compiled
    def _makes_way(self, job: cython.int, kind: cython.int) -> cython.bint:
        """Let the head have other devices of its nodes, if a job can have its place then.

        Its promise is of the nodes.
        """
        moves: cython.bint = False
        own: cython.int = self.state.kind[self.head]
        if not self.by_device or self.shadow == ENDLESS:
            return False
        self.beside.give(own, self.held, 0, self.held.count)
        if self._is_beside(job, kind):
            self.beside.take(kind, self.free.place, 0, self.free.place.count)
            self.beside.draws = self.state.stays.count
            moves = self.beside.fit_again(own, self.held)
            self.beside.give(kind, self.free.place, 0, self.free.place.count)
        if moves:
            self._hold(self.beside.place)
        self.beside.take(own, self.held, 0, self.held.count)
        return moves

    # Those behind the head.

    @compiled
    def _is_as_long(self, job: cython.int) -> cython.bint:
        """Return whether a job would be refused beside the head as another of its line was.

        One that meets a hold would be given another place than that.
        """
        return self.shadow < self.admission.stop_of(job, self.state.now) <= self.clear_until

    @compiled
    def _may_start(self, line: cython.int, job: cython.int) -> cython.bint:
        """Return whether a job behind the head may start; what it takes beside it is taken."""
        if self.long_refused[line] == self.stamp and self._is_as_long(job):
            self.is_held_up = self.admission.blocks() and self.admission.is_over(job)
            return False
        if not self._fits(line, job):
            self.is_held_up = self.admission.blocks() and self.admission.is_over(job)
            return False
        if self.admission.stop_of(job, self.state.now) <= self.shadow or self._takes_beside(job):
            return True
        if not self.admission.by_job:
            self.long_refused[line] = self.stamp
        return False

    @compiled
    def _backfill(self) -> cython.void:
        """Try the jobs behind the head in the queue's order: a merge of the lines."""
        self.merge.count = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.merge.place[line] = 0
            self._offer(line)
        while self.merge.count > 0 and not self.is_held_up and not self.is_robbed:
            line = self.merge.heap[0]
            self.merge.pop()
            job = self.merge.next_of(line)
            if self._may_start(line, job):
                self.lines.remove_at(line, self.lines.begin[line] + self.merge.place[line])
                self._start_backfilled(job)
                self._go_on_behind(job)
            else:
                self.merge.place[line] += 1
                self._offer(line)

    @compiled
    def _go_on_behind(self, job: cython.int) -> cython.void:
        """Look at the jobs behind one that has just started: what was passed over may fit now."""
        self.merge.count = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.merge.place[line] = cython.cast(
                cython.int, self.lines.place_of(line, job) - self.lines.begin[line]
            )
            self._offer(line)

    @compiled
    def _offer(self, line: cython.int) -> cython.void:
        """Put a line among those that are looked at, if one of its jobs may start yet.

        Jobs that are as long as one that was refused are passed over until another job starts.
        """
        if self.refused[line] == self.free.version and not self.admission.blocks():
            return
        if self.long_refused[line] == self.stamp:
            while self.merge.place[line] < self.lines.length[line] and self._is_as_long(
                self.merge.next_of(line)
            ):
                self.merge.place[line] += 1
        if (
            self.merge.place[line] < self.lines.length[line]
            and self.merge.next_of(line) == self.head
        ):
            self.merge.place[line] += 1
            self._offer(line)
            return
        if self.merge.place[line] >= self.lines.length[line]:
            return
        self.merge.push(line)

    @compiled
    def _backfill_shortest(self) -> cython.void:
        """Try the jobs behind the head by (estimate, number)."""
        self._gather(self.head)
        while self.shortest.count > 0 and not self.is_held_up and not self.is_robbed:
            job = self.shortest.pop()
            line = self.lines.line_of[job]
            if self._may_start(line, job):
                self.lines.remove(job)
                self._start_backfilled(job)

    @compiled
    def _gather(self, head: cython.int) -> cython.void:
        """Collect the jobs of the lines that are not refused, but the head."""
        self.shortest.count = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.refused[line] == self.free.version and not self.admission.blocks():
                continue
            for cell in range(
                self.lines.begin[line], self.lines.begin[line] + self.lines.length[line]
            ):
                job = self.lines.slab[cell]
                if job != head:
                    self.shortest.push(self.state.estimate[job], job, job)
