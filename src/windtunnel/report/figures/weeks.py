"""The week's rhythm: jobs, tasks and what they ask for, by hour of the week (PAI figure 3)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from windtunnel.characterize.arrivals import arrivals_by
from windtunnel.characterize.tasks import requests_over_week
from windtunnel.report.chart.axes import Axis, numbers
from windtunnel.report.figures.boxes import clock_of
from windtunnel.report.figures.collecting import (
    Answer,
    Lacking,
    Measure,
    across,
    counted,
    with_columns,
)
from windtunnel.report.figures.panels import Plan, by_panel, curves
from windtunnel.report.format import plural

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: Hours at which a day begins, Monday first, and a Vega expression for their names.
_DAYS = tuple(float(hour) for hour in range(0, 168, 24))
_NAMES = "['Mon','Tue','Wed','Thu','Fri','Sat','Sun'][floor(datum.value / 24)]"
_RESOURCES = {"gpu": "GPUs", "cpu": "CPU cores", "mem": "GiB of memory"}
_COLUMNS = {"gpu": "num_gpus", "cpu": "num_cpus", "mem": "mem_gib"}


def _jobs(series: Series) -> Answer:
    about = series.trace.metadata
    table = arrivals_by(
        series.trace.jobs, "hour_of_week", epoch=about.epoch, zone=about.zone
    ).rename_columns({"per_hour": "rate"})
    return replace(counted(table), notes=(f"hours of {clock_of(series)}.",))


def _tasks(series: Series) -> Answer:
    if series.trace.tasks is None:
        raise Lacking("the trace has no tasks table")
    return _asked(series, series.trace.tasks, "start_time")


def _asked(series: Series, asking: Any, time: str) -> Answer:
    """Return what is asked for by hour of the week, with the reasons for rows left out."""
    about = series.trace.metadata
    table = requests_over_week(asking, epoch=about.epoch, zone=about.zone, time=time)
    if not table.num_rows:
        return Answer(table, 0, 0)
    reasons = table["why"][0].as_py()
    return replace(counted(table.drop_columns(["why"])), why=reasons)


def _requests(series: Series, resource: str) -> Answer:
    """Return the requests of one resource as ``rate``."""
    jobs = series.trace.jobs
    answer = _asked(series, jobs, "submit_time")
    if not answer.table.num_rows or not sum(answer.table[resource].to_pylist()):
        raise Lacking(f"no job tells the {_RESOURCES[resource]} that it asks for")
    missing = pc.and_(pc.is_null(jobs[_COLUMNS[resource]]), pc.is_valid(jobs["submit_time"]))
    unknown = pc.sum(missing).as_py() or 0
    n, left_out = answer.n - unknown, answer.left_out + unknown
    table = answer.table.select(["hour_of_week", "hours", resource])
    table = with_columns(table.rename_columns({resource: "rate"}), n=n, left_out=left_out)
    reasons = [answer.why] if answer.why else []
    reasons += [f"{plural(unknown, 'job')} without known {_RESOURCES[resource]}"] if unknown else []
    return Answer(table, n, left_out, "; ".join(reasons), answer.notes)


def _week_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    x = Axis("hour_of_week", "Hour of the week", "linear", (0.0, 168.0), _DAYS, _NAMES)
    most = max((row["rate"] for row in rows if row["rate"] is not None), default=1.0)
    noun = rows[0]["title"].removesuffix(" submitted per hour").removesuffix(" asked for per hour")
    noun = noun.removesuffix(" started per hour").removesuffix(" of memory")
    y = numbers("rate", f"{noun} per hour", (0.0, 1.05 * (most or 1.0)))
    return curves(_pieces(rows), look, x=x, y=y, series="trace", piece="piece", **how)


def _pieces(rows: list[Row]) -> list[Row]:
    """Return the known rates with ``piece``, the number of their run of hours without a gap.

    No line is drawn over hours that a trace does not have. An hour alone, of which no line can be
    drawn, stands as high and as wide as it is.
    """
    found: list[Row] = []
    for row in rows:
        if row["rate"] is None:
            continue
        last = found[-1] if found else None
        piece = len(found)
        if last is not None and last["trace"] == row["trace"]:
            follows = row["hour_of_week"] == last["hour_of_week"] + 1
            piece = last["piece"] if follows else piece
        found.append({**row, "piece": piece})
    sizes = Counter(row["piece"] for row in found)
    drawn: list[Row] = []
    for row in found:
        if sizes[row["piece"]] > 1:
            drawn.append(row)
            continue
        for after, rate in ((0.0, 0.0), (0.001, row["rate"]), (0.999, row["rate"]), (1.0, 0.0)):
            drawn.append({**row, "hour_of_week": row["hour_of_week"] + after, "rate": rate})
    return drawn


#: Jobs submitted, and tasks started, per hour, by hour of the week.
ARRIVALS = Plan(
    across(
        Measure("Jobs submitted per hour", _jobs, "no job has a submission time"),
        Measure("Tasks started per hour", _tasks, "no task has a start"),
    ),
    by_panel(_week_panel),
)
#: The GPUs, cores and memory that jobs ask for per hour, by hour of the week.
REQUESTS = Plan(
    across(
        *(
            Measure(
                f"{unit} asked for per hour",
                partial(_requests, resource=resource),
                f"no job tells the {unit} that it asks for",
            )
            for resource, unit in _RESOURCES.items()
        )
    ),
    by_panel(_week_panel),
)
