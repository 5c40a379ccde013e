"""Axes: a column with its unit, scale, ticks and their texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Vega expressions for the text of a tick: seconds as 10 s, 1 min, 6 h, 7 d, 10 y.
TIME = (
    "datum.value < 60 ? format(datum.value, '~g') + ' s' : "
    "datum.value < 3600 ? format(datum.value / 60, '~g') + ' min' : "
    "datum.value < 86400 ? format(datum.value / 3600, '~g') + ' h' : "
    "datum.value < 31536000 ? format(datum.value / 86400, '~g') + ' d' : "
    "format(datum.value / 31536000, '~g') + ' y'"
)
#: A fraction as 50 %, a ratio as 1.5x, a number as 1,500 or 20k.
PERCENT = "format(datum.value * 100, ',.2~f') + ' %'"
TIMES = "format(datum.value, '.2~f') + '\u00d7'"
NUMBER = "datum.value < 10000 ? format(datum.value, ',~r') : format(datum.value, '.3~s')"
#: The same from 1,000 on, for an axis that goes beyond 10,000: 5k below 10k, not 5,000.
_THOUSANDS = "datum.value < 1000 ? format(datum.value, ',~r') : format(datum.value, '.3~s')"
_MANY_THOUSANDS = 10_000.0
#: Where an axis of times ends at least, s.
_SHORTEST = 64.0
_DAY, _YEAR = 86_400, 365 * 86_400
_TIME_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, _DAY, 7 * _DAY, 60 * _DAY, 600 * _DAY)
_LONG_TICKS = (*_TIME_TICKS[:-2], 30 * _DAY, _YEAR, 10 * _YEAR, 100 * _YEAR)
#: What `waits` says of its left edge, and where that is, s.
EDGE_NOTE = "log scale; left edge: 0 to 1 s"
EDGE = 1.0
#: A tick so near the right end would hang its label over it.
_LAST_TICK = 1.1
#: More ticks than any axis has.
MANY = 1000
#: Ticks with a number each that fit below a panel.
_MOST_TICKS = 6
_WHOLE = 100.0
#: Width of the names beside a chart, px, where none is given.
_NAMES = 150.0
_LEFT_OUT = ("names", "ordinal")


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        field: the column.
        title: with its unit.
        kind: ``linear``, ``log``, ``symlog``, ``names`` (in the order of ``order``) or ``ordinal``.
        domain: from and to; None = as the data are.
        ticks: where they are; none = as many as fit.
        labels: a Vega expression for their text; empty = the number.
        count: about so many ticks, where they are not given.
        end: the column of the other end, of marks that have two.
        order: of names, or how to sort ordinals; the others are as they come.
        grid: lines at the ticks.
        extent: of the labels, px, so that charts align; None = as they need.
        scale: more of Vega's properties of a scale, such as ``zero`` and ``padding``.
        more: more of its properties of an axis.
        shown: whether it is drawn.
    """

    field: str
    title: str | None = None
    kind: str = "linear"
    domain: tuple[float, float] | None = None
    ticks: Sequence[float] = ()
    labels: str = ""
    count: int = 5
    end: str = ""
    order: Any = None
    grid: bool = True
    extent: float | None = None
    scale: Mapping[str, Any] | None = None
    more: Mapping[str, Any] | None = None
    shown: bool = True

    def channel(self, name: str) -> dict[str, Any]:
        """Return the encodings of this axis as ``x`` or ``y``."""
        import altair as alt

        made = {"x": alt.X, "y": alt.Y}[name]
        about: dict[str, Any] = {"title": self.title, "axis": self._axis() if self.shown else None}
        if self.kind in _LEFT_OUT:
            about |= {"sort": self.order} if self.order is not None else {}
            about |= {"scale": alt.Scale(**self.scale)} if self.scale else {}
            found = {name: made(f"{self.field}:{self.kind[0].upper()}", **about)}
        else:
            found = {name: made(f"{self.field}:Q", scale=self._scale(), **about)}
        return found | ({f"{name}2": f"{self.end}:Q"} if self.end else {})

    def _scale(self) -> Any:
        import altair as alt

        options: dict[str, Any] = {"type": self.kind, "nice": self.domain is None}
        if self.domain is not None:
            options["domain"] = list(self.domain)
        return alt.Scale(**options | dict(self.scale or {}))

    def _axis(self) -> Any:
        import altair as alt

        options: dict[str, Any] = {"grid": self.grid}
        if self.extent is not None:
            options |= {"minExtent": self.extent, "maxExtent": self.extent}
        if self.kind == "names":
            bare = {"ticks": False, "domain": False, "labelLimit": self.extent or _NAMES}
            return alt.Axis(**options | bare | self._texts() | dict(self.more or {}))
        if self.kind == "ordinal":
            return alt.Axis(labelAngle=0, **options | self._texts() | dict(self.more or {}))
        options |= {"labelOverlap": not self.ticks, "labelFlush": False, "tickCount": self.count}
        if self.ticks:  # Vega thins ticks out that are more than it would make
            options |= {"values": list(self.ticks), "tickCount": MANY}
        return alt.Axis(**options | self._texts() | dict(self.more or {}))

    def _texts(self) -> dict[str, str]:
        if self.labels:
            return {"labelExpr": self.labels}
        return {"labelExpr": "format(datum.value, ',~r')"} if self.ticks else {}


def names(
    field: str, order: Sequence[str] | None = None, title: str | None = None, **more: Any
) -> Axis:
    """Return an axis of names, in order."""
    return Axis(
        field,
        title,
        "names",
        order=None if order is None else list(order),
        **{"grid": False} | more,
    )


def sizes(order: Sequence[str]) -> Axis:
    """Return the axis of the classes of jobs' sizes, smallest first."""
    dash = "replace(datum.label, '-', '\u2013')"
    padding = {"paddingInner": 0.35, "paddingOuter": 0.2}
    return names("size", order, "GPUs of the job", labels=dash, extent=50, scale=padding)


def waits(field: str, title: str, seconds_: Sequence[float]) -> Axis:
    """Return a logarithmic axis that these times, s, fit; what is short is on its edge.

    Args:
        field: the column.
        title: what it is; the edge is explained behind it.
        seconds_: what is drawn, s.
    """
    low, high = limits(seconds_)
    ticks = [tick for tick in _LONG_TICKS if low <= tick <= high / _LAST_TICK]
    thinned = {"labelOverlap": "greedy", "tickCount": len(ticks)}
    return Axis(field, f"{title} ({EDGE_NOTE})", "log", (low, high), ticks, TIME, more=thinned)


def limits(seconds_: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic time axis: the edge, and a margin beyond the longest time.

    >>> limits([]), limits([100.0])
    ((1.0, 10.0), (1.0, 105.0))
    """
    return EDGE, max(10 * EDGE, 1.05 * max(seconds_, default=EDGE))


def span(field: str, title: str | None, **more: Any) -> Axis:
    """Return the axis of a time that goes by, its labels apart from each other."""
    thinned = {"labelOverlap": "greedy"}
    about: dict[str, Any] = {"grid": False, "count": 7, "more": thinned}
    return Axis(field, title, **about | more)


def seconds(field: str, title: str, domain: tuple[float, float]) -> Axis:
    """Return a logarithmic axis of times in s."""
    ticks = tuple(tick for tick in _TIME_TICKS if domain[0] <= tick <= domain[1])
    return Axis(field, title, "log", domain, ticks, TIME)


def powers(field: str, title: str, domain: tuple[float, float], base: int = 2) -> Axis:
    """Return a logarithmic axis with ticks at powers of a base, as many as fit.

    Where less than two would stand on it they are at powers of two: one number makes no scale.
    """
    ticks = _powers_within(domain, base)
    if len(ticks) < 2:  # noqa: PLR2004 (two numbers make a scale)
        ticks = _powers_within(domain, 2)
    every = -(-len(ticks) // _MOST_TICKS)
    return Axis(field, title, "log", domain, tuple(ticks[::every]), NUMBER)


def _powers_within(domain: tuple[float, float], base: int) -> list[float]:
    ticks, tick = [], 1.0
    while tick > domain[0]:
        tick /= base
    while tick <= domain[1]:
        if tick >= domain[0]:
            ticks.append(tick)
        tick *= base
    return ticks


def fractions(field: str, title: str) -> Axis:
    """Return an axis from 0 to 1."""
    ticks = (0, 0.25, 0.5, 0.75, 1)
    return Axis(field, title, "linear", (0.0, 1.0), ticks, "format(datum.value, '.2~f')")


def share(field: str, title: str | None, **more: Any) -> Axis:
    """Return an axis of fractions of a whole, from 0 to 100 %."""
    return Axis(field, title, **{"domain": (0, 1), "labels": PERCENT} | more)


def percent(field: str = "percent", title: str = "CDF, % of jobs") -> Axis:
    """Return an axis from 0 to 100 %, a little wider so that a curve on the edge is seen."""
    return Axis(field, title, "linear", (-0.5, 100.8), (0, 25, 50, 75, 100))


def numbers(field: str, title: str, domain: tuple[float, float] | None = None) -> Axis:
    """Return a linear axis of numbers."""
    long = domain is not None and domain[1] >= _MANY_THOUSANDS
    return Axis(field, title, "linear", domain, (), _THOUSANDS if long else NUMBER)


def end_of(rows: Iterable[dict[str, Any]]) -> float:
    """Return where an axis may end: the first x at which every curve has reached 100 %."""
    whole = [row["x"] for row in rows if row["percent"] is not None and row["percent"] < _WHOLE]
    return max(_SHORTEST, 2 * max(whole, default=0.0))


def texts_at(texts: Mapping[float, str]) -> str:
    r"""Return a Vega expression that labels ticks with texts, which cannot leave their quotes.

    >>> print(texts_at({0.5: "it's"}))
    abs(datum.value - 0.5) < 0.01 ? 'it\'s' : ''
    """
    parts = [
        f"abs(datum.value - {at:.15g}) < 0.01 ? '{_quoted(text)}' : " for at, text in texts.items()
    ]
    return "".join([*parts, "''"])


def texts(field: str, at: Mapping[float, str], foot: float, extent: float, **more: Any) -> Axis:
    """Return an axis of numbers down from 0 to ``foot``, some of which carry a text.

    Args:
        field: the column.
        at: number -> text.
        foot: its other end.
        extent: of the texts, px.
        more: as for `Axis`.
    """
    bare = {"ticks": False, "domain": False, "labelLimit": extent, "labelOverlap": False}
    return Axis(
        field,
        None,
        "linear",
        (foot, 0),
        list(at),
        texts_at(at),
        grid=False,
        extent=extent,
        scale={"nice": False},
        more={**bare, "title": None},
        **more,
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
