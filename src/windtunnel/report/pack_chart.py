"""The chart of a packing experiment: allocation and fragmentation against what has arrived."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.palette import MUTED

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.study.pack import PackResult

#: Width and height of a panel's plotting area, px.
WIDTH, HEIGHT = 300, 230
#: Where curves of allocation begin to part; below, everything finds a place.
_PARTING = 70
#: (measure, title of the y axis, whether only the part from `_PARTING` on is drawn).
PANELS: tuple[tuple[str, str, bool], ...] = (
    ("allocation_percent", "GPUs allocated, % of all", True),
    ("frag_ratio_percent", "Fragments, % of the free GPUs", False),
)
_X = "GPU demand arrived, % of the cluster's GPUs"


def curves(result: PackResult, measure: str) -> list[dict[str, Any]]:
    """Return the rows of one panel.

    Returns:
        A row a placement and percent: ``placement``, ``arrived``, ``mean``, ``low`` and ``high``
        (a standard deviation over seeds below and above; the mean itself for one seed).
    """
    rows = []
    for row in result.summary().to_pylist():
        mean = row[measure]
        if mean is None:
            continue
        spread = row[f"{measure}_sd"] or 0.0
        rows.append(
            {
                "placement": row["placement"],
                "arrived": row["arrived_percent"],
                "mean": mean,
                "low": mean - spread,
                "high": mean + spread,
            }
        )
    return rows


def pack_chart(result: PackResult) -> Any:
    """Return the chart: a panel for allocation and one for fragmentation, a curve a placement.

    Bands are one standard deviation over seeds. The dotted line is what would be allocated if
    everything that arrives found a place. Where more than the cluster arrives, allocation is drawn
    from 70 % on, where the curves part.
    """
    names = list(dict.fromkeys(result.table["placement"].to_pylist()))
    num_seeds = len(set(result.table["seed"].to_pylist()))
    n = f" (n = {num_seeds} seed{'s' * (num_seeds > 1)})"
    placements = Series(
        "placement", names, font=FONT, legend=True, width=2 * WIDTH, symbol="stroke"
    )
    panels = [
        _panel(curves(result, measure), placements, title + n, from_there=late)
        for measure, title, late in PANELS
    ]
    return on_paper(beside(panels, own=("x", "y")))


def _panel(rows: list[dict[str, Any]], placements: Series, title: str, *, from_there: bool) -> Any:
    end = max((row["arrived"] for row in rows), default=100)
    start = _PARTING if from_there and end > 100 else 0  # noqa: PLR2004 - percent
    rows = [row for row in rows if row["arrived"] >= start]
    low = min((row["low"] for row in rows), default=0.0) if start else 0.0
    x = Axis("arrived", _X, domain=(start, end), count=7, grid=False)
    y = Axis("mean", title, domain=(max(0.0, low), 100), count=6, scale={"nice": bool(start)})
    tips: Tips = {
        "placement": ("placement", ""),
        "arrived": ("arrived, %", ",~r"),
        "mean": ("mean, %", ".2f"),
    }
    layers = [
        marks.area(rows, x, replace(y, field="low", end="high"), placements),
        marks.lines(rows, x, y, placements, tips=tips),
    ]
    if from_there:
        ideal = [{"arrived": at, "mean": float(min(at, 100))} for at in (start, 100, end)]
        layers.insert(0, marks.lines(ideal, x, y, strokeWidth=1, strokeDash=[2, 3], color=MUTED[0]))
    return over(*layers, width=WIDTH, height=HEIGHT)
