"""One run of jobs that keep their size, on either engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.placements import (
    checked_topology,
    is_scored,
    resolve_placement,
    split_placement,
)
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.sim import problem as problems
from windtunnel.sim.contract import (
    BACKFILLING,
    checked_events,
    checked_queueing,
)
from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.disruptions import Disruptions, parse_disruptions
from windtunnel.sim.disruptions.plan import MOST_RESERVATIONS, resolve
from windtunnel.sim.engines import choose_engine
from windtunnel.sim.flight import WAITING
from windtunnel.sim.fragmentation import TargetWorkload, workload_of
from windtunnel.sim.neighbours import Neighbours
from windtunnel.sim.outcome import Outcome
from windtunnel.sim.rates import Rates
from windtunnel.sim.rooms import DeviceRules, needs_devices
from windtunnel.sim.slowdown import resolve_slowdown
from windtunnel.study.arrivals import with_arrivals
from windtunnel.study.compat import as_pai, in_order
from windtunnel.study.countable import check_rounds
from windtunnel.study.flight_options import (
    RESOURCES,
    SHARING,
    governing_of,
    seconds,
    settings_of,
)
from windtunnel.study.foresight import Foresight, checked_estimates

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.governing import Governing
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.slowdown import Slowdown
    from windtunnel.study.flight_options import FlightOptions


def fly_rigid(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    options: FlightOptions,
    foresight: Foresight | None = None,
) -> Outcome:
    """Fly a validated jobs table whose jobs keep their size; see `windtunnel.study.simulate.fly`.

    Raises:
        SchemaError, SpecError, TraceError, PolicyError: as `windtunnel.simulate`.
    """
    recorded, asked = table, options
    if options.arrivals is not None:
        ties = None if options.compat is None else in_order
        table = with_arrivals(table, options.arrivals, ties)
    if options.compat is not None:
        table, policy, options = as_pai(table, cluster, policy, options)
    rules = _rules(table, cluster, policy, options)
    told = (foresight or Foresight(recorded, options.seed)).tell(policy, rules.estimates)
    problem = problems.build(
        told.onto(table),
        cluster,
        as_pool=rules.as_pool,
        devices=rules.devices,
        bind_types=options.bind_types,
        estimates=told.estimates,
        oversize=options.oversize,
        incomplete=options.incomplete,
    )
    check_rounds(problem, policy, rules.disruptions, rules.until)
    problem, extra, notes = _extras(rules, problem, cluster, options)
    flown = policy.for_run(problem)
    flight = rules.engine.run(
        problem,
        flown,
        rules.where,
        queueing=rules.queueing,
        overhead=rules.overhead,
        until=rules.until,
        events=options.events,
        **extra,
    )
    settings = {
        "policy": policy.label,
        **settings_of(asked, rules.governing, without=("penalty", "models", "throughputs")),
        **rules.settings(),
    }
    if policy.tier == 3:  # noqa: PLR2004 - the tier's name
        settings["queueing"] = "policy"
    if not rules.as_pool and options.placement:
        settings["placement"] = options.placement
    if flown.parameters:
        settings["parameters"] = dict(flown.parameters)
    if told.order_by:
        settings["order_by"] = told.order_by
    notes = [*problem.notes, *flown.notes, *told.notes, *notes]
    notes += _left_waiting(flight, rules.until)
    return Outcome(table, cluster, flight, settings, problem.reasons, tuple(notes))


@dataclass(frozen=True)
class _Rules:
    """What a run goes by, its options checked.

    Attributes:
        as_pool: nodes are not told apart.
        devices: how the nodes' devices are used; None = whole GPUs of nodes will do.
        where: the placement.
        queueing: the head-of-line rule.
        overhead: seconds that a preempted job pays when it resumes.
        until: horizon, s.
        estimates: where expected run times come from; None = nothing plans with them.
        disruptions: what disrupts the run; None = nothing.
        slowdown: how jobs slow each other; None = not at all.
        governing: the model and policies of power; None = the run has none.
        engine: what flies the run.
    """

    as_pool: bool
    devices: DeviceRules | None
    where: Placement
    queueing: str
    overhead: float
    until: float
    estimates: str | None
    disruptions: Disruptions | None
    slowdown: Slowdown | None
    governing: Governing | None
    engine: Any

    def settings(self) -> dict[str, Any]:
        """Return the rules as plain data."""
        sharing = None if self.devices is None else ("pooled" if self.devices.pooled else "devices")
        return {
            "disruptions": None if self.disruptions is None else self.disruptions.to_mapping(),
            "slowdown": None if self.slowdown is None else self.slowdown.to_mapping(),
            "queueing": self.queueing,
            "placement": self.where.name,
            "sharing": sharing,
            "estimates": self.estimates,
            "engine": self.engine.NAME,
        }


def _rules(table: pa.Table, cluster: ClusterSpec, policy: Policy, options: FlightOptions) -> _Rules:
    """Check the options of a run and return what it goes by.

    Raises:
        SpecError, TraceError: an option is wrong, or does not go with another.
    """
    model = resolve_slowdown(options.slowdown)
    as_pool = cluster.is_pool or split_placement(options.placement)[0] == "pool"
    topology = checked_topology(options.placement, cluster)
    devices = None if as_pool else _devices(table, cluster, options, topology)
    where = resolve_placement(
        options.placement,
        cluster,
        devices=devices is not None,
        seed=options.seed,
        workload=lambda: _own_workload(table),
    )
    if devices is not None and isinstance(where, ScoredPlacement):
        where.check_sharing(pooled=devices.pooled)
    queueing = checked_queueing(options.queueing, policy)
    overhead = seconds("save_time", options.save_time)
    overhead += seconds("restore_time", options.restore_time)
    until = math.inf if options.until is None else seconds("until", options.until)
    _check_turns(policy, overhead)
    plans = queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - the tier's name
    estimates = checked_estimates(options.estimates, policy)
    checked_events(options.events, policy)
    disruptions = _disruptions(options)
    if disruptions is not None:
        _check_disruptable(disruptions, devices, model)
    governing = _governing(options, policy, queueing, disruptions, as_pool=as_pool)
    needs = {
        "slow-downs": model is not None,
        "topology": topology != "none",
        "disruptions": disruptions is not None,
        "many reservations": disruptions is not None
        and len(disruptions.reservations) > MOST_RESERVATIONS,
        "power": governing is not None and governing.acts,
    }
    engine = choose_engine(
        options.engine,
        policy,
        queueing=queueing,
        events=options.events,
        needs=[name for name, needed in needs.items() if needed],
    )
    return _Rules(
        as_pool=as_pool,
        devices=devices,
        where=where,
        queueing=queueing,
        overhead=overhead,
        until=until,
        estimates=estimates if plans else None,
        disruptions=disruptions,
        slowdown=model,
        governing=governing,
        engine=engine,
    )


def _extras(
    rules: _Rules, problem: Problem, cluster: ClusterSpec, options: FlightOptions
) -> tuple[Problem, dict[str, Any], list[str]]:
    """Return the jobs to fly, what an engine gets besides them, and what to tell of it."""
    extra: dict[str, Any] = {}
    governing, seed = rules.governing, options.seed
    if governing is not None and governing.acts:
        problem, extra["power"] = governing.plan(problem, cluster, seed, options.oversize)
    if rules.disruptions is not None:
        extra["disruptions"] = resolve(rules.disruptions, problem, cluster, seed)
    notes = [note for plan in extra.values() for note in plan.notes]
    if rules.slowdown is not None:
        neighbours = Neighbours(rules.slowdown, problem, cluster)
        extra["rates"] = Rates(neighbours)
        notes += neighbours.notes
    return problem, extra, notes


def _own_workload(table: pa.Table) -> TargetWorkload:
    """Return the target workload that a trace's own jobs stand for; empty if there are none."""
    requests = device_requests(table, incomplete="reject")
    return workload_of(requests) if len(requests.rows) else TargetWorkload((), ())


def _devices(
    table: pa.Table, cluster: ClusterSpec, options: FlightOptions, topology: str
) -> DeviceRules | None:
    """Return how the nodes' devices are used; None = whole GPUs of nodes will do.

    Raises:
        SpecError: an option is unknown.
    """
    if options.sharing not in (None, *SHARING):
        raise SpecError.unknown("sharing", str(options.sharing), SHARING)
    if options.resources not in RESOURCES:
        raise SpecError.unknown("resources", options.resources, RESOURCES)
    resources = options.resources == "all"
    wanted = options.sharing is not None or is_scored(options.placement)
    if not wanted and not needs_devices(table, cluster, resources=resources):
        return None
    return DeviceRules(
        pooled=options.sharing == "pooled",
        resources=resources,
        bind_cpu_tasks=options.compat is not None,
        one_rack=topology == "rack-only",
    )


def _disruptions(options: FlightOptions) -> Disruptions | None:
    """Return what disrupts the run; None = nothing does, and it is a plain one.

    Raises:
        SpecError: the description is wrong, or the events of an instant come one by one.
    """
    given = options.disruptions
    chosen = parse_disruptions(given) if isinstance(given, str) else given
    if isinstance(chosen, dict):
        chosen = Disruptions.from_mapping(chosen, source="disruptions")
    if chosen is None or chosen.is_empty:
        return None
    if not isinstance(chosen, Disruptions):
        raise SpecError("disruptions", f"found {quote(chosen)}; expected a Disruptions or a file.")
    if options.events != "batch":
        raise SpecError("events", "with disruptions an instant is handled whole; use 'batch'.")
    return chosen


def _governing(
    options: FlightOptions,
    policy: Policy,
    queueing: str,
    disruptions: Disruptions | None,
    *,
    as_pool: bool,
) -> Governing | None:
    """Return the run's model and policies of power; None = it has none.

    Raises:
        SpecError, TraceError: one is wrong, or does not go with the other options.
    """
    found = governing_of(options)
    if found is None:
        return None
    found.check(policy, queueing, options.events, as_pool=as_pool)
    if found.acts and disruptions is not None:
        raise SpecError(
            "disruptions",
            "outages and policies of power (power_cap, shift, node_sleep) are not flown together "
            "yet; expected one or the other.",
        )
    return found


def _check_disruptable(
    disruptions: Disruptions,
    devices: DeviceRules | None,
    model: Slowdown | None,
) -> None:
    """Check that a run can be disrupted so.

    Raises:
        SpecError: it cannot.
    """
    if model is not None:
        raise SpecError(
            "slowdown",
            "what a job saves in checkpoints is counted at rate 1; expected a run without "
            "disruptions, or without slow-downs.",
        )
    if devices is not None and disruptions.reservations:
        raise SpecError(
            "disruptions",
            "reservations are of whole nodes' GPUs; expected a run that models no devices: "
            "resources='gpus' (--resources gpus) and whole GPUs.",
        )


def _left_waiting(flight: Flight, until: float) -> list[str]:
    """Return what to tell of jobs that wait at the end of a run without a horizon."""
    waiting = int((flight.status == WAITING).sum())
    if until < math.inf or not waiting:
        return []
    if flight.power is not None:
        return [f"{waiting:,} job(s) wait for ever: the power that they need is never free."]
    if flight.interruptions is None:
        return []
    return [f"{waiting:,} job(s) wait for ever: the GPUs they ask for do not come back."]


def _check_turns(policy: Policy, overhead: float) -> None:
    """Check that jobs that take turns get on.

    Raises:
        SpecError: a turn is not longer than what changing over costs, so that none ever would.
    """
    if policy.levels is not None and policy.every is not None and overhead >= policy.every:
        raise SpecError(
            "save_time + restore_time",
            f"found {overhead:g} s; policy {policy.label!r} lets jobs take turns of "
            f"{policy.every:g} s, in which none would get on. Expected less than that.",
        )
