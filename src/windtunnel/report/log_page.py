"""One page of a log: waits, use and queue over the calendar first, an operator's questions below.

The calendar's data are sums (`windtunnel.characterize.calendar`), so that partitions, accounts, QOS
and GPU types can be picked on the page itself, and no job can be recognised in it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.calendar import DIMENSIONS, WAITS, Calendar
from windtunnel.report.format import count, duration, number, percent, plural
from windtunnel.report.names import clean, labels
from windtunnel.report.result import Part, Result, notes_of, subtitle_of, table_of
from windtunnel.report.result_page import page_context
from windtunnel.report.sections import Fact
from windtunnel.report.templating import embedded, own_script, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.traces.trace import Trace

#: Rows of the terminal's calendar at most: days, else weeks, else months.
_ROWS = 31
_HOUR = 3600.0


def log_answer(
    found: Calendar, trace: Trace, cluster: ClusterSpec, sections: Mapping[str, Result]
) -> Result:
    """Return one answer of several: the calendar, and each question's own answer below it.

    Args:
        found: the log over the calendar.
        trace: whose it is.
        cluster: where it ran.
        sections: heading -> the answer to one question, in order.
    """
    jobs, waited, held = (float(part.sum()) for part in (found.jobs, found.waited, found.held))
    hours = float(found.hours.sum())
    used = held / hours / cluster.num_gpus if hours else None
    mean = waited / jobs * _HOUR if jobs else None
    headlines = [f"{name}: {one.headline}" for name, one in sections.items() if one.headline]
    parts = [
        _calendar_part(found, cluster),
        Part("In short", points=headlines),
        *(_below(name, part) for name, one in sections.items() for part in one.parts),
    ]
    answer = Result(
        title=f"What the cluster did: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, plural(cluster.num_gpus, "GPU")),
        headline=f"{plural(round(jobs), 'job')} started between {found.dates[0]} and "
        f"{found.dates[-1]}, after {duration(mean)} in the mean; {percent(used)} of the GPUs were "
        "in use.",
        facts=[
            Fact("Jobs started", count(jobs)),
            Fact("Mean wait", duration(mean)),
            Fact("GPUs in use", percent(used), note=f"of {count(cluster.num_gpus)}"),
            Fact("GPU hours held", number(held)),
        ],
        parts=parts,
        cautions=list(dict.fromkeys(word for one in sections.values() for word in one.cautions)),
        notes=notes_of(trace, *(one.notes for one in sections.values())),
    )
    return replace(answer, page=partial(_page, answer, found, cluster))


def calendar_data(found: Calendar) -> dict[str, Any]:
    """Return the calendar as plain data: ``dates``, and of all jobs a number a day.

    Keys: ``jobs`` (submitted on a day that started), ``wait_hours`` (that these waited),
    ``gpu_hours`` (held), ``queue_hours`` (that jobs waited on that day).
    """
    series = {
        "jobs": found.jobs,
        "wait_hours": found.waited,
        "gpu_hours": found.held,
        "queue_hours": found.queued,
    }
    return {"dates": found.dates} | {
        name: values.sum(axis=0).tolist() for name, values in series.items()
    }


def _below(name: str, part: Part) -> Part:
    """Return a part of one answer as a part of the page: under its heading, on the page alone."""
    drawings = [replace(one, name=f"{name.lower()}-{one.name}") for one in part.drawings]
    return replace(part, title=f"{name}: {part.title}", drawings=drawings, page_only=True,
                   tells=False)  # fmt: skip


def _calendar_part(found: Calendar, cluster: ClusterSpec) -> Part:
    """Return the calendar as a table, of days, weeks or months."""
    of, what = _periods(found.dates)
    first = np.unique(of, return_index=True)[1].tolist()
    jobs, waited, held, queued = (
        np.bincount(of, values.sum(axis=0)).tolist()
        for values in (found.jobs, found.waited, found.held, found.queued)
    )
    hours = np.bincount(of, found.hours).tolist()
    rows = [
        (
            found.dates[first[at]],
            count(jobs[at]),
            duration(waited[at] / jobs[at] * _HOUR if jobs[at] else None),
            percent(held[at] / hours[at] / cluster.num_gpus),
            number(queued[at] / hours[at]),
        )
        for at in range(len(first))
    ]
    columns = (f"{what} from", "jobs", "mean wait", "GPUs in use", "jobs waiting")
    return Part("Over the calendar, in numbers", tables=[("", table_of(columns, rows))])


def _periods(dates: list[str]) -> tuple[np.ndarray, str]:
    """Return which row of a table each day belongs to, and what a row is."""
    days = np.arange(len(dates))
    if len(dates) <= _ROWS:
        return days, "Day"
    if len(dates) <= 7 * _ROWS or not dates[0][:4].isdigit():
        return days // max(7, -(-len(dates) // _ROWS)), "Days"
    months = np.unique([date[:7] for date in dates], return_inverse=True)[1]
    return months.ravel(), "Month"


def _page(answer: Result, found: Calendar, cluster: ClusterSpec, command: str) -> str:
    """Return the page: one file, offline, with a script of its own and nothing else's."""
    several = [at for at, name in enumerate(DIMENSIONS) if len(found.values[name]) > 1]
    data = {
        "dates": found.dates,
        "hours": _short(found.hours),
        "gpus": cluster.num_gpus,
        "filters": several,
        "ends": _short(WAITS),
        "groups": [_group(found, at) for at in range(len(found.groups))],
    }
    names = list(DIMENSIONS)
    context = page_context(answer, command) | {
        "lead": "Pick a partition, an account, a QOS or a GPU type: the page holds sums, and adds "
        "up those that are picked."
        if several
        else "",
        "unit": found.unit,
        "filters": [
            (f"filter-{at}", DIMENSIONS[names[at]], labels(found.values[names[at]], 40))
            for at in several
        ],
        "days": embedded(data, compact=True),
        "scripts": [own_script("calendar.js")],
    }
    return render("calendar.html.j2", context)


def _group(found: Calendar, at: int) -> dict[str, Any]:
    """Return a group's numbers, days and classes without any left out."""
    columns = [part[at] for part in (found.jobs, found.waited, found.held, found.queued)]
    days = np.flatnonzero(np.any([column > 0 for column in columns], axis=0)).tolist()
    kinds = np.flatnonzero(found.waits[at]).tolist()
    return {
        "who": list(found.groups[at]),
        "days": [[day, *_short(np.array([column[day] for column in columns]))] for day in days],
        "waits": [[kind, int(found.waits[at][kind])] for kind in kinds],
    }


def _short(values: np.ndarray) -> list[float]:
    """Return numbers to six digits."""
    return [float(f"{value:.6g}") for value in values.tolist()]
