"""Quotas of virtual clusters with borrowing and reclaim, as Kueue's cohorts have them.

A job starts when its queue's quota allows it *and* the placement finds room; Kueue itself looks at
the quota alone, and lets the pods of an admitted job wait for nodes. Every decision goes on as
follows until nobody else can start. Of each queue the first job that was not refused in this
decision stands; the next to be tried is one that stays within its queue's nominal quota before one
that borrows (with fair sharing, then, whose queue would have the smallest share), then the largest
priority, then the longest in the queue. It starts on the first GPU type of its queue's quota that
it accepts and where quota and free nodes suffice; if there is none,
`windtunnel.policies.quota_reclaim` says who gives way.
"""

from __future__ import annotations

import copy
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.policies.described import PerRun
from windtunnel.policies.quota_books import Held, open_accounts, parts
from windtunnel.policies.quota_numbers import QueueRequests, in_numbers
from windtunnel.policies.quota_possible import above_quotas, refuse_queues, refuse_types
from windtunnel.policies.quota_reclaim import Preemptor, Reclaimed, reclaim
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, Quotas, proportional, unused_vcs
from windtunnel.policies.waiting_line import (
    REQUEUING_TIMESTAMPS,
    GangWait,
    WaitingLine,
    priority_of,
)
from windtunnel.sim.contract import Policy, Preempt, Start, Wake
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from windtunnel.cluster.free import Where
    from windtunnel.policies.quota_books import Account
    from windtunnel.sim.cohort_order import CohortOrder
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem

#: When a queue's first job is tried: whether it would borrow, its share, its place, its queue.
Turn = tuple[float, ...]
#: The turn of a queue of which nobody is to be tried.
_NOBODY: Turn = (math.inf,)
_WORDS: dict[str, tuple[str, ...]] = {
    "borrowing": ("cohort", "none"),
    "queueing_strategy": ("BestEffortFIFO", "StrictFIFO"),
    "reclaim_within_cohort": ("Never", "LowerPriority", "Any"),
    "within_cluster_queue": ("Never", "LowerPriority"),
    "fair_sharing": ("no", "yes"),
    "requeuing_timestamp": REQUEUING_TIMESTAMPS,
}


class Quota(PerRun):
    """Each virtual cluster has a quota of GPUs; unused quota may be lent and reclaimed.

    Args:
        quotas: the quotas, or a mapping (`Quotas.from_mapping`); None = in proportion to the GPU
            time of each virtual cluster's jobs in the trace.
        file: a TOML file with the quotas (`Quotas.from_toml`).
        borrowing: ``cohort`` (as the quotas say), or ``none``: hard quotas, nothing is shared.
        queueing_strategy: ``BestEffortFIFO`` or ``StrictFIFO``, where a queue does not say.
        reclaim_within_cohort: ``Never``, ``LowerPriority`` or ``Any``, where a queue does not say.
        within_cluster_queue: ``Never`` or ``LowerPriority``, where a queue does not say.
        fair_sharing: ``yes``: the queue that borrows least, by weight, goes first, and may preempt
            jobs of those that borrow more.
        gang_timeout: seconds, or ``30m``, that a job may wait at the head of its queue; inf = no
            limit.
        backoff: seconds for which it is put aside then; see `windtunnel.policies.waiting_line`.
        backoff_max: most seconds, as backoff doubles each further time; None = it does not double.
        requeuing_timestamp: ``Eviction`` (as if it had come when put back) or ``Creation``.

    Raises:
        SpecError: an option or a quota is wrong.
    """

    name = "quota"

    def __init__(
        self,
        quotas: Quotas | Mapping[str, Any] | None = None,
        *,
        file: str | Path | None = None,
        borrowing: str = "cohort",
        queueing_strategy: str = "BestEffortFIFO",
        reclaim_within_cohort: str = "Never",
        within_cluster_queue: str = "Never",
        fair_sharing: str = "no",
        gang_timeout: float | str = math.inf,
        backoff: float | str = 60.0,
        backoff_max: float | str | None = None,
        requeuing_timestamp: str = "Eviction",
    ) -> None:
        if quotas is not None and file is not None:
            raise SpecError("file", "quotas are given twice; give a file or a mapping.")
        if isinstance(quotas, str | int | float):
            raise SpecError("quotas", f"found {quote(quotas)}; a file is given as file=FILE.toml.")
        self.words = {
            "borrowing": borrowing,
            "queueing_strategy": queueing_strategy,
            "reclaim_within_cohort": reclaim_within_cohort,
            "within_cluster_queue": within_cluster_queue,
            "fair_sharing": fair_sharing,
            "requeuing_timestamp": requeuing_timestamp,
        }
        for option, word in self.words.items():
            checked_choice(option, word, _WORDS[option])
        timeout = seconds("gang_timeout", gang_timeout, positive=True, endless=True)
        aside = seconds("backoff", backoff)
        longest = aside if backoff_max is None else seconds("backoff_max", backoff_max)
        self.wait = GangWait(timeout, aside, longest, requeuing_timestamp)
        self.quotas: Quotas | None = None
        if file is not None:
            self.quotas = Quotas.from_toml(file)
        elif quotas is not None:
            given = quotas if isinstance(quotas, Quotas) else Quotas.from_mapping(quotas)
            self.quotas = given

    def with_quotas(self, quotas: Quotas) -> Quota:
        """Return the same policy with these quotas.

        Raises:
            SpecError: it has others.
        """
        if self.quotas is not None and self.quotas != quotas:
            raise SpecError("quotas", "are given twice: to the policy, and of the cluster.")
        twin = copy.copy(self)
        twin.quotas = quotas
        return twin

    def for_run(self, problem: Problem) -> Policy:
        """Return the quotas at work on these jobs.

        Raises:
            PolicyError: a job's virtual cluster has no quota; or the quotas are by GPU types that
                the cluster does not have.
        """
        quotas = self.quotas
        if quotas is None:
            quotas, note = _from_past_use(problem)
            notes = [note]
        else:
            notes = unused_vcs((queue.vc for queue in quotas.queues), problem.jobs.vc.tolist())
        if self.words["borrowing"] == "none":
            quotas = quotas.alone()
        return QuotaRun(self, quotas.in_types_of(problem.cluster), problem, notes)


class QuotaRun(Policy):
    """Quotas at work: one run's accounts and waiting lines.

    Args:
        policy: the options.
        quotas: the quotas.
        problem: the run.
        notes: how the quotas were made, if they were not given; else, which nobody has.
    """

    renews_wakes = True  # who has started since has no time-out

    def __init__(self, policy: Quota, quotas: Quotas, problem: Problem, notes: list[str]) -> None:
        self.name = policy.label  # type: ignore[misc] # two settings have two labels
        self._words = policy.words
        self._fair = policy.words["fair_sharing"] == "yes"
        self._accounts = open_accounts(quotas)
        self._lines = [
            WaitingLine(policy.wait, strict=self._word(a, "queueing_strategy") == "StrictFIFO")
            for a in self._accounts
        ]
        self._admissions = 0
        self._running: dict[int, Held] = {}
        #: What each active job asks for: millionths of GPUs, and the GPU types to try.
        self._asked: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._unfit: set[tuple[int, str]] = set()
        #: Jobs preempted in this decision. They preempt nobody in it, or it might never end.
        self._gave_way: set[int] = set()
        self._demand_of: list[int] = problem.demand_of.tolist()
        self._wait = policy.wait
        self._put_back = 0
        refuse_types(self.label, self._accounts, problem)
        self._requests = requests = QueueRequests(problem, self._accounts)
        #: The number of each job's account, by arrival number.
        self._queue_of = requests.account_of
        refuse_queues(self.label, requests)
        self._notes = tuple(notes)
        self.parameters = {
            **policy.words,
            "gang_timeout": policy.wait.timeout if policy.wait.timeout < math.inf else None,
            "backoff": policy.wait.backoff,
            "backoff_max": policy.wait.backoff_max,
            "quotas": quotas.to_mapping()["queues"],
        }

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override] # known after the run
        """What a reader of the numbers must know."""
        put_back = self._put_back + sum(line.num_timeouts for line in self._lines)
        late = f"{put_back:,} times a job was put back because it waited at the head for too long."
        return (*self._notes, *([late] if put_back else []))

    def too_large(self) -> dict[int, str]:
        """Return the jobs that ask for more than their queue can ever use, with why."""
        return above_quotas(self._requests)

    @property
    def in_numbers(self) -> str:
        """``cohorts``, unless a subclass has its own ways."""
        return "cohorts" if type(self).decide is QuotaRun.decide else ""

    @cached_property
    def cohort_order(self) -> CohortOrder:
        """The run in numbers."""
        return in_numbers(
            self._requests,
            word=self._word,
            fair=self._fair,
            wait=self._wait,
            report_put_back=self._note_put_back,
        )

    def _note_put_back(self, put_back: int) -> None:
        self._put_back = put_back

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Start | Preempt | Wake]:
        """Yield who starts and who gives way."""
        self._note_changes(now, queue, cluster)
        turns = [self._turn(account) for account in self._accounts]
        while (turn := min(turns)) is not _NOBODY:
            *_, number, index = turn
            account, line = self._accounts[int(index)], self._lines[int(index)]
            job = line.jobs[int(number)]
            found = self._find_place(job, account, cluster)
            if found is None:
                line.refuse(job, now)
                turns[account.index] = self._turn(account)
                continue
            flavor, where, targets = found
            line.remove(job)
            for held in targets:
                yield Preempt(held.job)
                self._release(held.job)
                self._gave_way.add(held.job.number)
                self._lines[held.account.index].add(held.job, cluster.demand_class(held.job))
            yield Start(job, where)
            self._admit(job, account, flavor)
            if targets:
                turns = self._reopened()
            else:
                turns[account.index] = self._turn(account)
        at = min(line.next_time_out() for line in self._lines)
        if now < at < math.inf:  # a time may be so large that the wait is less than its last digit
            yield Wake(at)

    def _note_changes(self, now: float, queue: Any, cluster: Any) -> None:
        """Book what was stopped, what is over and what began to wait since the last decision."""
        self._unfit.clear()
        self._gave_way.clear()
        for job in cluster.interrupted:
            self._release(job)
        for job in cluster.finished:
            self._release(job)
            del self._asked[job.number]
        for line in self._lines:
            line.open(now)
        for job in queue.arrived:
            account = self._accounts[self._queue_of[job.number]]
            flavors = self._requests.flavors(self._demand_of[job.number], account)
            self._asked[job.number] = parts(job.num_gpus), flavors
            self._lines[account.index].add(job, cluster.demand_class(job))

    def _reopened(self) -> list[Turn]:
        """Return every line's turn, once somebody was preempted: all may try again."""
        self._unfit.clear()
        for line in self._lines:
            line.reopen()
        return [self._turn(account) for account in self._accounts]

    def _turn(self, account: Account) -> Turn:
        """Return when the first job of a queue is to be tried: the least turn is next."""
        place = self._lines[account.index].first()
        if place is None:
            return _NOBODY
        amount, flavors = self._asked[place[-1]]
        borrows = not any(account.within_nominal(f, amount) for f in flavors)
        share = min(account.share({f: amount}) for f in flavors) if self._fair else 0.0
        return (borrows, share, *place, account.index)

    def _find_place(
        self, job: JobView, account: Account, cluster: Any
    ) -> tuple[str, Where, tuple[Held, ...]] | None:
        """Return on which GPU type a job starts, where, and who gives way; None if it cannot."""
        amount, flavors = self._asked[job.number]
        for flavor in flavors:
            if amount <= account.available(flavor):
                where = self._fit(job, flavor, cluster)
                if where is not None:
                    return flavor, where, ()
        for flavor in flavors:
            found = self._reclaim(job, account, flavor, cluster)
            if found is not None:
                return flavor, found.where, found.targets
        return None

    def _fit(self, job: JobView, flavor: str, cluster: Any) -> Where | None:
        kind = (cluster.demand_class(job), flavor)
        if kind in self._unfit:
            return None
        where: Where | None = cluster.fit(job, _types(job, flavor))
        if where is None:
            self._unfit.add(kind)
        return where

    def _reclaim(
        self, job: JobView, account: Account, flavor: str, cluster: Any
    ) -> Reclaimed | None:
        reclaim_word = self._word(account, "reclaim_within_cohort")
        within_word = self._word(account, "within_cluster_queue")
        if reclaim_word == within_word == "Never" or job.number in self._gave_way:
            return None
        preemptor = Preemptor(
            account,
            flavor,
            self._asked[job.number][0],
            priority_of(job),
            reclaim_word,
            within_word,
            lambda gone: cluster.fit(job, _types(job, flavor), [held.job for held in gone]),
        )
        return reclaim(preemptor, fair=self._fair)

    def _admit(self, job: JobView, account: Account, flavor: str) -> None:
        amount = self._asked[job.number][0]
        held = Held(job, amount, account, flavor, priority_of(job), self._admissions)
        self._admissions += 1
        account.take(held)
        self._running[job.number] = held

    def _release(self, job: JobView) -> None:
        held = self._running.pop(job.number)
        held.account.give(held)

    def _word(self, account: Account, option: str) -> str:
        """Return a queue's own word for an option, or else the policy's."""
        return getattr(account.quota, option) or self._words[option]


def _types(job: JobView, flavor: str) -> tuple[str, ...] | None:
    """Return the GPU types that a job on a flavor is bound to; None = those it accepts."""
    return None if flavor == ANY_TYPE or not job.num_gpus else (flavor,)


def _from_past_use(problem: Problem) -> tuple[Quotas, str]:
    jobs, rows = problem.jobs, problem.rows
    numbers: dict[str, int] = {} if len(rows) else {NO_VC: 0}
    vcs = [NO_VC if vc is None else vc for vc in jobs.vc[rows].tolist()]
    owner = np.array([numbers.setdefault(vc, len(numbers)) for vc in vcs], dtype=np.int64)
    gpus = jobs.num_gpus[rows]
    usage = np.bincount(owner, weights=gpus * problem.duration, minlength=len(numbers))
    least = np.zeros(len(numbers))
    np.maximum.at(least, owner, gpus)
    return proportional(
        dict(zip(numbers, usage.tolist(), strict=True)),
        dict(zip(numbers, least.tolist(), strict=True)),
        problem.quota / problem.units,
    )
