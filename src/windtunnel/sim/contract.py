"""What a policy and a placement are: the contracts, in three tiers.

A user writes the smallest that suffices:

1. ``rank(jobs) -> float array (n,)``: a static order, lower first;
2. ``key(job, now) -> float``: lower first, asked when a job is queued (and at rounds); or
   ``key(jobs, now) -> float array (k,)``: the same for many jobs at once;
3. ``decide(now, queue, cluster) -> iterable of Start | Preempt | Move | Rerate | Wake``: anything;
   with ``elastic`` also Resize.

A function of one, two or three arguments is one of these; a `Policy` subclass with one of the
methods says more (its default head of line, whether it preempts).
"""

from __future__ import annotations

import inspect
import math
import sys
from bisect import bisect_right
from collections.abc import Sequence  # noqa: TC003 - msgspec reads the types
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.sim.elastic.work import Option  # noqa: TC001 - ditto
from windtunnel.sim.jobs import JobView  # noqa: TC001 - ditto
from windtunnel.sim.usage_order import in_32_bits
from windtunnel.site.scheduler import BACKFILLING, QUEUEING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np

    from windtunnel.cluster.free import Where
    from windtunnel.sim.cohort_order import CohortOrder
    from windtunnel.sim.jobs import Jobs
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.usage_order import UsageOrder

#: What a job's expected run time is: what its user asked for, or what it will really take.
ESTIMATES: tuple[str, ...] = ("recorded", "perfect")


class Start(Struct, frozen=True):
    """Start a waiting job.

    Attributes:
        job: the job.
        where: pairs of a node (of a pool: a GPU type's number) and what the job gets there, which
            come to what it asks for; None = the run's placement decides. A float is a number of
            GPUs, and on a node with devices the placement says which; a whole number is a grant, as
            ``cluster.fit`` returns them: GPUs, of a pool its GPU units, with devices a set of them.
        rate: work that it does a second there, before what slows everybody; jobs with work in steps
            get steps a second. In elastic runs the option says it.
        beside: a running job whose GPUs it shares: it takes no GPUs of its own, and they are
            free again when the last of those that share it leaves.
    """

    job: JobView
    where: Sequence[tuple[int, float]] | None = None
    rate: float = 1.0
    beside: JobView | None = None


class Preempt(Struct, frozen=True):
    """Stop a running job; it waits again with the work it has left.

    Attributes:
        job: the job.
        loses: what its checkpoints have not secured is lost; only of policies that say so.
        ends: it does not wait again: it is over, and has failed.
    """

    job: JobView
    loses: bool = False
    ends: bool = False


class Rerate(Struct, frozen=True):
    """Let a running job do so much work a second from now on, before what slows everybody.

    Attributes:
        job: a running job.
        rate: work a second.
    """

    job: JobView
    rate: float


class Resize(Struct, frozen=True):
    """Run a job, waiting or running, in another way: other GPUs, cores or plan; elastic runs only.

    A running job stops and is launched again at once, which costs it its penalty and nothing else.

    Attributes:
        job: the job.
        option: one of ``cluster.options(job)``.
        where: nodes and GPUs as ``cluster.place`` returned them; None = best fit.
    """

    job: JobView
    option: Option
    where: Sequence[tuple[int, float]] | None = None


class Move(Struct, frozen=True):
    """Run a job on other nodes from now on, which costs it what resuming does; no preemption.

    Attributes:
        job: a running job; what it holds counts as free.
        where: nodes and GPUs; None = the run's placement decides.
        rate: work a second there; None = as before. In elastic runs the option says it.
    """

    job: JobView
    where: Sequence[tuple[int, float]] | None = None
    rate: float | None = None


class Wake(Struct, frozen=True):
    """Ask to decide at a later instant, even if nothing else happens then.

    It stands until then, whatever else is decided or asked for, unless the policy
    ``renews_wakes``: a policy may be asked at instants for which it has no use any more.

    Attributes:
        at: when, s; later than now.
    """

    at: float


class Stop(Struct, frozen=True):
    """End the run at this instant, as at a horizon: what was to be found out is known."""


#: What a tier-3 policy may yield.
Decision = Start | Preempt | Rerate | Resize | Move | Wake | Stop


@dataclass(frozen=True)
class Levels:
    """What a job's attained service (GPUs x seconds) is worth in an order: lower goes first.

    Service counts to 32 bits: 30 s on 0.1 of a GPU are as much as 10 s on 0.3, whatever rounding
    made of the two products.

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
        service = in_32_bits(service)
        if not self.keys:
            return service
        return self.keys[bisect_right(self.bounds, service, key=in_32_bits)]


class Policy:
    """Who runs next. Subclasses define exactly one of ``rank``, ``key`` or ``decide``.

    Attributes:
        name: what users type.
        queueing: default head-of-line rule.
        estimates: where backfilling gets a job's expected run time from, by default: one of
            `ESTIMATES`, or a predictor's name.
        foresees: it decides by the work that jobs have left, as ``estimates`` tells it.
        preemptive: running jobs are ranked with the waiting ones at every instant and give way to
            better ones (feasibly, or by the quota walk).
        by_remaining: the order is by remaining time, which falls while a job runs.
        by_service: the remaining time counts once for each GPU of the job.
        levels: the order is by attained service; what it is worth. ``key`` must agree with it; it
            is what the compiled engine goes by.
        every: seconds between rounds; a ``key`` is asked again at each round, a ``decide`` is asked
            at rounds only. None = no rounds.
        fills: between rounds of a ``decide`` the policy is asked to ``fill``.
        turn: seconds for which a job runs before another may take its place, however little it got
            done by then; None = such turns are ``every`` where the order is by attained service.
        vectorised: ``key`` takes many jobs at once, as arrays (`windtunnel.sim.keys.JobsView`), and
            returns an array; None = if its first parameter is named ``jobs``.
        elastic: jobs run as elastic ones: as many iterations, as fast as the option they run says,
            a penalty for every launch and change (`windtunnel.sim.elastic`).
        resizes: elastic jobs may get fewer GPUs than they ask for; who asks for more than quotas or
            power ever allow is then not refused before the run.
        keeps_promises: guaranteed jobs get no slower option than they ask for.
        chooses_nodes: the policy keeps books of the nodes' cores and memory and says where each job
            goes; the run counts whole GPUs of nodes beside it, and has no placement of its own.
        loses: jobs that it preempts may lose work (`Preempt`), and the run counts it.
        lets_wait: jobs may wait for ever under limits of its own: the run then ends without them.
        keeps_levels: it sees itself to what jobs ask of the levels of a topology.
        renews_wakes: the instants that a decision asks for (`Wake`) are in place of those asked for
            before.
        by: what the order goes by: numeric columns of the jobs table or predictors of run times by
            name, of which the first that there is counts. A prediction stands in a column of the
            predictor's name while the policy is asked (`windtunnel.study.predictions`).
    """

    name: ClassVar[str] = ""
    by: tuple[str, ...] = ()
    queueing: str | None = None
    estimates: str = "recorded"
    foresees: bool = False
    preemptive: bool = False
    by_remaining: bool = False
    by_service: bool = False
    levels: Levels | None = None
    #: The numbers of `in_numbers`, in the copy that ``for_run`` returns.
    usage_order: UsageOrder | None = None
    every: float | None = None
    fills: bool = False
    turn: float | None = None
    vectorised: bool | None = None
    elastic: bool = False
    resizes: bool = True
    keeps_promises: bool = False
    chooses_nodes: bool = False
    loses: bool = False
    lets_wait: bool = False
    keeps_levels: bool = False
    renews_wakes: bool = False
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

    def refuses(self) -> dict[int, str]:
        """Return the run's jobs that it would never start, with why, by arrival number."""
        return {}

    def too_large(self) -> dict[int, str]:
        """Return the run's jobs that ask for more than it can ever give, with why, by number.

        ``oversize`` says what becomes of them, as of those that the cluster cannot hold.
        """
        return {}

    def may_go_on(self, job: int, where: Where) -> bool:  # noqa: ARG002 - for policies with rules
        """Return whether a running job may go on where another node takes a failed one's place.

        Args:
            job: its arrival number.
            where: nodes and grants, all of them free for it.
        """
        return True

    def node_sets_for(self, job: int) -> tuple[frozenset[int] | None, ...]:  # noqa: ARG002
        """Return the sets of nodes of which a waiting job starts within one, as they are tried.

        Sleeping nodes are called among these; None = all. A policy with partitions or flavors of
        nodes tells several apart.

        Args:
            job: its arrival number.
        """
        return (None,)

    def decides_every(self, interval: float) -> None:
        """Note that a run delays decisions to the multiples of so many seconds; before the run."""

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the static order, lower first: float array of shape (n,), row order."""
        raise NotImplementedError

    def key(self, job: JobView, now: float) -> float:
        """Return the job's key at ``now`` (s), lower first; of many jobs if it says so.

        With ``key(self, jobs, now)`` it is asked for many at once, and returns an array.
        """
        raise NotImplementedError

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Yield decisions at ``now`` (s); each is applied before the next is asked for.

        None is no decisions where nobody waits, or once ``cluster.start`` has been called; before
        that it is an error, as of a policy that has forgotten to yield.

        Args:
            now: the instant, s.
            queue: waiting jobs (`windtunnel.kernel.policy_views.QueueView`): an iterable of
                `JobView` in order of arrival, ``len``, the columns as arrays (``queue.num_gpus``,
                ``queue.submit_time`` ...), ``queue.arrived``, ``queue.startable``.
            cluster: what runs and what is free (`windtunnel.kernel.policy_views.ClusterView`):
                ``num_gpus``, ``free_gpus``, ``running`` (list of `JobView` in order of start),
                ``fit(job)`` -> where it would go, or None ...
        """
        raise NotImplementedError

    def fill(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Yield decisions at ``now`` (s), between two rounds; asked of policies that say `fills`.

        Args:
            now: the instant, s.
            queue: waiting jobs, as for ``decide``; ``arrived`` are those since the last round.
            cluster: what runs and what is free; ``finished`` and others are since then, too.
        """
        raise NotImplementedError

    def wait_reasons(self) -> dict[int, str]:
        """Return why jobs waited last, by arrival number, as far as it says; after the run."""
        return {}

    def started(self, job: JobView, now: float) -> None:
        """Note that a job got its GPUs at ``now`` (s); called by the engine, see `watches`."""

    def stopped(self, job: JobView, now: float) -> None:
        """Note that a job left its GPUs at ``now`` (s), at its end or preempted; see `watches`."""

    @property
    def watches(self) -> bool:
        """Whether the class defines ``started`` or ``stopped`` and so must hear of both."""
        kind = type(self)
        return kind.started is not Policy.started or kind.stopped is not Policy.stopped

    @property
    def takes_many(self) -> bool:
        """Whether ``key`` takes many jobs at once; see `vectorised`."""
        if self.vectorised is not None:
            return self.vectorised
        return self.tier == 2 and _takes_jobs(type(self).key)  # noqa: PLR2004 - the tier's name

    @property
    def cohort_order(self) -> CohortOrder | None:
        """The same as ``usage_order`` for quotas."""
        return None

    @property
    def in_numbers(self) -> str:
        """The feature of an engine that need not ask the policy, as ``for_run`` gives its numbers.

        ``usage``: a `UsageOrder` says all that ``key`` does; ``cohorts``: a `CohortOrder` says all
        that ``decide`` does; empty: the policy is asked.
        """
        return ""

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


class FunctionPolicy(Policy):
    """A policy made of a plain function of one, two or three arguments.

    Args:
        function: ``rank(jobs)``, ``key(job, now)`` or ``decide(now, queue, cluster)``.
        name: what to call it; the function's name if empty.
        queueing: default head-of-line rule.
        preemptive, every, elastic: see `Policy`.
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
        check_every(self.given_name, every)
        self.queueing = queueing
        self.preemptive = preemptive
        self.every = every
        self.elastic = elastic
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError) as error:
            raise PolicyError(self.label, f"its arguments cannot be read: {error}") from error
        self._tier = sum(p.default is p.empty for p in parameters.values())
        self.vectorised = self._tier == 2 and next(iter(parameters)) == "jobs"  # noqa: PLR2004 - the tier's name
        if self._tier not in (1, 2, 3):
            raise PolicyError(
                self.label,
                f"a function of {self._tier} arguments; expected rank(jobs), key(job, now) or "
                "decide(now, queue, cluster)",
            )
        if self._tier == 3 and queueing is not None:  # noqa: PLR2004 - the tier's name
            message = "takes every decision itself: there is no line that queueing= would be of"
            raise PolicyError(self.label, message)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        """Call the function itself, so that a decorated policy can still be tested by hand."""
        return self.function(*args)

    # Methods, though they pass the call on: their frames show a fault as the function's.

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


@lru_cache(maxsize=64)
def _takes_jobs(key: Callable[..., Any]) -> bool:
    """Return whether the first parameter of a method ``key`` is ``jobs``.

    It is asked at every decision, and looking into a function takes longer than its call.
    """
    return list(inspect.signature(key).parameters)[1:2] == ["jobs"]


class Placement(Protocol):
    """Where a job runs: a search over the free state that changes nothing."""

    @property
    def name(self) -> str:
        """What users type."""

    def place(self, free: Any, demand: Any) -> Where | None:
        """Return nodes and GPUs for one job of this demand, or None if it does not fit now."""


def policy_of_run(policy: Policy, problem: Problem) -> Policy:
    """Return the policy with books of its own for a run.

    Raises:
        PolicyError: its ``for_run`` returned something else.
    """
    found: object = policy.for_run(problem)  # the user's own may return anything
    if not isinstance(found, Policy):
        message = f"for_run returned {quote(found)}; expected a Policy"
        raise PolicyError(policy.label, message)
    return found


def check_every(label: str, every: Any) -> None:
    """Check the seconds between a policy's rounds; None = it has none.

    Raises:
        PolicyError: they are no number, or not above 0.
    """
    is_number = isinstance(every, Real) and not isinstance(every, bool)
    if every is not None and not (is_number and 0 < every <= sys.float_info.max):
        raise PolicyError(label, f"every={quote(every)}; expected seconds > 0")


def checked_queueing(value: str | None, policy: Policy, preemption: str = "feasible") -> str:
    """Return the head-of-line rule to use: the user's, else the policy's, else ``strict``.

    Raises:
        SpecError: unknown rule, backfilling with the quota walk, or a rule for a
            policy that decides all by itself.
    """
    if value is not None and policy.tier == 3:  # noqa: PLR2004 - the tier's name
        raise SpecError(
            "queueing",
            f"policy {policy.label!r} takes every decision itself: there is no line with a first "
            "job. Leave it out.",
        )
    chosen = value or policy.queueing or ("skip" if policy.preemptive else "strict")
    if chosen not in QUEUEING:
        raise SpecError.unknown("queueing", chosen, QUEUEING)
    if chosen in BACKFILLING and policy.preemptive and preemption == "quota_walk":
        raise SpecError(
            "queueing",
            f"the quota walk gives out GPUs without regard to {chosen!r}'s promises; use 'skip' or "
            "'strict', or preemption='feasible'.",
        )
    return chosen


def rule_of_several(value: str | None, policy: Policy) -> str | None:
    """Return the rule that a policy gets of one given to several: none if it has no line."""
    return None if policy.tier == 3 else value  # noqa: PLR2004 - the tier's name
