"""Who uses how much of whose quota: the arithmetic of borrowing, during a run.

With nominal quota N, use U and lending limit L, a queue of a cohort keeps ``N - L`` for itself (0
without a limit) and puts the rest into the cohort. It may take what it keeps and does not use, and
what the whole cohort put in and does not use, the latter up to its borrowing limit (Kueue,
"ClusterQueue": flavors and borrowing semantics). Numbers are whole millionths of a GPU, so that
sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.policies.quotas import by_type
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windtunnel.policies.quotas import Gpus, QueueQuota, Quotas
    from windtunnel.sim.jobs import JobView


def parts(num_gpus: float) -> int:
    """Return GPUs as whole millionths."""
    return round(num_gpus * PARTS)


@dataclass(frozen=True, eq=False)
class Held:
    """A running job and the quota it holds.

    Attributes:
        job: the job.
        amount: millionths of GPUs.
        account: whose quota.
        flavor: of which GPU type.
        priority: the job's; none counts as 0.
        admission: how many jobs were admitted before it.
    """

    job: JobView
    amount: int
    account: Account
    flavor: str
    priority: float
    admission: int


class Account:
    """The quota of one queue, and what it uses.

    Args:
        quota: the queue's quota.
        index: its number; breaks ties.

    Attributes:
        cohort: the accounts it shares with, itself included; empty = it shares with nobody.
        usage: millionths of GPUs in use by flavor.
        held: its running jobs by arrival number, in order of admission.
    """

    def __init__(self, quota: QueueQuota, index: int) -> None:
        self.quota = quota
        self.index = index
        self.name = quota.vc
        self.flavors = quota.flavors
        self.nominal = _in_parts(quota.nominal_quota)
        self.borrowing_limit = _limits(quota.borrowing_limit)
        lending = _limits(quota.lending_limit)
        self.kept = {f: max(0, n - lending[f]) if f in lending else 0 for f, n in self._nominals()}
        self.cohort: list[Account] = []
        self.usage = dict.fromkeys(self.flavors, 0)
        self.held: dict[int, Held] = {}

    def available(self, flavor: str) -> int:
        """Return what it may still take of a flavor; below 0 where the cohort is over its quota."""
        nominal, used = self.nominal[flavor], self.usage[flavor]
        if not self.cohort:
            return nominal - used
        kept = self.kept[flavor]
        lent = sum(a.lends(flavor) - a.draws(flavor) for a in self.cohort if flavor in a.nominal)
        if flavor in self.borrowing_limit:
            own = nominal - kept - max(0, used - kept)
            lent = min(lent, own + self.borrowing_limit[flavor])
        return max(0, kept - used) + lent

    def lends(self, flavor: str) -> int:
        """Return what it puts into its cohort."""
        return self.nominal[flavor] - self.kept[flavor]

    def draws(self, flavor: str) -> int:
        """Return what it takes out of its cohort."""
        return max(0, self.usage[flavor] - self.kept[flavor])

    def most(self, flavor: str) -> int:
        """Return what it could use with nobody else there."""
        before = {account: account.usage for account in (self, *self.cohort)}
        for account in before:
            account.usage = dict.fromkeys(account.flavors, 0)
        found = self.available(flavor)
        for account, usage in before.items():
            account.usage = usage
        return found

    def borrows(self, flavor: str) -> bool:
        """Return whether it uses more than its nominal quota."""
        return self.usage[flavor] > self.nominal[flavor]

    def within_nominal(self, flavor: str, amount: int) -> bool:
        """Return whether it would stay within its nominal quota with so much more."""
        return self.usage[flavor] + amount <= self.nominal[flavor]

    def share(self, more: Mapping[str, int] | None = None) -> float:
        """Return its weighted share of the cohort: what it borrows over what all of them lend.

        Kueue's dominant resource share, of one resource; 0 where the cohort lends nothing.

        Args:
            more: change of its use by flavor.
        """
        more = more or {}
        borrowed = sum(
            max(0, self.usage[f] + more.get(f, 0) - nominal) for f, nominal in self._nominals()
        )
        lendable = sum(a.lends(f) for a in self.cohort for f in a.flavors)
        if not borrowed:
            return 0.0
        # One rounding: shares that are equal stay equal.
        return borrowed / (lendable * self.quota.weight) if lendable else 0.0

    def take(self, held: Held) -> None:
        """Book a job that starts."""
        self.usage[held.flavor] += held.amount
        self.held[held.job.number] = held

    def give(self, held: Held) -> None:
        """Book a job that completed or was preempted."""
        self.usage[held.flavor] -= held.amount
        del self.held[held.job.number]

    def _nominals(self) -> Iterable[tuple[str, int]]:
        return self.nominal.items()


def open_accounts(quotas: Quotas) -> list[Account]:
    """Return an account a queue, in the quotas' order, with its cohort."""
    accounts = [Account(quota, index) for index, quota in enumerate(quotas.queues)]
    for account in accounts:
        name = account.quota.cohort
        if name is not None:
            account.cohort = [a for a in accounts if a.quota.cohort == name]
    return accounts


def _in_parts(gpus: Gpus) -> dict[str, int]:
    return {flavor: parts(number) for flavor, number in by_type(gpus).items()}


def _limits(gpus: Gpus | None) -> dict[str, int]:
    return {} if gpus is None else _in_parts(gpus)
