"""`HeadPlan`: when the first job starts that cannot now, under backfilling with preemption.

Running jobs of lower rank are room for it, as preemption will let it have their places: it starts
at its shadow (`windtunnel.kernel.reservation`), whatever others are promised. Who has to give way
then is expected to be gone from then on, and its own place is taken, for all who are promised a
start. The plan is made anew at every decision.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.outlook import Outlook
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.promises import PROMISE_KEPT, Promises
from windtunnel.kernel.reservation import Reservation
from windtunnel.kernel.rises import Rises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class HeadPlan:
    """The plan for the head of the queue, in the profile of all promises.

    Args:
        outlook: knows who runs, and is told what changes.
        reservation: finds the shadow.

    Attributes:
        head: who has a plan; -1 = nobody.
        giving: the running jobs that are to give way.
        old_head, old_start, old_stop, old_place, gave: the plan of the last decision.
    """

    state: State
    outlook: Outlook
    promises: Promises
    rises: Rises
    reservation: Reservation
    head: cython.int
    giving: JobList
    old_head: cython.int
    old_start: cython.double
    old_stop: cython.double
    old_place: Pairs
    gave: JobList

    def __init__(self, outlook: Outlook, reservation: Reservation) -> None:
        self.outlook, self.reservation = outlook, reservation
        self.state, self.promises, self.rises = outlook.state, outlook.promises, outlook.rises
        self.head = self.old_head = -1
        self.giving, self.gave = JobList(), JobList()
        self.old_place = Pairs()

    @compiled
    def lift(self) -> cython.void:
        """Take the plan of the last decision out of the profile, before anything else is seen."""
        job: cython.int = self.head
        self.old_head, self.head = job, -1
        self.gave.count = self.old_place.count = 0
        if job < 0:
            return
        first: cython.longlong = self.promises.first[job]
        self.old_start, self.old_stop = self.promises.start[job], self.promises.stop[job]
        self.old_place.extend(self.promises.places, first, first + self.promises.size[job])
        self.promises.lift(job)
        for at in range(self.giving.count):
            other = self.giving.job[at]
            self.promises.move_end(other, self.outlook.known_end[other])
            self.gave.add(other)
        self.giving.count = 0

    @compiled
    def make(self, head: cython.int) -> cython.void:
        """Plan for the first job that cannot start now; -1 = there is none."""
        if head >= 0:
            self.reservation.reserve(head)
            if self.reservation.shadow < ENDLESS:
                self._enter(head)
        if not self._is_as_before():
            self._note_changes()

    @compiled
    def _enter(self, head: cython.int) -> cython.void:
        """Let the head have its place from the shadow on, and those in its way be gone."""
        soon: cython.double = nextafter(self.state.now, ENDLESS)
        start: cython.double = max(self.reservation.shadow, soon)
        self.head = head
        self.reservation.gather_giving()
        for at in range(self.reservation.giving.count):
            other = self.reservation.giving.job[at]
            self.promises.move_end(other, start)
            self.giving.add(other)
        if self.promises.is_promised(head):
            self.outlook.let_go(head)
        self.promises.span[head] = self.state.expected.span(head, self.state.left[head])
        if self.state.has_power:
            self.promises.draw[head] = self.reservation.need
        self.promises.keep_place(head, self.reservation.held, 0, self.reservation.held.count)
        self.promises.enter_plan(head, start)

    @compiled
    def _is_as_before(self) -> cython.bint:
        """Return whether the plan is that of the last decision."""
        if self.head != self.old_head or self.giving.count != self.gave.count:
            return False
        if self.head < 0:
            return True
        if (
            self.promises.start[self.head] != self.old_start
            or self.promises.stop[self.head] != self.old_stop
            or self.promises.size[self.head] != self.old_place.count
        ):
            return False
        for at in range(self.giving.count):
            if self.giving.job[at] != self.gave.job[at]:
                return False
        first: cython.longlong = self.promises.first[self.head]
        for at in range(self.old_place.count):
            if (
                self.promises.places.node[first + at] != self.old_place.node[at]
                or self.promises.places.grant[first + at] != self.old_place.grant[at]
            ):
                return False
        return True

    @compiled
    def _note_changes(self) -> cython.void:
        """Note where there is more capacity than with the last plan, and where there is less."""
        begin: cython.double = max(self.old_start, self.state.now)
        if self.state.has_power:
            self.outlook.doubt_all()
            return
        for at in range(self.old_place.count):
            if begin < self.old_stop:
                self.rises.note_node(self.old_place.node[at], begin, self.old_stop)
        for at in range(self.gave.count):
            if self.promises.what[self.gave.job[at]] == PROMISE_KEPT:
                self.outlook.lose(self.gave.job[at])
        if self.head < 0:
            return
        for at in range(self.giving.count):
            job = self.giving.job[at]
            self.rises.note(job, self.promises.start[self.head], self.outlook.known_end[job], -1)
        self.outlook.lose(self.head)
