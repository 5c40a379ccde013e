"""One run of jobs that keep their size, on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.placements import label_of
from windtunnel.sim import problem as problems
from windtunnel.sim.contract import policy_of_run
from windtunnel.sim.outcome import Outcome
from windtunnel.study.around import too_large
from windtunnel.study.compat import as_pai, in_order
from windtunnel.study.left_waiting import left_waiting
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.predictions import Predictions
from windtunnel.study.resolving import settings_of
from windtunnel.study.resume_costs import cost_note, costs_of, unused_costs
from windtunnel.study.run_options import asks_of, rules_of
from windtunnel.study.too_many import check_recurrences
from windtunnel.study.unused import unused

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.run_options import RunRules


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
    rules = rules_of(table, cluster, policy, conditions)
    predicted = (predictions or Predictions(recorded, conditions.seed)).for_policy(
        policy, rules.estimates
    )
    problem, flown = _problem_of(
        predicted.onto(table), cluster, policy, conditions, rules, estimates=predicted.estimates
    )
    check_recurrences(problem, policy, rules.around.disruptions, rules.until)
    possible = problem
    problem, extra, notes = rules.around.extras(
        problem, cluster, conditions, own_quotas=flown.cohort_order
    )
    if problem is not possible:
        flown = policy_of_run(policy, problem)
    if rules.around.decide_every is not None:
        flown.decides_every(rules.around.decide_every)
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
        **_own_settings(policy, flown, conditions, rules),
    }
    if predicted.order_by:
        settings["order_by"] = predicted.order_by
    notes = [*problem.notes, *flown.notes, *predicted.notes, *notes]
    notes += unused_costs(conditions.scheduler, problem.jobs)
    notes += unused(asked, policy, rules, predicted)
    reasons = {int(problem.rows[job]): why for job, why in flown.wait_reasons().items()}
    notes += left_waiting(flight, rules.until, flown, reasons)
    if not flown.loses:
        stopped = flight.preemptions[problem.rows] > 0
        notes += why_free or cost_note(conditions.scheduler, overhead[stopped])
    return Outcome(
        table, cluster, flight, settings, problem.reasons, tuple(notes), wait_reasons=reasons
    )


def _problem_of(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    conditions: Conditions,
    rules: RunRules,
    *,
    estimates: str | None,
) -> tuple[Problem, Policy]:
    """Return the jobs to fly, without those that the policy refuses, and the policy of the run."""
    problem = problems.build(
        table,
        cluster,
        as_pool=rules.as_pool,
        devices=rules.devices,
        bind_types=conditions.scheduler.bind_types,
        estimates=estimates,
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
    return problem, flown


def _own_settings(
    policy: Policy, flown: Policy, conditions: Conditions, rules: RunRules
) -> dict[str, Any]:
    """Return what the policy decides of the settings, and its placement's full name."""
    found: dict[str, Any] = {}
    if policy.tier == 3:  # noqa: PLR2004 - the tier's name
        found["queueing"] = "policy"
    if policy.chooses_nodes:
        found["placement"] = "policy"
    elif not rules.as_pool and conditions.scheduler.placement:
        found["placement"] = label_of(conditions.scheduler.placement)
    if flown.parameters:
        found["parameters"] = dict(flown.parameters)
    return found
