"""Axes: scales, ticks and titles with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.look import AXIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: A Vega expression: seconds as 10 s, 1 min, 6 h, 7 d.
_TIME = (
    "datum.value < 60 ? format(datum.value, '~g') + ' s' : "
    "datum.value < 3600 ? format(datum.value / 60, '~g') + ' min' : "
    "datum.value < 86400 ? format(datum.value / 3600, '~g') + ' h' : "
    "format(datum.value / 86400, '~g') + ' d'"
)
_NUMBER = "datum.value < 10000 ? format(datum.value, ',~r') : format(datum.value, '.3~s')"
#: The same from 1,000 on, for an axis that goes beyond 10,000: 5k below 10k, not 5,000.
_THOUSANDS = "datum.value < 1000 ? format(datum.value, ',~r') : format(datum.value, '.3~s')"
_MANY_THOUSANDS = 10_000.0
_TIME_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 60 * 86400, 600 * 86400)
#: More ticks than any axis has.
MANY = 1000
#: Ticks with a number each that fit below a panel.
_MOST_TICKS = 6
_WHOLE = 100.0


@dataclass(frozen=True)
class AxisOf:
    """One axis of a panel.

    Attributes:
        field: the column.
        title: with its unit.
        kind: ``linear`` or ``log``.
        domain: from and to; None = as the data are.
        ticks: where they are; none = as many as fit.
        labels: a Vega expression for their text; empty = the number.
        count: about so many ticks, where they are not given.
    """

    field: str
    title: str
    kind: str = "linear"
    domain: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()
    labels: str = ""
    count: int = 5


def seconds(field: str, title: str, domain: tuple[float, float]) -> AxisOf:
    """Return a logarithmic axis of times in s."""
    ticks = tuple(tick for tick in _TIME_TICKS if domain[0] <= tick <= domain[1])
    return AxisOf(field, title, "log", domain, ticks, _TIME)


def powers(field: str, title: str, domain: tuple[float, float], base: int = 2) -> AxisOf:
    """Return a logarithmic axis with ticks at powers of a base, as many as fit.

    Where less than two would stand on it they are at powers of two: one number makes no scale.
    """
    ticks = _powers_within(domain, base)
    if len(ticks) < 2:  # noqa: PLR2004 (two numbers make a scale)
        ticks = _powers_within(domain, 2)
    every = -(-len(ticks) // _MOST_TICKS)
    return AxisOf(field, title, "log", domain, tuple(ticks[::every]), _NUMBER)


def _powers_within(domain: tuple[float, float], base: int) -> list[float]:
    ticks, tick = [], 1.0
    while tick > domain[0]:
        tick /= base
    while tick <= domain[1]:
        if tick >= domain[0]:
            ticks.append(tick)
        tick *= base
    return ticks


def fractions(field: str, title: str) -> AxisOf:
    """Return an axis from 0 to 1."""
    ticks = (0, 0.25, 0.5, 0.75, 1)
    return AxisOf(field, title, "linear", (0.0, 1.0), ticks, "format(datum.value, '.2~f')")


def percent(field: str = "percent", title: str = "CDF, % of jobs") -> AxisOf:
    """Return an axis from 0 to 100 %, a little wider so that a curve on the edge is seen."""
    return AxisOf(field, title, "linear", (-0.5, 100.8), (0, 25, 50, 75, 100))


def numbers(field: str, title: str, domain: tuple[float, float] | None = None) -> AxisOf:
    """Return a linear axis of numbers."""
    long = domain is not None and domain[1] >= _MANY_THOUSANDS
    return AxisOf(field, title, "linear", domain, (), _THOUSANDS if long else _NUMBER)


def end_of(rows: Iterable[dict[str, Any]], least: float = 64.0) -> float:
    """Return where an axis may end: the first x at which every curve has reached 100 %."""
    whole = [row["x"] for row in rows if row["percent"] is not None and row["percent"] < _WHOLE]
    return max(least, 2 * max(whole, default=least / 2))


def x_of(axis: AxisOf) -> Any:
    """Return the axis as Altair's x."""
    import altair as alt

    return alt.X(f"{axis.field}:Q", title=axis.title, scale=_scale(axis), axis=_axis(axis))


def y_of(axis: AxisOf, extent: float = AXIS - 18) -> Any:
    """Return the axis as Altair's y, its labels always as wide, so that panels align."""
    import altair as alt

    room = {"minExtent": extent, "maxExtent": extent}
    return alt.Y(f"{axis.field}:Q", title=axis.title, scale=_scale(axis), axis=_axis(axis, room))


def names_axis(labels: Sequence[str], extent: float) -> Any:
    """Return an Altair axis of names for y, as wide as told."""
    import altair as alt

    return alt.Axis(
        title=None,
        ticks=False,
        domain=False,
        minExtent=extent,
        maxExtent=extent,
        labelLimit=extent,
        values=list(labels),
    )


def texts_at(texts: Mapping[float, str]) -> str:
    r"""Return a Vega expression that labels ticks with texts, which cannot leave their quotes.

    >>> print(texts_at({0.5: "it's"}))
    abs(datum.value - 0.5) < 0.01 ? 'it\'s' : ''
    """
    parts = [
        f"abs(datum.value - {at:.15g}) < 0.01 ? '{_quoted(text)}' : " for at, text in texts.items()
    ]
    return "".join([*parts, "''"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _scale(axis: AxisOf) -> Any:
    import altair as alt

    options: dict[str, Any] = {"type": axis.kind, "nice": axis.domain is None}
    if axis.domain is not None:
        options["domain"] = list(axis.domain)
    return alt.Scale(**options)


def _axis(axis: AxisOf, room: dict[str, float] | None = None) -> Any:
    import altair as alt

    options: dict[str, Any] = {
        "labelOverlap": not axis.ticks,
        "labelFlush": False,
        "grid": True,
        **(room or {}),
    }
    if axis.ticks:
        options["values"] = list(axis.ticks)
        options["tickCount"] = MANY  # Vega thins ticks out that are more than it would make
    else:
        options["tickCount"] = axis.count
    if axis.labels or axis.ticks:
        options["labelExpr"] = axis.labels or "format(datum.value, ',~r')"
    return alt.Axis(**options)
