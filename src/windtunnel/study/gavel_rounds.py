"""Gavel's policies on a trace: from a jobs table and a throughput table to an `Outcome`.

A job's speeds come from the throughput table by its ``template`` (the model with its batch size)
and number of GPUs, its work from ``total_steps``. Jobs without steps, of any other trace, run
equally fast on every GPU type that they accept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.policies.gavel.catalogue import POLICIES
from windtunnel.policies.gavel.deciding import Shares
from windtunnel.policies.gavel.ideal import fly_ideal
from windtunnel.policies.gavel.instance import Entity
from windtunnel.policies.gavel.published import fly_as_published
from windtunnel.policies.gavel.rounds import Rounds
from windtunnel.policies.gavel.totals import DEFAULT_COSTS
from windtunnel.policies.gavel.work import Rules
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column, with_numbers
from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, RUNNING, WAITING
from windtunnel.sim.outcome import Outcome
from windtunnel.study.compat import in_order
from windtunnel.study.gavel_work import work_of
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.resolving import settings_of_loop
from windtunnel.study.rigid import fly_rigid
from windtunnel.throughput.measured import (
    REFERENCE_TYPE,
    ThroughputTable,
    gavel_speeds,
    read_throughputs,
)

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.policies.gavel.in_rounds import GavelPolicy
    from windtunnel.policies.gavel.record import RoundLog
    from windtunnel.policies.gavel.work import Allocator, Work
    from windtunnel.site.conditions import Conditions

#: Added to the seed of a run for the order of GPU types, as published.
SHUFFLE_SEED = 5
#: Column of the flown jobs: completion time on an equal share of the cluster, at measured speeds.
ISOLATED = "isolated_time"
#: Options that no run of Gavel's has a use for, with what they may be.
_UNUSED: dict[str, tuple[Any, ...]] = {"queueing": (None,)}
#: Options that the mechanisms with a loop of their own have no use for, besides these.
_UNUSED_IN_LOOPS: dict[str, tuple[Any, ...]] = {
    "placement": (None, "best_fit", "pool"),
    "sharing": (None,),
    "estimates": (None, "perfect"),
    "events": ("batch",),
    "decide_every": (None,),
    "engine": ("auto", "reference"),
    "bind_types": (None,),
    "slowdown": (None,),
    "disruptions": (None,),
    "power_cap": (None,),
    "shift": (None,),
    "node_sleep": (None,),
    "quotas": (None,),
}


@dataclass(frozen=True)
class RoundRun:
    """One run of a policy of Gavel's.

    Attributes:
        outcome: what came of it, as of any run.
        work: what was run; jobs by (submit_time, input order).
        rows: row in the jobs table of each of these jobs; shape (jobs,).
        isolated_time: seconds that each of them would have needed on its equal share.
        log: what kept count: of ``rounds`` (choices of who runs), ``solves`` (decisions on shares)
            and ``type_time`` (seconds of each job on each GPU type, shape (jobs, types)).
        stopped_at: when the run ended, s.
    """

    outcome: Outcome
    work: Work
    rows: np.ndarray
    isolated_time: np.ndarray
    log: Rounds | RoundLog
    stopped_at: float

    @property
    def end(self) -> np.ndarray:
        """When each job was done, s, NaN = not; shape (jobs,)."""
        ends: np.ndarray = self.outcome.flight.end[self.rows]
        return ends

    @property
    def gpu_time(self) -> np.ndarray:
        """GPU-seconds held by each job, half of those it shares; shape (jobs,)."""
        flight = self.outcome.flight
        if flight.gpu_time is not None:
            shared: np.ndarray = flight.gpu_time[self.rows]
            return shared
        held: np.ndarray = flight.run_time[self.rows] * self.work.gangs
        return held


def fly_gavel(
    table: pa.Table, cluster: ClusterSpec, policy: GavelPolicy, conditions: Conditions
) -> Outcome:
    """Fly a validated jobs table under one of Gavel's policies; see `run_rounds`."""
    return run_rounds(table, cluster, policy, conditions).outcome


def run_rounds(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: GavelPolicy,
    conditions: Conditions,
    *,
    stop_after: slice | None = None,
) -> RoundRun:
    """Run jobs under one of Gavel's policies.

    Args:
        table: jobs table.
        cluster: where; every node names its GPU type, which the throughput table knows.
        policy: the policy.
        conditions: see `windtunnel.site`.
        stop_after: end the run when these jobs, by arrival, are done; None = all.

    Raises:
        SpecError: an option that rounds have no use for, or names that do not fit the table.
        SchemaError: a job is larger than the cluster or lacks what a run needs.
        TraceError: the throughput table cannot be read.
        InfeasibleError: the policy has no answer, as for a job that can run nowhere.
    """
    if conditions.scheduler.compat not in (None, "gavel"):
        raise SpecError(
            "compat", f"found {quote(conditions.scheduler.compat)}; Gavel's policies take 'gavel'."
        )
    published = conditions.scheduler.compat == "gavel" or policy.mechanism == "published"
    mechanism = "published" if published else policy.mechanism
    refuse_options(conditions, mechanism, policy.filling)
    asked = conditions
    if conditions.site.arrivals is not None:
        table = with_arrivals(table, conditions.site.arrivals, in_order if published else None)
        conditions = conditions.having(arrivals=None)
    speeds = _throughputs(conditions.scheduler.throughputs)
    packed = POLICIES[policy.allocation].packed
    notes: list[str] = []
    table = _with_deadlines(table, speeds, notes)
    work, rows, reasons = work_of(
        table,
        cluster,
        speeds=speeds,
        conditions=conditions,
        packed=packed,
        parts=mechanism != "published",
        notes=notes,
    )
    rules = Rules(
        label=policy.label,
        length=policy.length,
        blind=POLICIES[policy.allocation].blind,
        in_turn=policy.allocation.startswith("fifo"),
        fill=policy.filling or Rules.fill,
        until=math.inf if conditions.until is None else conditions.until,
        stop_after=None if stop_after is None else np.arange(work.num_jobs)[stop_after],
        gap=policy.gap,
        shuffle=conditions.seed + SHUFFLE_SEED if POLICIES[policy.allocation].blind else None,
        packed=packed,
    )
    is_published = mechanism == "published"
    shares = _shares(table, rows, work, policy, conditions.seed, published=is_published)
    log: Rounds | RoundLog
    how = (table, cluster, work, rows, shares, rules, conditions)
    if mechanism == "deficit":
        outcome, log, stopped_at = fly_on_the_engine(*how)
    else:
        outcome, log, stopped_at = _in_a_loop(*how, mechanism)
    finished = outcome.flight.status[rows] == FINISHED
    shares.account(np.where(finished, 0.0, shares.left))
    settings = {**outcome.settings, **_settings(policy, asked, mechanism)}
    notes += [*outcome.notes, *shares.notes, *_mechanism_notes(mechanism, rules, shares.choice)]
    table = _with_isolated_time(table, rows, np.where(finished, shares.isolated_time, np.nan))
    outcome = replace(
        outcome,
        jobs=table,
        settings=settings,
        reasons={**outcome.reasons, **reasons},
        notes=tuple(dict.fromkeys(notes)),
    )
    return RoundRun(outcome, work, rows, shares.isolated_time, log, stopped_at)


def fly_on_the_engine(  # noqa: PLR0917 - what a run is made of
    table: pa.Table,
    cluster: ClusterSpec,
    work: Work,
    rows: np.ndarray,
    shares: Allocator,
    rules: Rules,
    conditions: Conditions,
) -> tuple[Outcome, Rounds, float]:
    """Fly the jobs as any others, each as long as it takes where it is fastest.

    Returns:
        What came of it, the policy that it was flown under, and when it ended, s.
    """
    duration = np.full(len(table), np.nan)
    duration[rows] = work.steps / work.fastest
    table = with_numbers(table, "duration", duration)
    policy = Rounds(work, rows, shares, rules)
    # Who cannot be flown has been named, or is left out here.
    conditions = conditions.having(incomplete="reject", throughputs=None)
    outcome = fly_rigid(table, cluster, policy, conditions)
    flight = outcome.flight
    last = policy.stopped_at
    if last is None:
        goes_on = np.isin(flight.status, (RUNNING, WAITING, NOT_SUBMITTED)).any()
        last = rules.until if goes_on else float(np.nanmax(flight.end, initial=0.0))
    if math.isfinite(last):
        policy.close(last)
    return outcome, policy, last


def _in_a_loop(  # noqa: PLR0917 - ditto
    table: pa.Table,
    cluster: ClusterSpec,
    work: Work,
    rows: np.ndarray,
    shares: Shares,
    rules: Rules,
    conditions: Conditions,
    mechanism: str,
) -> tuple[Outcome, RoundLog, float]:
    """Fly the jobs by a mechanism that has a loop of its own; as `fly_on_the_engine`."""
    log = (fly_as_published if mechanism == "published" else fly_ideal)(work, shares, rules)
    is_pool = cluster.is_pool or mechanism == "ideal"
    flight = log.flight(rows, len(table), rules.until, with_nodes=not is_pool)
    notes = []
    if any(node.cpus or node.mem_gib for node in cluster.node_types):
        notes.append("Cores and memory do not constrain in rounds: GPUs alone do.")
    settings = settings_of_loop(conditions, "pool" if is_pool else "best_fit", "rounds")
    return Outcome(table, cluster, flight, settings, {}, tuple(notes)), log, log.stopped_at


def refuse_options(conditions: Conditions, mechanism: str, fill: str = "") -> None:
    """Check that nothing was asked for that a mechanism of rounds does not do.

    Args:
        conditions: of the run.
        mechanism: how shares become rounds.
        fill: who is to take free GPUs between them (`windtunnel.policies.filling`); empty = that
            was not asked for.

    Raises:
        SpecError: something was; names it.
    """
    in_loop = mechanism != "deficit"
    for name, accepted in {**_UNUSED, **(_UNUSED_IN_LOOPS if in_loop else {})}.items():
        found = conditions.value(name)
        if found not in accepted:
            words = " or ".join(str(word) for word in accepted if word is not None) or "none"
            where = f"{mechanism} rounds" if name in _UNUSED_IN_LOOPS else "policies in rounds"
            raise SpecError(name, f"found {quote(found)}; {where} take {words}.")
    if in_loop and fill:
        raise SpecError("fill", f"{mechanism} rounds have none; leave it out.")
    costs = (conditions.scheduler.save_time, conditions.scheduler.restore_time or 0)
    if in_loop and costs != (0, 0):
        message = f"the {mechanism} mechanism knows no cost of preemption; expected 0."
        raise SpecError("save_time + restore_time", message)


def _throughputs(given: Any) -> ThroughputTable:
    if given is None:
        return gavel_speeds()
    if isinstance(given, ThroughputTable):
        return given
    if isinstance(given, str | Path):
        return read_throughputs(given)
    raise SpecError("throughputs", f"found {quote(given)}; expected a file or a ThroughputTable.")


def _with_deadlines(table: pa.Table, speeds: ThroughputTable, notes: list[str]) -> pa.Table:
    """Return the jobs with absolute deadlines, where they have SLOs and no deadlines.

    A job's ideal duration is its ``duration``, else its steps over its speed on V100s. The
    published simulator compares deadlines with completion times counted from submission.
    """
    if "slo" not in table.column_names or "deadline" in table.column_names:
        return table
    if table["slo"].null_count == len(table):
        return table
    slo = numeric_column(table, "slo", "Gavel's SLOs")
    ideal = numbers(table, "duration")
    unknown = np.isnan(ideal) & ~np.isnan(slo)
    if unknown.any() and "total_steps" in table.column_names:
        steps = numeric_column(table, "total_steps", "steps")
        ideal = np.where(unknown, steps / _reference_speeds(table, speeds), ideal)
        unknown &= np.isnan(ideal)
    if unknown.any():
        notes.append(f"{unknown.sum():,} jobs have an SLO and no deadline: no ideal duration.")
    deadline = numbers(table, "submit_time") + slo * ideal
    return table.append_column("deadline", pa.array(deadline, mask=np.isnan(deadline)))


def _reference_speeds(table: pa.Table, speeds: ThroughputTable) -> np.ndarray:
    """Return the jobs' steps per second on V100s, NaN where that is not known; shape (jobs,)."""
    known = speeds.alone.get(REFERENCE_TYPE, {})
    gangs = np.nan_to_num(numbers(table, "num_gpus")).tolist()
    keys = zip(table["template"].to_pylist(), gangs, strict=True)
    return np.array([known.get(key) or math.nan for key in keys])


def _shares(
    table: pa.Table,
    rows: np.ndarray,
    work: Work,
    policy: GavelPolicy,
    seed: int,
    *,
    published: bool,
) -> Shares:
    """Return the policy, ready to be asked."""
    weights = np.nan_to_num(numbers(table, "priority"), nan=1.0)[rows]
    if (weights <= 0).any():
        raise SpecError("priority", "Gavel's policies take it as a weight; expected numbers > 0.")
    deadlines = np.full(len(rows), math.inf)
    if "deadline" in table.column_names:
        found = numeric_column(table, "deadline", "deadlines")[rows]
        deadlines = np.where(np.isnan(found), math.inf, found)
    entities: tuple[Entity, ...] = ()
    entity_of = np.full(len(rows), -1)
    if policy.allocation.startswith("hierarchical"):
        entities, entity_of = _entities(table, rows, policy)
    prices = np.array([DEFAULT_COSTS.get(name.lower(), math.nan) for name in work.gpu_types])
    if policy.prices:
        if len(policy.prices) != work.num_types:
            wanted = "/".join(work.gpu_types) or "the cluster tells none apart"
            raise SpecError(f"policy {policy.label}: prices", f"expected one a type: {wanted}.")
        prices = np.array(policy.prices)
    return Shares(
        policy,
        work,
        weights=weights,
        deadlines=deadlines,
        entities=entities,
        entity_of=entity_of,
        prices=prices,
        seed=seed,
        published=published,
    )


def _entities(
    table: pa.Table, rows: np.ndarray, policy: GavelPolicy
) -> tuple[tuple[Entity, ...], np.ndarray]:
    """Return the tenants in order of their names, and each job's."""
    where = f"policy {policy.label}"
    checked_choice(f"{where}: by", policy.entities_by, table.column_names)
    names = [str(name) for name in table[policy.entities_by].to_pylist()]
    known = sorted(set(names))
    weights = policy.weights or (1.0,) * len(known)
    if len(weights) != len(known):
        message = f"found {len(weights)}; expected one for each of {', '.join(known)}."
        raise SpecError(f"{where}: weights", message)
    entities = tuple(Entity(n, w, policy.inner) for n, w in zip(known, weights, strict=True))
    return entities, np.array([known.index(names[row]) for row in rows.tolist()], int)


def _with_isolated_time(table: pa.Table, rows: np.ndarray, seconds: np.ndarray) -> pa.Table:
    """Return the jobs with what each finished one would have taken on its equal share, s."""
    if ISOLATED in table.column_names:
        return table
    values = np.full(len(table), np.nan)
    values[rows] = seconds
    return table.append_column(ISOLATED, pa.array(values, mask=np.isnan(values)))


def _settings(policy: GavelPolicy, conditions: Conditions, mechanism: str) -> dict[str, Any]:
    """Return what was asked for that the flight itself does not tell, as plain data."""
    given = conditions.scheduler.throughputs
    plain = given if isinstance(given, str) else None if given is None else str(given)
    if isinstance(given, ThroughputTable):
        plain = "given"
    parameters: dict[str, Any] = {"round": policy.length, "mechanism": mechanism}
    if mechanism == "published":
        parameters["gap"] = policy.gap
    if policy.partitions > 1:
        parameters["partitions"] = policy.partitions
    if policy.filling:
        parameters["fill"] = policy.filling
    return {
        "policy": policy.label,
        "arrivals": conditions.site.arrivals,
        "incomplete": conditions.scheduler.incomplete,
        "throughputs": plain,
        "parameters": parameters,
    }


def _mechanism_notes(mechanism: str, rules: Rules, choice: str) -> list[str]:
    """Return what a reader of the numbers must know of the mechanism."""
    notes = []
    if mechanism == "published":
        notes.append(
            "As the published simulator: shares are decided on at most every "
            f"{rules.gap:g} s, new jobs hold GPUs without running until then, rounds end when "
            "their last job does, and utilisation counts idle gaps as busy."
        )
    if choice == "centre":
        notes.append(
            "The policy does not know speeds: of equally good shares the centre is taken, as the "
            "published programs' solvers did (choice=vertex: a vertex, which is slower on gangs)."
        )
    if mechanism == "ideal":
        notes.append("No rounds: each job progresses at the speed that its shares stand for.")
    if rules.packed:
        notes.append(
            "Jobs that share GPUs hold half of them each; GPUs over time count both in full."
        )
    return notes
