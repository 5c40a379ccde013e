"""Charts of a sweep: attainment and latency against rate, burstiness, SLO scale and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.charts import themed as page_themed
from windtunnel.report.figures.look import themed
from windtunnel.report.names import clean
from windtunnel.report.palette import colours, dashes

if TYPE_CHECKING:
    from windtunnel.serving import Sweep

#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 390, 260
#: Axis -> title, with its unit.
TITLES = {
    "rate": "Rate of all models, requests/s",
    "cv": "Coefficient of variation of the gaps",
    "slo_scale": "SLO scale (deadline over latency on one GPU)",
    "gpus": "GPUs",
    "compress": "Recorded requests, times as fast",
}
#: Axis -> its name in a sentence.
NAMES = {"gpus": "GPUs", "slo_scale": "SLO scale", "compress": "speed of the recorded requests"}
#: Measure -> title, format of a tooltip.
MEASURES = {
    "slo_attainment": ("Requests within their SLO, %", ".2f"),
    "mean_latency": ("Mean latency of served requests, s", ".4g"),
    "p99_latency": ("P99 latency of served requests, s", ".4g"),
}


def axes_of(found: Sweep) -> list[str]:
    """Return the axes that were swept, in order."""
    return list(dict.fromkeys(row["axis"] for row in found.rows))


def measures_of(found: Sweep, axis: str) -> list[str]:
    """Return the two measures worth drawing: without deadlines all requests are in time."""
    has_slo = found.spec.slo_scale is not None or axis == "slo_scale"
    return ["slo_attainment", "mean_latency"] if has_slo else ["mean_latency", "p99_latency"]


def point_rows(found: Sweep, axis: str, measure: str) -> list[dict[str, Any]]:
    """Return the points of a panel.

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
            "groups": row["groups"],
        }
        for row in found.rows
        if row["axis"] == axis and row[measure] is not None
    ]


def panel(found: Sweep, axis: str, measure: str) -> Any:
    """Return one measure against one axis, a line a candidate; None where there is no figure."""
    chart = _panel(found, axis, measure)
    return None if chart is None else page_themed(chart)


def _panel(found: Sweep, axis: str, measure: str) -> Any:
    import altair as alt

    rows = point_rows(found, axis, measure)
    if not rows:
        return None
    names = list(dict.fromkeys(clean(row["candidate"], 40) for row in found.rows))
    title, form = MEASURES[measure]
    share = measure == "slo_attainment"
    color = alt.Color(
        "candidate:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=colours(len(names))),
        legend=alt.Legend(orient="top", columns=3, labelLimit=200, symbolType="stroke"),
    )
    dash = alt.StrokeDash(
        "candidate:N",
        sort=names,
        scale=alt.Scale(domain=names, range=dashes(len(names))),
        legend=None,
    )
    values = [row["value"] for row in rows]
    x = alt.X(
        "value:Q",
        title=TITLES[axis],
        scale=alt.Scale(domain=[min(values), max(values)], nice=False)
        if min(values) < max(values)
        else alt.Scale(),
        axis=alt.Axis(grid=False, tickMinStep=1 if axis == "gpus" else 0),
    )
    y = alt.Y(
        "figure:Q",
        title=title,
        scale=alt.Scale(domain=[0, 100]) if share else alt.Scale(zero=True),
    )
    data = alt.Chart(alt.Data(values=rows))
    tooltip = [
        alt.Tooltip("candidate:N"),
        alt.Tooltip("value:Q", title=axis.replace("_", " "), format=".4g"),
        alt.Tooltip("figure:Q", title=title, format=form),
        alt.Tooltip("groups:N"),
    ]
    line = data.mark_line(strokeWidth=1.7).encode(
        x=x, y=y, color=color, strokeDash=dash, order="value:Q"
    )
    dots = data.mark_point(filled=True, size=22, opacity=1).encode(
        x=x, y=y, color=color, tooltip=tooltip
    )
    return alt.layer(line, dots).properties(width=WIDTH, height=HEIGHT)


def sweep_svg(found: Sweep) -> str:
    """Return every panel, an axis a row, as an SVG file's text."""
    import altair as alt
    import vl_convert

    rows = []
    for axis in axes_of(found):
        panels = [_panel(found, axis, measure) for measure in measures_of(found, axis)]
        rows.append(alt.hconcat(*[one for one in panels if one is not None], spacing=28))
    chart = themed(alt.vconcat(*rows, spacing=28))
    return str(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[]))
