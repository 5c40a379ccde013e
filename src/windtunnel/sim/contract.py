"""What a policy and a placement are: the contracts, in three tiers.

A user writes the smallest that suffices:

1. ``rank(jobs) -> float array (n,)``: a static order, lower first;
2. ``key(job, now) -> float``: lower first, asked when a job is queued (and at rounds);
3. ``decide(now, queue, cluster) -> iterable of Start | Preempt | Wake``: anything; with
   ``elastic`` also Resize | Move.

A function of one, two or three arguments is one of these; a `Policy` subclass with one of the
methods says more (its default head of line, whether it preempts).
"""

from __future__ import annotations

import inspect
import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from windtunnel.errors import PolicyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from windtunnel.cluster.free import Where
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import Jobs, JobView
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.usage_order import UsageOrder

#: Rules that plan with expected ends (`windtunnel.sim.backfill`).
BACKFILLING: tuple[str, ...] = ("conservative", "easy", "easy_sjbf")
#: Head-of-line rules: at the first job that does not fit stop, go on past it, or backfill.
QUEUEING: tuple[str, ...] = ("skip", "strict", *BACKFILLING)
#: What a job's expected run time is: what its user asked for, or what it will really take.
ESTIMATES: tuple[str, ...] = ("recorded", "perfect")
#: In what order what happens at one instant is handled: all of it, then one decision; or one event
#: at a time, a decision after each, arrivals or completions first.
EVENT_ORDERS: tuple[str, ...] = ("batch", "submissions_first", "completions_first")


@dataclass(frozen=True)
class Start:
    """Start a waiting job.

    Attributes:
        job: the job.
        where: nodes and GPUs as ``cluster.fit`` returned them; None = the run's placement decides.
    """

    job: JobView
    where: Where | None = None


@dataclass(frozen=True)
class Preempt:
    """Stop a running job; it waits again with the work it has left."""

    job: JobView


@dataclass(frozen=True)
class Resize:
    """Run a job, waiting or running, in another way: other GPUs, cores or plan; elastic runs only.

    A running job stops and is launched again at once, which costs it its penalty and nothing else.

    Attributes:
        job: the job.
        option: one of ``cluster.options(job)``.
        where: nodes and GPUs as ``cluster.place`` returned them; None = best fit.
    """

    job: JobView
    option: Option
    where: Where | None = None


@dataclass(frozen=True)
class Move:
    """Run a job on other nodes, in the way it runs; costs it its penalty; elastic runs only.

    Attributes:
        job: a running job.
        where: nodes and GPUs as ``cluster.place`` returned them.
    """

    job: JobView
    where: Where


@dataclass(frozen=True)
class Wake:
    """Ask to decide at a later instant, even if nothing else happens then.

    Attributes:
        at: when, s; later than now.
    """

    at: float


#: What a tier-3 policy may yield.
Decision = Start | Preempt | Resize | Move | Wake


@dataclass(frozen=True)
class Levels:
    """What a job's attained service (GPUs x seconds) is worth in an order: lower goes first.

    Attributes:
        bounds: service at which the next level begins, ascending; empty with no keys = the service
            itself is the key.
        keys: the key of each level, one more than bounds; empty = 0, 1, 2 ...
    """

    bounds: tuple[float, ...] = ()
    keys: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in pairwise(self.bounds))
        if not rising or not all(0 <= bound < math.inf for bound in self.bounds):
            raise SpecError("bounds", f"found {self.bounds}; expected seconds that rise from 0.")
        if self.bounds and not self.keys:
            levels = tuple(float(level) for level in range(len(self.bounds) + 1))
            object.__setattr__(self, "keys", levels)
        if self.keys and len(self.keys) != len(self.bounds) + 1:
            raise SpecError("keys", f"expected {len(self.bounds) + 1} keys, one a level.")

    def key(self, service: float) -> float:
        """Return the key of an attained service."""
        return self.keys[bisect_right(self.bounds, service)] if self.keys else service


class Policy:
    """Who runs next. Subclasses define exactly one of ``rank``, ``key`` or ``decide``.

    Attributes:
        name: what users type.
        queueing: default head-of-line rule.
        estimates: where backfilling gets a job's expected run time from, by default: one of
            `ESTIMATES`, or a predictor's name.
        preemptive: running jobs are ranked with the waiting ones at every instant and give way to
            better ones (quota walk, DESIGN "preemptive policies").
        by_remaining: the order is by remaining time, which falls while a job runs.
        by_service: the remaining time counts once for each GPU of the job.
        levels: the order is by attained service; what it is worth. ``key`` must agree with it; it
            is what the compiled engine goes by.
        every: seconds between rounds; a ``key`` is asked again at each round, a ``decide`` is asked
            at rounds only. None = no rounds.
        elastic: jobs run as elastic ones: as many iterations, as fast as the option they run says,
            a penalty for every launch and change (`windtunnel.sim.elastic`).
        by: what the order goes by: numeric columns of the jobs table or predictors of run times by
            name, of which the first that there is counts. A prediction stands in a column of the
            predictor's name while the policy is asked (`windtunnel.study.foresight`).
    """

    name: ClassVar[str] = ""
    by: tuple[str, ...] = ()
    queueing: str | None = None
    estimates: str = "recorded"
    preemptive: bool = False
    by_remaining: bool = False
    by_service: bool = False
    levels: Levels | None = None
    #: Keys by what groups have used, in the copy that ``for_run`` returns; see `by_usage`.
    usage_order: UsageOrder | None = None
    every: float | None = None
    elastic: bool = False
    #: The column the order cannot do without, for the message where a job has none.
    needs: ClassVar[str] = ""
    #: What decides the policy's decisions besides the trace, for settings and reports.
    parameters: Mapping[str, Any] = MappingProxyType({})
    #: What a reader of the numbers must know, one sentence each; read after the run.
    notes: tuple[str, ...] = ()

    def for_run(self, problem: Problem) -> Policy:  # noqa: ARG002 - for policies that look at it
        """Return the policy for one run: itself, or a copy that remembers things during the run.

        Args:
            problem: the jobs and the cluster of the run.

        Raises:
            PolicyError: the policy cannot run these jobs.
        """
        return self

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the static order, lower first: float array of shape (n,), row order."""
        raise NotImplementedError

    def key(self, job: JobView, now: float) -> float:
        """Return the job's key at ``now`` (s), lower first."""
        raise NotImplementedError

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Yield decisions at ``now`` (s); each is applied before the next is asked for.

        Args:
            now: the instant, s.
            queue: waiting jobs (`windtunnel.sim.decisions.QueueView`): an iterable of `JobView` in
                order of arrival, ``len``, the columns as arrays (``queue.num_gpus``,
                ``queue.submit_time`` ...), and ``queue.arrived``.
            cluster: what runs and what is free (`windtunnel.sim.decisions.ClusterView`):
                ``num_gpus``, ``free_gpus``, ``running`` (list of `JobView` in order of start),
                ``fit(job)`` -> where it would go, or None ...
        """
        raise NotImplementedError

    def started(self, job: JobView, now: float) -> None:
        """Note that a job got its GPUs at ``now`` (s); called by the engine, see `watches`."""

    def stopped(self, job: JobView, now: float) -> None:
        """Note that a job left its GPUs at ``now`` (s), at its end or preempted; see `watches`."""

    @property
    def watches(self) -> bool:
        """Whether the class defines ``started`` or ``stopped`` and so must be told of both."""
        kind = type(self)
        return kind.started is not Policy.started or kind.stopped is not Policy.stopped

    @property
    def by_usage(self) -> bool:
        """Whether ``for_run`` gives a `UsageOrder` that says all that ``key`` does."""
        return False

    @property
    def keeps_books(self) -> bool:
        """Whether it takes every decision itself and remembers them during a run."""
        return self.tier == 3 and type(self).for_run is not Policy.for_run  # noqa: PLR2004 - the tier's name

    @property
    def tier(self) -> int:
        """1, 2 or 3: which of the three methods the class defines."""
        for number, method in ((1, "rank"), (2, "key"), (3, "decide")):
            if getattr(type(self), method) is not getattr(Policy, method):
                return number
        raise PolicyError(self.label, "defines none of rank(jobs), key(job, now), decide(...)")

    @property
    def label(self) -> str:
        """The policy's name, or its class's."""
        return self.name or type(self).__name__

    @property
    def requires(self) -> frozenset[str]:
        """What an engine must offer to run this policy."""
        needs = {f"tier{self.tier}"}
        needs |= {"preemption"} if self.preemptive else set()
        needs |= {"levels"} if self.levels is not None else set()
        if self.by_usage:
            return frozenset(needs | {"usage"})
        needs |= {"rounds"} if self.every is not None and self.levels is None else set()
        needs |= {"watching"} if self.watches else set()
        return frozenset(needs)


class FunctionPolicy(Policy):
    """A policy made of a plain function of one, two or three arguments.

    Args:
        function: ``rank(jobs)``, ``key(job, now)`` or ``decide(now, queue, cluster)``.
        name: what to call it; the function's name if empty.
        queueing: default head-of-line rule.
        preemptive: see `Policy`.
        every: see `Policy`.
        elastic: see `Policy`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        *,
        queueing: str | None = None,
        preemptive: bool = False,
        every: float | None = None,
        elastic: bool = False,
    ) -> None:
        self.function = function
        self.given_name = name or getattr(function, "__name__", "policy")
        self.queueing = queueing
        self.preemptive = preemptive
        self.every = every
        self.elastic = elastic
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise PolicyError(self.label, f"its arguments cannot be told: {error}") from error
        self._tier = sum(p.default is p.empty for p in parameters)
        if self._tier not in (1, 2, 3):
            raise PolicyError(
                self.label,
                f"a function of {self._tier} arguments; expected rank(jobs), key(job, now) or "
                "decide(now, queue, cluster)",
            )
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        """Call the function itself, so that a decorated policy can still be tested by hand."""
        return self.function(*args)

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the function's static order."""
        result: np.ndarray = self.function(jobs)
        return result

    def key(self, job: JobView, now: float) -> float:
        """Return the function's key."""
        result: float = self.function(job, now)
        return result

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Return the function's decisions."""
        result: Iterable[Decision] = self.function(now, queue, cluster)
        return result

    @property
    def tier(self) -> int:
        """The number of the function's arguments."""
        return self._tier

    @property
    def label(self) -> str:
        """The given name."""
        return self.given_name


class Placement(Protocol):
    """Where a job runs: a search over the free state that changes nothing."""

    @property
    def name(self) -> str:
        """What users type."""

    def place(self, free: Any, demand: Any) -> Where | None:
        """Return nodes and GPUs for one job of this demand, or None if it does not fit now."""


def static_rank(policy: Policy, jobs: Jobs, rows: np.ndarray) -> np.ndarray:
    """Return a tier-1 policy's order of the jobs to fly, checked.

    Args:
        policy: the policy.
        jobs: all jobs, those that are not flown included.
        rows: Int array of shape (m,), the rows of the jobs to fly.

    Returns:
        Float array of shape (m,), in the order of ``rows``, no NaN, no negative zero.

    Raises:
        PolicyError: not numbers, another shape, or NaN for some job to fly (which is named).
    """
    ranked = policy.rank(jobs)
    try:
        values = np.asarray(ranked, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PolicyError(policy.label, f"rank did not return numbers ({error})") from error
    if values.shape != (len(jobs),):
        raise PolicyError(
            policy.label, f"rank returned shape {values.shape}; expected ({len(jobs)},)"
        )
    flown: np.ndarray = values[rows] + 0.0  # -0.0 + 0.0 == 0.0: equal keys have equal bits
    bad = np.flatnonzero(np.isnan(flown))
    if len(bad):
        message = f"rank is NaN for {len(bad):,} job(s); the column it reads may be unknown there"
        needs = policy.needs or " or ".join(policy.by)
        if needs:
            message = f"{len(bad):,} job(s) have no {needs}, which the policy orders by"
        raise PolicyError(policy.label, message, job=jobs.job_id[rows[bad].min()])
    return flown


def checked_key(policy: Policy, job: JobView, now: float) -> float:
    """Return a tier-2 policy's key of a job at ``now`` (s), checked.

    Raises:
        PolicyError: not a number.
    """
    given = policy.key(job, now)
    try:
        value = float(given) + 0.0
    except (TypeError, ValueError) as error:
        message = f"key returned {given!r}; expected a number"
        raise PolicyError(policy.label, message, time=now, job=job.job_id) from error
    if math.isnan(value):
        raise PolicyError(policy.label, "key is NaN", time=now, job=job.job_id)
    return value


def checked_queueing(value: str | None, policy: Policy) -> str:
    """Return the head-of-line rule to use: the user's, else the policy's, else ``strict``.

    Raises:
        SpecError: unknown rule, or backfilling for a policy that preempts.
    """
    chosen = value or policy.queueing or ("skip" if policy.preemptive else "strict")
    if chosen not in QUEUEING:
        raise SpecError.unknown("queueing", chosen, QUEUEING)
    if chosen in BACKFILLING and policy.preemptive:
        raise SpecError(
            "queueing",
            f"policy {policy.label!r} preempts, and {chosen!r} promises starts that preemption "
            "would break; use 'skip' or 'strict', or a policy that does not preempt.",
        )
    return chosen


def checked_events(value: str, policy: Policy) -> str:
    """Return how the events of one instant are ordered.

    Raises:
        SpecError: unknown order, or one event at a time for a policy with rounds.
    """
    if value not in EVENT_ORDERS:
        raise SpecError.unknown("events", value, EVENT_ORDERS)
    if value != "batch" and policy.every is not None:
        raise SpecError("events", f"policy {policy.label!r} decides in rounds; use 'batch'.")
    return value
