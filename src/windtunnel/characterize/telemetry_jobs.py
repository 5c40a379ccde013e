"""What did the jobs do with the GPUs that they held? Samples of telemetry joined to jobs.

A sample belongs to the job that its source names, else to every job that held the device when it
was taken (start <= time < end). Two jobs that share a GPU both count its samples: telemetry of a
device cannot be split between them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.relation import relation, typed
from windtunnel.characterize.telemetry_counts import pooled
from windtunnel.characterize.telemetry_segments import Segments, segments_of
from windtunnel.checked import checked_choice, checked_number
from windtunnel.sim.metrics import size_classes

if TYPE_CHECKING:
    from windtunnel.companions import Relation

#: Properties of jobs that `utilization_by` groups by.
UTILIZATION_BY: tuple[str, ...] = ("user", "vc", "workload", "status", "num_gpus", "template")
#: The label of samples whose job lacks the property, and of those that no job held.
NONE, UNHELD = "(none)", "(not held)"
_PLACED = ("time", "node", "gpu", "job_id", "metric", "value")
_MEDIAN, _P90 = 50.0, 90.0


def job_utilization(
    samples: Relation, holdings: Relation, metric: str, *, interval: float | None = None
) -> pa.Table:
    """Return how each job used what it held, by one metric.

    Args:
        samples: a table of samples (`windtunnel.companions.SAMPLE_COLUMNS`), its times in the
            trace's time.
        holdings: who held which device when (`windtunnel.companions.HOLDING_COLUMNS`); fits
            memory. A holding without a GPU is of the whole node; a sample without one is of the
            node, and of every job on it.
        metric: which measurement.
        interval: seconds between the samples of a device; None = as measured, the median over
            the stretches of time between two changes of holders.

    Returns:
        One row a job that holds or is named by a sample, by name: ``job_id``, ``n`` int64
        (samples), ``n_shared`` int64 (those that another job counts too), ``mean``, ``p50``,
        ``p90``, ``max`` (null without samples), ``held_seconds`` (summed over the devices that
        its holdings name; null = it has none, or one without an end), ``covered_share`` (0..1:
        share of the held time that samples stand for; null where that time is unknown). The
        schema's metadata ``windtunnel.left_out`` counts the samples that belong to no job.

    Raises:
        SchemaError: a column is missing, or a holding has no start, or ends before it.
        SpecError: ``interval`` is no number above 0.
    """
    if interval is not None:
        checked_number("interval", interval, "seconds above 0", above=0)
    found = segments_of(holdings)
    placed = located(samples, metric, found)
    by_job = _by_key(attributed(placed, found), "job", (_MEDIAN, _P90))
    left_out = by_job.pop(None, {}).get("n", 0)
    covered = _covered(placed, found, interval)
    names = sorted({*found.held, *(name for name in by_job if name is not None)})
    rows = [
        {
            "job_id": name,
            **_statistics(by_job.get(name)),
            "held_seconds": _known(found.held.get(name)),
            "covered_share": covered.get(name),
        }
        for name in names
    ]
    columns = "job_id n n_shared mean p50 p90 max held_seconds covered_share"
    schema = typed(columns, "tiiffffff")
    table = pa.Table.from_pylist(rows, schema=schema)
    return table.replace_schema_metadata({"windtunnel.left_out": str(left_out)})


def utilization_by(
    samples: Relation, holdings: Relation, jobs: Relation, metric: str, by: str
) -> pa.Table:
    """Return how groups of jobs used what they held, by one metric.

    Args:
        jobs: a jobs table (`windtunnel.schema`); fits memory.
        metric: which measurement.
        by: one of `UTILIZATION_BY`; ``num_gpus`` means the size classes of
            `windtunnel.sim.metrics`.

    Returns:
        One row a group that has samples: ``by`` (text), ``n`` int64 (pairs of a sample and a job
        that it belongs to), ``n_shared`` int64 (those of devices that several jobs held),
        ``mean``, ``p50``, ``p90``, ``max``, ``zero_share`` (0..1). ``"(none)"`` = the job is not
        in the table or lacks the property, ``"(not held)"`` = samples of no job. Size classes in
        order of size, else most samples first, then by name; "(not held)" last.

    Raises:
        SchemaError: a column is missing, or a holding has no start, or ends before it.
        SpecError: ``by`` is none of `UTILIZATION_BY`.
    """
    import ibis

    checked_choice("by", by, UTILIZATION_BY)
    found = segments_of(holdings)
    labels, order = _labels(jobs, by)
    owned = attributed(located(samples, metric, found), found)
    known = ibis.memtable(labels)
    joined = owned.left_join(known, ["job"])
    label = ibis.ifelse(joined.job.isnull(), UNHELD, joined.label.fill_null(NONE))
    grouped = joined.select(label=label, value=joined.value, shared=joined.shared)
    groups = _by_key(grouped, "label", (_MEDIAN, _P90))
    names = sorted(groups, key=lambda name: (name == UNHELD, *_rank(name, groups, order)))
    rows = [
        {
            by: name,
            **_statistics(groups[name]),
            "zero_share": groups[name]["zeros"] / groups[name]["n"],
        }
        for name in names
    ]
    schema = typed(f"{by} n n_shared mean p50 p90 max zero_share", "tiifffff")
    return pa.Table.from_pylist(rows, schema=schema)


def located(samples: Relation, metric: str, found: Segments) -> Any:
    """Return the samples of a metric with the segment that each falls on, null = none.

    Joins on equal keys with tables as small as the holdings: samples stream through, and the same
    expression runs on every backend.

    Returns:
        Ibis table: ``time``, ``node``, ``gpu``, ``job_id``, ``value``, ``segment``; a row a sample.
    """
    import ibis

    table = relation(samples, _PLACED)
    table = table.filter(table.metric == metric)
    named, nodes = ibis.memtable(found.named), ibis.memtable(found.nodes)
    # Keys are named by text: Ibis resolves an expression on a chain of joins to the wrong table.
    by_gpu = table.left_join(named, ["node", "gpu"]).rename(gpu_line="line")
    by_node = by_gpu.select("time", "node", "gpu", "job_id", "value", "gpu_line").left_join(
        nodes, ["node"]
    )
    of_gpu = by_node.gpu_line.fill_null(by_node.any_line)
    line = ibis.ifelse(by_node.gpu.isnull(), by_node.node_line, of_gpu)
    grid = found.grid
    piece = ((by_node.time - grid.origin) / grid.width).floor().clip(0, grid.last).cast("int64")
    lined = by_node.mutate(line=line, piece=piece)
    lined = lined.select("time", "node", "gpu", "job_id", "value", "line", "piece")
    pieces = ibis.memtable(found.pieces)
    within = [
        lined.line == pieces.line,
        lined.piece == pieces.piece,
        lined.time >= pieces.begin,
        lined.time < pieces.finish,
    ]
    joined = lined.left_join(pieces, within)
    return joined.select("time", "node", "gpu", "job_id", "value", "segment")


def attributed(placed: Any, found: Segments) -> Any:
    """Return the samples with their jobs, a row for each pair; ``job`` null = no job's.

    Returns:
        Ibis table: ``job``, ``value``, ``shared``, ``time``, ``node``, ``gpu``.
    """
    import ibis

    holders = ibis.memtable(found.holders)
    # A job that the source names is the one; who held the device is not asked then.
    asked = placed.mutate(
        segment=ibis.ifelse(placed.job_id.isnull(), placed.segment, ibis.null("int64"))
    )
    joined = asked.left_join(holders, ["segment"])
    named = joined.mutate(
        job=joined.job_id.fill_null(joined.holder),
        shared=joined.shared.fill_null(ibis.literal(False)),
    )
    return named.select("job", "value", "shared", "time", "node", "gpu")


def _by_key(samples: Any, key: str, at: tuple[float, ...]) -> dict[str | None, dict[str, Any]]:
    """Return group -> its statistics, with the quantile at each percent under ``pNN``."""
    groups: dict[str | None, dict[str, Any]] = {}
    for row in pooled(samples, (key,), at).to_pyarrow().to_pylist():
        group = groups.setdefault(row[key], row)
        group[f"p{row['percent']:g}"] = row["value"]
    return groups


def _statistics(row: dict[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {"n": 0, "n_shared": 0}
    return {name: row[name] for name in ("n", "n_shared", "mean", "p50", "p90", "max")}


def _known(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else seconds


def _covered(placed: Any, found: Segments, interval: float | None) -> dict[str, float]:
    """Return job -> the share of its held time that samples stand for.

    A segment is covered for as long as its distinct sample times last at the interval. Where
    samples are of GPUs the time of GPUs counts, where they are of nodes that of nodes.
    """
    timed = placed.filter(placed.segment.notnull())
    seen = (
        timed.group_by("segment")
        .aggregate(times=timed.time.nunique(), first=timed.time.min(), last=timed.time.max())
        .to_pyarrow()
    )
    place = seen["segment"].to_numpy()
    times = np.zeros(len(found.is_node))
    times[place] = seen["times"].to_numpy()
    apart = _interval(seen) if interval is None else interval
    lengths = found.finish - found.begin
    covered = np.minimum(lengths, times * apart)
    matters = np.isin(found.is_node, np.unique(found.is_node[place]))
    if not len(place):
        matters = np.ones(len(lengths), bool)
    segment = found.holders["segment"].to_numpy()
    segment_matters = matters[segment]
    who = found.holders["holder"].combine_chunks().dictionary_encode()
    code, segment = who.indices.to_numpy()[segment_matters], segment[segment_matters]
    got = np.bincount(code, covered[segment], len(who.dictionary))
    of = np.bincount(code, lengths[segment], len(who.dictionary))
    return {
        name: float(had / held)
        for name, had, held in zip(who.dictionary.to_pylist(), got, of, strict=True)
        if 0 < held < math.inf
    }


def _interval(seen: pa.Table) -> float:
    """Return the median distance of samples over segments, each weighed by its samples; 0 = none.

    Args:
        seen: ``times`` (how many), ``first``, ``last`` (s) of each segment.
    """
    times = seen["times"].to_numpy().astype(np.float64)
    first, last = seen["first"].to_numpy(), seen["last"].to_numpy()
    several = times > 1
    if not several.any():
        return 0.0
    apart = (last - first)[several] / (times[several] - 1)
    order = np.argsort(apart, kind="stable")
    reached = np.cumsum((times[several] - 1)[order])
    return float(apart[order][np.searchsorted(reached, reached[-1] / 2)])


def _labels(jobs: Relation, by: str) -> tuple[pa.Table, dict[str, int]]:
    """Return each job's label, and the labels' order where they have one."""
    table = relation(jobs, ("job_id", by)).to_pyarrow()
    if by != "num_gpus":
        return pa.table({"job": table["job_id"], "label": table[by].cast(pa.string())}), {}
    sizes = np.asarray(table[by].cast(pa.float64()).to_numpy(), np.float64)
    classes, names = size_classes(sizes)
    known = [
        None if np.isnan(size) else names[code] for size, code in zip(sizes, classes, strict=True)
    ]
    labels = pa.table({"job": table["job_id"], "label": pa.array(known, pa.string())})
    return labels, {name: place for place, name in enumerate([*names, NONE])}


def _rank(
    name: str | None, groups: dict[str | None, dict[str, Any]], order: dict[str, int]
) -> tuple[int, str]:
    label = name or ""
    return (order.get(label, len(order)) if order else -groups[name]["n"], label)
