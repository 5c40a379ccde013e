"""Charts over, beside and below each other, in facets; and how they look on a page and on paper."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart.series import FONT, PAGE_FONT
from windtunnel.report.palette import GRID, INK, MUTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Width of the plotting area on a page, px; a whole chart is about 60 px wider.
WIDTH = 352
#: Scales that a panel of its own has for itself.
OWN = ("color", "strokeDash", "shape", "stroke", "opacity", "x", "y", "xOffset", "yOffset")


def data(rows: Any) -> Any:
    """Return rows as the data of a chart; the charts of a facet share one.

    A tuple, which Altair does not copy with each chart that it is a part of.
    """
    import altair as alt

    return alt.Data(values=tuple(rows))


def over(*charts: Any, width: float, height: float, title: Any = None) -> Any:
    """Return charts on top of each other, the first below, with the size of the plotting area."""
    import altair as alt

    about = {} if title is None else {"title": title}
    chart = alt.layer(*charts) if len(charts) > 1 else charts[0]
    return chart.properties(width=width, height=height, **about)


def facet(chart: Any, field: str, order: Sequence[str], title: str | None = None) -> Any:
    """Return a chart as panels below each other, one a value of a column."""
    import altair as alt

    header = alt.Header(
        title=title, orient="top", labelAnchor="start", titleAnchor="start", labelPadding=3
    )
    by = alt.Facet(f"{field}:N", sort=list(order), header=header)
    return chart.facet(by, columns=1, spacing=10 if title else 14)


def beside(
    charts: Sequence[Any],
    columns: int = 0,
    *,
    spacing: float = 28,
    own: Sequence[str] = OWN,
    title: str | None = None,
) -> Any:
    """Return charts as a table of so many columns (0 = one row), each with scales of its own.

    Args:
        charts: at least one.
        columns: of the table.
        spacing: px.
        own: the scales and legends that each chart has for itself; the others are shared.
        title: over all of them.
    """
    import altair as alt

    if len(charts) == 1:
        return charts[0]
    chart = alt.concat(*charts, columns=columns or len(charts), spacing=spacing)
    chart = chart.resolve_scale(**dict.fromkeys(own, "independent"))
    legends = [name for name in own if name in ("color", "strokeDash", "shape", "stroke")]
    chart = chart.resolve_legend(**dict.fromkeys(legends, "independent"))
    return chart if title is None else chart.properties(title=alt.Title(title, offset=12))


def titled(text: str | list[str], **more: Any) -> Any:
    """Return a title at the beginning of its chart."""
    import altair as alt

    return alt.Title(text, anchor="start", **more)


@contextmanager
def unchecked() -> Iterator[None]:
    """Let Altair draw without checking each part against its schema: three times as fast.

    The charts are our own; the tests of `windtunnel.report` draw them with every check.
    """
    from altair.utils import schemapi

    with schemapi.debug_mode(False):
        yield


def on_page(chart: Any) -> Any:
    """Return a chart in the type and colours of a page, without a background."""
    return _themed(
        chart,
        PAGE_FONT,
        MUTED[0],
        whole={
            "background": "transparent",
            "padding": {"left": 2, "right": 14, "top": 4, "bottom": 2},
        },
        axis={"titlePadding": 8, "labelPadding": 5},
        legend={"symbolStrokeWidth": 2.5, "symbolSize": 90, "columnPadding": 18},
    )


def on_paper(chart: Any) -> Any:
    """Return a chart in the type and colours of a printed figure, on white."""
    return _themed(
        chart,
        FONT,
        INK[0],
        whole={"background": "white", "padding": {"left": 2, "right": 4, "top": 2, "bottom": 2}},
        axis={"tickSize": 4, "titlePadding": 4, "labelPadding": 3},
        legend={
            "symbolStrokeWidth": 1.6,
            "symbolSize": 130,
            "rowPadding": 1,
            "columnPadding": 10,
            "offset": 4,
        },
    )


def _themed(
    chart: Any,
    font: float,
    ink: str,
    *,
    whole: dict[str, Any],
    axis: dict[str, Any],
    legend: dict[str, Any],
) -> Any:
    sizes = {"labelFontSize": font, "titleFontSize": font}
    text = {"labelColor": ink, "titleColor": INK[0], **sizes, "titleFontWeight": "normal"}
    lines = {"gridColor": GRID[0], "domainColor": MUTED[0], "tickColor": MUTED[0]}
    titles = {"fontSize": font, "fontWeight": "bold", "color": ink, "offset": 4, "anchor": "start"}
    return chart.configure(
        font="sans-serif",
        aria=False,
        view={"stroke": None},
        title=titles,
        axis=text | lines | axis,
        header=text | {"labelFontWeight": "bold"},
        legend=text | legend,
        **whole,
    )
