"""The chart of a serving run: how long requests took, and how many were in the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_page, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import Series
from windtunnel.report.palette import colours

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.serving import ServingOutcome

#: Width and height of a panel's plotting area, px.
WIDTH, HEIGHT = 300, 230
PAGE_WIDTH, PAGE_HEIGHT = 390, 260
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
    return on_page(over(_latency(outcome), width=PAGE_WIDTH, height=PAGE_HEIGHT))


def queue_chart(outcome: ServingOutcome) -> Any:
    """Return the number in the system over time, for a page."""
    return on_page(over(_queue(outcome), width=PAGE_WIDTH, height=PAGE_HEIGHT))


def _latency(outcome: ServingOutcome) -> Any:
    rows = latency_rows(outcome)
    names = list(dict.fromkeys(row["model"] for row in rows))
    models = Series("model", names, legend=True, room=PAGE_WIDTH, symbol="stroke")
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
