"""`QuotaVictims`: who gives way for a job under quotas, as in `windtunnel.policies.quota_reclaim`.

That module has the rules. Here jobs are taken away for trial in the books and, as soon as the quota
suffices, in a copy of the free state.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.quota_accounts import QuotaAccounts
from windtunnel.kernel.state import State

#: Whose jobs give way.
QUOTA_NEVER = cython.declare(cython.int, 0)
QUOTA_LOWER = cython.declare(cython.int, 1)
QUOTA_ANY = cython.declare(cython.int, 2)


@cython.final
@cython.cclass
class QuotaVictims:
    """Finds who gives way.

    Args:
        order: the quotas (`windtunnel.sim.cohort_order.CohortOrder`).

    Attributes:
        reclaims, within: by queue, whose jobs of other queues give way to its own, and of its own.
        job, queue, flavor, kind, amount, priority: who wants to start, and as what.
        num_others: segments of candidates of other queues; one of the job's own queue follows.
        owner, at, end: of each segment its queue, and what is left of it in ``candidates``.
        later: how many at the front of a segment were passed over (fair sharing).
        gone: those that are away for trial; in the end the victims, in order.
        synced: how many of them are away in ``spare``, too; -1 = it is to be copied first.
        found, found_kind: where the job goes then, and as what.
    """

    state: State
    admission: Admission
    accounts: QuotaAccounts
    fair: cython.bint
    reclaims: cython.int[::1]
    within: cython.int[::1]
    job: cython.int
    queue: cython.int
    flavor: cython.int
    kind: cython.int
    amount: cython.longlong
    priority: cython.double
    queue_of: cython.int[::1]
    candidates: JobList
    num_others: cython.int
    owner: cython.int[::1]
    begin: cython.int[::1]
    at: cython.int[::1]
    end: cython.int[::1]
    later: cython.int[::1]
    gone: JobList
    synced: cython.int
    spared: cython.longlong
    spare: Free
    found: Pairs
    found_kind: cython.int

    def __init__(self, admission: Admission, accounts: QuotaAccounts, order: object) -> None:
        self.state, self.admission, self.accounts = admission.state, admission, accounts
        self.fair = bool(order.fair)
        self.reclaims = numpy.ascontiguousarray(order.reclaims, dtype=numpy.int32)
        self.within = numpy.ascontiguousarray(order.within, dtype=numpy.int32)
        segments = accounts.queues + 1
        self.owner = numpy.zeros(segments, dtype=numpy.int32)
        self.begin = numpy.zeros(segments, dtype=numpy.int32)
        self.at = numpy.zeros(segments, dtype=numpy.int32)
        self.end = numpy.zeros(segments, dtype=numpy.int32)
        self.later = numpy.zeros(segments, dtype=numpy.int32)
        self.queue_of = numpy.ascontiguousarray(order.queue_of, dtype=numpy.int32)
        self.candidates, self.gone = JobList(), JobList()
        self.spare = self.state.free.twin()
        self.found = Pairs()

    @compiled
    def can_ever(self, queue: cython.int) -> cython.bint:
        """Return whether anybody ever gives way to a queue's jobs."""
        return self.reclaims[queue] != QUOTA_NEVER or self.within[queue] != QUOTA_NEVER

    @compiled
    def find(
        self, job: cython.int, queue: cython.int, flavor: cython.int, kind: cython.int
    ) -> cython.bint:
        """Look for those who give way so that a job fits; ``gone`` and ``found`` say who."""
        self.job, self.queue, self.flavor, self.kind = job, queue, flavor, kind
        self.amount = self.accounts.amount[job]
        self.priority = self.accounts.priority[job]
        if not self._may_help():
            return False
        self._gather()
        if self.candidates.count == 0 or not self._could_ever():
            return False
        own = self.end[self.num_others] - self.begin[self.num_others]
        if self.num_others == 0:
            return self._fewest(True)
        if self.fair:
            return self._fairly()
        is_within: cython.bint = (
            self.accounts.usage[self._cell()] < self.accounts.nominal[self._cell()]
        )
        if is_within and self._fewest(False):
            return True
        return own > 0 and self._fewest(True)

    @compiled
    def _cell(self) -> cython.int:
        return self.accounts.cell(self.queue, self.flavor)

    @compiled
    def _may_help(self) -> cython.bint:
        """Return False where nobody of the queue itself gives way, and it would borrow."""
        if self.fair or self.accounts.is_within(self.queue, self.flavor, self.amount):
            return True
        return self.within[self.queue] != QUOTA_NEVER and (
            self.accounts.num_below(self._cell(), self.priority) > 0
        )

    # Candidates.

    @compiled
    def _gather(self) -> cython.void:
        """Find who may give way: a segment for each other queue that borrows, one for its own."""
        cohort: cython.int = self.accounts.cohort[self.queue]
        self.candidates.count = self.num_others = 0
        if self.reclaims[self.queue] != QUOTA_NEVER and cohort >= 0:
            for entry in range(
                self.accounts.first_member[cohort], self.accounts.first_member[cohort + 1]
            ):
                other = self.accounts.member[entry]
                if other == self.queue or not self.accounts.borrows(other, self.flavor):
                    continue
                cell = self.accounts.cell(other, self.flavor)
                many = self.accounts.held.length[cell]
                if self.reclaims[self.queue] == QUOTA_LOWER:
                    many = self.accounts.num_below(cell, self.priority)
                if many > 0:
                    self._add_segment(self.num_others, other, cell, many)
                    self.num_others += 1
        many = 0
        if self.within[self.queue] != QUOTA_NEVER:
            many = self.accounts.num_below(self._cell(), self.priority)
        self._add_segment(self.num_others, self.queue, self._cell(), many)

    @compiled
    def _add_segment(
        self, segment: cython.int, queue: cython.int, cell: cython.int, many: cython.int
    ) -> cython.void:
        first: cython.longlong = self.accounts.held.begin[cell]
        self.owner[segment] = queue
        self.begin[segment] = self.candidates.count
        for index in range(many):
            self.candidates.add(self.accounts.held.slab[first + index])
        self.end[segment] = self.candidates.count

    # Trials.

    @compiled
    def _begin_trial(self) -> cython.void:
        self.gone.count = 0
        self.synced = -1

    @compiled
    def _take_away(self, job: cython.int) -> cython.void:
        self._book(job, -1)
        self.gone.add(job)

    @compiled
    def _book(self, job: cython.int, sign: cython.int) -> cython.void:
        """Let a job's queue use what it holds (1), or not (-1)."""
        queue: cython.int = self.queue_of[self.state.lines.line_of[job]]
        self.accounts.use(queue, self.flavor, sign * self.accounts.amount[job])

    @compiled
    def _restore(self) -> cython.void:
        """Book everybody back."""
        for at in range(self.gone.count):
            self._book(self.gone.job[at], 1)

    @compiled
    def _has_quota(self, borrowing: cython.bint) -> cython.bint:
        if not borrowing and not self.accounts.is_within(self.queue, self.flavor, self.amount):
            return False
        return self.amount <= self.accounts.available(self.queue, self.flavor)

    @compiled
    def _fits(self) -> cython.bint:
        if self.synced < 0:
            self.spare.copy_from(self.state.free)
            self.spared = 0
            self.synced = 0
        while self.synced < self.gone.count:
            self._give(self.gone.job[self.synced])
            self.synced += 1
        return self._has_place()

    @compiled
    def _has_place(self) -> cython.bint:
        """Return whether the job has a place in ``spare``."""
        power: cython.longlong = self.state.spare() if self.state.has_power else 0
        return self.admission.fit_as(self.spare, self.job, self.kind, power + self.spared)

    @compiled
    def _give(self, job: cython.int) -> cython.void:
        self.state.give_place(self.spare, job)
        if self.state.has_power:
            self.spared += self.state.power.floor[job]

    @compiled
    def _take_back(self, job: cython.int) -> cython.void:
        self.state.take_place(self.spare, job)
        if self.state.has_power:
            self.spared -= self.state.power.floor[job]

    @compiled
    def _could_ever(self) -> cython.bint:
        """Return whether the job would fit with all candidates gone; more capacity never hurts."""
        self._begin_trial()
        for at in range(self.candidates.count):
            self._take_away(self.candidates.job[at])
        fits = self._has_quota(True) and self._fits()
        self._restore()
        return fits

    @compiled
    def _fewest(self, borrowing: cython.bint) -> cython.bint:
        """Take candidates away in order until the job fits; then let who need not go stay.

        Where its queue is to borrow, its own jobs alone give way.
        """
        fits: cython.bint = False
        for segment in range(self.num_others + 1):
            self.at[segment] = self.begin[segment]
        self._begin_trial()
        while not fits:
            segment = self.num_others if borrowing else self._next_segment()
            if self.at[segment] == self.end[segment]:
                break
            job = self.candidates.job[self.at[segment]]
            self.at[segment] += 1
            if segment < self.num_others and not self.accounts.borrows(
                self.owner[segment], self.flavor
            ):
                self.at[segment] = self.end[segment]
                continue
            self._take_away(job)
            fits = self._has_quota(borrowing) and self._fits()
        if fits:
            self._minimize(borrowing)
        self._restore()
        return fits

    @compiled
    def _next_segment(self) -> cython.int:
        """Return whose candidate goes next: others' before one's own."""
        best: cython.int = -1
        for segment in range(self.num_others):
            if self.at[segment] < self.end[segment] and (
                best < 0
                or self.accounts.held.before(
                    self.candidates.job[self.at[segment]], self.candidates.job[self.at[best]]
                )
            ):
                best = segment
        return self.num_others if best < 0 else best

    @compiled
    def _minimize(self, borrowing: cython.bint) -> cython.void:
        """Let whoever need not go stay, the last one taken away excepted; in reverse.

        All of ``gone`` are away in the books and in ``spare``, and the job fits there.
        """
        self._note_place()
        for at in range(self.gone.count - 2, -1, -1):
            job = self.gone.job[at]
            self._book(job, 1)
            if self._has_quota(borrowing):
                self._take_back(job)
                if self._has_place():
                    self._note_place()
                    self._let_stay(at)
                    continue
                self._give(job)
            self._book(job, -1)

    @compiled
    def _note_place(self) -> cython.void:
        self.found.count = 0
        self.found.extend(self.spare.place, 0, self.spare.place.count)
        self.found_kind = self.admission.kind

    @compiled
    def _let_stay(self, at: cython.int) -> cython.void:
        self.gone.count -= 1
        for following in range(at, self.gone.count):
            self.gone.job[following] = self.gone.job[following + 1]

    # Fair sharing.

    @compiled
    def _fairly(self) -> cython.bint:
        """Find who goes under fair sharing; see ``fair_targets`` of the twin."""
        for segment in range(self.num_others + 1):
            self.at[segment] = self.begin[segment]
            self.later[segment] = 0
        self._begin_trial()
        fits = self._fair_pass(True)
        if not fits:
            for segment in range(self.num_others + 1):
                self.at[segment] = self.begin[segment]
                self.end[segment] = self.begin[segment] + self.later[segment]
            fits = self._fair_pass(False)
        if fits:
            self._minimize(True)
        self._restore()
        return fits

    @compiled
    def _fair_pass(self, final: cython.bint) -> cython.bint:
        """Take jobs of the queue with the largest share away until the job fits."""
        segment: cython.int
        going: cython.int
        own: cython.bint
        while True:
            segment = self._largest_share()
            if segment < 0:
                return False
            own = segment == self.num_others
            going = self._first_fair(segment, final, own)
            fits = False
            if going >= 0:
                self._take_away(going)
                fits = self._has_quota(True) and self._fits()
            if not final or not (own or self.accounts.borrows(self.owner[segment], self.flavor)):
                self.at[segment] = self.end[segment]
            if fits:
                return True

    @compiled
    def _largest_share(self) -> cython.int:
        """Return the segment with candidates left whose queue has the largest share; -1 = none.

        The job's own queue has its share with the job; of equal ones that whose candidate would go
        first.
        """
        best: cython.int = -1
        best_share: cython.double = 0.0
        more: cython.longlong
        for segment in range(self.num_others + 1):
            if self.at[segment] == self.end[segment]:
                continue
            more = self.amount if segment == self.num_others else 0
            share = self.accounts.share(self.owner[segment], self.flavor, more)
            if (
                best < 0
                or share > best_share
                or (
                    share == best_share
                    and segment < self.num_others
                    and self.accounts.held.before(
                        self.candidates.job[self.at[segment]], self.candidates.job[self.at[best]]
                    )
                )
            ):
                best = segment
                best_share = share
        return best

    @compiled
    def _first_fair(self, segment: cython.int, final: cython.bint, own: cython.bint) -> cython.int:
        """Return which job of a segment goes, -1 if none; those passed over are for later."""
        queue: cython.int = self.owner[segment]
        job: cython.int
        may_go: cython.bint
        mine: cython.double = self.accounts.share(self.queue, self.flavor, self.amount)
        while self.at[segment] < self.end[segment]:
            job = self.candidates.job[self.at[segment]]
            self.at[segment] += 1
            if own:
                return job
            if final:
                may_go = mine <= self.accounts.share(queue, self.flavor, -self.accounts.amount[job])
            else:
                may_go = mine < self.accounts.share(queue, 0, 0)
            if may_go:
                return job
            if final:
                self.candidates.job[self.begin[segment] + self.later[segment]] = job
                self.later[segment] += 1
            else:
                return -1
        return -1
