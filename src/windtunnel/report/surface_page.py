"""The page of a what-if surface: every run that was flown, and controls that pick among them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report import palette
from windtunnel.report.format import count, plural
from windtunnel.report.measures import BY_KEY
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, notes_of, subtitle_of, table_of
from windtunnel.report.result_page import page_context
from windtunnel.report.templating import embedded, own_script, render
from windtunnel.study.closed_loop import is_closed
from windtunnel.study.resolving import cluster_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.site.conditions import Conditions
    from windtunnel.study.surface import Point, Surface
    from windtunnel.traces.trace import Trace

#: What a position tells, by `Outcome.metrics`; those with a scale can be drawn.
MEASURES: tuple[str, ...] = (
    *("avg_wait", "p50_wait", "p90_wait", "p99_wait", "avg_jct", "avg_bounded_slowdown"),
    *("utilization", "offered_load", "num_finished", "num_rejected", "stability"),
)
#: Runs in the table.
_SHOWN = 10
_UNITS = {"duration": 3600.0, "percent": 0.01}
_UNIT_WORDS = {"duration": ", h", "percent": ", %"}
#: What the axes that are no fields are called.
_LABELS = {"nodes": "Nodes", "load": "Load"}


def surface_answer(
    surface: Surface, points: Sequence[Point], trace: Trace, base: Conditions, more: Sequence[str]
) -> Result:
    """Return the answer; its page holds every run.

    Args:
        surface: what was varied.
        points: its runs, in the order of `Surface.positions`.
        trace: whose jobs they are.
        base: how things are.
        more: notes on the jobs.
    """
    flown = [point for point in points if not point.error]
    ranked = sorted(flown, key=lambda point: _ranked(point.metrics["avg_wait"]))[:_SHOWN]
    best = ranked[0]
    where = ", ".join(f"{name} {_word(value)}" for name, value in best.position.items())
    text = BY_KEY["avg_wait"].text(best.metrics["avg_wait"])
    cautions = _cautions(points)
    cluster = clean(cluster_of(base).describe(), 200)
    notes = [
        "Every number is of a run that was flown; nothing between them is interpolated.",
        f"As it is: {cluster}.",
    ]
    if "load" in surface.axes:
        notes.append(
            "Load: GPU time asked for over what this cluster has while jobs come; submissions are "
            "stretched to it, also where the number of nodes is another."
        )
    if is_closed(base.site.arrivals):
        notes.append(
            "Closed loop: in every run users wait for their jobs, and try those that fail again, "
            "as in the log."
        )
    columns = [*map(_label, surface.axes), *(BY_KEY[name].label for name in MEASURES)]
    rows = [[*(_word(value) for value in p.position.values()), *_texts(p)] for p in ranked]
    answer = Result(
        title=f"What if: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, plural(len(points), "run")),
        headline=f"Of {plural(len(flown), 'run')} the shortest mean wait is {text}: {where}.",
        parts=[Part("The shortest mean waits", tables=[("", table_of(columns, rows))])],
        cautions=cautions,
        notes=notes_of(trace, notes, more),
    )
    return replace(answer, page=partial(surface_page, answer, surface, points))


def surface_page(answer: Result, surface: Surface, points: Sequence[Point], command: str) -> str:
    """Return the page: one file, offline, with a script of its own and nothing else's."""
    context = page_context(answer, command) | {
        "surface": embedded(page_data(surface, points), compact=True),
        "axes": [
            (f"axis-{place}", _label(n), v) for place, (n, v) in enumerate(surface.axes.items())
        ],
        "measures": [(n, BY_KEY[n].label) for n in MEASURES if BY_KEY[n].kind != "word"],
        "scripts": [own_script("surface.js")],
    }
    return render("surface.html.j2", context)


def page_data(surface: Surface, points: Sequence[Point]) -> dict[str, Any]:
    """Return what the page's script picks from.

    Keys: ``axes`` (``name``, ``values`` as words), ``measures`` (``name``, ``label``, ``unit`` that
    a value is divided by, with its ``word``), ``colours`` and ``runs`` in the order of
    `Surface.positions`: ``values`` and ``texts`` of the measures, ``waits``, ``queue`` (of
    `Point`), or ``error``.
    """
    measures = [BY_KEY[name] for name in MEASURES]
    return {
        "axes": [
            {"name": clean(_label(name)), "values": [clean(_word(value)) for value in values]}
            for name, values in surface.axes.items()
        ],
        "measures": [
            {
                "name": one.key,
                "label": one.label,
                "unit": _UNITS.get(one.kind, 1),
                "word": _UNIT_WORDS.get(one.kind, ""),
            }
            for one in measures
        ],
        "colours": len(palette.SERIES),
        "runs": [
            {"error": clean(point.error, 400)}
            if point.error
            else {
                "values": [point.metrics[name] for name in MEASURES],
                "texts": _texts(point),
                "waits": [_short(value) for value in point.waits],
                "queue": [_short(value) for value in point.queue],
            }
            for point in points
        ],
    }


def surface_data(surface: Surface, points: Sequence[Point]) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``axes`` (name -> values) and ``runs`` (``position``, ``metrics``, ``error``).
    """
    return {
        "axes": {name: list(values) for name, values in surface.axes.items()},
        "runs": [
            {"position": p.position, "metrics": p.metrics or None, "error": p.error or None}
            for p in points
        ],
    }


def _cautions(points: Sequence[Point]) -> list[str]:
    failed = [point for point in points if point.error]
    cautions = []
    if failed:
        reason = clean(failed[0].error, 400)
        cautions.append(f"{plural(len(failed), 'run')} could not be flown; the first: {reason}")
    unstable = sum(point.metrics.get("stability") == "unstable" for point in points)
    if unstable:
        cautions.append(
            f"In {plural(unstable, 'run')} the queue grows as long as jobs come: their waits tell "
            "how long the trace is, not how good the policy is."
        )
    return cautions


def _texts(point: Point) -> list[str]:
    return [BY_KEY[name].text(point.metrics[name]) if point.metrics else "" for name in MEASURES]


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def _word(value: float | str) -> str:
    if isinstance(value, str):
        return clean(value)
    return count(value) if isinstance(value, int) else f"{value:g}"


def _short(value: float) -> float:
    """Return a number of a curve with four digits, as few letters of JSON as they take."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _ranked(value: float | None) -> float:
    return float("inf") if value is None else value
