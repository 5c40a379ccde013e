"""Charts of a sweep: attainment and latency against rate, burstiness, SLO scale and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_page, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import Series
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
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
    return None if chart is None else on_page(chart)


def _panel(found: Sweep, axis: str, measure: str) -> Any:
    rows = point_rows(found, axis, measure)
    if not rows:
        return None
    names = list(dict.fromkeys(clean(row["candidate"], 40) for row in found.rows))
    candidates = Series("candidate", names, legend=True, symbol="stroke")
    title, form = MEASURES[measure]
    values = [row["value"] for row in rows]
    domain = (min(values), max(values))
    x = Axis(
        "value",
        TITLES[axis],
        domain=domain if domain[0] < domain[1] else None,
        grid=False,
        more={"tickMinStep": 1 if axis == "gpus" else 0},
    )
    y = Axis("figure", title, domain=(0, 100) if measure == "slo_attainment" else None)
    tips: Tips = {
        "candidate": ("candidate", ""),
        "value": (axis.replace("_", " "), ".4g"),
        "figure": (title, form),
        "groups": ("groups", ""),
    }
    dots = marks.dots(rows, x, y, candidates, size=22, tips=tips)
    return over(marks.lines(rows, x, y, candidates), dots, width=WIDTH, height=HEIGHT)


def sweep_chart(found: Sweep) -> Any:
    """Return every panel, an axis a row, for paper."""
    panels = [
        _panel(found, axis, measure)
        for axis in axes_of(found)
        for measure in measures_of(found, axis)
    ]
    return on_paper(beside([one for one in panels if one is not None], 2))
