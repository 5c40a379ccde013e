"""From a run's energy to the small tables that its charts draw: lists of plain rows."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.energy.intensity import J_PER_KWH
from windtunnel.report.curves import MAX_BINS, span, time_unit
from windtunnel.report.format import unit_for
from windtunnel.report.names import clean, labels
from windtunnel.sim.timeline import resample

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.energy.account import Account
    from windtunnel.energy.intensity import Series

Row = dict[str, Any]
#: What draws power, from the bottom of the stack: (column, name).
SOURCES: tuple[tuple[str, str], ...] = (
    ("jobs_w", "jobs\u2019 GPUs"),
    ("idle_w", "idle GPUs"),
    ("host_w", "hosts"),
    ("overhead_w", "building"),
)
#: Groups that get a bar of their own; the others are one together.
TOP = 8
_OTHERS = "all others"


def power_unit(watts: float) -> tuple[str, float]:
    """Return the (name, W) of the unit in which a power is best read.

    >>> power_unit(45_000.0)
    ('kW', 1000.0)
    """
    return unit_for(watts, (("MW", 1e6), ("kW", 1e3), ("W", 1.0)), 2)


def energy_unit(joules: float) -> tuple[str, float]:
    """Return the (name, J) of the unit in which an energy is best read.

    >>> energy_unit(9e10)
    ('MWh', 3600000000.0)
    """
    units = (("GWh", 1e6 * J_PER_KWH), ("MWh", 1e3 * J_PER_KWH), ("kWh", J_PER_KWH))
    return unit_for(joules, units, 2)


def times_of(books: Mapping[str, Account]) -> tuple[float, float, str, float]:
    """Return the span of all runs, s, and the name and seconds of the unit it is drawn in."""
    start, stop = span([book.outcome for book in books.values()])
    return (start, stop, *time_unit(stop - start))


def power_rows(books: Mapping[str, Account]) -> tuple[list[Row], str, str]:
    """Return the rows of power over time, and the names of the units of time and power.

    Rows: ``policy``, ``source``, ``order`` (place in the stack), ``time`` (since the first
    submission, in the unit), ``low`` and ``high`` (the source's part of the stack, mean of each
    bin, in the unit). At most `MAX_BINS` bins a run.
    """
    start, stop, unit, second = times_of(books)
    curves = {name: book.power for name, book in books.items()}
    peaks = [float(t["power_w"].to_numpy().max()) for t in curves.values() if t.num_rows]
    watt_name, watt = power_unit(max(peaks, default=0.0))
    rows: list[Row] = []
    for name, book in zip(labels(books), books.values(), strict=True):
        power, end = book.power, book.span[1]
        time = np.append(power["time"].to_numpy(), end)
        below = np.zeros(MAX_BINS)
        for order, (column, source) in enumerate(SOURCES):
            values = np.append(power[column].to_numpy(), 0.0)
            edges, means = resample(time, values, start=start, stop=stop, bins=MAX_BINS)
            means = np.maximum(means / watt, 0.0)
            if not len(means) or not means.any():
                continue
            rows += [
                {
                    "policy": name,
                    "source": source,
                    "order": order,
                    "time": round(float((edge - start) / second), 6),
                    "low": round(float(low), 6),
                    "high": round(float(low + mean), 6),
                }
                for edge, low, mean in zip(edges, below, means, strict=True)
            ]
            below = below + means
    return rows, unit, watt_name


def step_rows(series: Series, books: Mapping[str, Account], size: float = 1.0) -> list[Row]:
    """Return a series over the runs' span as steps: ``time`` (in the charts' unit), ``value``.

    A series of more than `MAX_BINS` steps is drawn as the mean of each bin.

    Args:
        series: what is drawn.
        books: the runs.
        size: values are divided by it.
    """
    start, stop, _, second = times_of(books)
    if stop <= start:
        return []
    changes = series.changes(start, stop)
    if len(changes) > MAX_BINS:
        edges = np.linspace(start, stop, MAX_BINS + 1)
        values = np.diff(series.integral(edges)) / np.diff(edges)
    else:
        rows = list(takewhile(lambda row: row[0] < stop, series.rows_from(start)))
        edges = np.array([*(time for time, _ in rows), stop])
        values = np.array([value for _, value in rows])
    values = np.append(values, values[-1])
    return [
        {"time": round(float((t - start) / second), 6), "value": float(v) / size}
        for t, v in zip(edges, values, strict=True)
    ]


def group_rows(books: Mapping[str, Account], column: str) -> tuple[list[Row], str]:
    """Return the rows of energy by group of jobs, and the name of the unit of energy.

    Rows: ``group``, ``policy``, ``energy`` (in the unit), ``jobs``. The `TOP` groups with most
    energy in any run, in that order, then all others together; none where there is one group only.
    """
    tables = {name: book.by(column).to_pylist() for name, book in books.items()}
    most: dict[str, float] = {}
    for rows in tables.values():
        for row in rows:
            most[row[column]] = max(most.get(row[column], 0.0), row["energy_j"])
    order = sorted(most, key=lambda group: (-most[group], group))
    if len(order) <= 1:
        return [], "kWh"
    unit, joule = energy_unit(max(most.values()))
    top = set(order[:TOP])
    found: list[Row] = []
    for name, rows in zip(labels(books), tables.values(), strict=True):
        sums: dict[str, list[float]] = {}
        for row in rows:
            label = clean(row[column], 24) if row[column] in top else _OTHERS
            total = sums.setdefault(label, [0.0, 0])
            total[0] += row["energy_j"] / joule
            total[1] += row["jobs"]
        names = [clean(group, 24) for group in order[:TOP]] + [_OTHERS]
        found += [
            {"group": g, "policy": name, "energy": sums[g][0], "jobs": int(sums[g][1])}
            for g in dict.fromkeys(names)
            if g in sums
        ]
    return found, unit


def type_rows(books: Mapping[str, Account]) -> tuple[list[Row], str]:
    """Return the rows of energy by GPU type, and the name of the unit of energy.

    Rows: ``group`` (the type), ``policy``, ``energy`` of the jobs on it; none where the cluster has
    one type only.
    """
    tables = {name: book.by_type().to_pylist() for name, book in books.items()}
    most = max((row["jobs_j"] for rows in tables.values() for row in rows), default=0.0)
    if max(map(len, tables.values()), default=0) <= 1:
        return [], "kWh"
    unit, joule = energy_unit(most)
    return [
        {"group": clean(row["gpu_type"], 24), "policy": name, "energy": row["jobs_j"] / joule}
        for name, rows in zip(labels(books), tables.values(), strict=True)
        for row in rows
    ], unit
