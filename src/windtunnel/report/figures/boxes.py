"""Box plots: GPUs by workload (AcmeTrace figure 6), arrivals by hour of the day (PAI figure 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.arrivals import hourly_boxes
from windtunnel.characterize.spread import box_statistics
from windtunnel.report.chart.axes import numbers, powers
from windtunnel.report.chart.marks import BOX
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, counted, within
from windtunnel.report.figures.durations import in_order
from windtunnel.report.figures.panels import Plan, boxes, by_panel, framed, vertical_boxes
from windtunnel.report.format import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series


def _gpus(series: Series) -> Answer:
    chosen = series.chosen
    if not chosen.jobs_of:
        raise Lacking("no GPU job has a workload")
    table = in_order(box_statistics(chosen.jobs, "num_gpus", by="workload"), series)
    answer = counted(table, "workload")
    beyond = sum(sum(answer.table[name].to_pylist()) for name in ("outliers_low", "outliers_high"))
    notes = chosen.notes
    if beyond:
        whiskers = "the whiskers (1.5 interquartile ranges)"
        notes = (*notes, f"{beyond:,} jobs lie beyond {whiskers} and are not drawn.")
    return replace(answer, notes=notes)


def _draw_gpus(table: pa.Table, look: Look) -> Any:
    """Return the chart of GPUs by workload: one axis for all panels."""
    rows = table.to_pylist()
    marks = [row[name] for row in rows for name in BOX]
    low = min([mark for mark in marks if mark > 0] + [1.0])
    high = max([*marks, 2.0])
    # 0, of the jobs of a workload that ask for no GPU, has no logarithm: the edge stands for it.
    none = "; 0 on the edge" if min(marks) == 0 else ""
    value = powers("num_gpus", f"GPUs of the job (log{none})", (low / 1.2, high * 1.2), 4)
    all_names = [_entry(row) for row in rows]

    def panel(rows: list[Row], *, width: float, title: Any) -> Any:
        names = [row["workload"] for row in rows]
        return boxes(
            rows,
            look,
            value=value,
            names=names,
            entries=[_entry(row) for row in rows],
            title=title,
            width=width,
            all_names=all_names,
        )

    return framed(table, look, panel)


def _entry(row: Row) -> str:
    return f"{row['workload']} (n = {row['n']:,})"


def _by_hour(series: Series) -> Answer:
    about = series.trace.metadata
    table = hourly_boxes(series.trace.jobs, epoch=about.epoch, zone=about.zone)
    if not table.num_rows:
        raise Lacking("no job has a submission time")
    days, jobs, left_out = (table[name][0].as_py() for name in ("n", "jobs", "left_out"))
    notes = [
        f"hours of {clock_of(series)}; a box holds one value for each of {plural(days, 'day')}."
    ]
    beyond = sum(sum(table[name].to_pylist()) for name in ("outliers_low", "outliers_high"))
    if beyond:
        notes.append(
            f"{plural(beyond, 'hour')} beyond the whiskers (1.5 interquartile ranges), not drawn; "
            f"the most is {plural(max(table['max'].to_pylist()), 'job')}."
        )
    return Answer(table, jobs, left_out, "", tuple(notes))


def clock_of(series: Series) -> str:
    """Return whose clock the hours of a trace are of."""
    about = series.trace.metadata
    if about.epoch is None:
        return "a clock that starts with the trace (its times are relative)"
    return about.zone or "UTC"


def _hours_panel(rows: list[Row], look: Look, *, width: float, title: Any) -> Any:
    high = 1.05 * max(max(row["whisker_high"], row["mean"]) for row in rows)
    jobs, days = plural(rows[0]["jobs"], "job"), plural(rows[0]["n"], "day")
    return vertical_boxes(
        rows,
        look,
        value=numbers("jobs", "Jobs in the hour", (0.0, high or 1.0)),
        name=rows[0]["trace"],
        entries=[str(row["hour"]) for row in rows],
        below=f"Hour of the day; dot: mean (n = {jobs}, {days})",
        every=3,
        title=title,
        width=width,
    )


#: AcmeTrace's figure 6: GPUs by workload, CPU jobs of it included.
GPUS_BY_WORKLOAD = Plan(
    within(Measure("GPUs by workload", _gpus, "no job with a workload tells its GPUs")), _draw_gpus
)
#: How many jobs are submitted in each hour of the day, over the trace's days.
JOBS_BY_HOUR = Plan(
    within(Measure("jobs by hour of the day", _by_hour, "no job has a submission time")),
    by_panel(_hours_panel),
)
