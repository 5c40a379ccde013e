"""Charts of answers: bars of parts, and dots with their intervals. Rows in, charts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, on_page, over
from windtunnel.report.chart.axes import Axis, waits
from windtunnel.report.chart.axes import names as names_of
from windtunnel.report.chart.series import Series
from windtunnel.report.palette import colours

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
#: Height of a bar with its gap, px.
_BAR = 22


def part_bars(
    rows: Sequence[Row],
    *,
    of: str,
    parts: Sequence[str],
    value: str,
    title: str,
    corner: str = "",
    shown: Sequence[str] | None = None,
) -> Any:
    """Return horizontal bars, each made of parts that follow each other in order.

    Rows have the bar's name in the column ``of``, their ``part``, and a number in the column
    ``value``, whose ``title`` has its unit. Bars stand as ``shown`` orders them, else as they come.
    """
    order = list(dict.fromkeys(shown or (row[of] for row in rows)))
    drawn = marks.bars(
        rows,
        Axis(value, title),
        names_of(of, order, corner or None),
        _parts(parts),
        stacked=True,
        height=14,
    )
    return on_page(over(drawn, width=WIDTH - 60, height=max(60, _BAR * len(order))))


def part_columns(
    rows: Sequence[Row], *, at: str, parts: Sequence[str], value: str, title: str, corner: str
) -> Any:
    """Return upright bars as `part_bars` does, one for each hour of the day: 0 to 23 in ``at``."""
    hours = Axis(at, corner, domain=(-0.7, 23.7), ticks=(0, 6, 12, 18), grid=False)
    drawn = marks.bars(
        rows, Axis(value, title), hours, _parts(parts), upright=True, stacked=True, width=9
    )
    return on_page(over(drawn, width=WIDTH, height=200))


def curves(
    rows: Sequence[Row], *, x: str, y: str, x_title: str, y_title: str, names: Sequence[str]
) -> Any:
    """Return curves over a number, a colour each, the first in black.

    Rows have the curve's ``name`` and the columns ``x`` and ``y``, whose titles have their units.
    """
    across = Axis(x, x_title, grid=False, scale={"nice": False})
    drawn = marks.lines(list(rows), across, Axis(y, y_title), Series("name", names), strokeWidth=2)
    return on_page(over(drawn, width=WIDTH, height=200))


def _parts(parts: Sequence[str]) -> Series:
    """Return the parts of bars: black is for lines."""
    return Series("part", parts, colours(len(parts) + 1)[1:])


def wait_spans(rows: Sequence[Row], *, of: str, corner: str) -> Any:
    """Return spans of waits on a logarithmic axis: a line from low to high, a dot in between.

    Rows have a span's name in the column ``of``; ``low``, ``middle``, ``high`` (s, not under 1).
    """
    ends = [row[key] for row in rows for key in ("low", "high")]
    return _spans(rows, waits("middle", "Wait", ends), of, corner)


def difference_spans(rows: Sequence[Row], *, of: str, title: str) -> Any:
    """Return differences with their intervals around a line at 0; rows as in `wait_spans`."""
    return _spans(rows, Axis("middle", title), of, None, guides=[0.0])


def _spans(
    rows: Sequence[Row], value: Axis, of: str, corner: str | None, guides: Sequence[float] = ()
) -> Any:
    order = list(dict.fromkeys(row[of] for row in rows))
    down = names_of(of, order, corner, more={"labelLimit": 190})
    layers = marks.forest(list(rows), value, down, low="low", high="high", guides=guides, size=60)
    return on_page(over(*layers, width=WIDTH - 60, height=max(60, _BAR * len(order))))
