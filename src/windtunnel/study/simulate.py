"""`simulate`: one run, from a jobs table, a site and a scheduler to an outcome."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel import schema
from windtunnel.cluster.gpu_types import unused_aliases, with_types_of
from windtunnel.errors import SpecError, quote
from windtunnel.placements import label_of, split_placement
from windtunnel.placements.tree import Tree
from windtunnel.placements.whole import Pool
from windtunnel.policies.described import Described
from windtunnel.predictors.features import numbers
from windtunnel.sim.observe.stability import window_notes
from windtunnel.sim.own_metrics import measured
from windtunnel.sim.topology_asks import passed_over
from windtunnel.study.budget import refuse_large
from windtunnel.study.closed_loop import fly_closed, is_closed
from windtunnel.study.predictions import Predictions
from windtunnel.study.recording import from_eligible, keep_record
from windtunnel.study.replay import fly_replay
from windtunnel.study.resolving import cluster_of, conditions_of, resolved
from windtunnel.study.rigid import fly_rigid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.placements.asked import CandidateNode, Request
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler
    from windtunnel.site.site import Site
    from windtunnel.words import EngineName, PlacementName, PolicyName, QueueingRule

    #: A policy: a name, with parameters or without; an object or its class; a function of tiers 1
    #: to 3.
    AnyPolicy: TypeAlias = PolicyName | str | Policy | type[Policy] | Callable[..., Any]
    #: A placement: a name, with options or without; a function of a node and a request.
    AnyPlacement: TypeAlias = PlacementName | str | Callable[[CandidateNode, Request], float]

#: Fields that only runs whose jobs are resized have a use for.
ELASTIC: tuple[str, ...] = ("penalty", "models")
#: What flies policies that no engine can ask, and why it takes nothing of `ELASTIC`, by what their
#: names begin with; loaded when one is asked for, as most runs have none.
_FLIGHTS: dict[str, tuple[str, str]] = {
    "gavel:": ("windtunnel.study.gavel_rounds:fly_gavel", "only elastic policies resize jobs"),
    "shockwave:": ("windtunnel.study.shockwave:fly_shockwave", "only elastic policies resize jobs"),
    "pollux:": ("windtunnel.study.pollux:fly_pollux", "restarts cost what the profiles say"),
}


def simulate(
    jobs: Any,
    site: Site | ClusterSpec | str | None = None,
    scheduler: Scheduler | AnyPolicy | None = None,
    *,
    policy: AnyPolicy | None = None,
    queueing: QueueingRule | None = None,
    placement: AnyPlacement | None = None,
    seed: int = 0,
    until: float | str | None = None,
    engine: EngineName = "auto",
    **fields: Any,
) -> Outcome:
    """Fly a trace's jobs on a site under a scheduler.

    Args:
        jobs: a jobs table, anything that exports Arrow (polars, pandas, ibis, pyarrow), or a
            mapping column -> array; absent optional columns are null.
        site: what the cluster is and what happens to it; a `ClusterSpec`, or a string as on the
            command line (``64x8:A100``), is a site where nothing else happens.
        scheduler: what decides; a policy (a built-in name, ``package.module:name``, a `Policy`, or
            a function of tiers 1 to 3) is a scheduler with all else as usual. None = ``fifo``.
        policy: the scheduler's, by its name.
        queueing: the scheduler's rule at a job that does not fit.
        placement: the scheduler's.
        seed: seed of everything random; recorded even where nothing is.
        until: horizon in s since the trace's epoch, or ``30d``; None = until every job has
            finished.
        engine: ``auto`` (the fastest that serves), ``compiled`` or ``reference``.
        fields: further fields of the site and the scheduler, by their names, such as
            ``disruptions="mtbf:30d/mttr:4h"`` or ``slowdown="spread=0.42"``;
            docs/reference/options.md has all. ``trust=True``: a site file may name code to run.

    Returns:
        The outcome; row order = the jobs table's.

    Raises:
        SchemaError: the jobs break the schema, or do not fit the cluster.
        SpecError: a field or name is unknown or out of range.
        TraceError: a table of slow-downs cannot be read.
        PolicyError: the policy is unusable or decided something impossible.

    >>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
    >>> simulate(jobs, "pool:1", "sjf").metrics()["avg_jct"]
    36.333333333333336
    """
    named = {"policy": policy, "queueing": queueing, "placement": placement}
    fields |= {name: value for name, value in named.items() if value is not None}
    given = conditions_of(site, scheduler, seed=seed, until=until, engine=engine, **fields)
    return fly(schema.as_jobs(jobs), resolved(given))


def fly(table: pa.Table, conditions: Conditions, predictions: Predictions | None = None) -> Outcome:
    """Fly a validated jobs table; what `simulate` and `compare` share.

    Args:
        table: jobs table.
        conditions: what it is flown under, resolved (`windtunnel.study.resolving`).
        predictions: of this table as it is given (predictors go along the recorded log, not along
            other arrivals) and the conditions' seed, so that several runs predict once.

    Raises:
        SchemaError, SpecError, TraceError, PolicyError: as `simulate`.
    """
    known = predictions or Predictions(table, conditions.seed)
    table, held = _when_ready(table, conditions)
    if is_closed(conditions.site.arrivals):
        outcome = fly_closed(
            table, conditions, lambda jobs, asked, rows: _fly(jobs, asked, known.of_rows(rows))
        )
    else:
        outcome = _fly(table, conditions, known)
    cluster = outcome.cluster
    aliases = unused_aliases(table, cluster.gpu_types, cluster.aliases)
    passed = [*_levels_passed_over(table, conditions), *_placement_passed_over(cluster, conditions)]
    notes = (*outcome.notes, *held, *aliases, *passed, *window_notes(outcome))
    outcome = replace(outcome, notes=notes)
    keep_record(outcome, conditions.record)
    outcome = with_energy([outcome], conditions.site)[0]
    own = measured(outcome, conditions.metrics or ())
    return replace(outcome, own=own) if own else outcome


def with_energy(outcomes: Sequence[Outcome], site: Site) -> list[Outcome]:
    """Return runs that are compared with their energy, where they had a model of power.

    Raises:
        SpecError, TraceError: the model does not describe what the cluster has, or a file is wrong.
    """
    if outcomes[0].settings.get("power") is None:
        return list(outcomes)
    from windtunnel.energy.accounting import TOTALS, books_of  # it brings the readers of traces

    totals = [book.summary() for book in books_of(outcomes, site)]
    return [
        replace(one, energy={name: numbers[name] for name in TOTALS})
        for one, numbers in zip(outcomes, totals, strict=True)
    ]


def _when_ready(table: pa.Table, conditions: Conditions) -> tuple[pa.Table, list[str]]:
    """Return the jobs, each submitted when it is ready for the queue, and what to note of that.

    Raises:
        SpecError: when jobs were eligible was asked for, and is not known, or a schedule given; or
            it is no time.
    """
    scheduler = conditions.scheduler
    if scheduler.replay is not None and scheduler.ready == "eligible":
        raise SpecError("ready", "a schedule (replay) says itself when jobs run; leave ready out.")
    if scheduler.ready == "submit" or scheduler.replay is not None:
        return table, []
    if "eligible_time" not in table.column_names:
        if scheduler.ready is not None:
            message = "the jobs have no column eligible_time; expected it, or ready=submit."
            raise SpecError("ready", message)
        return table, []
    ready = from_eligible(table)
    later = numbers(ready, "submit_time") - numbers(table, "submit_time")
    moved = later[later > 0]
    if not len(moved):
        return table, []
    note = (
        f"{len(moved):,} of {len(table):,} jobs join the queue when they were eligible, on average "
        f"{moved.mean():,.0f} s after their submission, and wait from then; ready=submit (--ready) "
        "lets all join at their submission."
    )
    return ready, [note]


def _levels_passed_over(table: pa.Table, conditions: Conditions) -> list[str]:
    """Return what to note where nobody looks at what jobs ask of the levels of a topology."""
    scheduler = conditions.scheduler
    chosen = scheduler.placement
    by_levels = split_placement(chosen).name == Tree.name
    if by_levels or scheduler.replay is not None or scheduler.policy.keeps_levels:
        return []
    return passed_over(table, label_of(chosen))


def _placement_passed_over(cluster: ClusterSpec, conditions: Conditions) -> list[str]:
    """Return what to note where a placement was asked for, and has no nodes to choose from."""
    chosen = conditions.scheduler.placement
    if not cluster.is_pool or chosen is None or split_placement(chosen).name == Pool.name:
        return []
    name = quote(label_of(chosen))
    return [f"The cluster has no nodes to choose from: placement {name} was flown as a pool."]


def _fly(table: pa.Table, conditions: Conditions, predictions: Predictions | None) -> Outcome:
    cluster, policy = cluster_of(conditions), conditions.scheduler.policy
    table = with_types_of(table, cluster.gpu_types, cluster.aliases)
    refuse_large(table, cluster, conditions)
    if conditions.scheduler.replay is not None:
        _refuse(conditions, (*ELASTIC, "throughputs", "compat"), "a given schedule decides")
        return fly_replay(table, cluster, conditions)
    if isinstance(policy, Described):
        policy = policy.on_engine(conditions.scheduler.compat)
    if isinstance(policy, Described):
        flight, why = _FLIGHTS[policy.prefix]
        _refuse(conditions, ELASTIC, why)
        outcome: Outcome = pkgutil.resolve_name(flight)(table, cluster, policy, conditions)
        return outcome
    _refuse(conditions, ("throughputs",), "only gavel:..., pollux:... and shockwave:... take them")
    if conditions.scheduler.compat in {"gavel", "pollux", "shockwave"}:
        name = conditions.scheduler.compat
        message = f"only policies {name}:... take it; {quote(policy.label)} is none."
        raise SpecError("compat", message)
    if policy.elastic:
        from windtunnel.study.elastic import fly_elastic

        return fly_elastic(table, cluster, policy, conditions, predictions)
    _refuse(conditions, ELASTIC, "only elastic policies resize jobs")
    return fly_rigid(table, cluster, policy, conditions, predictions)


def _refuse(conditions: Conditions, names: tuple[str, ...], why: str) -> None:
    """Check that nothing was asked for that the policy has no use for."""
    label = conditions.scheduler.policy.label
    for name in names:
        if conditions.value(name) is not None:
            raise SpecError(name, f"policy {label!r} has no use for it: {why}.")
