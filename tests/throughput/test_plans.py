"""Execution plans: words, degrees, what they need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError
from windtunnel.throughput.options import (
    as_shape,
    parse_placement,
    placement_name,
    shapes_of,
)
from windtunnel.throughput.plans import WORDS, Plan


@pytest.mark.parametrize("word", [*WORDS, "111", "244", "888", "2x16x1"])
def test_words_name_plans_and_come_back(word: str) -> None:
    assert Plan.parse(word).name == word
    assert Plan.parse(f" {word.upper()} ") == Plan.parse(word)


@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("dp", "ga"),
        ("zero-dp+ga", "zero-dp"),
        ("2x4x4", "244"),
        ("zero-offload+ga", "zero-offload"),
    ],
)
def test_other_spellings(word: str, same: str) -> None:
    assert Plan.parse(word) == Plan.parse(same)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("zero-ofload", "Did you mean 'zero-offload'?"),
        ("204", "three degrees"),
        ("24", "three degrees"),
        ("", "unknown name ''"),
        ("1x2", "three degrees"),
    ],
)
def test_wrong_words(word: str, message: str) -> None:
    with pytest.raises(SpecError, match="unknown name") as error:
        Plan.parse(word)
    assert message in str(error.value)


def test_degrees_and_needs() -> None:
    assert Plan.parse("244").degrees(32) == (2, 4, 4)
    assert Plan.parse("zero-dp").degrees(8) == (1, 1, 8)
    assert Plan.parse("tp+ga").degrees(3) == (1, 3, 1)
    assert Plan.parse("244").num_gpus == 32
    assert Plan.parse("ga").num_gpus is None
    assert (Plan.parse("zero-offload+gc").cpus_per_gpu, Plan.parse("244").cpus_per_gpu) == (8, 1)
    with pytest.raises(SpecError, match="needs 32 GPUs, not 16"):
        Plan.parse("244").degrees(16)


@pytest.mark.parametrize(
    "made",
    [
        {"family": "dp", "tensor": 2},
        {"family": "3d", "pipeline": 2, "tensor": 2},
        {"family": "3d", "data": 0},
        {"family": "3d", "data": 2, "checkpointing": True},
        {"family": "zero-dp", "accumulation": True},
    ],
)
def test_plans_that_cannot_be(made: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="plan"):
        Plan(**made)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "shape", "obstacle"),
    [
        ("ga", (3,), "cannot share 16 samples"),
        ("244", (8, 8), "needs 32 GPUs"),
        ("244", (8, 8, 8, 8), None),
        ("281", (4, 4, 4, 4), "tensor groups of 8"),
        ("811", (1,) * 8, "8 stages cannot share 6 layers"),
        ("tp+ga", (2, 1), "tensor groups of 3"),
        ("zero-dp", (5, 3), None),
    ],
)
def test_obstacles(word: str, shape: tuple[int, ...], obstacle: str | None) -> None:
    found = Plan.parse(word).obstacle(shape, batch=16, layers=6)
    assert (found is None) == (obstacle is None)
    assert obstacle is None or obstacle in str(found)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_placements_come_back(gpus: list[int]) -> None:
    shape = as_shape(gpus)
    assert parse_placement(placement_name(shape)) == shape


@pytest.mark.parametrize("text", ["", "0", "40", "+4", "4,4", "²", "1.5"])
def test_wrong_placements(text: str) -> None:
    with pytest.raises(SpecError, match="GPUs on each node as digits"):
        parse_placement(text)


def test_shapes_are_the_partitions() -> None:
    """Partitions of 8: 22; into at most 2 parts of at most 6: 62 and 53 and 44."""
    assert len(list(shapes_of(8, node_gpus=8, num_nodes=8))) == 22
    assert list(shapes_of(8, node_gpus=6, num_nodes=2)) == [(6, 2), (5, 3), (4, 4)]
    assert list(shapes_of(4, node_gpus=8, num_nodes=1)) == [(4,)]
    assert list(shapes_of(9, node_gpus=4, num_nodes=2)) == []
