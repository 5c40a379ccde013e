"""Panels of figures: curves, steps and bars, and how several panels become one figure."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from windtunnel.report.curves import counted
from windtunnel.report.figures.axes import MANY, AxisOf, texts_at, x_of, y_of
from windtunnel.report.figures.look import AXIS, EDGE, FONT, GAP, text_width, themed
from windtunnel.report.palette import INK, MUTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from windtunnel.report.figures.look import Look

Row = dict[str, Any]
#: Height of the plotting area of a panel of curves, px.
HEIGHT = 118.0
#: Room that a legend's symbol takes beside its text, px.
_SYMBOL = 34.0
#: A line of a bar chart or box plot, px.
LINE = 12.5
#: Room between the bars of different names, in bars.
_BETWEEN = 0.35


def panels_of(table: pa.Table) -> list[tuple[str, str, list[Row]]]:
    """Return (letter, title, rows) of each panel of a figure's table, by letter."""
    panels: dict[str, tuple[str, list[Row]]] = {}
    for row in table.to_pylist():
        panels.setdefault(row["panel"], (row["title"], []))[1].append(row)
    return [(letter, *panels[letter]) for letter in sorted(panels)]


def heading(letter: str, title: str, *, alone: bool, second: str = "", room: float = 0.0) -> Any:
    """Return a panel's title: its letter and what it shows, cut to ``room`` px (0 = not cut)."""
    import altair as alt

    text = title if alone else f"({letter}) {title}"
    options = {"limit": room} if room else {}
    return alt.TitleParams(text=[text, second] if second else text, frame="bounds", **options)


def with_n(rows: Sequence[Row], series: str) -> dict[str, str]:
    """Return series -> its legend entry, with its n, in order of appearance."""
    found: dict[str, str] = {}
    for row in rows:
        name = row[series]
        if name not in found:
            n = row["n"]
            found[name] = f"{name} (n not told)" if n is None else counted(name, n)
    return found


def curves(
    rows: Sequence[Row],
    look: Look,
    *,
    x: AxisOf,
    y: AxisOf,
    series: str,
    title: Any,
    width: float,
    height: float = HEIGHT,
    step: bool = False,
    guides: Sequence[float] = (),
    entries: dict[str, str] | None = None,
    paint: dict[str, tuple[str, list[float]]] | None = None,
    piece: str = "",
) -> Any:
    """Return a panel of curves, one a series, each in its colour and dash, with n in the legend.

    Args:
        rows: with the axes' fields, ``series`` and ``n``; in order along each curve.
        look: colours and dashes.
        x: the axis.
        y: the axis.
        series: the column of the series.
        title: what `heading` returned.
        width: of the plotting area, px.
        height: of the plotting area, px.
        step: the value holds until the next x.
        guides: x of thin vertical lines.
        entries: series -> legend entry; default `with_n`.
        paint: series -> colour and dash; default: as the look says.
        piece: a column: only rows alike in it are joined by a line; default: all of a series.
    """
    import altair as alt

    texts = entries if entries is not None else with_n(rows, series)
    if paint is None:
        paint = dict(zip(texts, zip(*look.strokes(list(texts)), strict=True), strict=True))
    painted = [paint[name] for name in texts]
    domain = list(texts.values())
    legend = _legend(domain, width + EDGE)
    color = alt.Color(
        "entry:N",
        title=None,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[colour for colour, _ in painted]),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "entry:N",
        title=None,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[dash for _, dash in painted]),
        legend=legend,
    )
    values = [
        {"entry": texts[row[series]], x.field: row[x.field], y.field: row[y.field]}
        | ({"piece": row[piece]} if piece else {})
        for row in rows
        if row[y.field] is not None and row[x.field] is not None
    ]
    line = (
        alt.Chart(alt.Data(values=values))
        .mark_line(strokeWidth=1.4, clip=True, interpolate="step-after" if step else "linear")
        .encode(x=x_of(x), y=y_of(y), color=color, strokeDash=dash, order=f"{x.field}:Q")
    )
    layers = [line.encode(detail="piece:N") if piece else line]
    if guides:
        marks = alt.Chart(alt.Data(values=[{x.field: guide} for guide in guides]))
        rule = marks.mark_rule(color=MUTED[0], strokeWidth=0.6, strokeDash=[3, 3])
        layers.insert(0, rule.encode(x=alt.X(f"{x.field}:Q")))
    return alt.layer(*layers).properties(width=width, height=height, title=title)


def bars(
    rows: Sequence[Row],
    look: Look,
    *,
    value: AxisOf,
    line: str,
    series: str,
    title: Any,
    width: float,
    text: Callable[[float], str],
    entries: dict[str, str] | None = None,
    room: Sequence[str] | None = None,
) -> Any:
    """Return a panel of horizontal bars, the number at the end of each.

    Args:
        rows: with the value's field, ``line``, ``series`` and ``n``; those of a line together.
        look: colours.
        value: the axis along the bars.
        line: the column of the names down the side.
        series: the column of the bars of a name.
        title: what `heading` returned.
        width: of the plotting area, px, including room for the names beyond `AXIS`.
        text: value -> the number beside the bar.
        entries: series -> legend entry; default `with_n`.
        room: names of all panels, so that they align; default: this one's.
    """
    import altair as alt

    named = entries if entries is not None else with_n(rows, series)
    texts = {name: named[name] for name in sorted(named, key=lambda x: look.place(x, list(named)))}
    domain = list(texts.values())
    extent = names_room(room if room is not None else [row[line] for row in rows], look)
    drawn = [row for row in rows if row[value.field] is not None]
    starts, middles, height = _stacked_lines([row[line] for row in drawn])
    values = [
        {
            "from": start,
            "to": start + 1,
            "middle": start + 0.5,
            "entry": texts[row[series]],
            value.field: row[value.field],
            "text": text(row[value.field]),
        }
        for start, row in zip(starts, drawn, strict=True)
    ]
    longest = max((row[value.field] for row in values), default=1.0) or 1.0
    widest = max((text_width(row["text"]) for row in values), default=0.0)
    plot = width + AXIS - extent - 4
    top = longest * plot / max(plot - widest - 6, 1.0)
    names = alt.Axis(
        values=list(middles),
        tickCount=MANY,
        labelExpr=texts_at(middles),
        title=None,
        ticks=False,
        domain=False,
        grid=False,
        minExtent=extent,
        maxExtent=extent,
        labelLimit=extent,
        labelOverlap=False,
    )
    y = alt.Y("from:Q", axis=names, scale=alt.Scale(domain=[height, 0], nice=False))
    axis = replace(value, domain=(0.0, top), count=4)
    color = alt.Color(
        "entry:N",
        title=None,
        sort=domain,
        scale=alt.Scale(domain=domain, range=look.strokes(list(texts))[0]),
        legend=_legend(domain, plot + EDGE, symbol="square"),
    )
    source = alt.Chart(alt.Data(values=values)).transform_calculate(zero="0")
    bar = source.mark_rect().encode(x=x_of(axis), x2="zero:Q", y=y, y2="to:Q", color=color)
    label = source.mark_text(align="left", dx=3, fontSize=FONT - 0.4, color=INK[0]).encode(
        x=alt.X(f"{value.field}:Q"), y=alt.Y("middle:Q"), text="text:N"
    )
    return alt.layer(bar, label).properties(width=plot, height=LINE * height, title=title)


def _stacked_lines(lines: Sequence[str]) -> tuple[list[float], dict[float, str], float]:
    """Return where bars begin, one a row, with room between those of different lines.

    Args:
        lines: the line of each bar; bars of one line follow each other.

    Returns:
        The top of each bar; the middle of each line's bars -> its name; the bottom of all. Bars
        are 1 high.
    """
    starts: list[float] = []
    middles: dict[float, str] = {}
    at = 0.0
    for name, bars_of in groupby(lines):
        at += _BETWEEN
        count = len(list(bars_of))
        starts += [at + i for i in range(count)]
        middles[at + count / 2] = name
        at += count
    return starts, middles, at + _BETWEEN


def framed(table: pa.Table, look: Look, draw: Callable[..., Any]) -> Any:
    """Return the panels of a figure's table as one chart.

    Args:
        table: of the figure.
        look: how it looks.
        draw: called with rows, ``title`` and ``width``; returns a panel.
    """
    panels = panels_of(table)
    beside = min(look.columns, len(panels))
    width = look.panel_width(beside)
    drawn = [
        draw(
            rows,
            title=heading(
                letter, title, alone=len(panels) == 1, room=look.width / beside - GAP / 2
            ),
            width=width,
        )
        for letter, title, rows in panels
    ]
    return arranged(drawn, beside)


def arranged(drawn: Sequence[Any], columns: int) -> Any:
    """Return panels as one themed chart, row by row."""
    import altair as alt

    if len(drawn) == 1:
        return themed(drawn[0])
    chart = alt.concat(*drawn, columns=columns, spacing=GAP)
    own = {"color": "independent", "strokeDash": "independent"}
    offsets = {"xOffset": "independent", "yOffset": "independent"}
    chart = chart.resolve_scale(**own, **offsets, x="independent", y="independent")
    return themed(chart.resolve_legend(**own))


def names_room(names: Sequence[str], look: Look) -> float:
    """Return the room for names down the side, px: as they need, two fifths at most."""
    return min(max((text_width(name) for name in names), default=0.0) + 4, 0.4 * look.width)


def _legend(entries: Sequence[str], room: float, symbol: str = "stroke") -> Any:
    """Return a legend above the panel, in as many columns as its room has."""
    import altair as alt

    longest = max(map(text_width, entries), default=1.0) + _SYMBOL
    columns = max(1, min(len(entries), int(room // longest)))
    return alt.Legend(
        orient="top",
        direction="horizontal",
        columns=columns,
        labelLimit=max(room / columns - _SYMBOL, 40.0),
        symbolType=symbol,
    )
