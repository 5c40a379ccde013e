"""Gavel's policies on a trace: from a jobs table and a throughput table to an `Outcome`.

A job's speeds come from the throughput table by its ``template`` (the model with its batch size)
and number of GPUs, its work from ``total_steps``. Jobs without steps, of any other trace, run
equally fast on every GPU type that they accept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.policies.gavel.catalogue import POLICIES
from windtunnel.policies.gavel.deciding import Shares
from windtunnel.policies.gavel.in_rounds import PRICES, GavelPolicy
from windtunnel.policies.gavel.instance import Entity
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.outcome import Outcome
from windtunnel.sim.rounds import Rules, Work, fly_as_published, fly_by_owed_time, fly_ideal
from windtunnel.study.arrivals import with_arrivals
from windtunnel.study.compat import in_order
from windtunnel.throughput.measured import ThroughputTable, gavel_speeds, read_throughputs

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.rounds import RoundLog
    from windtunnel.study.simulate import FlightOptions

#: Added to the seed of a run for the order of GPU types, as published.
SHUFFLE_SEED = 5
#: Suffix of the tables of gangs that are spread over nodes.
SPREAD = "_unconsolidated"
#: Options of a flight that rounds have no use for, with what they may be.
_UNUSED: dict[str, tuple[Any, ...]] = {
    "queueing": (None, "skip"),
    "placement": (None, "best_fit", "pool"),
    "sharing": (None,),
    "estimates": (None,),
    "events": ("batch",),
    "engine": ("auto", "reference"),
    "bind_types": (None,),
    "slowdown": (None,),
    "disruptions": (None,),
}


@dataclass(frozen=True)
class RoundRun:
    """One run of a policy of Gavel's.

    Attributes:
        outcome: what came of it, as of any run.
        log: what the mechanism noted; jobs by (submit_time, input order).
        rows: row in the jobs table of each of the log's jobs; shape (jobs,).
        isolated_time: seconds that each of the log's jobs would have needed on its equal share.
    """

    outcome: Outcome
    log: RoundLog
    rows: np.ndarray
    isolated_time: np.ndarray


def fly_gavel(
    table: pa.Table, cluster: ClusterSpec, policy: GavelPolicy, options: FlightOptions
) -> Outcome:
    """Fly a validated jobs table under one of Gavel's policies; see `run_rounds`."""
    return run_rounds(table, cluster, policy, options).outcome


def run_rounds(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: GavelPolicy,
    options: FlightOptions,
    *,
    stop_after: slice | None = None,
) -> RoundRun:
    """Run jobs under one of Gavel's policies.

    Args:
        table: jobs table.
        cluster: where; every node names its GPU type, which the throughput table knows.
        policy: the policy.
        options: see `windtunnel.simulate`.
        stop_after: end the run when these jobs, by arrival, are done; None = all.

    Raises:
        SpecError: an option that rounds have no use for, or names that do not fit the table.
        SchemaError: a job is larger than the cluster or lacks what a run needs.
        TraceError: the throughput table cannot be read.
        InfeasibleError: the policy has no answer, as for a job that can run nowhere.
    """
    published = options.compat == "gavel" or policy.mechanism == "published"
    _check_options(options, published=published)
    if options.arrivals is not None:
        table = with_arrivals(table, options.arrivals, in_order if published else None)
    speeds = _throughputs(options.throughputs)
    packed = POLICIES[policy.allocation].packed
    notes: list[str] = []
    table = _with_deadlines(table)
    work, rows, reasons = _work(
        table, cluster, speeds=speeds, options=options, packed=packed, notes=notes
    )
    wanted = None if stop_after is None else np.arange(work.num_jobs)[stop_after]
    rules = Rules(
        label=policy.label,
        length=policy.length,
        blind=POLICIES[policy.allocation].blind,
        in_turn=policy.allocation.startswith("fifo"),
        overhead=options.save_time + options.restore_time,
        until=math.inf if options.until is None else float(options.until),
        stop_after=wanted,
        gap=policy.gap,
        shuffle=options.seed + SHUFFLE_SEED if POLICIES[policy.allocation].blind else None,
        packed=packed,
    )
    if rules.overhead >= rules.length:
        raise SpecError(
            "save_time + restore_time",
            f"found {rules.overhead:g} s; jobs take turns of {rules.length:g} s, in which none "
            "would get on. Expected less than that.",
        )
    shares = _shares(table, rows, work, policy, options.seed)
    mechanism = "published" if published else policy.mechanism
    flown = {"published": fly_as_published, "owed": fly_by_owed_time, "ideal": fly_ideal}
    log = flown[mechanism](work, shares, rules)
    shares.account(np.where(np.isnan(log.end), shares.left, 0.0))
    is_pool = cluster.is_pool or mechanism == "ideal"
    flight = log.flight(rows, len(table), rules.until, with_nodes=not is_pool)
    settings = _settings(policy, options, mechanism, "pool" if is_pool else "best_fit")
    if any(node.cpus or node.mem_gib for node in cluster.node_types):
        notes.append("Cores and memory do not constrain in rounds: GPUs alone do.")
    notes += [*shares.notes, *_mechanism_notes(mechanism, rules)]
    outcome = Outcome(table, cluster, flight, settings, reasons, tuple(dict.fromkeys(notes)))
    return RoundRun(outcome, log, rows, shares.isolated_time)


def _check_options(options: FlightOptions, *, published: bool) -> None:
    """Check that nothing was asked for that rounds do not do.

    Raises:
        SpecError: something was; names it.
    """
    for name, accepted in _UNUSED.items():
        found = getattr(options, name)
        if found not in accepted:
            words = " or ".join(str(word) for word in accepted if word is not None) or "none"
            raise SpecError(name, f"found {quote(found)}; Gavel's policies in rounds take {words}.")
    if options.compat not in (None, "gavel"):
        raise SpecError("compat", f"found {quote(options.compat)}; Gavel's policies take 'gavel'.")
    if published and options.save_time + options.restore_time > 0:
        message = "the published simulator knows no cost of preemption; expected 0."
        raise SpecError("save_time + restore_time", message)
    for name in ("save_time", "restore_time", "until"):
        value = getattr(options, name)
        if value is not None and not 0 <= float(value) < math.inf:
            raise SpecError(name, f"found {value!r}; expected seconds >= 0")


def _throughputs(given: Any) -> ThroughputTable:
    if given is None:
        return gavel_speeds()
    if isinstance(given, ThroughputTable):
        return given
    if isinstance(given, str | Path):
        return read_throughputs(given)
    raise SpecError("throughputs", f"found {quote(given)}; expected a file or a ThroughputTable.")


def _with_deadlines(table: pa.Table) -> pa.Table:
    """Return the jobs with absolute deadlines, where they have SLOs and no deadlines.

    The published simulator compares deadlines with completion times counted from submission.
    """
    if "slo" not in table.column_names or "deadline" in table.column_names:
        return table
    if table["slo"].null_count == len(table):
        return table
    slo = numeric_column(table, "slo", "Gavel's SLOs")
    deadline = _floats(table, "submit_time") + slo * _floats(table, "duration")
    return table.append_column("deadline", pa.array(deadline, mask=np.isnan(deadline)))


def _work(
    table: pa.Table,
    cluster: ClusterSpec,
    *,
    speeds: ThroughputTable,
    options: FlightOptions,
    packed: bool,
    notes: list[str],
) -> tuple[Work, np.ndarray, dict[int, str]]:
    """Return the work, the table row of each of its jobs, and why others are not in it."""
    types = _types(cluster)
    gangs = _floats(table, "num_gpus")
    measured = {"total_steps", "template"} <= set(table.column_names)
    measured = measured and table["total_steps"].null_count < max(len(table), 1)
    if measured:
        steps = numeric_column(table, "total_steps", "steps")
        names = _names_in(speeds, types)
        kinds, tables = _measured(table, gangs, speeds, names)
        alone, spread = tables[0][kinds], tables[1][kinds]
        if any(node.count > 1 for node in cluster.node_types):
            notes += _spread_notes(speeds, names)
    else:
        steps, kinds = _floats(table, "duration"), np.zeros(len(table), int)
        alone = spread = np.ones((len(table), len(types)))
        notes.append(
            "The jobs have no steps: each runs equally fast on every GPU type that it accepts."
        )
    accepted = _accepted(table, types)
    alone, spread = alone * accepted, spread * accepted
    missing = {"submit_time": _floats(table, "submit_time"), "num_gpus": gangs}
    missing["total_steps" if measured else "duration"] = steps
    capacity = np.array([_gpus_of(cluster, name) for name in types])
    reasons = _refused(
        table, needed=missing, speeds=alone, gangs=gangs, capacity=capacity, options=options
    )
    keep = np.array([row for row in range(len(table)) if row not in reasons], int)
    rows = keep[np.argsort(missing["submit_time"][keep], kind="stable")]
    pairs = None
    if measured and packed:
        pairs = tables[2]
        if not (pairs > 0).any():
            notes.append("The throughput table has no pairs of jobs: none share GPUs.")
    first = np.cumsum([0, *(node.count for node in cluster.node_types)])
    node_index, node_sizes = [], []
    for name in types:
        of = [k for k, node in enumerate(cluster.node_types) if node.gpu_type == name]
        node_index.append(np.concatenate([np.arange(first[k], first[k + 1]) for k in of]))
        sizes = [np.full(cluster.node_types[k].count, cluster.node_types[k].gpus) for k in of]
        node_sizes.append(np.concatenate(sizes).astype(np.int64))
    job_ids = table["job_id"].to_pylist()
    work = Work(
        names=[job_ids[row] for row in rows.tolist()],
        gpu_types=types,
        num_gpus=capacity,
        node_sizes=tuple(node_sizes),
        node_index=tuple(node_index),
        submit=missing["submit_time"][rows],
        steps=steps[rows],
        gangs=gangs[rows].astype(np.int64),
        speeds=alone[rows],
        spread_speeds=spread[rows],
        kinds=kinds[rows],
        pair_speeds=pairs,
    )
    return work, rows, reasons


def _types(cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the cluster's GPU types, sorted.

    Raises:
        SpecError: some GPUs have no type.
    """
    if any(node.gpus and node.gpu_type is None for node in cluster.node_types):
        raise SpecError(
            "cluster", "Gavel's policies need the GPU type of every node: v100:8,k80:24"
        )
    return tuple(sorted(cluster.gpu_types))


def _gpus_of(cluster: ClusterSpec, name: str) -> int:
    return sum(node.count * node.gpus for node in cluster.node_types if node.gpu_type == name)


def _names_in(speeds: ThroughputTable, types: tuple[str, ...]) -> list[str]:
    """Return the throughput table's own spelling of the cluster's GPU types.

    Raises:
        SpecError: it does not know one.
    """
    spelt = {name.lower(): name for name in speeds.gpu_types}
    for name in types:
        if name.lower() not in spelt:
            raise SpecError.unknown("cluster: GPU type", name, speeds.gpu_types)
    return [spelt[name.lower()] for name in types]


def _measured(
    table: pa.Table, gangs: np.ndarray, speeds: ThroughputTable, names: list[str]
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return each job's kind, and speeds by kind: alone, spread (kinds, types), and of pairs.

    A job type that was not measured is the last kind, which runs nowhere.
    """
    models = table["template"].to_pylist()
    keys = [(m, int(g) if g == g else 0) for m, g in zip(models, gangs.tolist(), strict=True)]  # noqa: PLR0124 - NaN
    found = sorted({key for key in keys if key in speeds.job_types_known})
    number = {key: at for at, key in enumerate(found)}
    kinds = np.array([number.get(key, len(found)) for key in keys], int)
    shape = (len(found) + 1, len(names))
    alone, spread = np.zeros(shape), np.zeros(shape)
    pairs = np.zeros((len(found) + 1, *shape, 2))
    for kind, key in enumerate(found):
        for at, name in enumerate(names):
            alone[kind, at] = speeds.alone[name].get(key, 0.0)
            apart = speeds.alone.get(name + SPREAD, {}).get(key)
            spread[kind, at] = alone[kind, at] if apart is None or key[1] == 1 else apart
            for mate, other in enumerate(found):
                if other[1] == key[1]:
                    pairs[kind, mate, at] = speeds.pair_speeds(key, other, name)
    return kinds, (alone, spread, pairs)


def _spread_notes(speeds: ThroughputTable, names: list[str]) -> list[str]:
    unknown = [name for name in names if name + SPREAD not in speeds.gpu_types]
    if not unknown:
        return []
    where = ", ".join(unknown)
    told = f"The throughput table has no speeds of gangs spread over nodes on {where}: they run as "
    return [told + "fast as on one node."]


def _accepted(table: pa.Table, types: tuple[str, ...]) -> np.ndarray:
    """Return which types each job accepts, shape (rows, types)."""
    wanted = np.ones((len(table), len(types)), bool)
    for row, text in enumerate(table["gpu_type"].to_pylist()):
        if text:
            named = {part.strip().lower() for part in text.split("|")}
            wanted[row] = [name.lower() in named for name in types]
    return wanted


def _refused(
    table: pa.Table,
    *,
    needed: dict[str, np.ndarray],
    speeds: np.ndarray,
    gangs: np.ndarray,
    capacity: np.ndarray,
    options: FlightOptions,
) -> dict[int, str]:
    """Return why some jobs are not flown, by row.

    Raises:
        SchemaError: there are some, and they were not to be rejected.
    """
    for name in ("oversize", "incomplete"):
        if getattr(options, name) not in ("raise", "reject"):
            raise SpecError.unknown(name, getattr(options, name), ("raise", "reject"))
    reasons: dict[int, str] = {}
    for name, values in needed.items():
        bad = np.isnan(values) | ((values < 1) | (values % 1 != 0) if name == "num_gpus" else False)
        rule = "a whole number of GPUs >= 1" if name == "num_gpus" else "a known number"
        _sort_out(table, (name, rule), np.flatnonzero(bad), options.incomplete, reasons)
    nowhere = np.flatnonzero(~(speeds > 0).any(axis=1))
    nowhere = np.array([row for row in nowhere.tolist() if row not in reasons], int)
    rule = "a job type with a speed on a GPU type of the cluster"
    _sort_out(table, ("template", rule), nowhere, options.incomplete, reasons)
    fits = ((speeds > 0) & (gangs[:, None] <= capacity)).any(axis=1)
    large = np.array([row for row in np.flatnonzero(~fits).tolist() if row not in reasons], int)
    rule = "at most the GPUs of a type on which the job runs"
    _sort_out(table, ("num_gpus", rule), large, options.oversize, reasons)
    return reasons


def _sort_out(
    table: pa.Table,
    rule: tuple[str, str],
    rows: np.ndarray,
    ask: str,
    reasons: dict[int, str],
) -> None:
    """Raise for rows whose column breaks a rule, or note the reason; ``rule``: column, words."""
    if not len(rows):
        return
    column, words = rule
    value = table[column][int(rows[0])].as_py()
    if ask == "raise":
        found = Violation(column, words, len(rows), int(rows[0]) + 1, value, "row")
        raise SchemaError("jobs", [found])
    for row in rows.tolist():
        reasons[row] = f"column {column}: expected {words}"


def _shares(
    table: pa.Table, rows: np.ndarray, work: Work, policy: GavelPolicy, seed: int
) -> Shares:
    """Return the policy, ready to be asked."""
    weights = np.nan_to_num(_floats(table, "priority"), nan=1.0)[rows]
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
    prices = np.array([PRICES.get(name.lower(), math.nan) for name in work.gpu_types])
    if policy.prices:
        if len(policy.prices) != work.num_types:
            wanted = "/".join(work.gpu_types)
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
    )


def _entities(
    table: pa.Table, rows: np.ndarray, policy: GavelPolicy
) -> tuple[tuple[Entity, ...], np.ndarray]:
    """Return the tenants in order of their names, and each job's.

    Raises:
        SpecError: there is no such column, or another number of weights.
    """
    where = f"policy {policy.label}"
    if policy.entities_by not in table.column_names:
        raise SpecError.unknown(f"{where}: by", policy.entities_by, table.column_names)
    names = [str(name) for name in table[policy.entities_by].to_pylist()]
    known = sorted(set(names))
    weights = policy.weights or (1.0,) * len(known)
    if len(weights) != len(known):
        message = f"found {len(weights)}; expected one for each of {', '.join(known)}."
        raise SpecError(f"{where}: weights", message)
    entities = tuple(Entity(n, w, policy.inner) for n, w in zip(known, weights, strict=True))
    return entities, np.array([known.index(names[row]) for row in rows.tolist()], int)


def _settings(
    policy: GavelPolicy, options: FlightOptions, mechanism: str, placement: str
) -> dict[str, Any]:
    given = options.throughputs
    plain = given if isinstance(given, str) else None if given is None else str(given)
    if isinstance(given, ThroughputTable):
        plain = "given"
    parameters = {"round": policy.length, "mechanism": mechanism}
    if mechanism == "published":
        parameters["gap"] = policy.gap
    if policy.partitions > 1:
        parameters["partitions"] = policy.partitions
    return {
        "policy": policy.label,
        **asdict(replace(options, throughputs=plain)),
        "queueing": "policy",
        "placement": placement,
        "sharing": None,
        "estimates": None,
        "engine": "rounds",
        "parameters": parameters,
    }


def _mechanism_notes(mechanism: str, rules: Rules) -> list[str]:
    """Return what a reader of the numbers must know of the mechanism."""
    notes = []
    if mechanism == "published":
        notes.append(
            "As the published simulator: shares are decided on at most every "
            f"{rules.gap:g} s, new jobs hold GPUs without running until then, rounds end when "
            "their last job does, and utilisation counts idle gaps as busy."
        )
    if mechanism == "ideal":
        notes.append("No rounds: each job progresses at the speed that its shares stand for.")
    if rules.packed:
        notes.append(
            "Jobs that share GPUs hold half of them each; GPUs over time count both in full."
        )
    return notes


def _floats(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].cast(pa.float64()).to_numpy(), dtype=np.float64)
