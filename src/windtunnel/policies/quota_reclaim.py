"""Whom to preempt for a job that cannot start: Kueue's rules ("Preemption", classic and fair).

Candidates are jobs of the same queue with a lower priority, where ``within_cluster_queue`` says so,
and jobs of queues of the cohort that borrow, where ``reclaim_within_cohort`` does. Those of other
queues come first, then those with a lower priority, then those admitted last. They are taken one by
one until the job fits, in quota and on the nodes; then, in reverse, whoever need not go stays. A
queue that no longer borrows loses no more jobs to others. If the job would not fit even so, nobody
goes.

Preempting other queues' jobs must leave the job's own queue within its nominal quota. Preempting
only its own may leave it borrowing. With fair sharing a queue may also borrow on from those with a
larger share: see `fair_targets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.policies.quota_books import Account, Held

    #: Jobs that are gone -> where the job would be placed then, or None.
    Fits = Callable[[Sequence[Held]], Where | None]


@dataclass(frozen=True)
class Preemptor:
    """The job that wants to start.

    Attributes:
        account: its queue.
        flavor: the GPU type it is tried on.
        amount: millionths of GPUs.
        priority: the job's; none counts as 0.
        reclaim_within_cohort: see `windtunnel.policies.quotas.QueueQuota`.
        within_cluster_queue: ditto.
        fits: places it as if some jobs were gone.
    """

    account: Account
    flavor: str
    amount: int
    priority: float
    reclaim_within_cohort: str
    within_cluster_queue: str
    fits: Fits

    def place(self, gone: Sequence[Held], *, borrowing: bool) -> Where | None:
        """Return where it goes with some jobs gone (and booked so), or None."""
        account = self.account
        if not borrowing and not account.within_nominal(self.flavor, self.amount):
            return None
        return self.fits(gone) if self.amount <= account.available(self.flavor) else None


@dataclass(frozen=True)
class Reclaimed:
    """What frees nodes for a job: who goes, and where it goes then."""

    targets: tuple[Held, ...]
    where: Where


def reclaim(preemptor: Preemptor, *, fair: bool = False) -> Reclaimed | None:
    """Return who is to be preempted for a job that does not start as things are, or None.

    Args:
        preemptor: the job.
        fair: fair sharing.
    """
    candidates = find_candidates(preemptor)
    if not candidates or not _could_ever(preemptor, candidates):
        return None
    own = [held for held in candidates if held.account is preemptor.account]
    if len(own) == len(candidates):
        return _minimal(preemptor, own, borrowing=True)
    if fair:
        return fair_targets(preemptor, candidates)
    account, flavor = preemptor.account, preemptor.flavor
    if account.usage[flavor] < account.nominal[flavor]:
        found = _minimal(preemptor, candidates, borrowing=False)
        if found is not None:
            return found
    return _minimal(preemptor, own, borrowing=True) if own else None


def find_candidates(preemptor: Preemptor) -> list[Held]:
    """Return the jobs that may go, in the order in which they would."""
    account, flavor = preemptor.account, preemptor.flavor
    found = []
    if preemptor.within_cluster_queue != "Never":
        found += [held for held in account.held.values() if held.priority < preemptor.priority]
    if preemptor.reclaim_within_cohort != "Never":
        anyone = preemptor.reclaim_within_cohort == "Any"
        for other in account.cohort:
            if other is not account and flavor in other.nominal and other.borrows(flavor):
                found += [
                    held
                    for held in other.held.values()
                    if anyone or held.priority < preemptor.priority
                ]
    usable = [held for held in found if held.flavor == flavor and held.amount]
    return sorted(usable, key=lambda h: (h.account is account, h.priority, -h.admission))


def _could_ever(preemptor: Preemptor, candidates: Sequence[Held]) -> bool:
    """Return whether it would fit with all of them gone; more that is free never hurts."""
    for held in candidates:
        held.account.usage[held.flavor] -= held.amount
    found = preemptor.place(candidates, borrowing=True)
    for held in candidates:
        held.account.usage[held.flavor] += held.amount
    return found is not None


class _Trial:
    """Jobs taken away for trial; `restore` books them back.

    Args:
        preemptor: the job that wants to start.
        borrowing: whether its queue may end up borrowing.
    """

    def __init__(self, preemptor: Preemptor, *, borrowing: bool) -> None:
        self.preemptor = preemptor
        self.borrowing = borrowing
        self.gone: list[Held] = []
        self.where: Where | None = None

    def remove(self, held: Held) -> bool:
        """Take a job away; return whether the other one fits now."""
        held.account.usage[held.flavor] -= held.amount
        self.gone.append(held)
        self.where = self.preemptor.place(self.gone, borrowing=self.borrowing)
        return self.where is not None

    def minimize(self) -> None:
        """Let whoever need not go stay, the last one taken away excepted; in reverse."""
        for held in reversed(self.gone[:-1]):
            held.account.usage[held.flavor] += held.amount
            rest = [other for other in self.gone if other is not held]
            where = self.preemptor.place(rest, borrowing=self.borrowing)
            if where is None:
                held.account.usage[held.flavor] -= held.amount
            else:
                self.gone, self.where = rest, where

    def restore(self) -> Reclaimed | None:
        """Book everybody back; return what was found."""
        for held in self.gone:
            held.account.usage[held.flavor] += held.amount
        return None if self.where is None else Reclaimed(tuple(self.gone), self.where)


def _minimal(
    preemptor: Preemptor, candidates: Sequence[Held], *, borrowing: bool
) -> Reclaimed | None:
    trial = _Trial(preemptor, borrowing=borrowing)
    for held in candidates:
        other = held.account is not preemptor.account
        if other and not held.account.borrows(preemptor.flavor):
            continue
        if trial.remove(held):
            trial.minimize()
            break
    return trial.restore()


def fair_targets(preemptor: Preemptor, candidates: Sequence[Held]) -> Reclaimed | None:
    """Return who goes under fair sharing, or None.

    The queue with the largest share loses a job first (of equal shares that whose job would go
    first), where the preempting queue's is that with the new job. Its own jobs go without more ado;
    those of others if with the new job the preempting queue's share is at most the other's without
    the old one (Kueue's LessThanOrEqualToFinalShare); when that is not enough, if it is less than
    the other's now (LessThanInitialShare), once a queue.
    """
    account, flavor = preemptor.account, preemptor.flavor
    trial = _Trial(preemptor, borrowing=True)
    turn = {held.admission: at for at, held in enumerate(candidates)}
    waiting: dict[int, list[Held]] = {}
    for held in candidates:
        waiting.setdefault(held.account.index, []).append(held)

    def by_share(jobs: Sequence[Held]) -> tuple[float, int]:
        more = {flavor: preemptor.amount} if jobs[0].account is account else None
        return jobs[0].account.share(more), -turn[jobs[0].admission]

    for final in (True, False):
        queues: dict[int, list[Held]] = waiting
        later: dict[int, list[Held]] = {}
        while queues and trial.where is None:
            jobs = max(queues.values(), key=by_share)
            other = jobs[0].account
            mine = account.share({flavor: preemptor.amount})
            at = _first_fair(jobs, mine, final=final, own=other is account)
            later.setdefault(other.index, []).extend(jobs[:at])
            rest = jobs[at + 1 :]
            if at < len(jobs):
                trial.remove(jobs[at])
            if final and rest and (other is account or other.borrows(flavor)):
                queues[other.index] = rest
            else:
                del queues[other.index]
        waiting = {index: jobs for index, jobs in later.items() if jobs}
    if trial.where is not None:
        trial.minimize()
    return trial.restore()


def _first_fair(jobs: Sequence[Held], mine: float, *, final: bool, own: bool) -> int:
    """Return which of a queue's jobs goes, their number if none: see `fair_targets`."""
    other = jobs[0].account
    if own:
        return 0
    if not final:
        return 0 if mine < other.share() else len(jobs)
    for at, held in enumerate(jobs):
        if mine <= other.share({held.flavor: -held.amount}):
            return at
    return len(jobs)
