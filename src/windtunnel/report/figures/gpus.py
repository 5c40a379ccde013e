"""Sharing GPUs: what it saves over time, and how many workers a GPU has (PAI talk)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.characterize.contention import colocation
from windtunnel.characterize.levels import run_intervals
from windtunnel.characterize.relation import rows as rows_of
from windtunnel.characterize.sharing import sharing_over_time, sharing_savings
from windtunnel.report.chart.axes import numbers
from windtunnel.report.curves import time_unit
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, across, within
from windtunnel.report.figures.panels import Plan, bars, by_panel, curves
from windtunnel.report.figures.requests import tasks_of
from windtunnel.report.format import duration, plural

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: Steps of a curve over time: whole hours where the trace is long enough.
STEPS = 300
_HOUR = 3600.0
_CURVES = {
    "gpus_unshared": "without sharing",
    "gpus_occupied": "as it was",
    "gpus_saved": "saved",
}


def span_of(tasks: Any) -> tuple[float, float]:
    """Return the first beginning and the last end of the tasks, s.

    Raises:
        Lacking: no task has both.
    """
    ran, n, _ = run_intervals(tasks, ())
    if not n:
        raise Lacking("no task has both a start and an end")
    (span,) = rows_of(ran.aggregate(first=ran.begin.min(), last=ran.end.max()))
    return float(span["first"]), float(span["last"])


def step_for(span: tuple[float, float], steps: int = STEPS) -> float:
    """Return a step that divides a span into at most ``steps``: whole hours where it can.

    >>> step_for((0.0, 600 * 3600.0), 300), step_for((0.0, 300.0), 300)
    (7200.0, 1.0)
    """
    length = max(span[1] - span[0], 1.0)
    for unit in (1.0, 10.0, 60.0, 600.0, _HOUR):
        if length / unit <= steps:
            return unit
    return _HOUR * -(-length // (_HOUR * steps))


def _savings(series: Series) -> Answer:
    tasks = tasks_of(series)
    span = span_of(tasks)
    step = step_for(span)
    table = sharing_over_time(tasks, step=step, sample="mean")
    if not table.num_rows:
        return Answer(table, 0, 0)
    n, left_out, reasons = (table[name][0].as_py() for name in ("n", "left_out", "why"))
    unit, length = time_unit(span[1] - span[0])
    since = [(time - span[0]) / length for time in table["time"].to_pylist()]
    size = table.num_rows
    parts = [
        pa.table(
            {
                "curve": pa.repeat(label, size),
                "time": since,
                "unit": pa.repeat(unit, size),
                "gpus": table[name].cast(pa.float64()),
                "n": table["n"].cast(pa.int64()),
                "left_out": table["left_out"].cast(pa.int64()),
            }
        )
        for name, label in _CURVES.items()
    ]
    notes = [f"the curves are means over {duration(step)}."]
    # The note is the headline: the talk's count, of the full hours.
    saved = sharing_savings(tasks)
    if saved["saved_share"] is not None:
        notes.insert(
            0,
            f"at full hours sharing saves {100 * saved['saved_share']:.1f} % of the GPUs on "
            f"average, {saved['peak_saved']:,.0f} at its peak.",
        )
    return Answer(pa.concat_tables(parts), n, left_out, reasons, tuple(notes))


def _savings_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    last = max(row["time"] for row in rows)
    x = numbers("time", f"Time since the first task, {rows[0]['unit']}", (0.0, last or 1.0))
    low, high = (f(row["gpus"] for row in rows) for f in (min, max))
    y = numbers("gpus", "GPUs", (min(low, 0.0), 1.05 * (high or 1.0)))
    entries = {
        row["curve"]: f"{row['curve']} (n = {plural(row['n'], 'task')})"
        if row["curve"] == _CURVES["gpus_unshared"]
        else row["curve"]
        for row in rows
    }
    return curves(rows, look, x=x, y=y, series="curve", entries=entries, **how)


#: So many workers and more are drawn together.
_MANY = 5


def _workers(series: Series, column: str) -> Answer:
    tasks = tasks_of(series)
    table = series.once("colocation", partial(colocation, tasks))
    found = table.to_pylist()
    total = sum(row[column] for row in found)
    if not total:
        return Answer(table, 0, 0)
    times = dict.fromkeys([*(str(i) for i in range(1, _MANY)), f"{_MANY}+"], 0.0)
    for row in found:
        times[str(row["workers"]) if row["workers"] < _MANY else f"{_MANY}+"] += row[column]
    first = found[0]
    part = pa.Table.from_pylist(
        [
            {
                "workers": workers,
                "gpu_time": time,
                "percent": 100 * time / total,
                "n": first["n"],
                "left_out": first["left_out"],
            }
            for workers, time in times.items()
        ]
    )
    return Answer(part, first["n"], first["left_out"], first["why"])


def _workers_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return workers on a GPU; n counts tasks."""
    named = [
        {**row, "line": "1 worker" if row["workers"] == "1" else f"{row['workers']} workers"}
        for row in rows
    ]
    entries = {row["trace"]: f"{row['trace']} (n = {plural(row['n'], 'task')})" for row in rows}
    named.sort(key=lambda row: row["workers"])
    return bars(
        named,
        look,
        value=numbers("percent", "% of the GPU time"),
        line="line",
        series="trace",
        text=lambda v: f"{v:.1f}",
        entries=entries,
        **how,
    )


#: The GPUs that running tasks occupy and would occupy without sharing, over time.
SAVINGS = Plan(
    within(
        Measure(
            "GPUs with and without sharing",
            _savings,
            "no task tells its node, GPU, request and times",
        )
    ),
    by_panel(_savings_panel),
)
#: The GPU time with one worker, two, ..., and that of GPUs at 95 % and above.
WORKERS = Plan(
    across(
        Measure(
            "All GPU time",
            partial(_workers, column="gpu_time"),
            "no task tells its node, GPU and GPU use",
        ),
        Measure(
            "GPU time at 95 % use and above",
            partial(_workers, column="busy_gpu_time"),
            "no GPU was ever at 95 % use",
        ),
    ),
    by_panel(_workers_panel),
)
