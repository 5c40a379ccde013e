"""`QuotaBooks`: who uses how much of whose quota, where quotas limit a run under any policy.

A job starts only where its queue's quota of the GPU type suffices; quotas that tell no types apart
are of one flavor. A queue with nominal quota N keeps what it does not lend for itself, and puts the
rest into its cohort; it may take what it keeps and does not use, and, up to its borrowing limit,
what the whole cohort put in and does not use.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windtunnel.cluster.free import Where
    from windtunnel.sim.cohort_order import CohortQuotas
    from windtunnel.sim.problem import Problem


class QuotaBooks:
    """The books of a run.

    ``resizes``: jobs run in options, and use what they run on, not what they ask for.

    Attributes:
        blocks: a job that waits for quota holds up those behind it.
        used: of each job that runs the flavor and the millionths of GPUs; both are numbers.
        binds: jobs are tried on one GPU type after the other.
    """

    def __init__(self, quotas: CohortQuotas, problem: Problem, *, resizes: bool) -> None:
        self.quotas, self.problem, self.resizes = quotas, problem, resizes
        self.blocks, self.binds = quotas.blocks, quotas.by_type and not resizes
        self.queue: list[int] = quotas.queue_of[quotas.line_of].tolist()
        self.amount: list[int] = quotas.amount.tolist()
        self.used: dict[int, tuple[int, int]] = {}
        self.usage: list[list[int]] = [[0] * len(quotas.names) for _ in quotas.nominal]
        self._nodes_of: dict[int, int] = {}

    def copy(self) -> QuotaBooks:
        """Return books with the same entries, which go on by themselves."""
        twin = object.__new__(QuotaBooks)
        twin.__dict__.update(self.__dict__)
        twin.used, twin.usage = self.used.copy(), [row.copy() for row in self.usage]
        return twin

    def meet(self, other: QuotaBooks) -> None:
        """Count as used what is in either of two books."""
        self.usage = [
            list(map(max, own, others)) for own, others in zip(self.usage, other.usage, strict=True)
        ]

    # What quotas allow.

    def available(self, queue: int, flavor: int) -> int:
        """Return what a queue may still take of a flavor."""
        q, usage = self.quotas, self.usage
        nominal, kept = int(q.nominal[queue, flavor]), int(q.kept[queue, flavor])
        used = usage[queue][flavor]
        if q.cohort[queue] < 0:
            return nominal - used
        members = [n for n, cohort in enumerate(q.cohort) if cohort == q.cohort[queue]]
        lent = sum(int(q.nominal[m, flavor] - q.kept[m, flavor]) for m in members)
        lent -= sum(max(0, usage[m][flavor] - int(q.kept[m, flavor])) for m in members)
        limit = int(q.limit[queue, flavor])
        if limit >= 0:
            lent = min(lent, nominal - kept - max(0, used - kept) + limit)
        return max(0, kept - used) + lent

    def allows(self, job: int, flavor: int, amount: int) -> bool:
        """Return whether a job's queue may use so much more of a flavor."""
        if not amount:
            return True
        queue = self.queue[job]
        has = flavor >= 0 and bool(self.quotas.has[queue, flavor])
        return has and amount <= self.available(queue, flavor)

    def left(self, job: int) -> str:
        """Return the words for what a job's queue may still take, by GPU type if they differ."""
        queue, names = self.queue[job], self.quotas.names
        free = [
            f"{max(self.available(queue, f), 0) / PARTS:g}{' of ' + name if name else ''}"
            for f, name in enumerate(names)
            if self.quotas.has[queue, f]
        ]
        return " and ".join(free)

    def demands(self, job: int, asked: Any) -> list[Any]:
        """Return what a job may be tried as now, in order: what it asks for, or that on a type.

        None is there where it has to wait for quota.
        """
        line = int(self.quotas.line_of[job])
        flavors = self.quotas.flavors[line].tolist()
        if self.resizes:
            return [asked]
        fits = zip(flavors, self.quotas.fits[line].tolist(), strict=True)
        allowed = [fit for f, fit in fits if f >= 0 and self.allows(job, f, self.amount[job])]
        if self.binds:
            return [self.quotas.demands[fit] for fit in allowed]
        return [asked] if allowed else []

    def is_over(self, job: int) -> bool:
        """Return whether a waiting job has to wait for quota of what it asks for."""
        flavors = self.quotas.flavors[int(self.quotas.line_of[job])].tolist()
        return not any(f >= 0 and self.allows(job, f, self.amount[job]) for f in flavors)

    def allows_on(self, job: int, where: Where) -> bool:
        """Return whether a job's quota suffices for it as it would run somewhere."""
        return self.allows(job, self._flavor(where), self._amount(job, where))

    def nodes(self, job: int, gpus: float) -> int:
        """Return the nodes on which a job has the quota for so many GPUs, as a bitset."""
        found = 0
        for nodes in self.nodes_in_turn(job, gpus):
            found |= nodes
        return found

    def nodes_in_turn(self, job: int, gpus: float) -> list[int]:
        """Return the same of each GPU type, in the order in which the job's queue tries them."""
        names, amount = self.quotas.names, round(gpus * PARTS)
        order = self.quotas.order[self.queue[job]].tolist()
        flavors = [f for f in order if f >= 0 and self.allows(job, f, amount)]
        if not self.quotas.by_type:
            return [EVERY_NODE] if flavors else []
        if not self._nodes_of:
            for node, kind in enumerate(self.problem.types):
                flavor = names.index(kind) if kind in names else -1
                self._nodes_of[flavor] = self._nodes_of.get(flavor, 0) | 1 << node
        return [self._nodes_of.get(flavor, 0) for flavor in flavors]

    def may_give_way(self, job: int, running: int) -> bool:
        """Return whether a running job may be stopped for another, as far as quotas go.

        It is of the same queue, or of one that uses more than its nominal quota.
        """
        queue = self.queue[running]
        if queue == self.queue[job]:
            return True
        if running not in self.used:
            return False
        return self._uses_more(queue, self.used[running][0])

    def borrows(self, job: int, where: Where) -> bool:
        """Return whether a job's queue uses more than its nominal quota of the flavor there."""
        flavor = self._flavor(where)
        return flavor >= 0 and self._uses_more(self.queue[job], flavor)

    def _uses_more(self, queue: int, flavor: int) -> bool:
        return self.usage[queue][flavor] > int(self.quotas.nominal[queue, flavor])

    def _flavor(self, where: Where) -> int:
        """Return the flavor of the nodes of a place; -1 = of several, or of one without quota."""
        if not self.quotas.by_type:
            return 0
        names = {self.problem.types[node] or "" for node, _ in where}
        known = self.quotas.names
        return known.index(names.pop()) if len(names) == 1 and names <= set(known) else -1

    def _amount(self, job: int, where: Where) -> int:
        if not self.resizes:
            return self.amount[job]
        return sum(grant for _, grant in where) * PARTS  # options are of whole GPUs

    # The books.

    def begin(self, job: int, where: Where) -> None:
        """Book a job that starts."""
        amount = self._amount(job, where)
        if amount:
            self.used[job] = self._flavor(where), amount
            self._use(job, 1)

    def end(self, job: int) -> None:
        """Book a job that leaves its GPUs."""
        if job in self.used:
            self._use(job, -1)
            del self.used[job]

    def _use(self, job: int, sign: int) -> None:
        flavor, amount = self.used[job]
        self.usage[self.queue[job]][flavor] += sign * amount

    def lift(self, job: int) -> None:
        """Let a running job's quota be free for now."""
        if job in self.used:
            self._use(job, -1)

    def put(self, job: int) -> None:
        """Let a running job use its quota again."""
        if job in self.used:
            self._use(job, 1)

    @contextmanager
    def without(self, jobs: Iterable[int]) -> Iterator[None]:
        """Let the quota of some running jobs be free for a while."""
        gone = list(jobs)
        for job in gone:
            self.lift(job)
        yield
        for job in gone:
            self.put(job)

    @contextmanager
    def without_below(self, job: int, below: list[int]) -> Iterator[list[int]]:
        """Let the quota of those be free for a while who may give way for a job; yield them.

        Each queue's, the lowest rank first, as long as it uses more than its nominal quota.
        """
        gone = []
        for running in reversed(below):
            if self.may_give_way(job, running):
                self.lift(running)
                gone.append(running)
        yield gone
        for running in gone:
            self.put(running)
