"""Is it fair, and does anybody starve? The tables of a page about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.curves import named, size_order
from windtunnel.report.findings import much_longer
from windtunnel.report.format import (
    UNKNOWN,
    count,
    duration,
    exact_seconds,
    number,
    percent,
    size_text,
)
from windtunnel.report.measures import Measure
from windtunnel.report.sections import Cell, Line, Table, measures_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

_RHO = (
    "completion time / what an equal part of the cluster for itself would have taken, with as many "
    "jobs competing as there were on average of its lifetime; over finished jobs"
)
#: Numbers of `windtunnel.sim.observe.finish_time.summary` that are shown.
FAIRNESS: tuple[Measure, ...] = (
    Measure("avg_rho", "\u03c1, mean", "number", "low", "Finish-time fairness", _RHO),
    Measure("p50_rho", "\u03c1, median", "number", "low", "Finish-time fairness", _RHO),
    Measure("p99_rho", "\u03c1, P99", "number", "low", "Finish-time fairness", _RHO),
    Measure("max_rho", "\u03c1, highest", "number", "low", "Finish-time fairness", _RHO),
    Measure(
        *("share_rho_over_1", "Jobs with \u03c1 over 1", "percent", "low", "Finish-time fairness"),
        doc="jobs that an equal part of the cluster for themselves would have served faster",
    ),
    Measure(
        "num_rho", "Jobs with a \u03c1", "count", None, "Finish-time fairness", "finished jobs"
    ),
)


def fairness_table(outcomes: Mapping[str, Outcome]) -> Table | None:
    """Return finish-time fairness, runs across; None where no job of any run finished."""
    runs = [outcome.fairness() for outcome in outcomes.values()]
    if not any(run["num_rho"] for run in runs):
        return None
    return measures_table(outcomes, runs, FAIRNESS)


def starvation_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return tails of waits and overtaking by job size, runs across.

    Waits include those of jobs that still wait; much longer ones than in the first run are marked.
    """
    tables = [
        {row["size"]: row for row in outcome.starvation().to_pylist()}
        for outcome in outcomes.values()
    ]
    sizes = size_order({size for table in tables for size in table})
    lines = [_line(size, [table.get(size) for table in tables]) for size in sizes]
    return Table(
        "GPUs of the job",
        [name for name, _ in named(outcomes)],
        lines,
        lead=["Jobs"],
        under=["P99 wait", "longest", "overtaken by"],
    )


def _line(size: str, rows: Sequence[Mapping[str, Any] | None]) -> Line:
    first = rows[0]
    any_row = next(row for row in rows if row is not None)
    cells = [Cell(count(any_row["num_jobs"]))]
    for row in rows:
        for key in ("p99_wait", "max_wait"):
            value = row[key] if row else None
            marked = row is not first and much_longer(first[key] if first else None, value)
            cells.append(Cell(duration(value), exact_seconds(value), marked=marked))
        cells.append(_passed(row))
    return Line(size_text(size), cells)


def _passed(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(UNKNOWN)
    title = (
        f"{percent(row['overtaken_share'])} of the jobs were overtaken; by "
        f"{number(row['avg_overtaken'])} on average, P99 {number(row['p99_overtaken'])}"
    )
    return Cell(count(row["max_overtaken"]), title)
