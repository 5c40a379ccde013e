"""The forest plot of a study: changes with their intervals, one below the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.report.charts import WIDTH, legend_above, themed
from windtunnel.report.names import clean, labels
from windtunnel.report.palette import MUTED, colours
from windtunnel.report.study_rows import WORDS, condition_text
from windtunnel.study.grid.paired import BETTER, FEW, UNCLEAR, WORSE

if TYPE_CHECKING:
    from windtunnel.study.grid.paired import Paired

#: Changes are drawn as ratios on a logarithmic scale: half and twice are as far from none.
_CHANGE = (
    "(datum.value < 1 ? '\u2212' : datum.value > 1 ? '+' : '') + "
    "format(100 * abs(datum.value - 1), '.3~r') + ' %'"
)
#: Ratios are drawn between these; what is beyond stands on the edge.
EDGES = (0.02, 50.0)
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50)
#: Room for the names beside a chart, px; height of a line, px.
_NAMES, _LINE = 190, 17
#: Ticks that have room.
_MOST_TICKS = 6


def forest_rows(found: Paired, metric: str) -> list[dict[str, Any]]:
    """Return the rows of a metric's forest plot, from top to bottom.

    Rows: ``place`` (from 0), ``name``, ``ratio`` (1 + change), ``low`` and ``high`` (None without
    an interval), ``verdict`` (in words), ``together`` (all conditions), ``n`` (draws).
    """
    contrasts = [c for c in found.contrasts if c.metric == metric]
    names = labels(_name(found, contrast) for contrast in contrasts)
    return [
        {
            "place": place,
            "name": name,
            "ratio": _inside(1 + contrast.change.estimate),
            "low": _inside(1 + (contrast.change.low or 0.0)) if contrast.change.is_known else None,
            "high": _inside(1 + (contrast.change.high or 0.0))
            if contrast.change.is_known
            else None,
            "verdict": WORDS[contrast.verdict],
            "together": contrast.condition is None,
            "n": contrast.change.num_draws,
        }
        for place, (name, contrast) in enumerate(zip(names, contrasts, strict=True))
        if contrast.verdict in (BETTER, WORSE, UNCLEAR, FEW)
    ]


def _name(found: Paired, contrast: Any) -> str:
    where = condition_text(found, contrast)
    return f"{clean(contrast.value, 24)}{f', {where}' if where else ''}"


def _inside(ratio: float) -> float:
    return min(max(ratio, EDGES[0]), EDGES[1])


def _ticks(low: float, high: float) -> list[float]:
    """Return ratios to label, no change first, so far apart that their labels have room."""
    gap = math.log(high / low) / _MOST_TICKS
    chosen = [1.0]
    for side in ([t for t in _TICKS if t > 1], [t for t in reversed(_TICKS) if t < 1]):
        last = 1.0
        for tick in side:
            if low <= tick <= high and abs(math.log(tick / last)) >= gap:
                chosen.append(tick)
                last = tick
    return sorted(chosen)


def forest_chart(found: Paired, metric: str) -> Any:
    """Return a metric's forest plot: a dot a change, its interval, the rule where nothing changes.

    All conditions together are a diamond. None where there is nothing to draw.
    """
    import altair as alt

    rows = forest_rows(found, metric)
    if not rows:
        return None
    ends = [row[key] for row in rows for key in ("ratio", "low", "high") if row[key] is not None]
    low, high = min(0.85, *ends), max(1.2, *ends)
    ticks = _ticks(low, high)
    x = alt.X(
        "ratio:Q",
        title=f"Change against {clean(found.baseline, 28)} (log scale)",
        scale=alt.Scale(type="log", domain=[low * 0.96, high * 1.04], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=_CHANGE, labelFlush=False, grid=True),
    )
    y = alt.Y(
        "name:N",
        sort=[row["name"] for row in rows],
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=_NAMES, minExtent=_NAMES, grid=False),
    )
    shown = [WORDS[v] for v in (BETTER, WORSE, UNCLEAR, FEW)]
    domain = [word for word in shown if word in {row["verdict"] for row in rows}]
    _, blue, vermillion = colours(3)
    known = dict(zip(shown, (blue, vermillion, colours(8)[7], colours(8)[7]), strict=True))
    color = alt.Color(
        "verdict:N",
        title=None,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[known[word] for word in domain]),
        legend=legend_above(domain),
    )
    source = alt.Chart(alt.Data(values=rows))
    rule = (
        alt.Chart(alt.Data(values=[{"ratio": 1.0}]))
        .mark_rule(color=MUTED[0], strokeDash=[2, 3])
        .encode(x="ratio:Q")
    )
    spans = (
        source.transform_filter("datum.low != null")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=color)
    )
    shape = alt.Shape(
        "together:N",
        scale=alt.Scale(domain=[False, True], range=["circle", "diamond"]),
        legend=None,
    )
    size = alt.Size(
        "together:N", scale=alt.Scale(domain=[False, True], range=[50, 110]), legend=None
    )
    dots = source.mark_point(filled=True, opacity=1).encode(
        x=x, y=y, color=color, shape=shape, size=size
    )
    width = WIDTH + 90 - _NAMES
    layers = alt.layer(rule, spans, dots)
    return themed(layers.properties(width=width, height=max(60, _LINE * len(rows))))
