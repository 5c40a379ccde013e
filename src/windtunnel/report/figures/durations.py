"""Run times and waits: AcmeTrace figures 1a, 5 and `cdf_job_jobtime`; PAI figures 4 and 5."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.characterize.cdf import POWERS_DURATION, POWERS_QUEUE, count_cdf
from windtunnel.characterize.facts import source_fact
from windtunnel.report.chart.axes import end_of, percent, seconds
from windtunnel.report.figures.collecting import (
    Answer,
    FigureData,
    Lacking,
    Measure,
    across,
    counted,
    joined,
    within,
)
from windtunnel.report.figures.panels import Plan, by_panel, curves
from windtunnel.report.figures.use import GPU_UTIL, draw_use_panel, use
from windtunnel.report.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series, Sources

#: One hour and one day, s: the guide lines of AcmeTrace's figure 5.
GUIDES = (3600.0, 86400.0)


def run_time_cdf(
    series: Series, at: Sequence[float] = POWERS_DURATION, where: str = "gpu"
) -> Answer:
    """Return the CDF of the run times of a trace's GPU jobs, or CPU jobs.

    The source's own figure where it has one: the published curves are drawn from it.
    """
    fact = source_fact(series.trace.jobs, "duration")
    answer = counted(count_cdf(series.trace.jobs, fact, at, where=where))
    return _noted(answer, fact, "run time", at[-1])


def _noted(answer: Answer, fact: str, what: str, last: float) -> Answer:
    notes = list(answer.notes)
    if fact.startswith("source_"):
        notes.append(f"the {what} is the source's own column, not recomputed from the times.")
    reached = answer.table["count"].to_pylist()
    beyond = answer.n - reached[-1] if reached and answer.table.num_rows else 0
    if beyond and "workload" not in answer.table.column_names:
        notes.append(f"{plural(beyond, 'job')} beyond the last point, {duration(last)}.")
    return replace(answer, notes=tuple(notes))


def _run_times_and_use(sources: Sources) -> FigureData:
    return joined([across(_OF_GPU_JOBS)(sources), use(sources, (GPU_UTIL,))])


def _run_time_or_use_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    if "metric" in rows[0] and rows[0]["metric"] is not None:
        return draw_use_panel(rows, look, **how)
    return _run_time_panel(rows, look, **how)


def _run_time_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    last = max(row["x"] for row in rows)
    x = seconds("x", "Run time, s to days (log)", (1.0, last))
    return curves(rows, look, x=x, y=percent(), series="trace", guides=(), **how)


def by_workload(series: Series, value: str, at: Sequence[float]) -> Answer:
    """Return the CDF of a fact of the GPU jobs of each workload.

    Args:
        series: the trace.
        value: ``duration`` or ``wait``; the source's own figure of it where there is one.
        at: thresholds, s.

    Raises:
        Lacking: no job has a workload.
    """
    chosen = series.chosen
    if not chosen.jobs_of:
        raise Lacking("no GPU job has a workload")
    fact = source_fact(chosen.jobs, value)
    table = count_cdf(chosen.jobs, fact, at, by="workload", where="gpu")
    what = "run time" if value == "duration" else "wait"
    answer = _noted(counted(in_order(table, series), "workload"), fact, what, at[-1])
    return replace(answer, notes=(*answer.notes, *chosen.notes))


def in_order(table: pa.Table, series: Series) -> pa.Table:
    """Return a table with its workloads by number of jobs, most first."""
    places = {name: place for place, name in enumerate(series.chosen.jobs_of)}
    keys = [places.get(name, len(places)) for name in table["workload"].to_pylist()]
    order = sorted(range(table.num_rows), key=keys.__getitem__)
    return table.take(pa.array(order, pa.int64()))


def _workload_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    last = max(row["x"] for row in rows)
    noun = "Wait" if rows[0]["title"].endswith(": wait") else "Run time"
    x = seconds("x", f"{noun}, s to days (log)", (1.0, last))
    guides = tuple(g for g in GUIDES if g < last)
    return curves(rows, look, x=x, y=percent(), series="workload", guides=guides, **how)


def time_axis(rows: Sequence[Row], noun: str) -> Any:
    """Return the axis of a CDF over times, up to where its curves reach 100 %."""
    return seconds("x", f"{noun}, s to days (log)", (1.0, end_of(rows)))


_OF_GPU_JOBS = Measure("Run time of GPU jobs", run_time_cdf, "no GPU job has a run time")
#: AcmeTrace's figure 1: run times of GPU jobs, and utilisation of the GPUs.
RUN_TIMES_AND_USE = Plan(_run_times_and_use, by_panel(_run_time_or_use_panel))
#: `cdf_job_jobtime`: run times of GPU jobs, and of CPU jobs up to 9 hours.
RUN_TIMES = Plan(
    across(
        _OF_GPU_JOBS,
        Measure(
            "Run time of CPU jobs",
            partial(run_time_cdf, at=POWERS_QUEUE, where="cpu"),
            "no CPU job has a run time",
        ),
    ),
    by_panel(_run_time_panel),
)
#: AcmeTrace's figure 5: run time and wait by workload, panels for each trace.
RUN_TIMES_AND_WAITS = Plan(
    within(
        Measure(
            "run time",
            partial(by_workload, value="duration", at=POWERS_DURATION),
            "no GPU job with a workload has a run time",
        ),
        Measure(
            "wait",
            partial(by_workload, value="wait", at=POWERS_QUEUE),
            "no GPU job with a workload has a wait",
        ),
    ),
    by_panel(_workload_panel),
)
