"""What tells the series of a chart apart: colours, dashes, and the legend that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.report.palette import colours, dashes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Sizes of type, px: on a page, and in a figure for paper (10 px are 7.5 pt).
PAGE_FONT, FONT = 12.0, 10.0
#: Width of a character over the size of the type (Liberation Sans), on the safe side.
_NARROW, _SMALL, _DIGIT, _CAPITAL, _WIDE = 0.34, 0.54, 0.57, 0.7, 0.9
#: Width of a legend's symbol beside its text, px.
_SYMBOL = 34.0
#: Width of a legend where none is given: that of a chart on a page, px.
_WIDTH = 352.0


@dataclass(frozen=True)
class Series:
    """The series of a chart.

    Attributes:
        field: the column.
        names: the series, in order.
        colours: one a name; none = the palette's, the first black.
        dashes: one a name; none = all solid, unless the palette's colours are used up.
        title: of the legend.
        legend: whether there is one; None = where there is more than one series.
        width: of the legend, px.
        symbol: ``stroke``, ``square`` or, empty, what the mark is.
        font: size of the legend's type, px.
        where: the side of the chart that the legend is on.
        columns: of the legend; 0 = as many as fit its width.
    """

    field: str
    names: Sequence[str]
    colours: Sequence[str] = ()
    dashes: Sequence[Sequence[float]] = ()
    title: str | None = None
    legend: bool | None = None
    width: float = _WIDTH
    symbol: str = ""
    font: float = PAGE_FONT
    where: str = "top"
    columns: int = 0

    def color(self, channel: str = "color") -> Any:
        """Return the encoding of the colours, as ``color`` or ``stroke``."""
        import altair as alt

        made = {"color": alt.Color, "stroke": alt.Stroke}[channel]
        return made(**self._about(list(self.colours) or colours(len(self.names))))

    def dash(self) -> dict[str, Any]:
        """Return the encoding of the dashes, none where all lines are solid."""
        import altair as alt

        found = [list(dash) for dash in self.dashes] or dashes(len(self.names))
        if not self.dashes and all(dash == found[0] for dash in found):
            return {}
        return {"strokeDash": alt.StrokeDash(**self._about(found))}

    def _about(self, scale: list[Any]) -> dict[str, Any]:
        import altair as alt

        domain = list(self.names)
        return {
            "shorthand": f"{self.field}:N",
            "title": self.title,
            "sort": domain,
            "scale": alt.Scale(domain=domain, range=scale),
            "legend": self._legend(),
        }

    def _legend(self) -> Any:
        """Return a legend in as many columns as fit; the same for colours and dashes."""
        import altair as alt

        wanted = len(self.names) > 1 if self.legend is None else self.legend
        if not wanted:
            return None
        longest = max((text_width(name, self.font) for name in self.names), default=1.0) + _SYMBOL
        fits = max(1, min(len(self.names), int(self.width // longest)))
        columns = self.columns or fits
        shape = {"symbolType": self.symbol} if self.symbol else {}
        return alt.Legend(
            orient=self.where,
            direction="horizontal",
            columns=columns,
            labelLimit=max(self.width / columns - _SYMBOL, 40.0),
            symbolOpacity=1,
            **shape,
        )


def text_width(text: str, size: float = FONT) -> float:
    """Return how wide a text is at most, px."""
    return sum(map(_character, text)) * size


def _character(char: str) -> float:
    if char in " .,:;'|!()[]ijlIft-/":
        return _NARROW
    if char in "mwMW%@" or ord(char) > 0x2000:  # noqa: PLR2004 (beyond the alphabets)
        return _WIDE
    if char.isdigit() or char in "+<=>~":
        return _DIGIT
    return _CAPITAL if char.isupper() else _SMALL
