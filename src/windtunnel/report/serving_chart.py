"""The chart of a serving run: how long requests took, and how many were in the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_page, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import Series
from windtunnel.report.names import clean
from windtunnel.report.palette import colours

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.chart.marks import Tips
    from windtunnel.serving import ServingOutcome, Sweep

    Rows = Sequence[dict[str, Any]]

#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 390, 260
#: Points of a curve, at most.
_POINTS = 300
#: Kinds of models drawn one by one.
_MOST = 6


def latency_rows(outcome: ServingOutcome) -> list[dict[str, Any]]:
    """Return the distribution of latency, rejected requests as never answered.

    Returns:
        A row a kind of model and point: ``model`` (its name, with its number of requests),
        ``latency`` (s) and ``share`` (% of its requests answered by then). The six kinds with the
        most requests, each curve at most 300 points.
    """
    kinds = dict.fromkeys(outcome.workload.models)
    names = np.array(outcome.workload.models)[outcome.workload.model]
    counts = {kind: int((names == kind).sum()) for kind in kinds}
    rows = []
    for kind in sorted(kinds, key=lambda kind: -counts[kind])[:_MOST]:
        latency = outcome.latency[(names == kind) & outcome.accepted]
        if not len(latency):
            continue
        steps = np.linspace(0, 1, min(_POINTS, len(latency) + 1))
        served = len(latency) / counts[kind]
        label = f"{kind} (n = {counts[kind]:,})"
        rows += [
            {"model": label, "latency": at, "share": float(step) * served * 100}
            for step, at in zip(steps.tolist(), quantiles(latency, steps.tolist()), strict=True)
        ]
    return rows


def queue_rows(outcome: ServingOutcome) -> list[dict[str, Any]]:
    """Return the largest number of requests in the system in each of 300 equal spans of time.

    Returns:
        A row a span: ``time`` (s, its begin) and ``requests``.
    """
    times, queue = outcome.queue()
    if not len(times):
        return []
    edges = np.linspace(times[0], times[-1], _POINTS + 1)
    before = np.clip(np.searchsorted(times, edges[:-1], "right") - 1, 0, None)
    after = np.searchsorted(times, edges[1:], "left")
    return [
        {"time": float(edge), "requests": int(queue[low : max(high, low + 1)].max())}
        for edge, low, high in zip(edges, before.tolist(), after.tolist(), strict=False)
    ]


def serving_chart(outcome: ServingOutcome) -> Any:
    """Return the chart: latency by kind of model, and the number in the system over time."""
    size = {"width": WIDTH, "height": HEIGHT}
    return on_paper(beside([over(_latency(outcome), **size), over(_queue(outcome), **size)]))


def latency_chart(outcome: ServingOutcome) -> Any:
    """Return latency by kind of model, for a page."""
    return on_page(over(_latency(outcome), width=WIDTH, height=HEIGHT))


def queue_chart(outcome: ServingOutcome) -> Any:
    """Return the number in the system over time, for a page."""
    return on_page(over(_queue(outcome), width=WIDTH, height=HEIGHT))


def _latency(outcome: ServingOutcome) -> Any:
    rows = latency_rows(outcome)
    names = list(dict.fromkeys(row["model"] for row in rows))
    models = Series("model", names, legend=True, width=WIDTH, symbol="stroke")
    y = Axis("share", "Requests answered, % (the rest was refused)", domain=(0, 100))
    tips: Tips = {
        "model": ("model", ""),
        "latency": ("latency, s", ".4g"),
        "share": ("answered, %", ".1f"),
    }
    x = Axis("latency", "Latency, s", grid=False)
    return marks.lines(rows, x, y, models, order="share", tips=tips, interpolate="monotone")


def _queue(outcome: ServingOutcome) -> Any:
    x = Axis("time", "Time, s", grid=False, scale={"nice": False})
    y = Axis("requests", f"Requests in the system, most in 1/{_POINTS} of the time")
    tips: Tips = {"time": ("time, s", ".4g"), "requests": ("in the system", ",d")}
    rows, black = queue_rows(outcome), colours(1)[0]
    return marks.steps(rows, x, y, tips=tips, strokeWidth=1.2, color=black)


#: Axis -> title, with its unit.
TITLES = {
    "rate": "Rate, requests/s",
    "cv": "Coefficient of variation of the gaps",
    "slo_scale": "SLO scale (deadline over latency on one GPU)",
    "gpus": "GPUs",
    "compress": "Recorded requests, times as fast",
    "replicas": "Replicas",
}
#: Axis -> its name in a sentence.
NAMES = {"gpus": "GPUs", "slo_scale": "SLO scale", "compress": "speed of the recorded requests"}
#: Measure -> title, format of a tooltip.
MEASURES = {
    "slo_attainment": ("Requests within their SLO, %", ".2f"),
    "mean_latency": ("Mean latency of served requests, s", ".4g"),
    "p99_latency": ("P99 latency of served requests, s", ".4g"),
    "p99_ttft": ("P99 time to first token, s", ".4g"),
    "p99_tpot": ("P99 time per output token, s", ".4g"),
    "energy_kwh": ("Energy of all GPUs, kWh", ".4g"),
    "carbon_kg": ("Carbon, kg", ".4g"),
    "money": ("Money", ".4g"),
}


def axes_of(rows: Rows) -> list[str]:
    """Return the axes that were swept, in order."""
    return list(dict.fromkeys(row["axis"] for row in rows))


def measures_of(found: Sweep, axis: str) -> list[str]:
    """Return the two measures worth drawing: without deadlines all requests are in time."""
    has_slo = found.spec.slo_scale is not None or axis == "slo_scale"
    return ["slo_attainment", "mean_latency"] if has_slo else ["mean_latency", "p99_latency"]


def point_rows(rows: Rows, axis: str, measure: str) -> list[dict[str, Any]]:
    """Return the points of a panel.

    Args:
        rows: of a sweep: ``axis``, ``value``, ``candidate``, measures and perhaps ``groups``.
        axis: the one drawn.
        measure: a key of `MEASURES`.

    Returns:
        ``candidate``, ``value`` and ``figure`` (attainment in %, latency in s); points without a
        figure are left out.
    """
    scale = 100.0 if measure == "slo_attainment" else 1.0
    return [
        {
            "candidate": clean(row["candidate"], 40),
            "value": row["value"],
            "figure": scale * row[measure],
            "groups": row.get("groups", ""),
        }
        for row in rows
        if row["axis"] == axis and row[measure] is not None
    ]


def panel(rows: Rows, axis: str, measure: str) -> Any:
    """Return one measure against one axis, a line a candidate; None where there is no figure."""
    chart = _panel(rows, axis, measure)
    return None if chart is None else on_page(chart)


def _panel(swept: Rows, axis: str, measure: str) -> Any:
    rows = point_rows(swept, axis, measure)
    if not rows:
        return None
    names = list(dict.fromkeys(clean(row["candidate"], 40) for row in swept))
    candidates = Series("candidate", names, legend=True, symbol="stroke")
    title, form = MEASURES[measure]
    values = [row["value"] for row in rows]
    domain = (min(values), max(values))
    x = Axis(
        "value",
        TITLES.get(axis, axis),
        domain=domain if domain[0] < domain[1] else None,
        grid=False,
        more={"tickMinStep": 1 if all(value == int(value) for value in values) else 0},
    )
    y = Axis("figure", title, domain=(0, 100) if measure == "slo_attainment" else None)
    tips: Tips = {
        "candidate": ("candidate", ""),
        "value": (axis.replace("_", " "), ".4g"),
        "figure": (title, form),
    }
    if any(row["groups"] for row in rows):
        tips["groups"] = ("groups", "")
    dots = marks.dots(rows, x, y, candidates, size=22, tips=tips)
    return over(marks.lines(rows, x, y, candidates), dots, width=WIDTH, height=HEIGHT)


def sweep_chart(rows: Rows, measures: Callable[[str], Sequence[str]]) -> Any:
    """Return every panel for paper: of each axis the measures that are shown of it."""
    panels = [_panel(rows, axis, name) for axis in axes_of(rows) for name in measures(axis)]
    return on_paper(beside([one for one in panels if one is not None], 2))
