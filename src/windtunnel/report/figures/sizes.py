"""How many GPUs, and how many tasks at once: AcmeTrace figure 2, PAI figure 2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.cdf import GPU_GRID, count_cdf, sum_cdf
from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.gangs import gang_sizes
from windtunnel.report.chart.axes import percent, powers
from windtunnel.report.figures.collecting import Answer, Measure, across, counted, with_columns
from windtunnel.report.figures.panels import Plan, by_panel, curves, framed, with_n
from windtunnel.report.format import plural

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series


#: The note on a trace whose gangs are drawn by the GPUs of one task.
_OF_A_TASK = "its jobs are gangs, drawn by the GPUs of one task, as the published figure does."
#: The note where GPU time is of the source's run times.
_SOURCE_RUN = "GPU time is of the source's own run times, not recomputed from the times."


def _jobs(series: Series) -> Answer:
    fact = source_fact(series.trace.jobs, "num_gpus")
    table = count_cdf(series.trace.jobs, fact, GPU_GRID)
    return _thinned(counted(table), "count", fact)


def _gpu_time(series: Series) -> Answer:
    fact = source_fact(series.trace.jobs, "num_gpus")
    run = source_fact(series.trace.jobs, "duration")
    answer = _thinned(counted(sum_cdf(series.trace.jobs, fact, run, GPU_GRID)), "sum", fact)
    if run == "duration":
        return answer
    return replace(answer, notes=(*answer.notes, _SOURCE_RUN))


def _thinned(answer: Answer, column: str, fact: str) -> Answer:
    """Return a step curve without the points at which it neither steps nor has a tick.

    The last but one, 1023, stays: its value is published, as that below the 1,024 GPUs.
    """
    table = answer.table
    reached = np.asarray(table[column].to_numpy(), dtype=float)
    x = np.asarray(table["x"].to_numpy())
    steps = np.diff(reached, prepend=np.nan) != 0
    kept = steps | (x >= x[-2]) | np.isin(x, 2.0 ** np.arange(0, 11))
    of = "job" if fact == "num_gpus" else "task"
    table = with_columns(table, gpus=of)
    notes = [_OF_A_TASK] if of == "task" else []
    last = table["percent"][-1].as_py()
    if last is not None and last < 100:  # noqa: PLR2004 (percent)
        noun = "jobs" if column == "count" else "GPU time"
        notes.append(f"{100 - last:.3g} % of the {noun} is of jobs with more than 1,024 GPUs.")
    return replace(answer, table=table.filter(pa.array(kept)), notes=tuple(notes))


def _gpus_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    per_task = {row["trace"] for row in rows if row["gpus"] == "task"}
    whose = "task" if len(per_task) == len({row["trace"] for row in rows}) else "job"
    x = powers("x", f"GPUs of the {whose} (log)", (1.0, 1100.0), 4)
    noun = "GPU time" if rows[0]["title"].startswith("GPU time") else "jobs"
    shown = [row for row in rows if row["x"] >= 1]
    y = percent(title=f"CDF, % of {noun}")
    entries = {
        trace: f"{entry}, per task" if trace in per_task else entry
        for trace, entry in with_n(shown, "trace").items()
    }
    return curves(shown, look, x=x, y=y, series="trace", step=True, entries=entries, **how)


#: AcmeTrace's figure 2: CDFs of jobs and of GPU time by the GPUs of the job. Of PAI it draws
#: ``plan_gpu``, what one task of the job asks for; the column ``gpus`` says so. GPU time is of the
#: source's own run times where it has any, as in the figures beside it.
GPUS_OF_JOBS = Plan(
    across(
        Measure("Jobs by GPUs of the job", _jobs, "no job asks for a GPU"),
        Measure("GPU time by GPUs of the job", _gpu_time, "no GPU job has a run time"),
    ),
    by_panel(_gpus_panel),
)


def _draw_gangs(table: pa.Table, look: Look) -> Any:
    rows = [
        {**row, "percent": 100 * row["task_share"]}
        for row in table.to_pylist()
        if row["task_share"] is not None
    ]
    last = max((row["size"] for row in rows if row["percent"] > 0), default=2)
    x = powers("size", "Tasks of the gang (log)", (1.0, 2.0 ** max(np.ceil(np.log2(last)), 1)))
    y = percent(title="CCDF, % of tasks")

    def panel(_: list[Row], **how: Any) -> Any:
        entries = {row["trace"]: f"{row['trace']} (n = {plural(row['n'], 'job')})" for row in rows}
        return curves(rows, look, x=x, y=y, series="trace", entries=entries, **how)

    return framed(table, look, panel)


#: The share of jobs and of tasks in gangs of at least so many tasks.
GANGS = Plan(
    across(
        Measure(
            "Gangs of at least so many tasks",
            lambda s: counted(gang_sizes(s.trace.jobs)),
            "no job tells how many tasks it has",
        )
    ),
    _draw_gangs,
)
