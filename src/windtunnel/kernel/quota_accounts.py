"""`QuotaAccounts`: who uses how much of whose quota: twin of `windtunnel.policies.quota_books`.

Quotas are whole millionths of GPUs, by queue and flavor (GPU type). A *cell* is a queue's
account of one flavor: ``queue * flavors + flavor``.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class QuotaAccounts:
    """The books of a run.

    Args:
        order: the quotas (`windtunnel.sim.cohort_order.CohortOrder`).

    Attributes:
        queues, flavors: how many there are.
        has: whether a queue has quota of a flavor, shape (cells,).
        nominal, kept, limit, usage: of each cell; limit -1 = none.
        num_borrowing: cells of which more is used than the nominal quota.
        pool: what a cohort's queues put in less what they take out, by cohort and flavor.
        lendable: what the queues of a cohort put in, of all flavors.
        cohort: of each queue; -1 = none.
        first_member, member: queues of each cohort.
        amount, priority: of each job.
        flavor_of: flavor that each job holds quota of; -1 = none.
        held: running jobs that hold any, a line each cell: the least priority first, then who was
            admitted last.
        admitted: for each of them minus the number of jobs admitted before it.
        admissions: jobs admitted so far.
    """

    queues: cython.int
    flavors: cython.int
    has: cython.char[::1]
    nominal: cython.longlong[::1]
    kept: cython.longlong[::1]
    limit: cython.longlong[::1]
    usage: cython.longlong[::1]
    num_borrowing: cython.int
    pool: cython.longlong[::1]
    lendable: cython.longlong[::1]
    cohort: cython.int[::1]
    first_member: cython.int[::1]
    member: cython.int[::1]
    weight: cython.double[::1]
    amount: cython.longlong[::1]
    priority: cython.double[::1]
    flavor_of: cython.int[::1]
    held: Lines
    admitted: cython.double[::1]
    admissions: cython.longlong

    def __init__(self, order: object) -> None:
        self.queues, self.flavors = order.nominal.shape
        cells = self.queues * self.flavors
        jobs = max(len(order.amount), 1)
        self.has = numpy.ascontiguousarray(order.has.reshape(-1), dtype=numpy.int8)
        self.nominal = numpy.ascontiguousarray(order.nominal.reshape(-1))
        self.kept = numpy.ascontiguousarray(order.kept.reshape(-1))
        self.limit = numpy.ascontiguousarray(order.limit.reshape(-1))
        self.usage = numpy.zeros(cells, dtype=numpy.int64)
        self.num_borrowing = 0
        self.cohort = numpy.ascontiguousarray(order.cohort, dtype=numpy.int32)
        self.weight = numpy.ascontiguousarray(order.weight)
        cohorts = int(order.cohort.max(initial=-1)) + 1
        pool = numpy.zeros((max(cohorts, 1), self.flavors), dtype=numpy.int64)
        shares = order.cohort >= 0
        lends = (order.nominal - order.kept)[shares]
        numpy.add.at(pool, order.cohort[shares], lends)
        self.pool = pool.reshape(-1)
        self.lendable = pool.sum(axis=1)
        self.member = numpy.argsort(order.cohort, kind="stable").astype(numpy.int32)
        self.first_member = numpy.searchsorted(
            order.cohort[numpy.asarray(self.member)], numpy.arange(cohorts + 1)
        ).astype(numpy.int32)
        self.amount = numpy.resize(order.amount, jobs).astype(numpy.int64)
        self.priority = numpy.resize(order.priority, jobs).astype(numpy.float64)
        self.flavor_of = numpy.full(jobs, -1, dtype=numpy.int32)
        self.admissions = 0
        self.admitted = numpy.zeros(jobs)
        cell_of = numpy.zeros(jobs, dtype=numpy.int32)
        priority = numpy.asarray(self.priority)
        self.held = Lines(cells, cell_of, priority, is_sorted=True, second=self.admitted)

    def twin(self) -> QuotaAccounts:
        """Return accounts with a usage of their own, in which jobs are tried, not admitted."""
        twin: QuotaAccounts = QuotaAccounts.__new__(QuotaAccounts)
        twin.queues, twin.flavors, twin.cohort = self.queues, self.flavors, self.cohort
        twin.has, twin.nominal, twin.kept, twin.limit = (
            self.has, self.nominal, self.kept, self.limit,
        )  # fmt: skip
        twin.amount, twin.flavor_of = self.amount, self.flavor_of
        twin.num_borrowing = self.num_borrowing
        twin.usage, twin.pool = numpy.array(self.usage), numpy.array(self.pool)
        return twin

    @compiled
    def copy_from(self, other: QuotaAccounts) -> cython.void:
        """Let as much be used as in others of the same queues."""
        self.num_borrowing = other.num_borrowing
        for at in range(self.queues * self.flavors):
            self.usage[at] = other.usage[at]
        for at in range(cython.cast(cython.int, self.pool.shape[0])):
            self.pool[at] = other.pool[at]

    @compiled
    def cell(self, queue: cython.int, flavor: cython.int) -> cython.int:
        """Return the number of a queue's account of a flavor."""
        return queue * self.flavors + flavor

    @compiled
    def use(self, queue: cython.int, flavor: cython.int, amount: cython.longlong) -> cython.void:
        """Let a queue use so much more of a flavor."""
        cell: cython.int = self.cell(queue, flavor)
        drawn: cython.longlong = self._draws(cell)
        self.num_borrowing -= self.usage[cell] > self.nominal[cell]
        self.usage[cell] += amount
        self.num_borrowing += self.usage[cell] > self.nominal[cell]
        if self.cohort[queue] >= 0:
            self.pool[self.cohort[queue] * self.flavors + flavor] -= self._draws(cell) - drawn

    @compiled
    def _draws(self, cell: cython.int) -> cython.longlong:
        """Return what a queue takes out of its cohort."""
        over: cython.longlong = self.usage[cell] - self.kept[cell]
        return over if over > 0 else 0

    @compiled
    def available(self, queue: cython.int, flavor: cython.int) -> cython.longlong:
        """Return what a queue may still take of a flavor."""
        cell: cython.int = self.cell(queue, flavor)
        unused: cython.longlong = self.kept[cell] - self.usage[cell]
        if self.cohort[queue] < 0:
            return self.nominal[cell] - self.usage[cell]
        lent = self.pool[self.cohort[queue] * self.flavors + flavor]
        if self.limit[cell] >= 0:
            own = self.nominal[cell] - self.kept[cell] - self._draws(cell) + self.limit[cell]
            if own < lent:
                lent = own
        return lent + (unused if unused > 0 else 0)

    @compiled
    def borrows(self, queue: cython.int, flavor: cython.int) -> cython.bint:
        """Return whether a queue uses more than its nominal quota."""
        cell: cython.int = self.cell(queue, flavor)
        return self.usage[cell] > self.nominal[cell]

    @compiled
    def is_within(
        self, queue: cython.int, flavor: cython.int, amount: cython.longlong
    ) -> cython.bint:
        """Return whether a queue would stay within its nominal quota with so much more."""
        cell: cython.int = self.cell(queue, flavor)
        return self.usage[cell] + amount <= self.nominal[cell]

    @compiled
    def share(
        self, queue: cython.int, flavor: cython.int, amount: cython.longlong
    ) -> cython.double:
        """Return a queue's weighted share of its cohort with so much more of a flavor.

        Where the cohort lends nothing it is 0, as in Kueue.
        """
        borrowed: cython.longlong = 0
        for other in range(self.flavors):
            cell = self.cell(queue, other)
            over = self.usage[cell] - self.nominal[cell]
            if other == flavor:
                over += amount
            if over > 0 and self.has[cell]:
                borrowed += over
        if borrowed == 0:
            return 0.0
        lendable = self.lendable[self.cohort[queue]] if self.cohort[queue] >= 0 else 0
        if lendable == 0:
            return 0.0
        lent: cython.double = cython.cast(cython.double, lendable) * self.weight[queue]
        return cython.cast(cython.double, borrowed) / lent  # one rounding: equal ones stay equal

    @compiled
    def admit(self, job: cython.int, queue: cython.int, flavor: cython.int) -> cython.void:
        """Book a job that starts."""
        self.use(queue, flavor, self.amount[job])
        self.flavor_of[job] = flavor
        self.admitted[job] = -cython.cast(cython.double, self.admissions)
        self.admissions += 1
        if self.amount[job] > 0:
            self.held.line_of[job] = self.cell(queue, flavor)
            self.held.add(job)

    @compiled
    def release(self, job: cython.int, queue: cython.int) -> cython.void:
        """Book a job that left its GPUs, if it held quota."""
        if self.flavor_of[job] < 0:
            return
        self.use(queue, self.flavor_of[job], -self.amount[job])
        if self.amount[job] > 0:
            self.held.remove(job)
        self.flavor_of[job] = -1

    @compiled
    def num_below(self, cell: cython.int, priority: cython.double) -> cython.int:
        """Return how many running jobs of a cell have a lower priority: they are its first."""
        low: cython.longlong = self.held.begin[cell]
        high: cython.longlong = low + self.held.length[cell]
        while low < high:
            middle = (low + high) >> 1
            if self.priority[self.held.slab[middle]] < priority:
                low = middle + 1
            else:
                high = middle
        return cython.cast(cython.int, low - self.held.begin[cell])
