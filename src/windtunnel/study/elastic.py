"""One elastic run: from a jobs table, throughput models and a penalty to an outcome."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError
from windtunnel.placements import label_of, split_placement
from windtunnel.sim import problem as problems
from windtunnel.sim.contract import policy_of_run
from windtunnel.sim.engines import choose_engine
from windtunnel.sim.outcome import Outcome
from windtunnel.study.around import around
from windtunnel.study.elastic_nodes import asks_of, nodes_of
from windtunnel.study.elastic_offer import Offer, models_of
from windtunnel.study.elastic_work import stated_penalty
from windtunnel.study.left_waiting import left_waiting
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.predictions import Predictions, checked_estimates
from windtunnel.study.resolving import settings_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler
    from windtunnel.study.predictions import RunPredictions

#: Options of a flight that an elastic run has no use for, what says nothing, and why.
_UNUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "sharing": ((None,), "its options are of whole GPUs"),
    "save_time": ((0.0,), "its penalty says what a launch costs"),
    "restore_time": ((None, 0.0), "its penalty says what a launch costs"),
    "preemption": (("feasible",), "the policy takes every decision itself"),
}


def fly_elastic(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    conditions: Conditions,
    predictions: Predictions | None = None,
) -> Outcome:
    """Fly a validated jobs table under a policy that may resize jobs.

    Args:
        table: jobs table.
        cluster: where; with nodes.
        policy: who runs next and how.
        conditions: see `windtunnel.site`; ``penalty`` and ``models`` count here.
        predictions: predictions for this table; None = those that the run needs are made.

    Raises:
        SchemaError: a job breaks the schema or fits the cluster in no way.
        SpecError: the cluster is a pool, or an option is unknown, out of range or of no use.
        PolicyError: the policy decided something impossible.
    """
    _check(policy, cluster, conditions)
    scheduler, arrivals = conditions.scheduler, conditions.site.arrivals
    models = models_of(scheduler.models)
    predicted = (predictions or Predictions(table, conditions.seed)).for_policy(
        policy, checked_estimates(scheduler.estimates or "perfect", policy)
    )
    if arrivals is not None:
        table = with_arrivals(table, arrivals, None)
    problem = _problem_of(table, cluster, predicted, scheduler)
    if scheduler.compat == "morphling":
        from windtunnel.study.morphling_ticks import fly_artifact

        return fly_artifact(table, cluster, policy, conditions, problem)
    offer = Offer(*nodes_of(cluster, conditions, table), models, scheduler.penalty)
    if scheduler.oversize == "reject":
        problem = offer.rejecting(problem)
    return _fly(table, problem, cluster, policy, conditions, offer, predicted)


def _check(policy: Policy, cluster: ClusterSpec, conditions: Conditions) -> None:
    """Check that a run is one of elastic jobs on nodes, with no options that it has no use for."""
    _check_unused(policy, conditions)
    if policy.tier != 3:  # noqa: PLR2004 - the tier's number is its name
        raise PolicyError(policy.label, "an elastic policy decides: decide(now, queue, cluster)")
    if cluster.is_pool:
        raise SpecError("cluster", "elastic jobs run on nodes; expected such as 8x8, not a pool.")


def _check_unused(policy: Policy, conditions: Conditions) -> None:
    """Check that a run has no options that elastic jobs have no use for."""
    for name, (quiet, why) in _UNUSED.items():
        if conditions.value(name) not in quiet:
            message = f"policy {policy.label!r} is elastic; such runs have no {name}: {why}."
            raise SpecError(name, message)
    placement = split_placement(conditions.scheduler.placement).name
    if placement == "pool":
        raise SpecError("placement", "elastic jobs run on nodes; expected a placement for nodes.")
    if conditions.scheduler.compat not in (None, "morphling"):
        raise SpecError("compat", f"policy {policy.label!r} is elastic; expected 'morphling'.")


def _problem_of(
    table: pa.Table, cluster: ClusterSpec, predicted: RunPredictions, scheduler: Scheduler
) -> Problem:
    """Return the jobs to fly, as they were asked for."""
    return problems.build(
        predicted.onto(table),
        cluster,
        as_pool=False,
        bind_types=scheduler.bind_types,
        estimates=predicted.estimates,
        oversize=scheduler.oversize,
        incomplete=scheduler.incomplete,
        asks=asks_of(scheduler, cluster),
    )


def _fly(  # noqa: PLR0917 - what a run is made of
    table: pa.Table,
    problem: Problem,
    cluster: ClusterSpec,
    policy: Policy,
    conditions: Conditions,
    offer: Offer,
    predicted: RunPredictions,
) -> Outcome:
    """Fly the jobs on an engine, with what surrounds the run."""
    scheduler = conditions.scheduler
    rules = around(conditions, as_pool=False)
    problem, extra, more = rules.extras(
        problem,
        cluster,
        conditions,
        least=partial(offer.least, policy=policy) if policy.resizes else None,
        needs=partial(offer.needs, policy=policy),
    )
    works = offer.works(problem)
    flown = policy_of_run(policy, problem)
    engine = choose_engine(conditions.engine)
    until = math.inf if conditions.until is None else conditions.until
    flight = engine.run(
        problem,
        flown,
        offer.plain,
        queueing="strict",
        until=until,
        events=scheduler.events,
        decide_every=rules.decide_every,
        elastic=replace(offer.elastic, works=works),
        record=conditions.record is not None,
        **extra,
    )
    settings = {
        "policy": policy.label,
        **settings_of(conditions, rules.governing, without=("models", "throughputs")),
        **rules.settings(),
        "penalty": stated_penalty(scheduler.penalty, problem),
        "queueing": "policy",
        "placement": label_of(scheduler.placement) or offer.plain.name,
        "estimates": predicted.estimates,
        "engine": engine.NAME,
        **_settings_of_some(scheduler, offer, flown),
    }
    waiting = left_waiting(flight, until, flown, {})
    own = offer.notes(problem, works)
    notes = (*problem.notes, *flown.notes, *predicted.notes, *own, *more, *waiting)
    return Outcome(table, cluster, flight, settings, problem.reasons, notes)


def _settings_of_some(scheduler: Scheduler, offer: Offer, flown: Policy) -> dict[str, Any]:
    """Return the settings that only some runs have: where models are from, and parameters."""
    found: dict[str, Any] = {}
    if isinstance(scheduler.models, str | Path):
        found["models"] = {"folder": str(scheduler.models), "names": sorted(offer.models)}
    if flown.parameters:
        found["parameters"] = dict(flown.parameters)
    return found
