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
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.line_merge import LineMerge
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.preemption import PreemptingRule, Preemption
from windtunnel.kernel.reservation import Reservation
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
        head: the job that holds the reservation.
        reservation: when and where.
        is_reserved: the shadow is of this decision.
        is_held_up: a job behind the head waits for quota, and quotas are to block.
        has_quota: the head has its quota by itself, nobody giving way.
        is_robbed: a backfilled job took that.
    """

    head: cython.int
    is_reserved: cython.bint
    is_held_up: cython.bint
    has_quota: cython.bint
    is_robbed: cython.bint
    shortest_first: cython.bint
    reservation: Reservation
    stamp: cython.longlong
    refused: cython.longlong[::1]
    long_refused: cython.longlong[::1]
    merge: LineMerge
    shortest: JobHeap

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
        self.shortest_first, self.head = shortest_first, -1
        self.reservation = Reservation(state, admission, announced, preemption, by_device=by_device)
        lines = max(self.lines.num_lines, 1)
        self.refused = numpy.full(lines, -1, dtype=numpy.int64)
        self.long_refused = numpy.full(lines, -1, dtype=numpy.int64)
        self.merge = LineMerge(self.lines)
        self.shortest = JobHeap(state.num_jobs if shortest_first else 1)

    def planned_starts(self) -> list:
        """Return when and where the first in the queue starts; see `Rule.planned_starts`."""
        if self.head < 0:
            return []
        is_reserved, shadow = self.is_reserved, self.reservation.shadow
        self._reserve()
        start, self.is_reserved, self.reservation.shadow = (
            self.reservation.shadow,
            is_reserved,
            shadow,
        )
        return [] if start == ENDLESS else [(start, self.reservation.nodes())]

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
            self._reserve()
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
            self._reserve()
        return self.reservation.shadow

    @compiled
    def _reserve(self) -> cython.void:
        """Find the shadow, and what is free then beside the head."""
        self.is_reserved = True
        self.stamp += 1
        self.reservation.reserve(self.head)
        self.reservation.gather_giving()  # who need not go is not room for others

    # Those behind the head.

    @compiled
    def _is_as_long(self, job: cython.int) -> cython.bint:
        """Return whether a job would be refused beside the head as another of its line was.

        One that meets a hold would be given another place than that.
        """
        stop: cython.double = self.admission.stop_of(job, self.state.now)
        return self.reservation.shadow < stop <= self.reservation.clear_until

    @compiled
    def _may_start(self, line: cython.int, job: cython.int) -> cython.bint:
        """Return whether a job behind the head may start; what it takes beside it is taken."""
        if self.long_refused[line] == self.stamp and self._is_as_long(job):
            self.is_held_up = self.admission.blocks() and self.admission.is_over(job)
            return False
        if not self._fits(line, job):
            self.is_held_up = self.admission.blocks() and self.admission.is_over(job)
            return False
        stop: cython.double = self.admission.stop_of(job, self.state.now)
        if stop <= self.reservation.shadow or self.reservation.takes_beside(job):
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
                    self.shortest.push(self.state.expected.estimate[job], job, job)
