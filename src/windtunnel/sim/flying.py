"""The compiled engine: sets up the kernel for a run, answers what it asks, and closes the books.

The kernel (`windtunnel.kernel`) runs by itself until it needs Python: keys of a policy of the
user's, the decisions of one that decides all by itself, and what happens rarely (outages, the rows
of a power cap, nodes that fall asleep). Between answers signals are handled, so that Ctrl-C ends
a run at once, and progress is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.cluster.parts import nodes_of_types, restricted
from windtunnel.errors import PolicyError
from windtunnel.sim.closing import ByRow, as_flight, interruptions_of
from windtunnel.sim.contract import BACKFILLING, EVENT_ORDERS, checked_key, static_rank
from windtunnel.sim.deciding import Driver
from windtunnel.sim.disruptions.source import OutageSource
from windtunnel.sim.keys import JobsView, checked_keys
from windtunnel.sim.power.on_kernel import KernelPower
from windtunnel.sim.progress import tell
from windtunnel.sim.usage_order import decay_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.cohort_order import CohortOrder
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.elastic.shapes import Shapes
    from windtunnel.sim.elastic.work import Work
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.neighbours import Neighbours
    from windtunnel.sim.power.plan import PowerPlan
    from windtunnel.sim.problem import Problem

NAME = "compiled"
#: Why the kernel comes back, as in `windtunnel.kernel.loop`.
OVER, SLICE, ARRIVED, SOURCES, ROUND, DECIDE, AFTER, END, IDLE = range(9)
#: Where keys come from, ditto.
STATIC, USAGE, LEVELS, ASKED, REMAINING = range(5)


@dataclass(frozen=True)
class Rules:
    """How a run goes, besides its jobs, policy and placement; see `run`."""

    queueing: str
    overhead: float | np.ndarray = 0.0
    until: float = math.inf
    events: str = "batch"
    decide_every: float | None = None
    preemption: str = "feasible"


@dataclass(frozen=True)
class _Jobs:
    """The jobs as the kernel's state takes them, by arrival number; None = the run has none."""

    submit: np.ndarray
    work: np.ndarray
    kind: np.ndarray
    units: np.ndarray
    estimate: np.ndarray
    access: np.ndarray | None
    resume_cost: np.ndarray | None
    first_cost: np.ndarray | None


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float | np.ndarray = 0.0,
    until: float = math.inf,
    events: str = "batch",
    decide_every: float | None = None,
    preemption: str = "feasible",
    disruptions: Plan | None = None,
    slowdown: Neighbours | None = None,
    power: PowerPlan | None = None,
    works: Sequence[Work] | None = None,
    cores: Sequence[int | None] = (),
) -> Flight:
    """Fly the jobs under the policy; see `windtunnel.sim.reference.run` for the arguments.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
        SpecError: disruptions under which a job never gets anywhere.
    """
    rules = Rules(queueing, overhead, until, events, decide_every, preemption)
    shapes = None
    if works is not None:
        from windtunnel.sim.elastic.shapes import Shapes

        shapes = Shapes(problem, placement, works, cores, _access_sets(disruptions))
    return Flying(
        problem,
        policy,
        placement,
        rules,
        disruptions=disruptions,
        slowdown=slowdown,
        power=power,
        shapes=shapes,
    ).run()


class Flying:
    """One run on the kernel.

    Attributes:
        state, sim: the kernel's.
        sources: what happens by itself, in order.
    """

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        placement: Placement,
        rules: Rules,
        *,
        disruptions: Plan | None,
        slowdown: Neighbours | None,
        power: PowerPlan | None,
        shapes: Shapes | None,
    ) -> None:
        self.problem, self.policy, self.rules = problem, policy, rules
        self.plan, self.shapes = disruptions, shapes
        self.works = None if shapes is None else shapes.works
        self.keys_from = _keys_from(policy)
        self.quotas = policy.cohort_order if policy.in_numbers == "cohorts" else None
        self.decides = policy.tier == 3 and self.quotas is None  # noqa: PLR2004 - the tier's name
        self.plans = rules.queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - ditto
        self.power = power
        self.capped = power is not None and power.cap is not None
        self.throttled = power is not None and power.throttles
        self.slowed = slowdown is not None or self.throttled
        self.free = free_state(problem, placement, disruptions) if shapes is None else shapes.free
        self.access = _access_sets(disruptions)
        self.tells = policy.watches and not policy.in_numbers
        jobs = self._jobs()
        self.state = kernel.State(jobs, self.free, **self._features(jobs, slowdown))
        self._keys = _Keys(self)
        self.sources: list[Any] = []
        self.is_stopped = False
        self._narrowed: dict[tuple[int, int], int] = {}
        announced = kernel.Announced(
            len(problem.sizes), self.access, _num_groups(disruptions), is_pool=problem.is_pool
        )
        self.announced = announced
        self.driver = self._driver(jobs) if self.decides else None
        rule = self.rule = self._rule(jobs) if self.driver is None else self.driver.rule
        every = policy.every if policy.every is not None else math.inf
        self.sim = kernel.Simulation(
            self.state,
            rule,
            levels=self._keys.levels,
            keys=self.keys_from,
            until=rules.until,
            events=EVENT_ORDERS.index(rules.events),
            every=every,
            decide_every=rules.decide_every or math.inf,
            decides_in_rounds=self.decides and policy.every is not None,
            arrivals_wait=self.keys_from == ASKED
            or (power is not None and power.shift is not None),
            asks=self.decides,
            fails_once=None if disruptions is None else _marked(disruptions, len(jobs.submit)),
        )
        self.sim.watch("wants_after", self.tells and not self.decides)
        self.every = every
        self.outages = None
        if disruptions is not None:
            self.announced.announce(_announced(disruptions))
            self.outages = OutageSource(self, disruptions)
            self.sources.append(self.outages)
        self.powered = None
        if power is not None:
            self.powered = KernelPower(self, power)
            self.sources.append(self.powered)
        self._next_source()

    # Setting up.

    @cached_property
    def views(self) -> Any:
        """The jobs as policies in Python see them."""
        return kernel.JobViews(self.state, self.problem)

    def _jobs(self) -> _Jobs:
        problem, count = self.problem, len(self.problem.rows)
        access = None
        if self.plan is not None and len(self.access) > 1:
            numbers = {groups: number for number, groups in enumerate(self.access)}
            access = np.array([numbers[g] for g in self.plan.access], dtype=np.int32)
        cost = np.broadcast_to(np.asarray(self.rules.overhead, dtype=np.float64), (count,))
        kind, shapes = np.ascontiguousarray(problem.demand_of, dtype=np.int32), self.shapes
        if shapes is not None:
            cost, kind = shapes.penalties(), shapes.requested()
        self.costs = cost
        return _Jobs(
            submit=_doubles(problem.submit),
            work=_doubles(problem.duration) if shapes is None else shapes.work(),
            kind=kind,
            units=np.ascontiguousarray(problem.gpus, dtype=np.int64),
            estimate=_doubles(problem.estimate),
            access=access,
            resume_cost=cost,
            first_cost=None if shapes is None else shapes.penalties(),
        )

    def _features(self, jobs: _Jobs, slowdown: Neighbours | None) -> dict[str, Any]:
        plan, policy = self.plan, self.policy
        stops = plan is not None or policy.preemptive or self.power is not None
        stops = stops or policy.tier == 3  # noqa: PLR2004 - the tier's name
        features: dict[str, Any] = {
            "plans": self.plans,
            "accounts": plan is not None,
            "resumes": plan is not None or (stops and bool(np.any(jobs.resume_cost))),
            "keeps_left": stops or self.slowed or self.tells,
            "segmented": self.slowed or plan is not None or self.decides,
            "mates": self.decides,
            "kinds_vary": self.capped or policy.tier == 3,  # noqa: PLR2004 - the tier's name
            "tells": self.tells,
            "counts_nodes": self.power is not None and self.power.sleep is not None,
        }
        if self.slowed:
            features["pace"] = kernel.Pace(slowdown, self.problem)
        if self.power is not None and self.power.cap is not None:
            features["power"] = kernel.PowerLevels(
                self.problem, self.power.cap, fixed=self.works is None
            )
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

    def _driver(self, jobs: _Jobs) -> Driver:
        """Return what drives a policy that decides all by itself."""
        count = max(len(jobs.submit), 1)
        one = np.zeros(count, dtype=np.int32)
        self.state.use_lines(kernel.Lines(1, one, np.zeros(count), is_sorted=True))
        is_plain = jobs.access is None and not self.capped
        admission = self.admission = kernel.Admission(
            self.state, self.announced, self._narrow, is_plain=is_plain, plans=False
        )
        self.line_of = _lines(jobs, self.power)[1]
        return Driver(self, admission, self.line_of)

    def _rule(self, jobs: _Jobs) -> Any:
        queueing, preemptive = self.rules.queueing, self.policy.preemptive
        lines, line_of = _lines(jobs, self.power)
        self.line_of = line_of
        if self.quotas is not None:
            return self._quota_rule(self.quotas, jobs, line_of)
        key = self._keys.static()
        is_sorted = queueing in BACKFILLING
        self.state.use_lines(kernel.Lines(lines, line_of, key, is_sorted=is_sorted))
        is_plain = jobs.access is None and not self.plans and not self.capped
        admission = self.admission = kernel.Admission(
            self.state, self.announced, self._narrow, is_plain=is_plain, plans=self.plans
        )
        if preemptive:
            return self._preemptive_rule(admission)
        if queueing == "conservative":
            return self._conservative_rule(admission, None)
        if queueing in ("easy", "easy_sjbf"):
            shortest = queueing == "easy_sjbf"
            return kernel.EasyRule(self.state, admission, self.announced, shortest_first=shortest)
        kind = kernel.StrictRule if queueing == "strict" else kernel.SkipRule
        return kind(self.state, admission)

    def _quota_rule(self, order: CohortOrder, jobs: _Jobs, class_of: np.ndarray) -> Any:
        """Return the rule of quotas; jobs of one of its lines are of one queue and one class."""
        classes = int(class_of.max(initial=0)) + 1
        pairs = order.line_of * classes + class_of
        _, first, line_of = np.unique(pairs, return_index=True, return_inverse=True)
        of_old = order.line_of[first]
        known = len(self.problem.demands)
        kinds = [*range(known), *(self.free.add_kind(bound) for bound in order.demands[known:])]
        second = _doubles(jobs.submit).copy() if order.timeout < math.inf else None
        self.state.use_lines(
            kernel.Lines(
                len(first),
                np.ascontiguousarray(line_of.reshape(-1), dtype=np.int32),
                _doubles(-order.priority),
                is_sorted=False,
                second=second,
            )
        )
        is_plain = jobs.access is None and not self.capped
        admission = self.admission = kernel.Admission(
            self.state, self.announced, self._narrow, is_plain=is_plain, plans=False
        )
        lines = replace(order, queue_of=order.queue_of[of_old], flavors=order.flavors[of_old])
        fits = np.array([*kinds, -1], dtype=np.int32)[order.fits[of_old]]
        return kernel.QuotaRule(self.state, admission, lines, fits, class_of[first])

    def _preemptive_rule(self, admission: Any) -> Any:
        queueing = self.rules.queueing
        order: dict[str, Any] = {"by_remaining": self.keys_from == REMAINING}
        if self.policy.by_service:
            order["weight"] = _doubles(self.problem.jobs.num_gpus[self.problem.rows])
        if self.rules.preemption == "quota_walk":
            preemption = kernel.QuotaWalk(
                self.state,
                admission,
                self.announced,
                quota=self.problem.quota,
                num_nodes=len(self.problem.sizes),
                **order,
            )
        else:
            # In pools of which something is withheld, the sum of what is free bounds nothing.
            sums_hold = not self.problem.devices and (
                not self.problem.is_pool or (self.plan is None and self.power is None)
            )
            preemption = kernel.Feasible(self.state, admission, sums_hold=sums_hold, **order)
        if queueing in ("easy", "easy_sjbf"):
            return kernel.EasyRule(
                self.state,
                admission,
                self.announced,
                shortest_first=queueing == "easy_sjbf",
                preemption=preemption,
            )
        if queueing == "conservative":
            return self._conservative_rule(admission, preemption)
        return kernel.PreemptiveRule(
            self.state, admission, preemption, past_refused=queueing == "skip"
        )

    def _conservative_rule(self, admission: Any, preemption: Any) -> Any:
        return kernel.ConservativeRule(
            self.state,
            admission,
            self.announced,
            num_nodes=len(self.problem.sizes),
            num_sets=len(self.access),
            withholds=self.plan is not None or self.power is not None,
            is_pool=self.problem.is_pool,
            preemption=preemption,
        )

    # The run.

    def run(self) -> Flight:
        """Fly, and return the flight."""
        while (why := self.sim.run()) != OVER:
            if not self._answer(why):
                break
        self._tell()
        return self._flight()

    def _answer(self, why: int) -> bool:
        """Do what the kernel stopped for; return False if the run is over."""
        if why == ARRIVED:
            self._arrived()
        elif why == SOURCES:
            return self._sources()
        elif why == DECIDE:
            assert self.driver is not None  # noqa: S101 - it asks nobody else
            self.driver.decide()
            return not self.is_stopped
        elif why == ROUND:
            self._tell()
            self._keys.ask_again()
        elif why == AFTER:
            self._tell()
        elif why == END:
            assert self.powered is not None  # noqa: S101 - ditto
            self.powered.after(self.sim.now)
            self._next_source()
        elif why == IDLE:
            return self._waits_on()
        else:
            tell(int(self.state.counts[2]) / len(self.problem.rows))
        return True

    def _flight(self) -> Flight:
        """Return what happened, jobs that still run cut off at the horizon."""
        self.state.close_at(self.rules.until)
        columns = self.state.columns()
        slowed = self.slowed or (self.plan is not None and self.has_rates)
        points = self.sim.num_points
        flight = as_flight(self.problem, columns, self.rules.until, points, slowed=slowed)
        if self.quotas is not None:
            self.quotas.told(self.rule.put_back())
        if self.driver is not None:
            flight = self.driver.finish(flight, columns, self.rules.until)
        if self.outages is not None:
            failures = self.outages.failures
            flight = flight.with_interruptions(
                interruptions_of(self.problem, columns, failures, self.sim.ups())
            )
        if self.powered is not None:
            flight = flight.with_power(self.powered.record(columns, ByRow(self.problem)))
        return flight

    def stop(self) -> None:
        """End the run once the policy has decided at this instant; that is its horizon."""
        self.is_stopped = True
        self.rules = replace(self.rules, until=self.sim.now)

    @property
    def has_rates(self) -> bool:
        """Whether a policy has let a job run at another rate than 1."""
        return self.driver is not None and self.driver.deciding.rates

    def _tell(self) -> None:
        """Tell a policy of tier 1 or 2 that watches what has happened."""
        if self.tells:
            self.views.tell(self.policy)

    def _arrived(self) -> None:
        self._tell()
        for job in self.sim.take_fresh():
            if self.powered is None or not self.powered.policies.holds(job, self.sim.now):
                self.queue_again(job)
        if self.powered is not None:
            self._next_source()

    def _waits_on(self) -> bool:
        """Return whether somebody may still be started, though nobody has been for long.

        Raises:
            PolicyError: nobody is, and all room and power is there.
        """
        waiting, since = self.sim.idle()
        now, powered = self.sim.now, self.powered
        if self.certain or (powered is not None and now - since < powered.policies.period):
            self.sim.go_on()
            return True
        if self.outages is None and powered is None:
            message = f"starts none of {waiting} waiting jobs on an idle cluster"
            raise PolicyError(self.policy.label, message, time=now)
        return False

    @property
    def certain(self) -> int:
        """Changes that will come, whatever chance brings."""
        return sum(source.certain for source in self.sources)

    def _sources(self) -> bool:
        """Let happen what is due; return False if it is of no more use to anybody."""
        is_quiet = not self.sim.has_news and not self.sim.is_pending
        if is_quiet and self.outages is not None and self.outages.nothing_will_change():
            alarm = self.sim.next_alarm
            self.sim.watch("source_time", alarm)
            return bool(alarm < math.inf)
        now = self.sim.now
        for source in self.sources:
            source.apply(now)
            self._tell()
        self._next_source()
        return True

    def _next_source(self) -> None:
        self.sim.watch("source_time", min((s.next_time() for s in self.sources), default=math.inf))
        if self.powered is not None:
            self.sim.watch("held", self.powered.policies.held)

    # What sources do to jobs.

    def queue_again(self, job: int) -> None:
        """Let a job that was stopped wait again."""
        self._tell()
        self.sim.let_in(job, self._keys.ask(job) if self.keys_from == ASKED else 0.0)

    def launch_cost(self, job: int) -> float:
        """Return what every launch costs an elastic job, s; a job of another run nothing."""
        return 0.0 if self.works is None else self.works[job].penalty

    def is_over(self, job: int) -> None:
        """Note that a job is over because it failed."""

    def _narrow(self, kind: int, types: int) -> int:
        """Return the kind of a demand that is bound to some GPU types, given as bits."""
        if self.works is not None:
            return kind  # an option's shape is not tried elsewhere
        known = self._narrowed.get((kind, types))
        if known is None:
            problem = self.problem
            names = list(dict.fromkeys(problem.types))
            wanted = frozenset(name for number, name in enumerate(names) if types >> number & 1)
            nodes = nodes_of_types(problem.types, wanted)
            bound = restricted(problem.demands[kind], problem.free_state(), nodes)
            known = self._narrowed[kind, types] = self.free.add_kind(bound)
        return known

    def access_of(self, job: int) -> int:
        """Return the number of a job's set of reservations."""
        return 0 if self.plan is None else self.access.index(self.plan.access[job])

    def none_fits(self) -> bool:
        """Return whether none of the waiting jobs fits now."""
        return all(
            self.free.fit_pairs(int(self.problem.demand_of[job]), self.access_of(job)) is None
            for job in self.state.waiting_jobs()
        )


class _Keys:
    """The order of a policy of tier 1 or 2."""

    def __init__(self, flying: Flying) -> None:
        self.flying = flying
        self.policy, self.problem = flying.policy, flying.problem
        self.takes_many = self.policy.takes_many
        self.levels = None
        if flying.keys_from == LEVELS:
            levels = self.policy.levels
            assert levels is not None  # noqa: S101 - that is where keys come from
            gpus = _doubles(self.problem.jobs.num_gpus[self.problem.rows])
            self.levels = kernel.ServiceLevels(gpus, levels.bounds, levels.keys)

    def static(self) -> np.ndarray:
        """Return keys that are known before the run, or room for those that are not."""
        if self.flying.keys_from == STATIC:
            return _doubles(static_rank(self.policy, self.problem.jobs, self.problem.rows))
        return np.zeros(max(len(self.problem.rows), 1))

    def ask(self, job: int) -> float:
        """Ask the policy for a job's key now."""
        now = self.flying.sim.now
        if self.takes_many:
            return float(self._ask_many(np.array([job], dtype=np.int32))[0])
        return checked_key(self.policy, self.flying.views.view(job), now)

    def ask_again(self) -> None:
        """Ask the policy for the keys of all that wait, at a round; ranked running jobs' too."""
        jobs = self.flying.state.active_jobs(self.policy.preemptive)
        if self.takes_many:
            keys = self._ask_many(jobs)
        else:
            keys = np.array([self.ask(job) for job in jobs.tolist()], dtype=np.float64)
        self.flying.sim.rekey(jobs, keys)

    def _ask_many(self, jobs: np.ndarray) -> np.ndarray:
        view = JobsView(jobs, self.flying.views.columns)
        return checked_keys(self.policy, view, self.flying.sim.now)


def free_state(problem: Problem, placement: Placement, disruptions: Plan | None) -> Any:
    """Return the kernel's free state for a problem, with nothing running."""
    access = _access_sets(disruptions)
    if problem.devices:
        return kernel.FreeDevices(problem, placement, access)
    if problem.is_pool:
        return kernel.FreePool(problem, placement, access)
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


def _access_sets(plan: Plan | None) -> list[tuple[int, ...]]:
    """Return the distinct sets of reservations that jobs may use, the empty one first."""
    found: dict[tuple[int, ...], None] = {(): None}
    if plan is not None:
        found |= dict.fromkeys(plan.access)
    return list(found)


def _announced(plan: Plan) -> list[tuple[float, int, int, int, int]]:
    """Return what is known in advance: (time, begins, node, group, units), in order of time."""
    changes = [
        (time, begins, index)
        for index, hold in enumerate(plan.holds)
        if hold.planned
        for time, begins in ((hold.begin, 1), (hold.end, 0))
        if math.isfinite(time)
    ]
    return [
        (time, begins, place, plan.holds[index].group, units)
        for time, begins, index in sorted(changes)
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


def _lines(jobs: _Jobs, power: PowerPlan | None) -> tuple[int, np.ndarray]:
    """Return the number of lines and each job's: jobs of one line fit in the same places."""
    work = None
    if power is not None and power.cap is not None:
        work = np.array(power.cap.kind_of, dtype=np.int32)
    parts: Sequence[np.ndarray] = [p for p in (jobs.kind, jobs.access, work) if p is not None]
    if len(parts) == 1:
        return int(jobs.kind.max(initial=-1)) + 1, jobs.kind
    distinct, line_of = np.unique(np.stack(parts), axis=1, return_inverse=True)
    return distinct.shape[1], line_of.astype(np.int32).reshape(-1)


def _doubles(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64)
