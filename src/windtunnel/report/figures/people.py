"""Who submits, and what comes back: jobs a user, and runs of a template (PAI figure 2, talk)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.recurrence import recurrence
from windtunnel.characterize.tasks import jobs_per_user
from windtunnel.report.chart.axes import percent, powers
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, across, counted
from windtunnel.report.figures.panels import Plan, by_panel, curves
from windtunnel.report.format import plural

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: Points of the curve of jobs a user: powers of two to a million.
_JOBS = tuple(2**k for k in range(21))
#: Runs of a template that are asked about.
_RUNS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024)


def _users(series: Series) -> Answer:
    return counted(jobs_per_user(series.trace.jobs, _JOBS))


def _users_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return jobs a user; n counts users."""
    below = [row["x"] for row in rows if row["percent"] < 100]  # noqa: PLR2004 (percent)
    high = 2 * max(below, default=8.0)
    shown = [row for row in rows if row["x"] <= high]
    x = powers("x", "Jobs of the user (log)", (1.0, high), 10)
    y = percent(title="CDF, % of users")
    entries = {row["trace"]: f"{row['trace']} (n = {plural(row['n'], 'user')})" for row in rows}
    return curves(shown, look, x=x, y=y, series="trace", entries=entries, **how)


#: The CDF of jobs a user.
USERS = Plan(
    across(Measure("Jobs a user", _users, "no job tells its user")), by_panel(_users_panel)
)


def _templates(series: Series) -> Answer:
    jobs = series.trace.jobs
    if jobs["template"].null_count == jobs.num_rows:
        raise Lacking("no job has a template (job name or group)")
    answer = counted(recurrence(jobs, _RUNS))
    by_user = answer.table["by_user"][0].as_py() if answer.table.num_rows else 0
    notes = (f"{by_user:,} jobs without a template count to their user.",) if by_user else ()
    return replace(answer, notes=notes)


def _templates_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return runs of a template, with a line at 5, PAI's measure of recurrence."""
    shown = [{**row, "percent": 100 * row["job_share"]} for row in rows]
    last = max((row["runs"] for row in shown if row["percent"] > 0), default=2)
    x = powers("runs", "Runs of the template (log; line: 5)", (1.0, float(max(last, 8))))
    y = percent(title="CCDF, % of jobs")
    return curves(shown, look, x=x, y=y, series="trace", guides=(5.0,), **how)


_OFTEN = "Jobs whose template runs at least so often"
#: The share of jobs whose template has at least so many runs.
TEMPLATES = Plan(
    across(Measure(_OFTEN, _templates, "no job has a template or a user")),
    by_panel(_templates_panel),
)
