"""One run of jobs that keep their size, on either engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.placements import (
    checked_topology,
    is_scored,
    label_of,
    resolve_placement,
    split_placement,
)
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.placements.tree import Tree, TreeOfDevices
from windtunnel.sim import problem as problems
from windtunnel.sim.contract import checked_queueing, policy_of_run
from windtunnel.sim.demands import DeviceRules, needs_devices
from windtunnel.sim.engines import choose_engine
from windtunnel.sim.flight import NOT_SUBMITTED, RUNNING, WAITING
from windtunnel.sim.outcome import Outcome
from windtunnel.sim.topology_asks import Asks
from windtunnel.site.scheduler import BACKFILLING, Scheduler
from windtunnel.study.around import Around, around, too_large, workload_of_jobs
from windtunnel.study.compat import as_pai, in_order
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.predictions import Predictions, checked_estimates
from windtunnel.study.resolving import settings_of
from windtunnel.study.resume_costs import cost_note, costs_of, unused_costs

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions


def fly_rigid(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    conditions: Conditions,
    predictions: Predictions | None = None,
) -> Outcome:
    """Fly a validated jobs table whose jobs keep their size; see `windtunnel.study.simulate.fly`.

    Raises:
        SchemaError, SpecError, TraceError, PolicyError: as `windtunnel.simulate`.
    """
    recorded, asked = table, conditions
    if conditions.site.arrivals is not None:
        ties = None if conditions.scheduler.compat is None else in_order
        table = with_arrivals(table, conditions.site.arrivals, ties)
    if conditions.scheduler.compat is not None:
        table, policy, conditions = as_pai(table, cluster, policy, conditions)
    rules = _rules(table, cluster, policy, conditions)
    predicted = (predictions or Predictions(recorded, conditions.seed)).for_policy(
        policy, rules.estimates
    )
    problem = problems.build(
        predicted.onto(table),
        cluster,
        as_pool=rules.as_pool,
        devices=rules.devices,
        bind_types=conditions.scheduler.bind_types,
        estimates=predicted.estimates,
        oversize=conditions.scheduler.oversize,
        incomplete=conditions.scheduler.incomplete,
        asks=asks_of(conditions.scheduler, rules.where),
    )
    flown = policy_of_run(policy, problem)
    refused = flown.refuses() | too_large(
        policy.label, problem, flown.too_large(), conditions.scheduler.oversize
    )
    if refused:
        problem = problem.without(refused)
        flown = policy_of_run(policy, problem)
    check_rounds(problem, policy, rules.around.disruptions, rules.until)
    possible = problem
    problem, extra, notes = rules.around.extras(
        problem, cluster, conditions, own_quotas=flown.cohort_order
    )
    if problem is not possible:
        flown = policy_of_run(policy, problem)
    overhead, why_free = costs_of(conditions.scheduler, policy, problem)
    flight = rules.engine.run(
        problem,
        flown,
        rules.where,
        queueing=rules.queueing,
        overhead=overhead,
        until=rules.until,
        events=conditions.scheduler.events,
        decide_every=rules.around.decide_every,
        preemption=conditions.scheduler.preemption,
        record=conditions.record is not None,
        **extra,
    )
    settings = {
        "policy": policy.label,
        **settings_of(asked, rules.around.governing, without=("penalty", "models", "throughputs")),
        **rules.settings(),
        **_own_settings(policy, flown, conditions, as_pool=rules.as_pool),
    }
    if predicted.order_by:
        settings["order_by"] = predicted.order_by
    notes = [*problem.notes, *flown.notes, *predicted.notes, *notes]
    notes += unused_costs(conditions.scheduler, problem.jobs)
    unused = rules.estimates is None and not predicted.order_by
    if asked.scheduler.estimates is not None and unused:
        notes.append(
            f"Nothing plans with estimates here: {asked.scheduler.estimates!r} made no difference."
        )
    reasons = {int(problem.rows[job]): why for job, why in flown.wait_reasons().items()}
    notes += left_waiting(flight, rules.until, flown, reasons)
    if not flown.loses:
        stopped = flight.preemptions[problem.rows] > 0
        notes += why_free or cost_note(conditions.scheduler, overhead[stopped])
    return Outcome(
        table, cluster, flight, settings, problem.reasons, tuple(notes), wait_reasons=reasons
    )


@dataclass(frozen=True)
class _Rules:
    """What a run goes by, its options checked.

    Attributes:
        as_pool: nodes are not distinguished.
        devices: how the nodes' devices are used; None = whole GPUs of nodes will do.
        where: the placement.
        queueing: the head-of-line rule.
        until: horizon, s.
        estimates: where expected run times come from; None = nothing plans with them.
        around: outages, slow-downs, policies of power, the time between decisions.
        engine: what flies the run.
    """

    as_pool: bool
    devices: DeviceRules | None
    where: Placement
    queueing: str
    until: float
    estimates: str | None
    around: Around
    engine: Any

    def settings(self) -> dict[str, Any]:
        """Return the rules as plain data."""
        sharing = None if self.devices is None else ("pooled" if self.devices.pooled else "devices")
        return {
            **self.around.settings(),
            "queueing": self.queueing,
            "placement": self.where.name,
            "sharing": sharing,
            "estimates": self.estimates,
            "engine": self.engine.NAME,
        }


def asks_of(scheduler: Scheduler, where: Placement) -> Asks | None:
    """Return what jobs ask of the tree in which they are placed; None = they are placed in none.

    Raises:
        SpecError: jobs are to ask for levels, and the placement looks at none.
    """
    if isinstance(where, (Tree, TreeOfDevices)):
        return Asks(where.tree, scheduler.topology_request)
    check_no_request(scheduler, where.name)
    return None


def check_no_request(scheduler: Scheduler, placement: str) -> None:
    """Check that no job is to ask for levels where the placement looks at none.

    Raises:
        SpecError: jobs are to.
    """
    if scheduler.topology_request is not None:
        message = f"placement {placement!r} looks at no levels; expected --placement tree."
        raise SpecError("topology_request", message)


def _rules(table: pa.Table, cluster: ClusterSpec, policy: Policy, conditions: Conditions) -> _Rules:
    """Check the options of a run and return what it goes by.

    Raises:
        SpecError, TraceError: an option is wrong, or does not go with another.
    """
    scheduler = conditions.scheduler
    as_pool = cluster.is_pool or split_placement(scheduler.placement).name == "pool"
    topology = checked_topology(scheduler.placement, cluster)
    if policy.chooses_nodes:
        _check_chooses(policy, conditions, as_pool=as_pool)
    has_devices = not (as_pool or policy.chooses_nodes)
    devices = _devices(table, cluster, conditions, topology) if has_devices else None
    where = resolve_placement(
        scheduler.placement,
        cluster,
        devices=devices is not None,
        seed=conditions.seed,
        workload=lambda: workload_of_jobs(table),
    )
    if devices is not None and isinstance(where, ScoredPlacement):
        where.check_sharing(pooled=devices.pooled)
    queueing = checked_queueing(scheduler.queueing, policy, scheduler.preemption)
    until = math.inf if conditions.until is None else conditions.until
    plans = queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - the tier's name
    estimates = checked_estimates(scheduler.estimates, policy)
    return _Rules(
        as_pool=as_pool,
        devices=devices,
        where=where,
        queueing=queueing,
        until=until,
        estimates=estimates if plans or policy.foresees else None,
        around=around(conditions, as_pool=as_pool),
        engine=choose_engine(conditions.engine),
    )


def _devices(
    table: pa.Table, cluster: ClusterSpec, conditions: Conditions, topology: str
) -> DeviceRules | None:
    """Return how the nodes' devices are used; None = whole GPUs of nodes will do."""
    scheduler = conditions.scheduler
    resources = conditions.site.resources == "all"
    wanted = scheduler.sharing is not None or is_scored(scheduler.placement)
    if not wanted and not needs_devices(table, cluster, resources=resources):
        return None
    return DeviceRules(
        pooled=scheduler.sharing == "pooled",
        resources=resources,
        bind_cpu_tasks=scheduler.compat is not None,
        one_rack=topology == "rack-only",
    )


def _own_settings(
    policy: Policy, flown: Policy, conditions: Conditions, *, as_pool: bool
) -> dict[str, Any]:
    """Return what the policy decides of the settings, and its placement's full name."""
    found: dict[str, Any] = {}
    if policy.tier == 3:  # noqa: PLR2004 - the tier's name
        found["queueing"] = "policy"
    if policy.chooses_nodes:
        found["placement"] = "policy"
    elif not as_pool and conditions.scheduler.placement:
        found["placement"] = label_of(conditions.scheduler.placement)
    if flown.parameters:
        found["parameters"] = dict(flown.parameters)
    return found


def _check_chooses(policy: Policy, conditions: Conditions, *, as_pool: bool) -> None:
    """Check that nothing else is to choose nodes, or to keep some, where the policy does."""
    scheduler, site = conditions.scheduler, conditions.site
    label = quote(policy.label)
    if as_pool:
        raise SpecError("cluster", f"policy {label} chooses nodes; expected them, as in 64x8:A100.")
    for name in ("placement", "sharing"):
        if getattr(scheduler, name) not in (None, "best_fit"):
            raise SpecError(name, f"policy {label} chooses whole GPUs of nodes by its own rules.")
    if site.disruptions is not None and site.disruptions.reservations:
        message = f"policy {label} has reservations of its own; expected none here."
        raise SpecError("disruptions.reservations", message)
    if site.disruptions is not None and site.disruptions.on_failure == "swap":
        message = f"policy {label} gives a running job no other node; expected restart or end."
        raise SpecError("disruptions.on_failure", message)
    if site.slowdown is not None and site.slowdown.cpu > 0:
        message = f"policy {label} gives jobs the cores that they ask for; expected none."
        raise SpecError("slowdown.cpu", message)


def left_waiting(
    flight: Flight, until: float, policy: Policy, reasons: Mapping[int, str]
) -> list[str]:
    """Return notes on the jobs that wait at the end of a run without a horizon.

    Args:
        flight: the run.
        until: its horizon, s.
        policy: as it flew.
        reasons: row of a job -> why it waits, where the policy says so itself.
    """
    rows = np.flatnonzero(flight.status == WAITING).tolist()
    waiting = len(rows) - len(reasons.keys() & set(rows))
    # A policy may end the run itself (`Stop`), while others run or are still to come.
    was_cut = until < math.inf or np.isin(flight.status, (RUNNING, NOT_SUBMITTED)).any()
    if was_cut or not waiting:
        return []
    jobs = f"{waiting:,} job{'s wait' if waiting > 1 else ' waits'} for ever"
    if flight.power is not None and flight.power.capped_time > 0:
        return [f"{jobs}: the power that they need is never free."]
    up = None if flight.interruptions is None else flight.interruptions.up_gpus
    if up is not None and up[-1] < up.max():
        return [f"{jobs}: the GPUs they ask for do not come back."]
    free = "all GPUs are free" if up is None else "no job runs"
    return [f"{jobs} though {free}: policy {policy.label!r} starts none of them."]


#: Most rounds, or failures of one node, of a run: minutes of a compiled engine's time.
MOST = 1e9


def check_rounds(
    problem: Problem, policy: Policy, disruptions: Disruptions | None, until: float
) -> None:
    """Check that the times of a trace are not out of all proportion to what recurs in the run.

    A policy's rounds go on while a job runs, random failures from the first submit to the last, and
    while a job runs. Times in other units than seconds, or a slip of the keyboard, make more of
    them than a run can ever come through.

    Args:
        problem: jobs and cluster.
        policy: its ``every`` is the seconds between rounds.
        disruptions: what disrupts the run; None = nothing.
        until: horizon, s.

    Raises:
        SpecError: there are more than `MOST`.
    """
    if not len(problem.submit):
        return
    submit = np.minimum(problem.submit, until)
    longest = float(np.minimum(problem.duration, until - submit).max())
    last = float(submit.max())
    if policy.every is not None:
        _refuse(policy.label, "rounds", longest / policy.every, longest, policy.every)
        # Beyond, one round's time cannot be distinguished from the next one's.
        _refuse(policy.label, "rounds", abs(last) / policy.every / 2**20, last, policy.every)
    span = max(last - float(submit.min()), longest)
    for model in () if disruptions is None else disruptions.failure_models:
        cycle = float(model.mtbf) + float(model.mttr)
        _refuse("disruptions", "failures of a node", span / cycle, span, cycle)


def _refuse(where: str, what: str, number: float, span: float, every: float) -> None:
    if number > MOST:
        raise SpecError(
            where,
            f"times of the trace reach {span:g} s: too many {what}, one in {every:g} s. Expected "
            "times in seconds, or a horizon (until, --until).",
        )
