"""The chart of a packing experiment: allocation and fragmentation against what has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.look import themed
from windtunnel.report.palette import MUTED, colours, dashes

if TYPE_CHECKING:
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
    import altair as alt

    names = list(dict.fromkeys(result.table["placement"].to_pylist()))
    num_seeds = len(set(result.table["seed"].to_pylist()))
    told = f" (n = {num_seeds} seed{'s' * (num_seeds > 1)})"
    panels = [_panel(result, names, measure, title + told, late) for measure, title, late in PANELS]
    return themed(alt.hconcat(*panels, spacing=28).resolve_scale(color="shared"))


def _panel(result: PackResult, names: list[str], measure: str, title: str, late: bool) -> Any:  # noqa: FBT001 - a row of `PANELS`
    import altair as alt

    rows = curves(result, measure)
    end = max((row["arrived"] for row in rows), default=100)
    start = _PARTING if late and end > 100 else 0  # noqa: PLR2004 - percent
    rows = [row for row in rows if row["arrived"] >= start]
    low = min((row["low"] for row in rows), default=0.0) if start else 0.0
    x = alt.X(
        "arrived:Q",
        title=_X,
        scale=alt.Scale(domain=[start, end], nice=False),
        axis=alt.Axis(grid=False, tickCount=7),
    )
    y_scale = alt.Scale(domain=[max(0.0, low), 100], nice=bool(start))
    y = alt.Y("mean:Q", title=title, scale=y_scale, axis=alt.Axis(tickCount=6))
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        columns=6,
        labelLimit=200,
        symbolType="stroke",
        symbolOpacity=1,
        symbolStrokeWidth=2,
    )
    color = alt.Color(
        "placement:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=colours(len(names))),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "placement:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=dashes(len(names))),
        legend=legend,  # the same, so that both are one
    )
    source = alt.Chart(alt.Data(values=rows))
    layers = [
        source.mark_area(opacity=0.18, clip=True).encode(
            x=x, y=alt.Y("low:Q", title=title, scale=y_scale), y2="high:Q", color=color
        ),
        source.mark_line(strokeWidth=1.7, clip=True).encode(
            x=x, y=y, color=color, strokeDash=dash, order="arrived:Q", tooltip=_tooltip()
        ),
    ]
    if late:
        limit = [{"arrived": at, "mean": float(min(at, 100))} for at in (start, 100, end)]
        ideal = alt.Chart(alt.Data(values=limit)).mark_line(
            strokeWidth=1, strokeDash=[2, 3], color=MUTED[0], clip=True
        )
        layers.insert(0, ideal.encode(x=x, y=y))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _tooltip() -> list[Any]:
    import altair as alt

    return [
        alt.Tooltip("placement:N"),
        alt.Tooltip("arrived:Q", title="arrived, %"),
        alt.Tooltip("mean:Q", format=".2f", title="mean, %"),
    ]


def pack_svg(result: PackResult) -> str:
    """Return the chart as an SVG file's text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(pack_chart(result).to_dict(), allowed_base_urls=[]))


def pack_page(result: PackResult, title: str) -> str:
    """Return the chart as one HTML page that loads nothing and shows values under the pointer.

    Args:
        result: the experiment.
        title: of the page.
    """
    from windtunnel.report.figures.writing import interactive

    return interactive(pack_chart(result).to_dict(), title)
