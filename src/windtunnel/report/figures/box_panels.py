"""Panels of box plots, lying and standing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.axes import names as names_of
from windtunnel.report.figures.look import AXIS
from windtunnel.report.figures.panels import HEIGHT, LINE, names_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.look import Look
    from windtunnel.report.figures.panels import Row


def boxes(
    rows: Sequence[Row],
    look: Look,
    *,
    value: Axis,
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
    extent = names_room(room if room is not None else entries, look)
    across = names_of("entry", entries, room=extent)
    colours = [look.colour(name, names) for name in names]
    layers = marks.boxes(_named(rows, entries, colours, marks.BOX), value, across)
    height = LINE * 1.15 * len(rows)
    return over(*layers, width=width + AXIS - extent - 4, height=height, title=title)


def standing_boxes(
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
    apart = {"values": list(entries[::every]), "labelOverlap": False}
    across = Axis(
        "entry", below, "ordinal", order=list(entries), grid=True, more={**apart, "ticks": False}
    )
    shown = _named(rows, entries, [look.colour(name)] * len(rows), (*marks.BOX, "mean"))
    layers = marks.boxes(shown, replace(value, room=AXIS - 18), across, lying=False)
    return over(*layers, width=width, height=HEIGHT, title=title)


def _named(
    rows: Sequence[Row], entries: Sequence[str], colours: Sequence[str], columns: Sequence[str]
) -> list[Row]:
    """Return what is drawn of box plots: columns of the rows, what they are called, the colour."""
    return [
        {"entry": entry, "colour": colour, **{key: row[key] for key in columns}}
        for row, entry, colour in zip(rows, entries, colours, strict=True)
    ]
