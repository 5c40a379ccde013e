"""Hashes of names: the same for the same text wherever it stands, and spread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.traces.pai.hashing import hashes, of_pairs

TEXTS = st.lists(st.text(max_size=70), min_size=1, max_size=12)


@given(texts=TEXTS, before=TEXTS, after=TEXTS)
def test_a_hash_is_that_of_the_text_alone(
    texts: list[str], before: list[str], after: list[str]
) -> None:
    whole = pa.array([*before, *texts, *after], pa.string())
    part = whole.slice(len(before), len(texts))
    one_by_one = [hashes(pa.array([text]))[0] for text in texts]
    assert hashes(part).tolist() == hashes(pa.array(texts)).tolist() == one_by_one


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 12, 24, 60, 600])
def test_texts_of_one_length_hash_as_among_others(length: int) -> None:
    same = pa.array([chr(97 + i) * length for i in range(5)])
    mixed = pa.concat_arrays([pa.array(["", "z" * (length + 1)]), same])
    assert hashes(mixed)[2:].tolist() == hashes(same).tolist()


def test_a_null_hashes_as_an_empty_text_and_no_text_as_nothing() -> None:
    nothing, empty, text = hashes(pa.array([None, "", "a"]))
    assert nothing == empty != text
    assert hashes(pa.array([], pa.string())).tolist() == []
    assert hashes(pa.array([None, None], pa.string())).tolist() == [empty, empty]


@pytest.mark.parametrize("width", [None, 8, 60])
def test_hashes_spread_like_random_numbers(width: int | None) -> None:
    count = 200_000
    texts = (str(i) if width is None else f"{i:0{width}x}" for i in range(count))
    found = hashes(pa.array(list(texts)))
    assert len(np.unique(found)) == count
    # Random numbers leave a share of exp(-count / boxes) of the boxes empty.
    hit = 2**18 * (1 - np.exp(-count / 2**18))
    assert len(np.unique(found >> np.uint64(46))) == pytest.approx(hit, rel=0.05)


def test_the_order_of_a_pair_matters() -> None:
    left, right = hashes(pa.array(["a", "b"])), hashes(pa.array(["b", "a"]))
    swapped = of_pairs(right, left)
    assert (of_pairs(left, right) != swapped).all()
