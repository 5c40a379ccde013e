"""`Reservation`: when the first job that does not fit is expected to, and what is free beside it.

The *shadow* is the earliest expected time at which that job, the head of the queue, fits (Lifka,
JSSPP 1995). With a preemptive policy running jobs ranked below it count as free at once.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.preemption import Preemption
from windtunnel.kernel.ranked import RANKED_CAPACITY
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class Reservation:
    """A shadow, made for one decision.

    Args:
        state: the run.
        admission: says where jobs fit.
        announced: capacity that is known to come and go.
        preemption: ranks running jobs; None = nobody is preempted.
        by_device: nodes have devices.

    Attributes:
        head: the job that holds the reservation.
        shadow: s; inf = the head is never known to fit.
        held: where it goes then.
        kind: as what kind of job it fits there.
        need: nanowatts that it adds to the draw there.
        beside: what is free at the shadow, less what the head and backfilled jobs take then.
        left: nanowatts that backfilled jobs may add beside the head then.
        clear_until: when the first hold that is announced begins, s.
        room, is_room: running jobs that count as gone at once beside the head, the lowest rank
            first.
        giving: those of them that have to be gone at the shadow.
    """

    state: State
    lines: Lines
    admission: Admission
    announced: Announced
    preemption: Preemption
    preempts: cython.bint
    by_device: cython.bint
    head: cython.int
    shadow: cython.double
    held: Pairs
    kind: cython.int
    need: cython.longlong
    beside: Free
    left: cython.longlong
    drawn: cython.longlong
    last_end: cython.double
    clear_until: cython.double
    room: JobList
    is_room: cython.char[::1]
    giving: JobList
    change: cython.int
    woken: cython.int
    row: cython.int
    cap_w: cython.double

    def __init__(
        self,
        state: State,
        admission: Admission,
        announced: Announced,
        preemption: Preemption | None,
        *,
        by_device: bool,
    ) -> None:
        self.state, self.lines = state, state.lines
        self.admission, self.announced = admission, announced
        self.preempts, self.preemption = preemption is not None, preemption
        self.by_device, self.head = by_device, -1
        self.held = Pairs()
        self.beside = state.free.twin()
        self.room, self.giving = JobList(), JobList()
        self.is_room = numpy.zeros(max(state.num_jobs, 1), dtype=numpy.int8)

    @compiled
    def reserve(self, head: cython.int) -> cython.void:
        """Find the shadow, and what is free then beside the head; inf = it never fits."""
        self._begin(head)
        if self.room.count > 0 and self._takes_at(self.state.now):
            return
        time: cython.double = self._next_time()
        while time < ENDLESS:
            self._pass_until(time)
            if self._takes_at(time):
                return
            time = self._next_time()
        self.shadow = ENDLESS
        self.left = self.state.spare() if self.state.has_power else 0
        self.beside.copy_from(self.state.free)

    # What is free, and may be drawn, as time goes on.

    @compiled
    def _begin(self, head: cython.int) -> cython.void:
        """Stand at now, with those gone who are ranked below the head."""
        self.head = head
        self.beside.copy_from(self.state.free)
        self.announced.pass_until(self.state.now, self.state.happened)
        self.clear_until = self.announced.first_begin()
        self.woken = 0
        self.state.expected.ranked.begin_walk(0.0)
        self.change, self.row = self.announced.next, self.announced.next_row
        self.cap_w = self.announced.cap_now(self.state.budget)
        self.drawn = self.state.power.floor_sum if self.state.has_power else 0
        if self.preempts:
            self._release_below()
        self.last_end = self._last_end() if self.state.has_power else self.state.now

    @compiled
    def _next_time(self) -> cython.double:
        """Return when anything is expected to happen next, s; inf = nothing is."""
        time: cython.double = ENDLESS
        if not self.state.expected.ranked.at_end():
            time = self._expected(self.state.expected.ranked.at_entry())
        if self.change < self.announced.count and self.announced.time[self.change] < time:
            time = self.announced.time[self.change]
        if self.woken < self.announced.num_asleep:
            ready: cython.double = self.announced.ready_at(self.woken, self.state.now)
            if ready < time:
                time = ready
        if self.state.has_power:
            self.row = self.announced.provide_row(self.row, self.last_end)
            if self.row < self.announced.num_rows and self.announced.row_time[self.row] < time:
                time = self.announced.row_time[self.row]
        return time

    @compiled
    def _pass_until(self, time: cython.double) -> cython.void:
        """Let all happen that is expected until a time."""
        while (
            not self.state.expected.ranked.at_end()
            and self._expected(self.state.expected.ranked.at_entry()) <= time
        ):
            job = self.state.expected.ranked.job[self.state.expected.ranked.at_entry()]
            if not self.is_room[job]:
                self._release(job)
            self.state.expected.ranked.step()
        while self.change < self.announced.count and self.announced.time[self.change] <= time:
            self.announced.happen(self.change, self.beside)
            self.change += 1
        while (
            self.woken < self.announced.num_asleep
            and self.announced.ready_at(self.woken, self.state.now) <= time
        ):
            self.beside.restore(self.announced.asleep[self.woken], self.announced.sleep_group, 0)
            self.woken += 1
        while (
            self.state.has_power
            and self.row < self.announced.num_rows
            and self.announced.row_time[self.row] <= time
        ):
            self.cap_w = self.announced.row_cap[self.row]
            self.row = self.announced.provide_row(self.row + 1, self.last_end)

    @compiled
    def _spare(self) -> cython.longlong:
        """Return the nanowatts that a job may add to the draw then."""
        if not self.state.has_power:
            return 0
        return self.state.budget.under(self.cap_w) - self.drawn

    @compiled
    def _takes_at(self, time: cython.double) -> cython.bint:
        """Take what the head gets beside those that are left at a time, if it fits then."""
        spare: cython.longlong = self._spare()
        if not self.admission.fit_in(self.beside, self.head, time, spare):
            return False
        if self.state.has_power:
            self.need = self.admission.floor(self.beside, self.head)
            self.left = spare - self.need
        self.kind = self.admission.kind
        self.beside.take(self.kind, self.beside.place, 0, self.beside.place.count)
        self._hold(self.beside.place)
        self.shadow = time
        return True

    @compiled
    def _hold(self, place: Pairs) -> cython.void:
        self.held.count = 0
        self.held.extend(place, 0, place.count)

    @compiled
    def _is_below(self, job: cython.int) -> cython.bint:
        """Return whether a running job is ranked below the head, and may give way for it."""
        if self.state.has_quotas and not self.beside.quotas.may_give_way(self.head, job):
            return False
        key = self.preemption.running_key(job)
        return key > self.lines.key[self.head] or (
            key == self.lines.key[self.head] and job > self.head
        )

    @compiled
    def _release_below(self) -> cython.void:
        """Let running jobs that are ranked below the head be gone beside it.

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
                if self._is_below(job):
                    self.room.add(job)
                    self.is_room[job] = True
                    self._release(job)
                    if self.state.has_quotas:
                        self.beside.quotas.lift(job)

    @compiled
    def _expected(self, entry: cython.int) -> cython.double:
        """Return when the job of an entry is expected to end: now, if that is past."""
        time: cython.double = self.state.expected.ranked.key[entry]
        return time if time > self.state.now else self.state.now

    @compiled
    def _last_end(self) -> cython.double:
        """Return when the last running job is expected to end, s; of those above the head."""
        for place in range(self.state.expected.ranked.used - 1, -1, -1):
            number = self.state.expected.ranked.block[place]
            for index in range(self.state.expected.ranked.length[number] - 1, -1, -1):
                entry = number * RANKED_CAPACITY + index
                if not self.is_room[self.state.expected.ranked.job[entry]]:
                    return self._expected(entry)
        return self.state.now

    @compiled
    def _release(self, job: cython.int) -> cython.void:
        """Let a running job be gone beside the head."""
        if self.state.has_power:
            self.drawn -= self.state.power.floor[job]
        self.state.give_place(self.beside, job)

    def nodes(self) -> list:
        """Return where the head goes."""
        return [self.held.node[at] for at in range(self.held.count)]

    # Who has to give way for it.

    @compiled
    def gather_giving(self) -> cython.void:
        """Write who has to be stopped at the shadow into ``giving``, and let the head go there.

        As preemption chooses of those who run then: the highest ranks stay, as far as the head has
        a place beside them, and under quotas its own queue's before those of others. ``beside`` has
        what is free beside the head and them afterwards.
        """
        self.giving.count = 0
        if self.room.count == 0 or self.shadow == ENDLESS:
            return
        self.beside.give(self.kind, self.held, 0, self.held.count)
        if self.state.has_power:
            self.left += self.need
        self._keep_room(0)
        if self.state.has_quotas:
            self._keep_room(1)
        if self._fits_beside():
            self._hold_found()
        self.beside.take(self.kind, self.held, 0, self.held.count)
        if self.state.has_power:
            self.left -= self.need

    @compiled
    def _keep_room(self, turn: cython.int) -> cython.void:
        """Let running jobs stay, the highest rank first; under quotas those of others at turn 1."""
        for at in range(self.room.count - 1, -1, -1):
            job = self.room.job[at]
            if self.state.expected.end[job] <= self.shadow:
                continue
            if self.state.has_quotas and turn == (
                self.state.quotas.queues[job] == self.state.quotas.queues[self.head]
            ):
                continue
            need: cython.longlong = self.state.power.floor[job] if self.state.has_power else 0
            self.state.take_all(self.beside, job)
            self.left -= need
            if not self._stays_beside():
                self.state.give_all(self.beside, job)
                self.left += need
                self.giving.add(job)

    @compiled
    def _stays_beside(self) -> cython.bint:
        """Return whether the head has a place beside those who stay, and goes there."""
        plain: cython.bint = not self.state.has_power and not self.state.has_quotas
        if plain and self._is_beside(self.head, self.kind, self.held):
            return True
        if not self._fits_beside():
            return False
        self._hold_found()
        return True

    @compiled
    def _fits_beside(self) -> cython.bint:
        return self.admission.fit_in(self.beside, self.head, self.shadow, self.left)

    @compiled
    def _hold_found(self) -> cython.void:
        """Let the head go where it was found to fit."""
        self.kind = self.admission.kind
        if self.state.has_power:
            self.need = self.admission.floor(self.beside, self.head)
        self._hold(self.beside.place)

    # What jobs behind the head may have.

    @compiled
    def takes_beside(self, job: cython.int) -> cython.bint:
        """Take what ``free.place`` has at the shadow, too; False = it is not free then."""
        kind: cython.int = self.admission.kind
        need: cython.longlong = 0
        if self.state.has_power:
            need = self.admission.floor(self.state.free, job)
            if need > self.left:
                return False
        is_free: cython.bint = self._is_beside(job, kind, self.state.free.place)
        if not is_free and not self._makes_way(job, kind):
            return False
        self.beside.take(kind, self.state.free.place, 0, self.state.free.place.count)
        self.left -= need
        return True

    @compiled
    def _is_beside(self, job: cython.int, kind: cython.int, place: Pairs) -> cython.bint:
        """Return whether a job's place is free at the shadow."""
        opened: cython.bint = self.state.open_for(self.beside, job)
        fits: cython.bint = self.beside.is_free(kind, place, 0, place.count)
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
        if self._is_beside(job, kind, self.state.free.place):
            self.beside.take(kind, self.state.free.place, 0, self.state.free.place.count)
            self.beside.draws = self.state.stays.count
            moves = self.beside.fit_again(own, self.held)
            self.beside.give(kind, self.state.free.place, 0, self.state.free.place.count)
        if moves:
            self._hold(self.beside.place)
        self.beside.take(own, self.held, 0, self.held.count)
        return moves
