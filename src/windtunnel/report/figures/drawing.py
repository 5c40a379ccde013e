"""From sources to figures: each one's data once, and what can and cannot be drawn, told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.sources import WIDTHS, Look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.figures.catalogue import Figure
    from windtunnel.report.figures.collecting import FigureData
    from windtunnel.report.figures.sources import Sources


@dataclass(frozen=True)
class Collected:
    """A figure with its data.

    Attributes:
        figure: which.
        data: its table, or why there is none.
    """

    figure: Figure
    data: FigureData


def collect(
    sources: Sources, figures: Sequence[Figure], on_done: Callable[[str], None] = lambda _: None
) -> list[Collected]:
    """Return the figures with their data, in order.

    Args:
        sources: the traces and curves.
        figures: which.
        on_done: called with a figure's name when its data is there.

    Raises:
        WindtunnelError: a table breaks a rule that a reader should have checked.
    """
    found = []
    for figure in figures:
        found.append(Collected(figure, figure.plan.collect(sources)))
        on_done(figure.name)
    return found


def look_of(sources: Sources, paper: str = "column") -> Look:
    """Return how the figures of some sources look.

    Args:
        sources: the traces, whose order gives the colours.
        paper: one of `WIDTHS`.
    """
    return Look(WIDTHS[paper], sources.traces, sources.workloads)


def report(found: Sequence[Collected]) -> list[dict[str, Any]]:
    """Return what was drawn for whom, as plain data.

    Returns:
        One dict a figure: ``name``, ``title``, ``set``, ``drawn`` (bool), ``reason`` (why not;
        empty where drawn), ``parts`` (list of ``trace``, ``panel`` (None = not drawn), ``title``,
        ``n`` (None = not told), ``left_out``, ``why``), ``notes``.
    """
    return [
        {
            "name": one.figure.name,
            "title": one.figure.title,
            "set": one.figure.set,
            "drawn": one.data.table is not None,
            "reason": "" if one.data.table is not None else one.data.reason,
            "parts": [
                {
                    "trace": part.trace,
                    "panel": part.panel or None,
                    "title": part.title,
                    "n": part.n,
                    "left_out": part.left_out,
                    "why": part.why,
                }
                for part in one.data.parts
            ],
            "notes": list(one.data.notes),
        }
        for one in found
    ]
