"""The forest plot of a study: changes with their intervals, one below the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, on_page, over
from windtunnel.report.chart.axes import Axis, names
from windtunnel.report.chart.series import Series
from windtunnel.report.names import clean, labels
from windtunnel.report.palette import colours
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
    called = labels(_name(found, contrast) for contrast in contrasts)
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
        for place, (name, contrast) in enumerate(zip(called, contrasts, strict=True))
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
    rows = forest_rows(found, metric)
    if not rows:
        return None
    ends = [row[key] for row in rows for key in ("ratio", "low", "high") if row[key] is not None]
    low, high = min(0.85, *ends), max(1.2, *ends)
    against = f"Change against {clean(found.baseline, 28)} (log scale)"
    x = Axis("ratio", against, "log", (low * 0.96, high * 1.04), _ticks(low, high), _CHANGE)
    y = names("name", [row["name"] for row in rows], room=_NAMES)
    _, blue, vermillion = colours(3)
    grey = colours(8)[7]
    painted = {BETTER: blue, WORSE: vermillion, UNCLEAR: grey, FEW: grey}
    present = {row["verdict"] for row in rows}
    known = {WORDS[v]: paint for v, paint in painted.items() if WORDS[v] in present}
    verdicts = Series("verdict", list(known), list(known.values()), legend=True)
    together = marks.two("together", shape=("circle", "diamond"), size=(50, 110))
    layers = marks.forest(
        rows, x, y, verdicts, low="low", high="high", guides=[1.0], marks=together
    )
    height = max(60, _LINE * len(rows))
    return on_page(over(*layers, width=WIDTH + 90 - _NAMES, height=height))
