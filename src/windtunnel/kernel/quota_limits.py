"""`QuotaLimits`: whether quotas let a job start, whoever orders the queue."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.quota_accounts import QuotaAccounts


@cython.final
@cython.cclass
class QuotaLimits:
    """Quotas as a limit, of a policy that has an order of its own.

    Args:
        quotas: what queues have, and jobs ask of it (`windtunnel.sim.cohort_order.CohortQuotas`).
        kinds: Int array (lines, F), kind of job that each flavor of a line is tried as.
        flavor_of: Int array (nodes,), the flavor of each node, or pool; -1 = nobody has quota of
            it.
        binds: jobs are tried on one flavor after the other; else on any node, or as a policy says.
        resizes: jobs hold what they run on, not what they ask for.
        per_unit: millionths of GPUs of a GPU unit.
        blocks: a job that has to wait for quota holds up those behind it.

    Attributes:
        accounts: who uses how much of whose quota.
        amount: what each running job holds, and each other one asks for, millionths of GPUs.
    """

    accounts: QuotaAccounts
    lines: cython.int[::1]
    queues: cython.int[::1]
    flavor: cython.int[::1]
    kinds: cython.int[::1]
    flavor_of: cython.int[::1]
    amount: cython.longlong[::1]
    binds: cython.bint
    resizes: cython.bint
    blocks: cython.bint
    per_unit: cython.longlong

    def __init__(
        self,
        quotas: object,
        kinds: numpy.ndarray,
        flavor_of: numpy.ndarray,
        *,
        binds: bool,
        resizes: bool,
        per_unit: int,
        blocks: bool,
    ) -> None:
        self.accounts = QuotaAccounts(quotas)
        self.lines = numpy.ascontiguousarray(quotas.line_of, dtype=numpy.int32)
        self.queues = numpy.ascontiguousarray(quotas.queue_of[quotas.line_of], dtype=numpy.int32)
        self.flavor = numpy.ascontiguousarray(quotas.flavors.reshape(-1), dtype=numpy.int32)
        self.kinds = numpy.ascontiguousarray(kinds.reshape(-1), dtype=numpy.int32)
        self.flavor_of = numpy.ascontiguousarray(flavor_of, dtype=numpy.int32)
        self.amount = numpy.array(self.accounts.amount)
        self.binds, self.resizes, self.blocks = binds, resizes, blocks
        self.per_unit = per_unit

    def twin(self) -> QuotaLimits:
        """Return books of the same jobs, in which others may use quota for trial."""
        twin: QuotaLimits = QuotaLimits.__new__(QuotaLimits)
        twin.accounts = self.accounts.twin()
        twin.lines, twin.queues, twin.flavor = self.lines, self.queues, self.flavor
        twin.kinds, twin.flavor_of, twin.amount = self.kinds, self.flavor_of, self.amount
        twin.binds, twin.resizes, twin.blocks = self.binds, self.resizes, self.blocks
        twin.per_unit = self.per_unit
        return twin

    @compiled
    def copy_from(self, other: QuotaLimits) -> cython.void:
        """Let the same quota be used as in other books."""
        self.accounts.copy_from(other.accounts)

    # What quotas allow.

    @compiled
    def next_allowed(self, job: cython.int, index: cython.int) -> cython.int:
        """Return the first flavor of a job's, from an index on, whose quota suffices; -1 = none.

        It is an index into the flavors of the job's line.
        """
        first: cython.int = self.lines[job] * self.accounts.flavors
        while index < self.accounts.flavors:
            flavor = self.flavor[first + index]
            if flavor < 0:
                return -1
            if self.allows(job, flavor, self.accounts.amount[job]):
                return index
            index += 1
        return -1

    @compiled
    def kind(self, job: cython.int, index: cython.int) -> cython.int:
        """Return the kind that a job is tried as on a flavor, by its index."""
        return self.kinds[self.lines[job] * self.accounts.flavors + index]

    @compiled
    def allows_kind(self, job: cython.int, kind: cython.int) -> cython.bint:
        """Return whether the quota of the flavor suffices that a job is tried on as a kind."""
        index: cython.int = self.next_allowed(job, 0)
        while index >= 0:
            if self.kind(job, index) == kind:
                return True
            index = self.next_allowed(job, index + 1)
        return False

    @compiled
    def admits(self, job: cython.int) -> cython.bint:
        """Return whether the quota of any flavor of a job's suffices."""
        return self.next_allowed(job, 0) >= 0

    @compiled
    def allows(self, job: cython.int, flavor: cython.int, amount: cython.longlong) -> cython.bint:
        """Return whether the quota of a flavor suffices for so many millionths of GPUs of a job."""
        if amount == 0:
            return True
        if flavor < 0 or not self.accounts.has[self.accounts.cell(self.queues[job], flavor)]:
            return False
        return amount <= self.accounts.available(self.queues[job], flavor)

    @compiled
    def allows_again(self, job: cython.int) -> cython.bint:
        """Return whether a running job's quota, which was lifted, suffices for it still."""
        if self.accounts.flavor_of[job] < 0:
            return True
        return self.allows(job, self.accounts.flavor_of[job], self.amount[job])

    @compiled
    def flavor_on(self, pairs: Pairs, begin: cython.longlong, end: cython.longlong) -> cython.int:
        """Return the flavor of the nodes of a place; -1 = they are of several, or of none's."""
        flavor: cython.int = self.flavor_of[pairs.node[begin]] if end > begin else -1
        for pair in range(begin + 1, end):
            if self.flavor_of[pairs.node[pair]] != flavor:
                return -1
        return flavor

    @compiled
    def may_give_way(self, job: cython.int, running: cython.int) -> cython.bint:
        """Return whether a running job may be stopped for another, as far as quotas go.

        It is of the same queue, or of one that uses more than its nominal quota.
        """
        return self.queues[running] == self.queues[job] or self.borrows(
            running, self.accounts.flavor_of[running]
        )

    @compiled
    def borrows(self, job: cython.int, flavor: cython.int) -> cython.bint:
        """Return whether a job's queue uses more than its nominal quota of a flavor."""
        return flavor >= 0 and self.accounts.borrows(self.queues[job], flavor)

    # The books.

    @compiled
    def begin(self, job: cython.int, flavor: cython.int, amount: cython.longlong) -> cython.void:
        """Book a job that starts."""
        self.amount[job] = amount
        self.accounts.flavor_of[job] = flavor if amount > 0 else -1
        self.put(job)

    @compiled
    def end(self, job: cython.int) -> cython.void:
        """Book a job that leaves its GPUs."""
        self.lift(job)
        self.accounts.flavor_of[job] = -1
        self.amount[job] = self.accounts.amount[job]

    @compiled
    def lift(self, job: cython.int) -> cython.void:
        """Let a running job's quota be free for now."""
        if self.accounts.flavor_of[job] >= 0:
            self.accounts.use(self.queues[job], self.accounts.flavor_of[job], -self.amount[job])

    @compiled
    def put(self, job: cython.int) -> cython.void:
        """Let a running job use its quota again."""
        if self.accounts.flavor_of[job] >= 0:
            self.accounts.use(self.queues[job], self.accounts.flavor_of[job], self.amount[job])

    @compiled
    def try_out(self, job: cython.int, flavor: cython.int, sign: cython.int) -> cython.void:
        """Let a job that is to start use its quota (1) for now, or no more (-1)."""
        if flavor >= 0 and self.accounts.amount[job] > 0:
            self.accounts.use(self.queues[job], flavor, sign * self.accounts.amount[job])
