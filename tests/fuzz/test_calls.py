"""Calls drawn from a fixed seed and from a fresh one: refused in a sentence, or done, in time."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from calls import drawn
from judged import again, judged, prepare


@pytest.mark.parametrize(
    ("seed", "number"),
    [
        ("fixed", 20),
        pytest.param("fixed", 400, marks=pytest.mark.slow),
        pytest.param("", 400, marks=pytest.mark.slow, id="fresh"),
    ],
)
def test_every_call_holds(seed: str, number: int) -> None:
    seed = seed or secrets.token_hex(4)
    prepare()
    failed = []
    for index in range(number):
        verdict = judged(drawn(seed, index))
        if verdict.failed:
            failed.append(f"{verdict.failed}: {again(seed, index)}")
    assert not failed, "\n".join(failed)


def test_the_same_seed_draws_the_same_call() -> None:
    assert drawn("a", 7) == drawn("a", 7)
    assert drawn("a", 7) != drawn("b", 7)
