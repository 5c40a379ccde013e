"""The marks: each a table of rows with two axes, as layers to be put over each other.

What they take is the same everywhere: ``rows``, or what `arrange.data` made of them where charts
share rows; the axes; ``series``, which gives the colour; ``tips``, shown under the pointer;
``where``, a Vega expression that chooses rows (empty = all); ``channels``, more encodings; and
``style``, Vega's properties of the mark.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart.arrange import data
from windtunnel.report.palette import INK, MUTED, colours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.report.chart.axes import Axis
    from windtunnel.report.chart.series import Series

#: Column -> (title, format) of what is shown under the pointer; format "" = text.
Tips = dict[str, tuple[str, str]]
_GUIDE: dict[str, Any] = {"color": MUTED[0], "strokeDash": [2, 3]}
#: Columns of a box plot, in order.
BOX = ("whisker_low", "q1", "median", "q3", "whisker_high")


def mark(
    rows: Any,
    kind: str,
    x: Axis,
    y: Axis,
    *,
    series: Series | None = None,
    tips: Tips | None = None,
    where: str = "",
    style: Mapping[str, Any] | None = None,
    **channels: Any,
) -> Any:
    """Return one layer; ``kind`` is Vega's name of the mark."""
    import altair as alt

    chart = alt.Chart(data(rows) if isinstance(rows, list) else rows)
    if where:
        chart = chart.transform_filter(where)
    found = {**x.channel("x"), **y.channel("y"), **channels}
    if series is not None:
        found["color"] = series.color()
    if tips:
        found["tooltip"] = [
            alt.Tooltip(f"{field}:{'Q' if form else 'N'}", title=title, format=form)
            if form
            else alt.Tooltip(f"{field}:N", title=title)
            for field, (title, form) in tips.items()
        ]
    return getattr(chart, f"mark_{kind}")(**dict(style or {})).encode(**found)


def lines(
    rows: Any,
    x: Axis,
    y: Axis,
    series: Series | None = None,
    *,
    step: bool = False,
    order: str = "",
    piece: str = "",
    where: str = "",
    tips: Tips | None = None,
    **style: Any,
) -> Any:
    """Return a line a series, in its colour and dash; without series, in one colour.

    With ``step`` each value holds until the next x. Points are joined along the column ``order``
    (default: x), and with ``piece`` only those of rows alike in that column.
    """
    more: dict[str, Any] = {"order": f"{order or x.field}:Q"}
    if piece:
        more["detail"] = f"{piece}:N"
    if series is not None:
        more |= series.dash()
    joined = "step-after" if step else "linear"
    look = {"strokeWidth": 1.7, "clip": True, "interpolate": joined} | style
    return mark(rows, "line", x, y, series=series, tips=tips, where=where, style=look, **more)


def steps(rows: Any, x: Axis, y: Axis, series: Series | None = None, **style: Any) -> Any:
    """Return `lines` whose values hold until the next x."""
    return lines(rows, x, y, series, step=True, **style)


def area(rows: Any, x: Axis, y: Axis, series: Series | None = None, **style: Any) -> Any:
    """Return what lies between the ends of ``y``, or under it: the band of a line."""
    look = {"opacity": 0.18, "clip": True, "line": False} | style
    return mark(rows, "area", x, y, series=series, style=look)


def dots(
    rows: Any,
    x: Axis,
    y: Axis,
    series: Series | None = None,
    *,
    tips: Tips | None = None,
    where: str = "",
    channels: Mapping[str, Any] | None = None,
    **style: Any,
) -> Any:
    """Return a dot a row."""
    look = {"filled": True, "size": 45, "opacity": 1} | style
    return mark(
        rows, "point", x, y, series=series, tips=tips, where=where, style=look, **(channels or {})
    )


def two(field: str, **scales: tuple[Any, Any]) -> dict[str, Any]:
    """Return encodings by a column of truth values: channel=(where false, where true)."""
    import altair as alt

    made = {"shape": alt.Shape, "size": alt.Size}
    return {
        name: made[name](
            f"{field}:N", scale=alt.Scale(domain=[False, True], range=list(ends)), legend=None
        )
        for name, ends in scales.items()
    }


def shapes(field: str, names: Sequence[str], found: Sequence[str]) -> dict[str, Any]:
    """Return the encoding of dots' shapes by a column of names."""
    import altair as alt

    scale = alt.Scale(domain=list(names), range=list(found))
    return {"shape": alt.Shape(f"{field}:N", title=None, scale=scale)}


def depth(field: str, levels: int) -> dict[str, Any]:
    """Return the encoding of a column of levels, 1 to ``levels``, as depths of colour."""
    import altair as alt

    scale = alt.Scale(domain=[1, levels], range=[1 / levels, 1])
    return {"opacity": alt.Opacity(f"{field}:Q", scale=scale, legend=None)}


def outlines(rows: Any, x: Axis, y: Axis, series: Series, *, where: str = "") -> Any:
    """Return an empty frame a row, in its series' colour."""
    look = {"filled": False, "strokeWidth": 2.5}
    return mark(rows, "rect", x, y, where=where, style=look, stroke=series.color("stroke"))


def texts(
    rows: Any,
    x: Axis,
    y: Axis,
    text: str,
    series: Series | None = None,
    *,
    form: str = "",
    where: str = "",
    channels: Mapping[str, Any] | None = None,
    **style: Any,
) -> Any:
    """Return a text a row, from the column ``text``; of numbers in the format ``form``."""
    import altair as alt

    label = alt.Text(f"{text}:Q", format=form) if form else alt.Text(f"{text}:N")
    return mark(
        rows, "text", x, y, series=series, where=where, style=style, text=label, **(channels or {})
    )


def guide(*at: float, field: str = "x", rows: Any = None, by: str = "") -> Any:
    """Return dotted lines up a chart where something changes.

    Args:
        at: the numbers on the axis.
        field: what that axis is of.
        rows: in a facet, its `arrange.data`.
        by: in a facet, its column.
    """
    import altair as alt

    if rows is None:
        chart = alt.Chart(alt.Data(values=[{field: value} for value in at]))
        return chart.mark_rule(**_GUIDE).encode(x=f"{field}:Q")
    one = alt.Chart(rows).transform_aggregate(rows="count()", groupby=[by])
    return one.mark_rule(**_GUIDE).encode(x=alt.datum(at[0]))


def bars(
    rows: Sequence[Mapping[str, Any]],
    value: Axis,
    names: Axis,
    series: Series | None = None,
    *,
    upright: bool = False,
    stacked: bool = False,
    text: str = "",
    tips: Tips | None = None,
    **style: Any,
) -> Any:
    """Return bars: beside each other within a name, or stacked, in the order of the series.

    They lie along ``value``, or stand (``upright``); the column ``text`` is written at their ends.
    """
    import altair as alt

    x, y = (names, value) if upright else (value, names)
    channels: dict[str, Any] = {}
    if stacked and series is not None:
        order = list(series.names)
        rows = [{**row, "place": order.index(row[series.field])} for row in rows]
        channels["order"] = alt.Order("place:Q")
    elif series is not None:
        channels = _beside(series, "xOffset" if upright else "yOffset")
    source = data(rows)
    drawn = mark(source, "bar", x, y, series=series, tips=tips, style=style, **channels)
    if not text:
        return drawn
    turned = {"angle": 270, "dx": 4} if upright else {"dx": 3}
    look: dict[str, Any] = {"align": "left", "fontSize": 9, **turned}
    x, y = replace(x, end=""), replace(y, end="")  # a bar has two ends, its text stands at one
    return alt.layer(drawn, texts(source, x, y, text, channels=channels, **look))


def _beside(series: Series, channel: str) -> dict[str, Any]:
    """Return the encoding that sets the series of a name beside each other."""
    import altair as alt

    made = {"xOffset": alt.XOffset, "yOffset": alt.YOffset}[channel]
    names = list(series.names)
    return {channel: made(f"{series.field}:N", sort=names, scale=alt.Scale(domain=names))}


def forest(
    rows: Any,
    value: Axis,
    names: Axis,
    series: Series | None = None,
    *,
    low: str = "",
    high: str = "",
    tick: str = "",
    beside: bool = False,
    guides: Sequence[float] = (),
    by: str = "",
    size: float = 46,
    marks: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Return a dot a row at ``value``, the span from ``low`` to ``high`` through it.

    Rows in which ``low`` is null have no span. Without series spans are blue, dots black.

    Args:
        rows: or data.
        value: the axis of the dots and spans.
        names: the axis of what they are of.
        series: what gives colours.
        low: the column where a span begins.
        high: the column where it ends.
        tick: a column that is a stroke instead.
        beside: the series of a name stand beside each other.
        guides: numbers at which a dotted line stands.
        by: the column of the facet, if any.
        size: of a dot.
        marks: encodings of the dots.
    """
    source = data(rows) if isinstance(rows, list) else rows
    apart = _beside(series, "yOffset") if beside and series is not None else {}
    black, blue = colours(2)
    plain = {} if series is not None else {"color": blue}
    layers = [guide(at, rows=source if by else None, by=by) for at in guides]
    if low:
        spans = replace(value, field=low, end=high)
        look = {"strokeWidth": 2 if series else 3, **plain}
        there = f"datum.{low} != null"
        layers.append(
            mark(source, "rule", spans, names, series=series, where=there, style=look, **apart)
        )
    if tick:
        look = {"thickness": 2, "size": 11, "opacity": 1}
        ends = replace(value, field=tick)
        layers.append(mark(source, "tick", ends, names, series=series, style=look, **apart))
    dot: dict[str, Any] = {} if series is not None else {"color": black}
    layers.append(
        dots(source, value, names, series, size=size, channels=apart | dict(marks or {}), **dot)
    )
    return layers


def boxes(
    rows: Sequence[Mapping[str, Any]], value: Axis, names: Axis, *, horizontal: bool = True
) -> list[Any]:
    """Return box plots: whiskers, a box from q1 to q3, the median, and the mean where there is one.

    Args:
        rows: `BOX`, ``colour``, and perhaps ``mean``.
        value: the axis along the boxes, whatever its field.
        names: the axis of what they are of.
        horizontal: along x.
    """
    import altair as alt

    # A logarithmic axis has no 0: its edge stands for it.
    low = value.domain[0] if value.kind == "log" and value.domain else -math.inf
    source = data([{**row, **{key: max(row[key], low) for key in BOX}} for row in rows])
    size = 8 if horizontal else 6
    paint = alt.Color("colour:N", scale=None, legend=None)
    upright = {"color": INK[0], "orient": "vertical" if horizontal else "horizontal"}

    def part(kind: str, start: str, end: str = "", *, style: Any, **more: Any) -> Any:
        along = replace(value, field=start, end=end)
        axes = (along, names) if horizontal else (names, along)
        return mark(source, kind, *axes, style=style, **more)

    tick = {**upright, "thickness": 1, "size": size - 2}
    body = {"size": size, "fillOpacity": 0.45, "stroke": INK[0], "strokeWidth": 0.7}
    layers = [
        part("rule", BOX[0], BOX[4], style={"color": INK[0], "strokeWidth": 0.8}),
        part("tick", BOX[0], style=tick),
        part("tick", BOX[4], style=tick),
        part("bar", "q1", "q3", style=body, color=paint),
        # A box of no width, where q1 is q3, is seen by its median alone.
        part("tick", "median", style={**upright, "thickness": 2, "size": size + 2}),
    ]
    if rows and "mean" in rows[0]:
        look = {"filled": True, "size": 9, "color": INK[0], "opacity": 1, "clip": True}
        layers.append(part("point", "mean", style=look))
    return layers


def gantt(
    rows: Any,
    x: Axis,
    y: Axis,
    series: Series | None = None,
    *,
    tips: Tips | None = None,
    channels: Mapping[str, Any] | None = None,
    **style: Any,
) -> Any:
    """Return a rectangle a row, between the ends of the axes; an axis of names has a lane each."""
    kind = "bar" if y.kind == "names" else "rect"
    return mark(rows, kind, x, y, series=series, tips=tips, style=style, **dict(channels or {}))


def heat(
    rows: Any,
    x: Axis,
    y: Axis,
    value: str,
    *,
    scale: Mapping[str, Any],
    title: str,
    legend: Mapping[str, Any],
    tips: Tips | None = None,
    channel: str = "color",
    where: str = "",
    **style: Any,
) -> Any:
    """Return a cell a row, shaded by a number: by ``color`` or by ``opacity``.

    The axes have an end unless they are of ordinals; ``scale`` and ``legend`` are Vega's properties
    of the shades and of their legend.
    """
    import altair as alt

    shades = alt.Scale(**scale)
    made = {"color": alt.Color, "opacity": alt.Opacity}[channel]
    shown = alt.Legend(**{"orient": "top", "direction": "horizontal"} | dict(legend))
    paint = {channel: made(f"{value}:Q", title=title, scale=shades, legend=shown)}
    if channel == "color" and "stroke" not in style:
        # A stroke of the same colour covers the seams that renderers leave between cells.
        paint["stroke"] = alt.Stroke(f"{value}:Q", scale=shades, legend=None)
        style = {"strokeWidth": 0.5, **style}
    return mark(rows, "rect", x, y, tips=tips, where=where, style={"clip": True, **style}, **paint)
