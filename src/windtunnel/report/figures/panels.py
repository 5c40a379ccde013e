"""Panels of figures: curves, steps, bars and boxes, and how several become one figure.

Every panel takes ``rows`` of a figure's table, the ``look`` that gives colours and dashes, its
``title`` as `heading` returned it, and the ``width`` of its plotting area, px (of horizontal bars
and boxes including the width of names beyond `AXIS`). ``entries`` are the texts of its legend, by
series (default: `with_n`), and ``all_names`` the names of all panels, so that they align (default:
its own).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_paper, over, titled
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.axes import names as names_of
from windtunnel.report.chart.axes import texts as texts_down
from windtunnel.report.chart.series import FONT, Series, text_width
from windtunnel.report.curves import counted
from windtunnel.report.figures.sources import AXIS, EDGE, GAP
from windtunnel.report.palette import INK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from windtunnel.report.figures.collecting import FigureData
    from windtunnel.report.figures.sources import Look, Sources


Row = dict[str, Any]
#: Height of the plotting area of a panel of curves, px.
HEIGHT = 118.0
#: A line of a bar chart or box plot, px.
LINE = 12.5
#: Gap between the bars of different names, in bars.
_BETWEEN = 0.35


def panels_of(table: pa.Table) -> list[tuple[str, str, list[Row]]]:
    """Return (letter, title, rows) of each panel of a figure's table, by letter."""
    panels: dict[str, tuple[str, list[Row]]] = {}
    for row in table.to_pylist():
        panels.setdefault(row["panel"], (row["title"], []))[1].append(row)
    return [(letter, *panels[letter]) for letter in sorted(panels)]


def heading(letter: str, title: str, *, alone: bool, second: str = "", limit: float = 0.0) -> Any:
    """Return a panel's title: its letter and what it shows, cut to ``limit`` px (0 = not cut)."""
    text = title if alone else f"({letter}) {title}"
    options = {"limit": limit} if limit else {}
    return titled([text, second] if second else text, frame="bounds", **options)


def with_n(rows: Sequence[Row], series: str) -> dict[str, str]:
    """Return series -> its legend entry, with its n, in order of appearance."""
    found: dict[str, str] = {}
    for row in rows:
        name = row[series]
        if name not in found:
            n = row["n"]
            found[name] = f"{name} (n not reported)" if n is None else counted(name, n)
    return found


def curves(
    rows: Sequence[Row],
    look: Look,
    *,
    x: Axis,
    y: Axis,
    series: str,
    title: Any,
    width: float,
    step: bool = False,
    guides: Sequence[float] = (),
    entries: dict[str, str] | None = None,
    paint: dict[str, tuple[str, list[float]]] | None = None,
    piece: str = "",
    more_layers: Sequence[Any] = (),
) -> Any:
    """Return a panel of curves, one a series, each in its colour and dash, with n in the legend.

    Rows have the axes' fields, the column ``series`` and ``n``, in order along each curve; thin
    vertical lines stand at ``guides``. ``step`` and ``piece`` are those of `marks.lines`, and
    ``paint`` gives a series another colour and dash than the look.
    """
    texts = entries if entries is not None else with_n(rows, series)
    if paint is None:
        paint = dict(zip(texts, zip(*look.strokes(list(texts)), strict=True), strict=True))
    painted = [paint[name] for name in texts]
    drawn = Series(
        "entry",
        list(texts.values()),
        [colour for colour, _ in painted],
        [dash for _, dash in painted],
        legend=True,
        width=width + EDGE,
        font=FONT,
        symbol="stroke",
    )
    values = [
        {"entry": texts[row[series]], x.field: row[x.field], y.field: row[y.field]}
        | ({"piece": row[piece]} if piece else {})
        for row in rows
        if row[y.field] is not None and row[x.field] is not None
    ]
    up = replace(y, extent=AXIS - 18)
    line = marks.lines(values, x, up, drawn, step=step, strokeWidth=1.4, piece=piece and "piece")
    layers = [marks.guide(*guides, field=x.field), line] if guides else [line]
    return over(*layers, *more_layers, width=width, height=HEIGHT, title=title)


def bars(
    rows: Sequence[Row],
    look: Look,
    *,
    value: Axis,
    line: str,
    series: str,
    title: Any,
    width: float,
    text: Callable[[float], str],
    entries: dict[str, str] | None = None,
    all_names: Sequence[str] | None = None,
) -> Any:
    """Return a panel of horizontal bars, the number at the end of each as ``text`` writes it.

    Rows have the value's field, the columns ``line`` (the names down the side) and ``series`` (the
    bars of a name), and ``n``; those of a line follow each other.
    """
    named = entries if entries is not None else with_n(rows, series)
    texts = {name: named[name] for name in sorted(named, key=lambda x: look.place(x, list(named)))}
    extent = names_width(all_names if all_names is not None else [row[line] for row in rows], look)
    drawn = [row for row in rows if row[value.field] is not None]
    starts, middles, height = _stacked_lines([row[line] for row in drawn])
    values = [
        {
            "from": start,
            "to": start + 1,
            "middle": start + 0.5,
            "zero": 0,
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
    x = replace(value, domain=(0.0, top), count=4, end="zero")
    y = texts_down("from", middles, height, extent, end="to")
    shown = Series(
        "entry",
        list(texts.values()),
        look.strokes(list(texts))[0],
        legend=True,
        width=plot + EDGE,
        font=FONT,
        symbol="square",
    )
    end, middle = replace(x, end=""), replace(y, field="middle", end="")
    layers = [
        marks.gantt(values, x, y, shown),
        marks.texts(
            values, end, middle, "text", align="left", dx=3, fontSize=FONT - 0.4, color=INK[0]
        ),
    ]
    return over(*layers, width=plot, height=LINE * height, title=title)


def _stacked_lines(lines: Sequence[str]) -> tuple[list[float], dict[float, str], float]:
    """Return where bars begin, one a row, with a gap between those of different lines.

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


class Plan(NamedTuple):
    """How a figure is made: its data from the sources, and a chart of the table in them."""

    collect: Callable[[Sources], FigureData]
    draw: Callable[[pa.Table, Look], Any]


def by_panel(draw: Callable[..., Any]) -> Callable[[pa.Table, Look], Any]:
    """Return what draws a figure panel by panel: ``draw`` has rows, look, ``title``, ``width``."""
    return lambda table, look: framed(table, look, partial(draw, look=look))


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
                letter, title, alone=len(panels) == 1, limit=look.width / beside - GAP / 2
            ),
            width=width,
        )
        for letter, title, rows in panels
    ]
    return arranged(drawn, beside)


def arranged(drawn: Sequence[Any], columns: int) -> Any:
    """Return panels as one chart for paper, row by row."""
    return on_paper(beside(drawn, columns, spacing=GAP))


def names_width(names: Sequence[str], look: Look) -> float:
    """Return the width of names down the side, px: as they need, two fifths at most."""
    return min(max((text_width(name) for name in names), default=0.0) + 4, 0.4 * look.width)


def boxes(
    rows: Sequence[Row],
    look: Look,
    *,
    value: Axis,
    names: Sequence[str],
    entries: Sequence[str],
    title: Any,
    width: float,
    all_names: Sequence[str] | None = None,
) -> Any:
    """Return a panel of horizontal box plots: whiskers, box from q1 to q3, median (`marks.BOX`).

    Args:
        rows: `marks.BOX`.
        look: colours.
        value: the axis along the boxes.
        names: the series of each row, for its colour.
        entries: what stands beside each row.
        title: see above.
        width: see above.
        all_names: entries of all panels.
    """
    extent = names_width(all_names if all_names is not None else entries, look)
    across = names_of("entry", entries, extent=extent)
    colours = [look.colour(name, names) for name in names]
    layers = marks.boxes(_named(rows, entries, colours, marks.BOX), value, across)
    height = LINE * 1.15 * len(rows)
    return over(*layers, width=width + AXIS - extent - 4, height=height, title=title)


def vertical_boxes(
    rows: Sequence[Row],
    look: Look,
    *,
    value: Axis,
    name: str,
    entries: Sequence[str],
    below: str,
    every: int,
    title: Any,
    width: float,
) -> Any:
    """Return a panel of vertical box plots, all of one trace, with a dot at each mean.

    Args:
        rows: as `boxes`, and ``mean``.
        look: colours.
        value: the axis along the boxes.
        name: the trace.
        entries: what stands below each row.
        below: title of the axis below.
        every: so many rows apart stands an entry.
        title: what `heading` returned.
        width: of the plotting area, px.
    """
    apart = {"values": list(entries[::every]), "labelOverlap": False}
    across = Axis(
        "entry", below, "ordinal", order=list(entries), grid=True, more={**apart, "ticks": False}
    )
    shown = _named(rows, entries, [look.colour(name)] * len(rows), (*marks.BOX, "mean"))
    layers = marks.boxes(shown, replace(value, extent=AXIS - 18), across, horizontal=False)
    return over(*layers, width=width, height=HEIGHT, title=title)


def _named(
    rows: Sequence[Row], entries: Sequence[str], colours: Sequence[str], columns: Sequence[str]
) -> list[Row]:
    """Return what is drawn of box plots: columns of the rows, what they are called, the colour."""
    return [
        {"entry": entry, "colour": colour, **{key: row[key] for key in columns}}
        for row, entry, colour in zip(rows, entries, colours, strict=True)
    ]
