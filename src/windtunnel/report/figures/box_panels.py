"""Panels of box plots, lying and standing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.axes import AxisOf, names_axis, x_of, y_of
from windtunnel.report.figures.look import AXIS
from windtunnel.report.figures.panels import HEIGHT, LINE, names_room
from windtunnel.report.palette import INK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.look import Look
    from windtunnel.report.figures.panels import Row

#: Columns of a box plot, in order.
BOX = ("whisker_low", "q1", "median", "q3", "whisker_high")


def boxes(
    rows: Sequence[Row],
    look: Look,
    *,
    value: AxisOf,
    names: Sequence[str],
    entries: Sequence[str],
    title: Any,
    width: float,
    room: Sequence[str] | None = None,
) -> Any:
    """Return a panel of lying box plots: whiskers, box from q1 to q3, median.

    Args:
        rows: ``whisker_low``, ``q1``, ``median``, ``q3``, ``whisker_high``.
        look: colours.
        value: the axis along the boxes.
        names: the series of each row, for its colour.
        entries: what stands beside each row.
        title: what `heading` returned.
        width: of the plotting area, px, including room for the names beyond `AXIS`.
        room: entries of all panels, so that they align; default: this one's.
    """
    import altair as alt

    extent = names_room(room if room is not None else entries, look)
    along = x_of(replace(value, field="whisker_low"))
    across = alt.Y("entry:N", sort=list(entries), axis=names_axis(entries, extent))
    colours = [look.colour(name, names) for name in names]
    layers = _box_layers(_box_rows(rows, entries, colours, value), along, across, lying=True)
    return alt.layer(*layers).properties(
        width=width + AXIS - extent - 4, height=LINE * 1.15 * len(rows), title=title
    )


def standing_boxes(
    rows: Sequence[Row],
    look: Look,
    *,
    value: AxisOf,
    name: str,
    entries: Sequence[str],
    below: str,
    every: int,
    title: Any,
    width: float,
) -> Any:
    """Return a panel of standing box plots, all of one trace, with a dot at each mean.

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
    import altair as alt

    along = y_of(replace(value, field="whisker_low"))
    axis = alt.Axis(
        title=below, labelAngle=0, ticks=False, values=list(entries[::every]), labelOverlap=False
    )
    across = alt.X("entry:N", sort=list(entries), axis=axis)
    colours = [look.colour(name)] * len(rows)
    layers = _box_layers(_box_rows(rows, entries, colours, value), along, across, lying=False)
    means = [
        {"entry": entry, "mean": row["mean"]} for row, entry in zip(rows, entries, strict=True)
    ]
    dots = alt.Chart(alt.Data(values=means)).mark_point(
        filled=True, size=9, color=INK[0], opacity=1, clip=True
    )
    layers.append(dots.encode(x=across, y=alt.Y("mean:Q")))
    return alt.layer(*layers).properties(width=width, height=HEIGHT, title=title)


def _box_rows(
    rows: Sequence[Row], entries: Sequence[str], colours: Sequence[str], value: AxisOf
) -> list[Row]:
    """Return what is drawn of box plots; a logarithmic axis has no 0, its edge stands for it."""
    low = value.domain[0] if value.kind == "log" and value.domain else -math.inf
    return [
        {"entry": entry, "colour": colour, **{key: max(row[key], low) for key in BOX}}
        for row, entry, colour in zip(rows, entries, colours, strict=True)
    ]


def _box_layers(values: list[Row], along: Any, across: Any, *, lying: bool) -> list[Any]:
    import altair as alt

    source = alt.Chart(alt.Data(values=values))
    one, two, other = ("x", "x2", "y") if lying else ("y", "y2", "x")
    size = 8 if lying else 6

    def marked(mark: Any, start: Any, end: str = "", **more: Any) -> Any:
        ends = {two: f"{end}:Q"} if end else {}
        return mark.encode(**{one: start, other: across}, **ends, **more)

    def of(name: str) -> Any:
        return alt.X(f"{name}:Q") if lying else alt.Y(f"{name}:Q")

    paint = alt.Color("colour:N", scale=None, legend=None)
    orient = {"orient": "vertical" if lying else "horizontal"}
    tick = source.mark_tick(color=INK[0], thickness=1, size=size - 2, **orient)
    box = source.mark_bar(size=size, fillOpacity=0.45, stroke=INK[0], strokeWidth=0.7)
    # A box of no width, where q1 is q3, is seen by its median alone.
    median = source.mark_tick(color=INK[0], thickness=2, size=size + 2, **orient)
    return [
        marked(source.mark_rule(color=INK[0], strokeWidth=0.8), along, "whisker_high"),
        marked(tick, of("whisker_low")),
        marked(tick, of("whisker_high")),
        marked(box, of("q1"), "q3", color=paint),
        marked(median, of("median")),
    ]
