"""Treemap rectangles: exact areas, no overlap, nothing outside, nearly square."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.report.figures.treemap import Box, squarified, worst

SHARES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=24)
SIDES = st.floats(0.01, 1000.0)


def test_the_example_of_the_paper_is_laid_out_as_printed() -> None:
    """Bruls et al., section 3.1: areas 6, 6, 4, 3, 2, 2, 1 in a rectangle of 6 x 4."""
    boxes = squarified([6, 6, 4, 3, 2, 2, 1], 6, 4)
    expected = [
        (0, 0, 3, 2),
        (0, 2, 3, 2),
        (3, 0, 12 / 7, 7 / 3),
        (3 + 12 / 7, 0, 9 / 7, 7 / 3),
        (3, 7 / 3, 6 / 5, 5 / 3),
        (4.2, 7 / 3, 6 / 5, 5 / 3),
        (5.4, 7 / 3, 3 / 5, 5 / 3),
    ]
    for box, wanted in zip(boxes, expected, strict=True):
        assert box == pytest.approx(wanted)


@given(SHARES, SIDES, SIDES)
@settings(max_examples=300)
def test_areas_are_the_shares_and_fill_the_rectangle(
    shares: list[float], width: float, height: float
) -> None:
    boxes = squarified(sorted(shares, reverse=True), width, height)
    total = math.fsum(shares)
    area = width * height
    for share, box in zip(sorted(shares, reverse=True), boxes, strict=True):
        assert box.width * box.height == pytest.approx(share / total * area, abs=1e-9 * area)
    assert math.fsum(b.width * b.height for b in boxes) == pytest.approx(area)


@given(SHARES, SIDES, SIDES)
@settings(max_examples=300)
def test_no_box_leaves_the_rectangle_or_lies_on_another(
    shares: list[float], width: float, height: float
) -> None:
    boxes = squarified(sorted(shares, reverse=True), width, height)
    dust = 1e-9 * max(width, height)
    for box in boxes:
        assert box.width >= -dust
        assert box.height >= -dust
        assert box.x >= -dust
        assert box.y >= -dust
        assert box.x + box.width <= width + dust
        assert box.y + box.height <= height + dust
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, down) <= dust


@pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 6])
def test_a_square_number_of_equal_shares_gives_squares(side: int) -> None:
    for box in squarified([1.0] * side**2, 3.0, 3.0):
        assert box.width == pytest.approx(3.0 / side)
        assert box.height == pytest.approx(3.0 / side)


@given(st.integers(1, 40), st.floats(0.5, 2.0))
def test_equal_shares_are_squarer_than_slices(count: int, aspect: float) -> None:
    boxes = squarified([1.0] * count, aspect, 1.0)
    slices = worst([aspect / count] * count, min(aspect, 1.0))
    ratios = [max(b.width / b.height, b.height / b.width) for b in boxes]
    assert max(ratios) <= max(slices, 3.0) + 1e-9


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=20))
def test_a_row_takes_another_box_only_while_its_worst_ratio_does_not_grow(
    shares: list[float],
) -> None:
    ordered = sorted(shares, reverse=True)
    first = [b for b in squarified(ordered, 1.0, 1.0) if b.x == 0.0]
    areas = [share / math.fsum(ordered) for share in ordered]
    ratios = [worst(areas[: k + 1], 1.0) for k in range(len(first))]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(ratios))


def test_a_share_of_nothing_is_a_box_of_nothing_and_one_takes_all() -> None:
    boxes = squarified([1.0, 0.0], 2.0, 1.0)
    assert boxes[0] == Box(0.0, 0.0, 2.0, 1.0)
    assert boxes[1].width * boxes[1].height == 0.0


@pytest.mark.parametrize(
    ("shares", "width", "height"),
    [([], 1, 1), ([0.0], 1, 1), ([-1.0, 2.0], 1, 1), ([math.nan], 1, 1), ([1.0], 0, 1)],
)
def test_what_cannot_be_laid_out_is_refused(
    shares: list[float], width: float, height: float
) -> None:
    with pytest.raises(ValueError, match="a treemap needs"):
        squarified(shares, width, height)
