"""Figures of one trace, for its page: each a table, then its chart.

Waits and failures by size, concentration on users, the cluster over time, and measured use.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.concentration import concentration
from windtunnel.characterize.failures import failures_by
from windtunnel.characterize.population import NONE
from windtunnel.characterize.series import usage_series
from windtunnel.characterize.spread import box_statistics
from windtunnel.report.chart.axes import Axis, numbers, percent, seconds
from windtunnel.report.figures.collecting import (
    LETTERS,
    Answer,
    FigureData,
    Lacking,
    Measure,
    Part,
    across,
    counted,
    with_columns,
    within,
)
from windtunnel.report.figures.panels import Plan, bars, boxes, by_panel, curves, framed
from windtunnel.report.format import plural, size_text, unit_for
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series
    from windtunnel.report.measured_use import MeasuredUse

#: Averages of a curve over time, and points of a curve over users, at most.
_MOST_STEPS, _MOST_POINTS = 300, 400
#: Metrics of one source of telemetry that are drawn.
_MOST_METRICS = 12
_WHOLE = 100.0


def _waits(series: Series) -> Answer:
    table = box_statistics(series.trace.jobs, "wait", by="num_gpus", where="gpu")
    answer = counted(table, "num_gpus", lacking="a number of GPUs")
    filled = answer.table.filter(pc.greater(answer.table["n"], 0))
    beyond = sum(filled["outliers_high"].to_pylist()) + sum(filled["outliers_low"].to_pylist())
    notes: tuple[str, ...] = ()
    if beyond:
        share = 100 * beyond / answer.n
        notes = (f"{beyond:,} jobs ({share:.1f} %) lie beyond the whiskers and are not drawn.",)
    return replace(answer, table=filled, notes=notes)


def _draw_waits(table: pa.Table, look: Look) -> Any:
    """Return box plots of waits by size; waits up to a second lie on the edge."""
    high = max([row["whisker_high"] for row in table.to_pylist()] + [60.0])
    axis = seconds("wait", "Wait (log; up to 1 s on the edge)", (1.0, 1.3 * high))

    def panel(rows: list[Row], **how: Any) -> Any:
        entries = [f"{size_text(row['num_gpus'])} GPU (n = {row['n']:,})" for row in rows]
        names = [row["trace"] for row in rows]
        return boxes(rows, look, value=axis, names=names, entries=entries, **how)

    return framed(table, look, panel)


def _failures(series: Series, of: str) -> Answer:
    """Return the shares of one kind by class of size, in percent."""
    jobs = series.trace.jobs
    if jobs["status"].null_count == jobs.num_rows:
        raise Lacking("the trace tells no status")
    table = failures_by(jobs, "num_gpus")
    known = pc.and_(pc.not_equal(table["num_gpus"], NONE), pc.is_valid(table[of]))
    table = table.filter(known)
    sized = pc.fill_null(pc.greater(jobs["num_gpus"], 0), fill_value=False)
    total = pc.sum(sized).as_py() or 0
    timed = pc.sum(pc.and_(sized, pc.is_valid(jobs["duration"]))).as_py() or 0
    n = total if of == "failed_share" else timed
    unknown = sum(table["no_status"].to_pylist())
    drawn = pa.table(
        {
            "num_gpus": table["num_gpus"],
            "percent": pc.multiply(table[of], _WHOLE),
            "num_jobs": table["num_jobs"].cast(pa.int64()),
            "num_failed": table["num_failed"],
        }
    )
    drawn = with_columns(drawn, n=n, left_out=total - n)
    notes = (f"{unknown:,} jobs of unknown end count as not failed.",) if unknown else ()
    return Answer(drawn, n, total - n, "", notes)


def _draw_failures(table: pa.Table, look: Look) -> Any:
    all_names = [f"{size_text(row['num_gpus'])} GPU" for row in table.to_pylist()]

    def panel(rows: list[Row], **how: Any) -> Any:
        shown = [{**row, "size": f"{size_text(row['num_gpus'])} GPU"} for row in rows]
        noun = "GPU time of the class" if "GPU time" in rows[0]["title"] else "jobs of the class"
        return bars(
            shown,
            look,
            value=numbers("percent", f"% of {noun}"),
            line="size",
            series="trace",
            text=lambda value: f"{value:.1f}",
            all_names=all_names,
            **how,
        )

    return framed(table, look, panel)


def _users(series: Series, of: str) -> Answer:
    """Return the curve over users, thinned."""
    jobs = series.trace.jobs
    if jobs["user"].null_count == jobs.num_rows:
        raise Lacking("no job tells its user")
    table = concentration(jobs, of)
    if not table.num_rows or table["percent"][-1].as_py() is None:
        return Answer(table, 0, 0)
    last = table.num_rows - 1
    # Few users have most of it: the points lie dense where the curve is steep.
    at = np.unique(np.geomspace(1, last + 1, _MOST_POINTS).round().astype(np.int64)) - 1
    thin = table.take(pa.array(at))
    origin = pa.table({"rank": [0], "user_percent": [0.0], "percent": [0.0]})
    points = pa.concat_tables([origin, thin.select(origin.column_names).cast(origin.schema)])
    n, left_out, unnamed = (int(table[name][0].as_py()) for name in ("n", "left_out", "unnamed"))
    points = with_columns(points, users=last + 1, n=n, left_out=left_out + unnamed)
    why = f"{unnamed:,} jobs without a user" if unnamed else ""
    return Answer(points, n, left_out + unnamed, why)


def _users_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return the concentration on users, with a line at 5 % of them."""
    noun = "GPU time" if rows[0]["title"].startswith("GPU time") else "jobs"
    entries = {row["trace"]: f"{row['trace']} (n = {plural(row['users'], 'user')})" for row in rows}
    x = replace(percent("user_percent", "Users, most first, % (line: 5 %)"), domain=(0, 100.8))
    y = percent(title=f"% of the {noun}")
    return curves(rows, look, x=x, y=y, series="trace", entries=entries, guides=(5.0,), **how)


_NO_TIMES = "no GPU job has a submission, a start and an end"


def _levels(series: Series, of: str) -> Answer:
    table = series.once("levels", partial(_usage, series))
    if not table.num_rows:
        return Answer(table, 0, 0)

    times = np.asarray(table["time"].to_numpy(), dtype=np.float64)
    units = (("days", 86_400.0), ("hours", 3600.0), ("s", 1.0))
    name, unit = unit_for(times[-1] - times[0], units, 3)
    drawn = pa.table(
        {
            "at": pa.array((times - times[0]) / unit, pa.float64()),
            "unit": pa.repeat(name, table.num_rows),
            "gpus": table[of],
            "n": table["n"],
            "left_out": table["left_out"],
        }
    )
    cluster = series.trace.cluster
    notes = () if cluster is None else (f"The cluster has {cluster.num_gpus:,.15g} GPUs.",)
    return Answer(drawn, table["n"][0].as_py(), table["left_out"][0].as_py(), "", notes)


def _usage(series: Series) -> pa.Table:
    """Return the levels of GPU jobs, in so many steps of time that a curve has pixels."""
    jobs = series.trace.jobs
    ends = pc.min(jobs["submit_time"]), pc.min(jobs["start_time"]), pc.max(jobs["end_time"])
    instants = [end.as_py() for end in ends if end.is_valid]
    span = max(instants) - min(instants) if instants else 0.0
    step = max(math.ceil(span / _MOST_STEPS), 1.0)
    epoch = series.trace.metadata.epoch
    return usage_series(jobs, step=step, epoch=epoch, where="gpu")


def _levels_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return averages over each step."""
    x = Axis("at", f"Time since the first submission, {rows[0]['unit']}")
    noun = "held" if rows[0]["title"].endswith("held") else "waited for"
    top = max(row["gpus"] for row in rows) or 1.0
    y = numbers("gpus", f"GPUs {noun}", (0.0, 1.05 * top))
    return curves(rows, look, x=x, y=y, series="trace", step=True, **how)


def measured(uses: Sequence[MeasuredUse]) -> FigureData:
    """Return the distribution of each metric of telemetry; a panel a metric, a series a source."""
    metrics = list(dict.fromkeys(row["metric"] for use in uses for row in use.metrics))
    parts: list[Part] = []
    rows: list[Row] = []
    for place, metric in enumerate(metrics):
        title = clean(metric)
        for number, use in enumerate(uses):
            found = [row for row in use.curves if row["metric"] == metric]
            if not found:
                continue
            n = found[0]["n"]
            name = f"telemetry {number + 1}" if len(uses) > 1 else "telemetry"
            if place >= _MOST_METRICS:
                parts.append(Part("", title, name, n, 0, f"only {_MOST_METRICS} metrics are drawn"))
                continue
            letter = LETTERS[place]
            parts.append(Part(letter, title, name, n, 0))
            same = {"panel": letter, "title": title, "trace": name, "n": n, "left_out": 0}
            rows += [{**same, "value": row["value"], "percent": row["percent"]} for row in found]
    if not rows:
        return FigureData(None, (Part("", "metrics", "telemetry", 0, 0, "there is no sample"),))
    return FigureData(pa.Table.from_pylist(rows), tuple(parts))


def measured_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return one metric of `measured`."""
    x = numbers("value", "value, in the metric's unit")
    return curves(rows, look, x=x, y=percent(title="CDF, % of samples"), series="trace", **how)


#: Box plots of the waits of GPU jobs, by their GPUs.
WAITS_BY_SIZE = Plan(
    within(Measure("waits by GPUs of the job", _waits, "no GPU job has a wait")), _draw_waits
)
#: The share of jobs that fail, and of GPU time that goes with them, by GPUs.
FAILURES_BY_SIZE = Plan(
    across(
        Measure("Jobs that fail", partial(_failures, of="failed_share"), "no GPU job"),
        Measure(
            "GPU time that goes with them",
            partial(_failures, of="lost_share"),
            "no GPU job has a run time",
        ),
    ),
    _draw_failures,
)
#: What the users with most of it have of the GPU time, and of the jobs.
USER_CONCENTRATION = Plan(
    across(
        Measure("GPU time", partial(_users, of="gpu_time"), "no GPU job has a user and GPU time"),
        Measure("Jobs", partial(_users, of="jobs"), "no GPU job has a user"),
    ),
    by_panel(_users_panel),
)
#: The GPUs that jobs hold, and those that they wait for, over the trace's time.
GPUS_OVER_TIME = Plan(
    across(
        Measure("GPUs held", partial(_levels, of="running_gpus"), _NO_TIMES),
        Measure("GPUs waited for", partial(_levels, of="waiting_gpus"), _NO_TIMES),
    ),
    by_panel(_levels_panel),
)
