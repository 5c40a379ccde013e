"""Charts of serving a language model: TTFT, TPOT and end to end, and goodput against rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.report.charts import themed as page_themed
from windtunnel.report.figures.look import themed
from windtunnel.report.palette import MUTED, SERIES, colours

if TYPE_CHECKING:
    from windtunnel.serving import LlmOutcome

Row = dict[str, Any]
#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 390, 260
#: Points of a curve, at most.
_POINTS = 300
#: Latency -> title of its axis.
LATENCIES = {
    "ttft": "Time to first token, s",
    "tpot": "Time per output token after the first, s",
    "e2e": "End to end, s",
}
#: A curve over more than this factor is drawn on a logarithmic axis.
_WIDE = 50.0


def distribution_rows(outcome: LlmOutcome, name: str) -> list[Row]:
    """Return a latency's distribution: ``latency`` (s) and ``share`` (% of those that have it).

    Args:
        outcome: the run.
        name: ttft, tpot or e2e; requests refused have none, those of one token no tpot.
    """
    values = getattr(outcome, name)
    values = values[~np.isnan(values)]
    if not len(values):
        return []
    steps = np.linspace(0, 1, min(_POINTS, len(values) + 1)).tolist()
    found = quantiles(values, steps).tolist()
    return [{"latency": v, "share": 100 * s} for s, v in zip(steps, found, strict=True)]


def distribution_chart(outcome: LlmOutcome, name: str, slo: float = math.inf) -> Any:
    """Return the distribution of a latency, with its SLO; None where no request has it."""
    chart = _distribution(outcome, name, slo)
    return None if chart is None else page_themed(chart)


def _distribution(outcome: LlmOutcome, name: str, slo: float) -> Any:
    import altair as alt

    rows = distribution_rows(outcome, name)
    if not rows:
        return None
    low, high = rows[0]["latency"], rows[-1]["latency"]
    scale = alt.Scale(nice=False)
    if low > 0 and high / low > _WIDE:
        scale = alt.Scale(type="log", nice=False)
    axis = alt.Axis(grid=False, labelOverlap=True, labelSeparation=8)
    x = alt.X("latency:Q", title=LATENCIES[name], scale=scale, axis=axis)
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.7, color=colours(2)[1])
        .encode(
            x=x,
            y=alt.Y(
                "share:Q",
                title=f"Requests, % (n = {_known(outcome, name):,})",
                scale=alt.Scale(domain=[0, 100]),
            ),
            order="share:Q",
            tooltip=[
                alt.Tooltip("latency:Q", format=".4g", title="s"),
                alt.Tooltip("share:Q", format=".1f", title="% by then"),
            ],
        )
    )
    layers = [line]
    if low < slo < high:
        rule = alt.Chart(alt.Data(values=[{"latency": slo}]))
        layers.append(rule.mark_rule(color=MUTED[0], strokeDash=[3, 3]).encode(x=x))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _known(outcome: LlmOutcome, name: str) -> int:
    return int((~np.isnan(getattr(outcome, name))).sum())


def rate_rows(by_rate: list[Row]) -> list[Row]:
    """Return goodput and rate as curves: ``rate``, ``kind`` and ``requests`` (1/s)."""
    rows = []
    for one in by_rate:
        rows.append({"rate": one["rate"], "kind": "asked for", "requests": one["rate"]})
        rows.append(
            {"rate": one["rate"], "kind": "goodput", "requests": one["goodput"]},
        )
    return rows


def goodput_chart(by_rate: list[Row]) -> Any:
    """Return goodput against rate beside what is asked for; None without rates."""
    return page_themed(_goodput(by_rate)) if by_rate else None


def _goodput(by_rate: list[Row]) -> Any:
    import altair as alt

    kinds = ["goodput", "asked for"]
    data = alt.Chart(alt.Data(values=rate_rows(by_rate)))
    color = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[SERIES[1][0], MUTED[0]]),
        legend=alt.Legend(orient="top", symbolType="stroke"),
    )
    dash = alt.StrokeDash(
        "kind:N", scale=alt.Scale(domain=kinds, range=[[1, 0], [3, 3]]), legend=None
    )
    x = alt.X("rate:Q", title="Rate, requests/s", axis=alt.Axis(grid=False))
    y = alt.Y("requests:Q", title="Requests within both SLOs, 1/s")
    line = data.mark_line(strokeWidth=1.7).encode(x=x, y=y, color=color, strokeDash=dash)
    dots = (
        data.transform_filter("datum.kind == 'goodput'")
        .mark_point(filled=True, size=22, opacity=1)
        .encode(
            x=x,
            y=y,
            color=color,
            tooltip=[
                alt.Tooltip("rate:Q", format=".4g", title="requests/s"),
                alt.Tooltip("requests:Q", format=".4g", title="goodput, 1/s"),
            ],
        )
    )
    return alt.layer(line, dots).properties(width=WIDTH, height=HEIGHT)


def llm_svg(outcome: LlmOutcome, by_rate: list[Row], slo: dict[str, float]) -> str:
    """Return all charts as an SVG file's text."""
    import altair as alt
    import vl_convert

    panels = [_distribution(outcome, name, slo.get(name, math.inf)) for name in LATENCIES]
    panels += [_goodput(by_rate)] if by_rate else []
    drawn = [one for one in panels if one is not None]
    rows = [alt.hconcat(*drawn[at : at + 2], spacing=28) for at in range(0, len(drawn), 2)]
    spec = themed(alt.vconcat(*rows, spacing=28)).to_dict()
    return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
