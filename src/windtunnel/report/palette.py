"""Colours of charts and pages: Okabe and Ito's set, one colour a policy over all charts.

The first run, which all others are compared with, is black; the others follow in an order that
keeps neighbours apart for every kind of colour vision. Yellow, unreadable on white, is left out for
the grey that the set is often printed with. In the dark, style sheets map each colour to a lighter
twin: an inline SVG's colours are presentation attributes, which any style rule overrides.
"""

from __future__ import annotations

#: (on light, on dark), as written into SVG attributes.
SERIES: tuple[tuple[str, str], ...] = (
    ("#000000", "#f5f5f4"),  # black
    ("#0072b2", "#4ba3e3"),  # blue
    ("#d55e00", "#ff8b3d"),  # vermillion
    ("#009e73", "#2fc79a"),  # bluish green
    ("#cc79a7", "#eaa0c8"),  # reddish purple
    ("#56b4e9", "#a3dbff"),  # sky blue
    ("#e69f00", "#f7c14a"),  # orange
    ("#8a8a8a", "#a8a29e"),  # grey
)
#: Text, quiet text, lines of the grid, and the fill under reference curves: (light, dark).
INK = ("#1c1917", "#e7e5e4")
MUTED = ("#57534e", "#a8a29f")
GRID = ("#e7e5e3", "#3a3633")
SHADE = ("#d6d3d1", "#57514d")

#: Dash patterns: the second and later rounds through the colours.
DASHES: tuple[tuple[int, int], ...] = ((1, 0), (6, 3), (2, 2), (9, 2))


def colours(n: int) -> list[str]:
    """Return the light-mode colours of ``n`` runs, in order.

    >>> colours(2)
    ['#000000', '#0072b2']
    """
    return [SERIES[i % len(SERIES)][0] for i in range(n)]


def dashes(n: int) -> list[list[int]]:
    """Return the dash patterns of ``n`` runs: solid until the colours are used up."""
    return [list(DASHES[(i // len(SERIES)) % len(DASHES)]) for i in range(n)]


def dark_pairs() -> list[tuple[str, str]]:
    """Return every (light, dark) pair that a chart may contain."""
    return [*SERIES, INK, MUTED, GRID, SHADE]
