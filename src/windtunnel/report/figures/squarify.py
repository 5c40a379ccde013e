"""Squarified treemaps: rectangles of given areas that are as square as can be.

Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000: rectangles are laid along the shorter side
of what is left, in rows; a row takes another rectangle as long as its worst aspect ratio improves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Box(NamedTuple):
    """A rectangle: its corner nearest to (0, 0), its width and its height."""

    x: float
    y: float
    width: float
    height: float


def squarified(shares: Sequence[float], width: float, height: float) -> list[Box]:
    """Return a rectangle a share, together all of the room, without overlap.

    Args:
        shares: sizes >= 0, largest first for rectangles that are nearly square; not all 0.
        width: of the room.
        height: of the room.

    Returns:
        As many boxes as shares, in their order; that of i has shares[i] / sum(shares) of the area.

    Raises:
        ValueError: a share is negative or not finite, there is none above 0, or no room.

    >>> squarified([3, 1], 4, 1)
    [Box(x=0.0, y=0.0, width=3.0, height=1.0), Box(x=3.0, y=0.0, width=1.0, height=1.0)]
    """
    total = math.fsum(shares)
    if not (width > 0 and height > 0):
        raise ValueError(f"a treemap needs room, not {width:g} x {height:g}")
    if not all(share >= 0 for share in shares) or not 0 < total < math.inf:
        raise ValueError("a treemap needs shares >= 0 with a sum above 0")
    areas = [share / total * width * height for share in shares]
    boxes: list[Box] = []
    room = Box(0.0, 0.0, width, height)
    start = 0
    while start < len(areas):
        side = min(room.width, room.height)
        end = start + 1
        while end < len(areas) and worst(areas[start : end + 1], side) <= worst(
            areas[start:end], side
        ):
            end += 1
        row, room = _laid(areas[start:end], room, last=end == len(areas))
        boxes += row
        start = end
    return boxes


def worst(row: Sequence[float], side: float) -> float:
    """Return the largest aspect ratio (>= 1) of a row of areas along a side."""
    total, least, most = math.fsum(row), min(row), max(row)
    if least <= 0 or total <= 0 or side <= 0:
        return math.inf
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _laid(row: Sequence[float], room: Box, *, last: bool) -> tuple[list[Box], Box]:
    """Return the boxes of one row along the room's shorter side, and the room that is left."""
    total = math.fsum(row)
    upright = room.width >= room.height
    side, depth = (room.height, room.width) if upright else (room.width, room.height)
    # The last row takes what is left to the last bit, whatever the divisions before rounded off.
    thick = depth if last else (total / side if side > 0 else 0.0)
    boxes: list[Box] = []
    at = 0.0
    for i, area in enumerate(row):
        length = side - at if i == len(row) - 1 else (side * area / total if total else 0.0)
        if upright:
            boxes.append(Box(room.x, room.y + at, thick, length))
        else:
            boxes.append(Box(room.x + at, room.y, length, thick))
        at += length
    if upright:
        return boxes, Box(room.x + thick, room.y, room.width - thick, room.height)
    return boxes, Box(room.x, room.y + thick, room.width, room.height - thick)
