"""`KernelRun`: one run on the kernel: what it consists of, and what its sources do to its jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.sim.cohort_order import PARTS
from windtunnel.sim.device_requests import distinct_rows
from windtunnel.sim.elastic.shapes import Shapes
from windtunnel.sim.keys import key_of, keys_of
from windtunnel.sim.power.tables import Tables
from windtunnel.sim.power.watts import Watts
from windtunnel.sim.usage_order import decay_rate
from windtunnel.sim.verdicts import SCHOOLS, school_of
from windtunnel.site.scheduler import BACKFILLING, EVENT_ORDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.run_rules import Rules

#: Where keys come from, as in `windtunnel.kernel.loop`.
STATIC, USAGE, LEVELS, ASKED, REMAINING = range(5)


@dataclass(frozen=True)
class Jobs:
    """The jobs as the kernel's state takes them, by arrival number; None = the run has none."""

    submit: np.ndarray
    work: np.ndarray
    kind: np.ndarray
    units: np.ndarray
    estimate: np.ndarray
    access: np.ndarray | None
    resume_cost: np.ndarray
    first_cost: np.ndarray | None


class KernelRun:
    """One run, before its loop begins and while it goes on.

    Attributes:
        watts, levels: what jobs draw, and the kernel's choice of power limits; None = no cap.
        shapes: the shapes of an elastic run's jobs.
        sim: the kernel's loop; set by `begin`.
        admission: whether jobs may start; set by `admit`.
        announced: what is known of the future.
        pace: how fast jobs are where they run; only of a run in which something slows them.
        line_of: Int32 array (m,): jobs of one line fit in the same places.
        num_lines: how many there are.
        order: what a policy of quotas goes by; None = it is another.
        binds: quotas are by GPU type, and jobs are tried on one after the other.
        decides: the policy decides all by itself (tier 3).
    """

    def __init__(
        self, problem: Problem, policy: Policy, placement: Placement, rules: Rules
    ) -> None:
        self.problem, self.policy, self.rules = problem, policy, rules
        self.plan, self.power = plan, power = rules.disruptions, rules.power
        self.access = access_sets(plan)
        self.shapes = shapes = None
        if rules.elastic is not None:
            self.shapes = shapes = Shapes(problem, placement, rules.elastic, self.access)
        self.works = None if shapes is None else shapes.works
        self.keys_from = _keys_from(policy)
        self.order = policy.cohort_order if policy.in_numbers == "cohorts" else None
        self.decides = policy.tier == 3 and self.order is None  # noqa: PLR2004 - the tier's name
        self.plans = rules.queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - ditto
        self.every = policy.every if policy.every is not None else math.inf
        self.capped = power is not None and power.cap is not None
        self.watts: Watts | None = None
        self.levels: Any = None
        self.slowed = rules.slowdown is not None or (power is not None and power.throttles)
        self.tells = policy.watches and not policy.in_numbers
        self.free = free_state(problem, placement, self.access) if shapes is None else shapes.free
        self.binds = rules.quotas is not None and rules.quotas.by_type and shapes is None
        self.jobs = self._jobs()
        self.state = kernel.State(self.jobs, self.free, **self._features())
        self.tables = kernel.StateTables(self.state)
        self.num_lines, self.line_of = self._lines()
        self.announced = kernel.Announced(
            len(problem.sizes), self.access, _num_groups(plan), is_pool=problem.is_pool
        )
        if plan is not None:
            self.announced.announce(_announced(plan))
        if power is not None and power.cap is not None and power.cap.period < math.inf:
            rows = power.cap.rows(float(problem.submit[0]) if len(problem.submit) else 0.0)
            next(rows)
            self.announced.cap(rows, power.cap.period)
        self.sim: Any = None
        self.admission: Any = None
        self.is_stopped = False
        #: Is called with a job that goes on with other nodes, as one of its own failed.
        self.went_on: Callable[[int], object] = _nothing
        self._narrowed: dict[tuple[int, int], int] = {}

    # Setting up.

    def _jobs(self) -> Jobs:
        problem, count = self.problem, len(self.problem.rows)
        access = None
        if self.plan is not None and len(self.access) > 1:
            numbers = {groups: number for number, groups in enumerate(self.access)}
            access = np.array([numbers[g] for g in self.plan.access], dtype=np.int32)
        cost = np.broadcast_to(np.asarray(self.rules.overhead, dtype=np.float64), (count,))
        kind: Any = problem.demand_of
        work: Any = problem.duration
        shapes = self.shapes
        if shapes is not None:
            kind = [shapes.kind(job, one.requested) for job, one in enumerate(shapes.works)]
            work = [one.iterations * one.requested.iteration_time for one in shapes.works]
            cost = np.array([one.penalty for one in shapes.works], dtype=np.float64)
        return Jobs(
            submit=doubles(problem.submit),
            work=doubles(work),
            # Changed, where quotas bind jobs to GPU types.
            kind=(np.array if self.binds else np.ascontiguousarray)(kind, dtype=np.int32),
            units=np.ascontiguousarray(problem.gpus, dtype=np.int64),
            estimate=doubles(problem.estimate),
            access=access,
            resume_cost=cost,
            first_cost=None if shapes is None else cost.copy(),
        )

    def _features(self) -> dict[str, Any]:
        plan, policy, jobs = self.plan, self.policy, self.jobs
        stops = plan is not None or policy.preemptive or self.power is not None
        stops = stops or policy.tier == 3  # noqa: PLR2004 - the tier's name
        features: dict[str, Any] = {
            "plans": self.plans,
            "accounts": plan is not None or policy.loses,
            "resumes": plan is not None or (stops and bool(np.any(jobs.resume_cost))),
            "keeps_left": stops or self.slowed or self.tells,
            "segmented": self.slowed or plan is not None or self.decides,
            "mates": self.decides,
            "kinds_vary": self.capped or policy.tier == 3 or self.binds,  # noqa: PLR2004 - ditto
            "tells": self.tells,
            "records": self.rules.record,
            "quotas": self._quota_limits(),
            "counts_nodes": self.power is not None and self.power.sleep is not None,
        }
        if self.slowed:
            self.pace = features["pace"] = kernel.Pace(self.rules.slowdown, self.problem)
            if self.shapes is not None and self.rules.slowdown is not None:
                self.shapes.slow(self.pace, self.rules.slowdown)
        if self.power is not None and self.power.cap is not None:
            self.watts = Watts(self.problem, self.power.cap, fixed=self.works is None)
            self.levels = features["power"] = kernel.PowerLevels(Tables(self.watts))
        if self.keys_from == USAGE:
            order = policy.usage_order
            assert order is not None  # noqa: S101 - it is what the policy says of itself
            decay = decay_rate(order.half_life)
            features["books"] = kernel.UsageBooks(order, self.problem.rows, jobs.submit, decay)
        if plan is not None:
            count = max(len(jobs.submit), 1)
            features["checkpoints"] = kernel.Checkpoints(count, plan.interval, plan.checkpoint_cost)
            features["checkpoints_cost"] = plan.checkpoint_cost
            if plan.hazard.any():
                features["fail_at"] = np.full(count, math.inf)
        return features

    def _quota_limits(self) -> Any:
        """Return the quotas as a limit of any policy; None = there are none."""
        quotas, problem = self.rules.quotas, self.problem
        if quotas is None:
            return None
        known = len(problem.demands)
        bound = quotas.demands[known:] if self.binds else ()
        kinds = [*range(known), *(self.free.add_kind(demand) for demand in bound)]
        flavor_of = np.zeros(len(problem.types), dtype=np.int32)
        if quotas.by_type:
            names = {name: number for number, name in enumerate(quotas.names)}
            flavor_of[:] = [names.get(name or "", -1) for name in problem.types]
        tried = quotas.fits if self.binds else np.full_like(quotas.fits, -1)
        return kernel.QuotaLimits(
            quotas,
            np.array([*kinds, -1], dtype=np.int32)[tried],
            flavor_of,
            binds=self.binds,
            resizes=self.shapes is not None,
            per_unit=PARTS // problem.units,
            blocks=quotas.blocks,
        )

    def _lines(self) -> tuple[int, np.ndarray]:
        """Return the number of lines and each job's: jobs of one line fit in the same places."""
        jobs, work = self.jobs, None
        if self.power is not None and self.power.cap is not None:
            work = np.array(self.power.cap.kind_of, dtype=np.int32)
        queue = amount = None
        if self.rules.quotas is not None:
            queue = self.rules.quotas.queue_of[self.rules.quotas.line_of]
            amount = self.rules.quotas.amount
        columns = (jobs.kind, jobs.access, work, queue, amount)
        parts: Sequence[np.ndarray] = [p for p in columns if p is not None]
        if len(parts) == 1:
            return int(jobs.kind.max(initial=-1)) + 1, jobs.kind
        line_of, first = distinct_rows(*parts)
        return len(first), line_of.astype(np.int32)

    def admit(self, *, plans: bool = False) -> Any:
        """Return whether jobs of the kernel's lines may start; ``plans``: for rules that plan."""
        is_plain = self.jobs.access is None and not plans and not self.capped
        is_plain = is_plain and self.rules.quotas is None
        self.admission = kernel.Admission(
            self.state, self.announced, self._narrow, is_plain=is_plain, plans=plans
        )
        return self.admission

    def _narrow(self, kind: int, types: int) -> int:
        """Return the kind of a demand that is bound to some GPU types, given as bits."""
        if self.works is not None:
            return kind  # an option's shape is not tried elsewhere
        known = self._narrowed.get((kind, types))
        if known is None:
            problem = self.problem
            names = list(dict.fromkeys(problem.types))
            wanted = [name for number, name in enumerate(names) if types >> number & 1]
            bound = problem.on_types(problem.demands[kind], wanted)
            known = self._narrowed[kind, types] = self.free.add_kind(bound)
        return known

    def begin(self, rule: Any) -> None:
        """Make the loop, with the rule for the queue."""
        rules, plan, power = self.rules, self.plan, self.power
        levels = None
        if self.keys_from == LEVELS:
            levels = self.policy.levels
            assert levels is not None  # noqa: S101 - that is where keys come from
            gpus = doubles(self.problem.jobs.num_gpus[self.problem.rows])
            levels = kernel.ServiceLevels(gpus, levels.bounds, levels.keys)
        self.sim = kernel.Simulation(
            self.state,
            rule,
            levels=levels,
            recorder=self._recorder(rule),
            keys=self.keys_from,
            until=rules.until,
            events=EVENT_ORDERS.index(rules.events),
            every=self.every,
            decide_every=rules.decide_every or math.inf,
            decides_in_rounds=self.decides
            and self.policy.every is not None
            and not self.policy.fills,
            arrivals_wait=self.keys_from == ASKED
            or (power is not None and power.shift is not None),
            asks=self.decides,
            settles=rules.settles(self.policy),
            asks_idle=plan is not None and self.policy.every is not None,
            patience=rules.patience(self.policy),
            fails_once=None if plan is None else _marked(plan, len(self.jobs.submit)),
        )
        self.sim.wants_after = self.tells and not self.decides

    def _recorder(self, rule: Any) -> Any:
        """Return what writes down why jobs wait; None = nobody does."""
        if not self.rules.record:
            return None
        school = SCHOOLS.index(school_of(self.policy, self.rules.queueing))
        return kernel.Recorder(self.state, rule, school)

    # What policies are shown.

    @cached_property
    def views(self) -> Any:
        """The jobs as policies in Python see them."""
        return kernel.JobViews(self.state, self.problem)

    def tell(self) -> None:
        """Tell a policy of tier 1 or 2 that watches what has happened."""
        if self.tells:
            self.views.tell(self.policy)

    # What sources and policies do, and ask.

    def stop(self) -> None:
        """End the run once the policy has decided at this instant; that is its horizon."""
        self.is_stopped = True
        self.rules = replace(self.rules, until=self.sim.now)

    def queue_again(self, job: int) -> None:
        """Let a job that was stopped wait again."""
        self.tell()
        key = 0.0
        if self.keys_from == ASKED:
            key = key_of(self.policy, self.views, job, self.sim.now)
        self.sim.let_in(job, key)

    def ask_again(self) -> None:
        """Ask the policy for the keys of all that wait, at a round; ranked running jobs' too."""
        jobs = self.tables.active_jobs(self.policy.preemptive)
        self.sim.rekey(jobs, keys_of(self.policy, self.views, jobs, self.sim.now))

    def access_of(self, job: int) -> int:
        """Return the number of a job's set of reservations."""
        return 0 if self.plan is None else self.access.index(self.plan.access[job])

    def none_fits(self) -> bool:
        """Return whether no waiting job fits now; an elastic one, in none of its options."""
        return not any(
            self.free.fit_pairs(kind, self.access_of(job)) is not None
            for job in self.tables.waiting_jobs()
            for kind in self._kinds_of(job)
        )

    def _kinds_of(self, job: int) -> list[int]:
        """Return the kinds of all that a job may run as."""
        if self.shapes is None:
            return [int(self.problem.demand_of[job])]
        return [self.shapes.kind(job, option) for option in self.shapes.works[job].options]


def free_state(problem: Problem, placement: Placement, access: Sequence[tuple[int, ...]]) -> Any:
    """Return the kernel's free state for a problem with nothing running, by `access_sets`."""
    if problem.devices:
        return kernel.FreeDevices(problem, placement, access)
    if problem.is_pool:
        return kernel.FreePool(problem, placement, access)
    if placement.name == "tree":
        return kernel.FreeTree(problem, placement, access)
    return kernel.FreeNodes(problem, placement, access)


def _keys_from(policy: Policy) -> int:
    if policy.in_numbers == "usage":
        return USAGE
    if policy.preemptive and policy.by_remaining:
        return REMAINING
    if policy.tier == 1:
        return STATIC
    if policy.levels is not None:
        return LEVELS
    return STATIC if policy.tier == 3 else ASKED  # noqa: PLR2004 - the tier's name


def access_sets(plan: Plan | None) -> list[tuple[int, ...]]:
    """Return the distinct sets of reservations that jobs may use, the empty one first."""
    found: dict[tuple[int, ...], None] = {(): None}
    if plan is not None:
        found |= dict.fromkeys(plan.access)
    return list(found)


def _announced(plan: Plan) -> list[tuple[float, int, int, int, int]]:
    """Return what is known in advance: (time, begins, node, group, units), in order of time."""
    return [
        (time, begins, place, plan.holds[index].group, units)
        for time, begins, index in plan.changes()
        if time >= plan.first
        for place, units in plan.holds[index].places
    ]


def _marked(plan: Plan, count: int) -> np.ndarray | None:
    """Return which jobs fail at their end, Int8 array (m,); None = none do."""
    if not plan.fails_once:
        return None
    marks = np.zeros(max(count, 1), dtype=np.int8)
    marks[list(plan.fails_once)] = 1
    return marks


def _num_groups(plan: Plan | None) -> int:
    return 0 if plan is None else max((hold.group for hold in plan.holds), default=0)


def _nothing(*_: object) -> None:
    """Check a placement that asks nobody."""


def doubles(values: np.ndarray) -> np.ndarray:
    """Return numbers as the kernel takes them: Float array, contiguous."""
    return np.ascontiguousarray(values, dtype=np.float64)
