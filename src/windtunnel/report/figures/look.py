"""How figures look: their width on paper, type, and one colour and dash a trace over all of them.

A figure is laid out in pixels of 1/96 inch, at the width it has on paper. Its type is set at
7.5 pt (`windtunnel.report.chart.series`), of which the final fit to the exact width takes a few
per cent at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windtunnel.report.palette import SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Pixels of an inch.
DPI = 96.0
#: Width on paper, inch: a column of a two-column page, and the page.
WIDTHS: dict[str, float] = {"column": 3.35, "page": 7.0}
#: Room between panels, and right of the last one for half a tick's label, px.
GAP = 16.0
EDGE = 7.0
#: Room for a panel's y axis: title, labels and ticks, px.
AXIS = 48.0
#: Dash patterns, so that curves are told apart without colour.
DASHES: tuple[tuple[float, ...], ...] = (
    (1, 0),
    (6, 2),
    (2, 2),
    (8, 2, 2, 2),
    (4, 1),
    (1, 2),
    (10, 3),
    (6, 2, 1, 2, 1, 2),
)
#: Colours of kinds of work, as places in `SERIES`: black comes last, as names stand on them.
_KINDS = (*range(1, len(SERIES)), 0)


@dataclass(frozen=True)
class Look:
    """How the figures of one run look.

    Attributes:
        paper: width of a figure, inch.
        traces: labels of the traces, in order: each keeps its colour and dash.
        workloads: name -> place among the colours: each workload keeps its own.
    """

    paper: float = WIDTHS["column"]
    traces: tuple[str, ...] = ()
    workloads: Mapping[str, int] = field(default_factory=dict)

    @property
    def width(self) -> float:
        """Width of a whole figure, px."""
        return self.paper * DPI

    @property
    def columns(self) -> int:
        """Panels beside each other, where a figure has several."""
        return 1 if self.paper < WIDTHS["page"] - 1 else 2

    def panel_width(self, columns: int, axis: float = AXIS) -> float:
        """Return the width of the plotting area of a panel, px.

        Args:
            columns: panels beside each other.
            axis: room for its y axis, px.
        """
        return (self.width - EDGE) / columns - axis - (GAP if columns > 1 else 2.0)

    def place(self, label: str, others: Sequence[str]) -> int:
        """Return the place of a label among the traces, the workloads, else among ``others``."""
        if label in self.traces:
            return self.traces.index(label)
        if label in self.workloads:
            return self.workloads[label]
        return list(others).index(label) if label in others else 0

    def strokes(self, labels: Sequence[str]) -> tuple[list[str], list[list[float]]]:
        """Return the colour and the dash of each label's curve."""
        places = [self.place(label, labels) for label in labels]
        colours = [self.colour(label, labels) for label in labels]
        return colours, [list(DASHES[i % len(DASHES)]) for i in places]

    def colour(self, label: str, others: Sequence[str] = ()) -> str:
        """Return the colour of a trace, a workload, or of one among ``others``."""
        place = self.place(label, others) % len(SERIES)
        is_kind = label not in self.traces and label in self.workloads
        return SERIES[_KINDS[place] if is_kind else place][0]
