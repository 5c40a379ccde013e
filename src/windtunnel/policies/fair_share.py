"""Fair share with memory, and Slurm's multifactor priority.

Slurm, "Multifactor Priority Plugin" and "Classic Fairshare Algorithm": a job's priority is a
weighted sum of factors between 0 and 1,

    age * min(1, wait / max_age) + size * (GPUs / all GPUs) + fairshare * 2^(-U / S)
        + priority * (the job's priority / the largest),

where U is the group's part of all decayed usage (`windtunnel.policies.usage`) and S its part of all
shares. Groups are users or virtual clusters, all of one level. Running jobs count as they run.
Priorities are worked out when a job is submitted and for all waiting jobs every ``every`` seconds
(``PriorityCalcPeriod``, 5 minutes); the largest goes first. Slurm's weights are all 0 by default;
ours are this project's choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import PolicyError, nearest, quote, unused_names
from windtunnel.policies.length_order import numbers
from windtunnel.policies.usage import PARTS, DecayedUsage
from windtunnel.sim.contract import Policy
from windtunnel.sim.usage_order import UsageOrder, in_32_bits
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from windtunnel.sim.jobs import Jobs, JobView
    from windtunnel.sim.problem import Problem

#: Columns that say whose usage a job counts as.
GROUPS: tuple[str, ...] = ("user", "vc")
#: Which jobs the size factor favours (``PriorityFavorSmall``).
FAVOURED: tuple[str, ...] = ("large", "small")
#: Stands for the jobs that belong to nobody.
NOBODY = "(none)"

Shares = Mapping[str, float] | str | None


class Accounts:
    """The groups of one run: whose each job is, what they are entitled to, what they use.

    Attributes:
        group_of: Int list, group of each row of the jobs table.
        shares: Float array (groups,), part of all shares.
        usage: decayed usage.
    """

    def __init__(self, policy: Multifactor, problem: Problem) -> None:
        jobs = problem.jobs
        owners = [NOBODY if name is None else str(name) for name in getattr(jobs, policy.per)]
        names = sorted(set(owners))
        numbered = {name: number for number, name in enumerate(names)}
        self.group_of = [numbered[name] for name in owners]
        given = _shares(policy, jobs, names, self.group_of)
        self.shares = given / given.sum() if len(given) else given
        self.usage = DecayedUsage(len(names), policy.half_life)
        self.num_gpus = problem.quota / problem.units
        most = np.abs(np.nan_to_num(jobs.priority)).max(initial=0.0)
        self.top_priority = float(most) or 1.0
        parts = np.rint(np.nan_to_num(jobs.num_gpus) * PARTS)
        self.order = UsageOrder(
            group_of=np.array(self.group_of, dtype=np.int64),
            parts=parts,
            shares=self.shares,
            half_life=policy.half_life,
            every=float(policy.every or math.nan),
            by_ratio=type(policy).key is FairShare.key,
            age=policy.age,
            max_age=policy.max_age,
            fairshare=policy.fairshare,
            sizes=policy.size * _sizes(jobs, self.num_gpus, policy.favor),
            priorities=_priorities(jobs, self.top_priority, policy.priority),
        )
        self._parts: list[float] = parts.tolist()
        self._due: list[float] = self.shares.tolist()
        self._at = math.nan
        #: U / S at that instant of the groups asked for.
        self._ratios: dict[int, float] = {}

    def ratio(self, row: int, now: float) -> float:
        """Return U / S of a job's group at ``now``: 1 = it has had just what it is entitled to."""
        if self._at != now:
            self._ratios.clear()
            self._at = now
        group = self.group_of[row]
        found = self._ratios.get(group)
        if found is None:
            found = self._ratios[group] = self.usage.part(group, now) / self._due[group]
        return found

    def hold(self, row: int, now: float) -> None:
        """From ``now`` on the group of a job holds its GPUs, too."""
        self.usage.change_parts(self.group_of[row], self._parts[row], now)

    def leave(self, row: int, now: float) -> None:
        """From ``now`` on the group of a job holds its GPUs no more."""
        self.usage.change_parts(self.group_of[row], -self._parts[row], now)


class Multifactor(Policy):
    """Slurm's multifactor priority with half-life fair share, not preemptive; strict.

    Args:
        age: weight of the time waited.
        size: weight of the job's size.
        fairshare: weight of how little of its due the job's group has had.
        priority: weight of the column ``priority`` (a partition's, a QOS's); none counts as 0.
        max_age: wait at which the age factor reaches 1. [7 days]
        half_life: in which past usage falls to half; inf = never. [7 days]
        every: seconds between recalculations. [5 minutes]
        per: whose usage: ``user`` or ``vc``.
        shares: what groups are entitled to, relative to each other: a mapping name -> share (jobs
            without a group count as "(none)"), or a numeric column, the same for all jobs of a
            group; None = equal.
        favor: ``large`` or ``small`` jobs have the larger size factor.

    Raises:
        SpecError: a parameter is out of range.
    """

    name = "multifactor"
    queueing = "strict"

    def __init__(
        self,
        *,
        age: float = 1_000.0,
        size: float = 0.0,
        fairshare: float = 10_000.0,
        priority: float = 0.0,
        max_age: float | str = "7d",
        half_life: float | str = "7d",
        every: float | str = 300.0,
        per: str = "user",
        shares: Shares = None,
        favor: str = "large",
    ) -> None:
        where = f"policy {self.name}, "
        self.age = checked_number(f"{where}age", age, "a weight >= 0", least=0)
        self.size = checked_number(f"{where}size", size, "a weight >= 0", least=0)
        self.fairshare = checked_number(f"{where}fairshare", fairshare, "a weight >= 0", least=0)
        self.priority = checked_number(f"{where}priority", priority, "a weight >= 0", least=0)
        self.max_age = seconds(f"{where}max_age", max_age, positive=True)
        self.half_life = seconds(f"{where}half_life", half_life, positive=True, endless=True)
        self.every = seconds(f"{where}every", every, positive=True)
        for name, value, known in (("per", per, GROUPS), ("favor", favor, FAVOURED)):
            checked_choice(f"{where}{name}", value, known)
        self.per = per
        self.favor = favor
        self.given_shares = shares
        self.accounts: Accounts | None = None
        self.parameters = {
            "age": self.age, "size": self.size, "fairshare": self.fairshare,
            "priority": self.priority, "max_age": self.max_age, "half_life": self.half_life,
            "every": self.every, "per": per, "favor": favor,
            "shares": dict(shares) if isinstance(shares, Mapping) else shares or "equal",
        }  # fmt: skip

    def for_run(self, problem: Problem) -> Policy:
        """Return a copy with accounts of its own.

        Raises:
            PolicyError: a group has no share, or two.
        """
        flown = copy(self)
        flown.accounts = Accounts(self, problem)
        flown.usage_order = flown.accounts.order
        owners = getattr(problem.jobs, self.per).tolist()
        nobody = sum(name is None for name in owners)
        if nobody:
            note = f"{self.label}: {nobody:,} job(s) without a {self.per} share as one {self.per}."
            flown.notes = (note,)
        if isinstance(self.given_shares, Mapping):
            named = set(self.given_shares) - {NOBODY}
            flown.notes += tuple(
                unused_names("The shares name", self.per, named, owners, where="the trace")
            )
        return flown

    def started(self, job: JobView, now: float) -> None:
        """Charge the job's group from now on."""
        self.books.hold(job.row, now)

    def stopped(self, job: JobView, now: float) -> None:
        """Charge the job's group no more."""
        self.books.leave(job.row, now)

    @property
    def in_numbers(self) -> str:
        """``usage``, unless a subclass has keys of its own."""
        kind = type(self)
        known = kind.key in (Multifactor.key, FairShare.key) and all(
            getattr(kind, name) is getattr(Multifactor, name)
            for name in ("priority_of", "started", "stopped")
        )
        return "usage" if known else ""

    @property
    def books(self) -> Accounts:
        """The accounts of the run.

        Raises:
            PolicyError: there is no run: the policy was not prepared by ``for_run``.
        """
        if self.accounts is None:
            raise PolicyError(
                self.label, "keeps accounts of a run; prepare it with for_run(problem)"
            )
        return self.accounts

    def key(self, job: JobView, now: float) -> float:
        """Return the negated priority at ``now``."""
        return -in_32_bits(self.priority_of(job, now))

    def priority_of(self, job: JobView, now: float) -> float:
        """Return the job's priority at ``now`` (s): the weighted sum of its factors."""
        books = self.books
        waited = min(1.0, (now - job.submit_time) / self.max_age)
        part = job.num_gpus / books.num_gpus if books.num_gpus else 0.0
        total: float = self.age * waited
        total += self.size * (part if self.favor == "large" else 1.0 - part)
        total += self.fairshare * 2.0 ** -books.ratio(job.row, now)
        if self.priority:
            given = float(job.priority)
            total += self.priority * (0.0 if math.isnan(given) else given / books.top_priority)
        return total


class FairShare(Multifactor):
    """Fair share with memory: the group that has had least of its due goes first; strict.

    Slurm's fair-share factor alone, then submit time.

    Args:
        half_life: as for `Multifactor`, like the others.
        every: seconds between recalculations.
        per: ``user`` or ``vc``.
        shares: what groups are entitled to.
    """

    name = "fair-share"

    def __init__(
        self,
        *,
        half_life: float | str = "7d",
        every: float | str = 300.0,
        per: str = "user",
        shares: Shares = None,
    ) -> None:
        super().__init__(
            age=0.0, fairshare=1.0, half_life=half_life, every=every, per=per, shares=shares
        )
        mine = ("half_life", "every", "per", "shares")
        self.parameters = {name: self.parameters[name] for name in mine}

    def key(self, job: JobView, now: float) -> float:
        """Return usage over share, which orders as the factor does and never underflows."""
        return in_32_bits(self.books.ratio(job.row, now))


def _sizes(jobs: Jobs, num_gpus: float, favor: str) -> np.ndarray:
    """Return each job's size factor, shape (n,)."""
    part: np.ndarray = jobs.num_gpus / num_gpus if num_gpus else np.zeros(len(jobs))
    return part if favor == "large" else 1.0 - part


def _priorities(jobs: Jobs, top: float, weight: float) -> np.ndarray:
    """Return what each job's priority adds, shape (n,); one that is unknown counts as 0."""
    if not weight:
        return np.zeros(len(jobs))
    return weight * np.where(np.isnan(jobs.priority), 0.0, jobs.priority / top)


def _shares(policy: Multifactor, jobs: Jobs, names: list[str], group_of: list[int]) -> np.ndarray:
    """Return each group's share, shape (groups,).

    Raises:
        PolicyError: a group has none, or two, or one that is not above 0.
    """
    given = policy.given_shares
    if given is None:
        return np.ones(len(names))
    found = np.full(len(names), np.nan)
    if isinstance(given, Mapping):
        for number, name in enumerate(names):
            found[number] = float(given.get(name, math.nan))
    else:
        if given not in jobs.table.column_names:
            hint = nearest(str(given), jobs.table.column_names)
            message = f"the jobs have no column {quote(given)} of shares.{hint}"
            raise PolicyError(policy.label, message)
        column = numbers(jobs, given, policy)
        groups = np.array(group_of, dtype=np.int64)
        found[groups] = column
        odd = np.flatnonzero(~(column == found[groups]))
        if len(odd):
            row = int(odd[0])
            message = f"{policy.per} {quote(names[group_of[row]])} has not one known share"
            raise PolicyError(policy.label, f"{message} in {quote(given)}", job=jobs.job_id[row])
    bad = np.flatnonzero(~((found > 0) & (found < math.inf)))
    if len(bad):
        message = f"{policy.per} {quote(names[int(bad[0])])} has no share above 0"
        raise PolicyError(policy.label, message)
    return found
