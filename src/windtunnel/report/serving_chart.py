"""The chart of a serving run: how long requests took, and how many were in the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.report.charts import themed as page_themed
from windtunnel.report.figures.look import themed
from windtunnel.report.palette import colours, dashes

if TYPE_CHECKING:
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
    import altair as alt

    return themed(alt.hconcat(_latency(outcome), _queue(outcome), spacing=28))


def latency_chart(outcome: ServingOutcome) -> Any:
    """Return latency by kind of model, for a page."""
    return page_themed(_latency(outcome).properties(width=PAGE_WIDTH, height=PAGE_HEIGHT))


def queue_chart(outcome: ServingOutcome) -> Any:
    """Return the number in the system over time, for a page."""
    return page_themed(_queue(outcome).properties(width=PAGE_WIDTH, height=PAGE_HEIGHT))


def _latency(outcome: ServingOutcome) -> Any:
    import altair as alt

    rows = latency_rows(outcome)
    names = list(dict.fromkeys(row["model"] for row in rows))
    color = alt.Color(
        "model:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=colours(len(names))),
        legend=alt.Legend(orient="top", columns=3, labelLimit=260, symbolType="stroke"),
    )
    dash = alt.StrokeDash(
        "model:N",
        sort=names,
        scale=alt.Scale(domain=names, range=dashes(len(names))),
        legend=None,
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.7, interpolate="monotone")
        .encode(
            x=alt.X("latency:Q", title="Latency, s", axis=alt.Axis(grid=False)),
            y=alt.Y(
                "share:Q",
                title="Requests answered, % (the rest was refused)",
                scale=alt.Scale(domain=[0, 100]),
            ),
            color=color,
            strokeDash=dash,
            order="share:Q",
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("latency:Q", format=".4g", title="latency, s"),
                alt.Tooltip("share:Q", format=".1f", title="answered, %"),
            ],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


def _queue(outcome: ServingOutcome) -> Any:
    import altair as alt

    return (
        alt.Chart(alt.Data(values=queue_rows(outcome)))
        .mark_line(strokeWidth=1.2, interpolate="step-after", color=colours(1)[0])
        .encode(
            x=alt.X(
                "time:Q", title="Time, s", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False)
            ),
            y=alt.Y("requests:Q", title=f"Requests in the system, most in 1/{_POINTS} of the time"),
            tooltip=[
                alt.Tooltip("time:Q", format=".4g", title="time, s"),
                alt.Tooltip("requests:Q", title="in the system"),
            ],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


def serving_svg(outcome: ServingOutcome) -> str:
    """Return the chart as an SVG file's text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(serving_chart(outcome).to_dict(), allowed_base_urls=[]))
