"""From outcomes to the small tables that the charts draw: lists of plain rows, nothing else.

Everything is aggregated before it is drawn: a distribution is at most `MAX_POINTS` quantiles, a
curve over time at most `MAX_BINS` exact averages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.quantiles import quantiles
from windtunnel.report.chart.axes import EDGE, limits
from windtunnel.report.format import is_known, unit_for
from windtunnel.report.names import clean, labels
from windtunnel.sim.metrics import NONE, horizon, size_classes
from windtunnel.sim.timeline import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

Row = dict[str, Any]
Quantity = Literal["wait", "jct"]
#: What is drawn over time, a panel a run.
Curve = Literal["utilization", "queue", "oldest", "fragmentation"]

#: Points of one drawn distribution.
MAX_POINTS = 400
#: Averages of one drawn curve over time; no more than pixels it has.
MAX_BINS = 200
#: Round lengths of time, s.
_STEPS: tuple[float, ...] = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 6 * 3600, 12 * 3600),
    *(86400 * days for days in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)),
)
#: Time unit of an x axis: (its name, its seconds), the first of which the span has three or more.
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def named(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Outcome]]:
    """Return (distinct harmless label, outcome) pairs in order."""
    return list(zip(labels(outcomes), outcomes.values(), strict=True))


def values(outcome: Outcome, quantity: Quantity) -> np.ndarray:
    """Return the known waits or completion times of counted jobs, s, shape (k,), in order."""
    column = pc.drop_null(outcome.table[quantity].filter(pa.array(outcome.counted)))
    return np.asarray(column.to_numpy(), dtype=np.float64)


def distribution(sample: np.ndarray, right: float) -> list[tuple[float, float]]:
    """Return points (value, share of jobs at or below it) of a cumulative distribution.

    Values under `EDGE`, zeros included, lie on the edge: the curve starts there at their share. It
    is drawn on at 1 to ``right``, so that curves of several runs end together.

    Args:
        sample: Float array of shape (n,), s, any order.
        right: right end of the axis, s.

    Returns:
        At most `MAX_POINTS` points, both coordinates non-decreasing; empty for an empty sample.
    """
    if len(sample) == 0:
        return []
    at_edge = float((sample <= EDGE).mean())
    shares = np.linspace(at_edge, 1.0, min(MAX_POINTS - 2, max(2, 2 * len(sample))))
    points = np.maximum(quantiles(sample, shares.tolist()), EDGE)
    rows = [(EDGE, at_edge)] if at_edge else []
    rows += [(float(x), float(y)) for x, y in zip(points, shares, strict=True)]
    if rows[-1][0] < right:
        rows.append((right, 1.0))
    return rows


def distributions(outcomes: Mapping[str, Outcome], quantity: Quantity) -> list[Row]:
    """Return the rows of a CDF chart: ``policy`` (label with its n), ``seconds``, ``share``."""
    samples = [(name, values(outcome, quantity)) for name, outcome in named(outcomes)]
    _, right = limits([float(s.max()) for _, s in samples if len(s)])
    return [
        {"policy": counted(name, len(sample)), "seconds": x, "share": y}
        for name, sample in samples
        for x, y in distribution(sample, right)
    ]


def counted(name: str, n: int) -> str:
    """Return a legend entry with its n.

    >>> counted("fifo", 1200)
    'fifo (n = 1,200)'
    """
    return f"{name} (n = {n:,})"


def span(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return (first submission, last end) over all runs that have jobs, s."""
    spans = [horizon(o) for o in outcomes if len(o.submit_time)]
    if not spans:
        return 0.0, 0.0
    return min(s[0] for s in spans), max(s[1] for s in spans)


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the (name, seconds) of the unit in which a span is best read.

    >>> time_unit(10 * 86400), time_unit(7200)
    (('days', 86400.0), ('minutes', 60.0))
    """
    return unit_for(seconds, _UNITS, 3)


def round_times(longest: float) -> list[float]:
    """Return times from 0 to ``longest`` (s) to put on a linear axis: three steps of round length.

    >>> round_times(17 * 86400)
    [0.0, 432000.0, 864000.0, 1296000.0]
    """
    step = next((s for s in _STEPS if longest < 4 * s), _STEPS[-1])
    while longest >= 4 * step:
        step *= 2
    return [index * step for index in range(int(longest // step) + 1)]


def over_time(outcomes: Mapping[str, Outcome], curve: Curve) -> tuple[list[Row], str]:
    """Return the rows of a chart over time, and the name of the unit of ``time``.

    Rows: ``policy``, ``time`` (since the first submission, in the unit), ``value`` (mean fraction
    of GPUs in use, mean number of waiting jobs, longest wait so far of any job, s, or mean
    fragments as a fraction of all GPUs, in the bin), ``first`` (the first run's value in the same
    bin, to compare with). At most `MAX_BINS` bins a run, all on the same edges.
    """
    start, stop = span(list(outcomes.values()))
    unit, length = time_unit(stop - start)
    rows: list[Row] = []
    first: np.ndarray | None = None
    for name, outcome in named(outcomes):
        edges, means = _binned(outcome, curve, start, stop)
        # Sums of +1 and -1 areas leave dust of 1e-17 where a curve is 0.
        means = np.maximum(np.round(means, 9), 0.0)
        first = means if first is None else first
        reference = first if len(first) == len(means) else np.zeros(len(means))
        rows += [
            {
                "policy": name,
                "time": round(float((edge - start) / length), 6),
                "value": float(mean),
                "first": float(base),
            }
            for edge, mean, base in zip(edges, means, reference, strict=True)
        ]
    return rows, unit


def _binned(
    outcome: Outcome, curve: Curve, start: float, stop: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the left edges of bins, s, and the curve's value in each."""
    if curve == "oldest":
        return oldest_in_bins(outcome, start, stop)
    if curve == "utilization":
        found, column = outcome.utilization(), "utilization"
    elif curve == "queue":
        found, column = outcome.queue(), "jobs"
    else:
        found, column = outcome.fragmentation(weigh="gpu_time"), "frag_amount"
    return resample(
        np.asarray(found["time"].to_numpy()),
        np.asarray(found[column].to_numpy(), dtype=np.float64),
        start=start,
        stop=stop,
        bins=MAX_BINS,
    )


def oldest_in_bins(outcome: Outcome, start: float, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the longest that any job has waited so far, in each of `MAX_BINS` equal bins.

    Args:
        outcome: the run.
        start: left end of the first bin, s.
        stop: right end of the last bin, s.

    Returns:
        Left edges of the bins and the waits, s, both of shape (bins,), 0 where none waits; empty if
        the span is empty.
    """
    if stop <= start:
        return np.empty(0), np.empty(0)
    edges = np.linspace(start, stop, MAX_BINS + 1)
    table = outcome.oldest_waiting()
    begin, end, longest = (
        np.asarray(table[name].to_numpy()) for name in ("from_time", "until_time", "wait_until")
    )
    waits = np.zeros(MAX_BINS)
    # A wait grows to the end of its span, so a bin's longest is at the end of a span in it, or at
    # the bin's own right end, within a span that goes on.
    bins = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, MAX_BINS - 1)
    np.maximum.at(waits, bins, longest)
    across = np.searchsorted(begin, edges[1:], side="left") - 1
    goes_on = (across >= 0) & (end[across] > edges[1:]) if len(end) else np.zeros(MAX_BINS, bool)
    at = across[goes_on]
    so_far = longest[at] - (end[at] - edges[1:][goes_on]) if len(end) else np.empty(0)
    waits[goes_on] = np.maximum(waits[goes_on], so_far)
    return edges[:-1], waits


def by_type(outcomes: Mapping[str, Outcome], top: int) -> tuple[list[Row], str]:
    """Return the rows of the chart of GPU types over time, and the name of the unit of ``time``.

    Rows: ``type`` (with its GPUs), ``policy``, ``time`` (since the first submission, in the unit),
    ``value`` (mean fraction of the type's GPUs in use in the bin). The ``top`` types with most GPUs
    are there; none where a run is on a cluster of one type, or does not say which type a job used.
    """
    start, stop = span(list(outcomes.values()))
    unit, length = time_unit(stop - start)
    rows: list[Row] = []
    for name, outcome in named(outcomes):
        table = outcome.allocation_by_type()
        types = dict.fromkeys(table["gpu_type"].to_pylist())
        if len(types) == 1 or table["utilization"].null_count:
            return [], unit
        sizes = {kind: _gpus_of_type(outcome, kind) for kind in types}
        for kind in sorted(types, key=lambda kind: -sizes[kind])[:top]:
            mine = table.filter(pc.equal(table["gpu_type"], kind))
            edges, means = resample(
                np.asarray(mine["time"].to_numpy()),
                np.asarray(mine["utilization"].to_numpy()),
                start=start,
                stop=stop,
                bins=MAX_BINS,
            )
            label = f"{clean(kind, 24)} ({sizes[kind]:,} GPUs)"
            rows += [
                {
                    "type": label,
                    "policy": name,
                    "time": round(float((edge - start) / length), 6),
                    "value": max(round(float(mean), 9), 0.0),
                }
                for edge, mean in zip(edges, means, strict=True)
            ]
    return rows, unit


def _gpus_of_type(outcome: Outcome, kind: str) -> int:
    nodes = outcome.cluster.node_types
    return sum(node.count * node.gpus for node in nodes if (node.gpu_type or NONE) == kind)


def size_order(present: set[str]) -> list[str]:
    """Return the labels of the size classes that are present, smallest first."""
    return [label for label in size_classes(np.empty(0))[1] if label in present]


def waits_by_size(outcomes: Mapping[str, Outcome]) -> list[Row]:
    """Return the rows of the chart of waits by size.

    Rows: ``size`` (GPUs, text), ``policy``, ``num_jobs``, ``p50``, ``p90``, ``p99`` (s, not under
    `EDGE`); classes in which no job started are left out.
    """
    rows = []
    for name, outcome in named(outcomes):
        for row in outcome.by_size().to_pylist():
            if is_known(row["p50_wait"]):
                points = {p: max(EDGE, row[f"{p}_wait"]) for p in ("p50", "p90", "p99")}
                rows.append(
                    {"size": row["size"], "policy": name, "num_jobs": row["num_jobs"], **points}
                )
    return rows


def shares_by_size(outcome: Outcome) -> list[Row]:
    """Return the rows of the chart of who the jobs are.

    Rows: ``size`` (GPUs, text), ``of`` (``"jobs"`` or ``"GPU time held"``), ``share`` (0..1).
    """
    table = outcome.by_size().to_pylist()
    rows = []
    for key, label in (("num_jobs", "jobs"), ("gpu_time", "GPU time held")):
        total = sum(row[key] for row in table)
        rows += [
            {"size": row["size"], "of": label, "share": row[key] / total if total else 0.0}
            for row in table
        ]
    return rows
