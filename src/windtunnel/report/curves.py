"""From outcomes to the small tables that the charts draw: lists of plain rows, nothing else.

Everything is aggregated before it is drawn: a distribution is at most `MAX_POINTS` quantiles, a
curve over time at most `MAX_BINS` exact averages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow.compute as pc

from windtunnel.quantiles import quantiles
from windtunnel.report.format import is_known
from windtunnel.report.names import labels
from windtunnel.sim.metrics import horizon, size_classes
from windtunnel.sim.timeline import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

Row = dict[str, Any]
Quantity = Literal["wait", "jct"]

#: Points of one drawn distribution.
MAX_POINTS = 400
#: Averages of one drawn curve over time; no more than pixels it has.
MAX_BINS = 200
#: Left edge of logarithmic time axes, s: shorter times, and none at all, are drawn on it.
EDGE = 1.0
#: Time unit of an x axis: (its name, its seconds), the first of which the span has three or more.
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def named(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Outcome]]:
    """Return (distinct harmless label, outcome) pairs in order."""
    return list(zip(labels(outcomes), outcomes.values(), strict=True))


def values(outcome: Outcome, quantity: Quantity) -> np.ndarray:
    """Return the known waits or completion times in s, shape (k,), jobs-table order."""
    column = pc.drop_null(outcome.table[quantity])
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


def limits(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic time axis: the edge, and room beyond the longest time.

    >>> limits([]), limits([100.0])
    ((1.0, 10.0), (1.0, 105.0))
    """
    return EDGE, max(10 * EDGE, 1.05 * max(seconds, default=EDGE))


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
    return next((u for u in _UNITS if seconds >= 3 * u[1]), _UNITS[-1])


def over_time(
    outcomes: Mapping[str, Outcome], curve: Literal["utilization", "queue"]
) -> tuple[list[Row], str]:
    """Return the rows of a chart over time, and the name of the unit of ``time``.

    Rows: ``policy``, ``time`` (since the first submission, in the unit), ``value`` (mean fraction
    of GPUs in use, or mean number of waiting jobs, in the bin), ``first`` (the first run's value in
    the same bin, to compare with). At most `MAX_BINS` bins a run, all on the same edges.
    """
    start, stop = span(list(outcomes.values()))
    unit, length = time_unit(stop - start)
    column = "utilization" if curve == "utilization" else "jobs"
    rows: list[Row] = []
    first: np.ndarray | None = None
    for name, outcome in named(outcomes):
        table = getattr(outcome, curve)()
        edges, means = resample(
            np.asarray(table["time"].to_numpy()),
            np.asarray(table[column].to_numpy(), dtype=np.float64),
            start=start,
            stop=stop,
            bins=MAX_BINS,
        )
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
