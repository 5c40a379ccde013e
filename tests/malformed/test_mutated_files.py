"""Mutated files of every reader: a whole trace, or one clear error; never a traceback."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from catalogue import SAMPLES
from drawn import distinct, drawn, mutated
from hypothesis import given, note, settings
from judge import judge

if TYPE_CHECKING:
    from pathlib import Path

    from mutants import Mutant

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SAMPLES)
def test_mutated_files_give_a_whole_trace_or_one_clear_error(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    seen: set[bytes] = set()

    @settings(max_examples=drawn(sample))
    @given(mutant=mutated(sample))
    def each(mutant: Mutant) -> None:
        note(f"{name}: {mutant.changes}")
        seen.add(mutant.data)
        judge(sample, mutant, tmp_path)

    each()
    assert len(seen) >= distinct(sample)


def test_there_are_hundreds_of_them() -> None:
    """Each test above asserts its own part of this sum."""
    readers: Counter[str] = Counter()
    for name, sample in SAMPLES.items():
        readers[name.partition(" ")[0]] += distinct(sample)
    assert readers.total() >= 300
    assert min(readers.values()) >= 10
