"""The closest names, against the standard library's."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from windtunnel.predictors.running_mean import Names

words = st.text(alphabet="abc-1\u00e4\U0001f600", max_size=12)


@given(st.lists(st.tuples(st.booleans(), words), max_size=40))
def test_the_closest_names_are_those_of_the_standard_library(
    steps: list[tuple[bool, str]],
) -> None:
    names = Names()
    known: list[str] = []
    for asks, word in steps:
        if asks:
            expected = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
            assert list(names.close_to(word)) == expected
        else:
            names.add(word)
            known += [word] * (word not in known)
        assert (word in names) == (word in known)


def test_more_names_than_the_first_table_holds() -> None:
    names = Names()
    known = [f"train-{n:03d}-bert" for n in range(200)]
    for name in known:
        names.add(name)
        names.close_to("train-1x7-bert")  # asked at every step: only new names are compared
    assert list(names.close_to("train-1x7-bert")) == difflib.get_close_matches(
        "train-1x7-bert", known, n=2, cutoff=0.6
    )


def test_endless_names_are_compared_by_their_beginnings() -> None:
    names = Names()
    names.add("x" * 100_000)
    assert names.close_to("x" * 200_000) == ("x" * 100_000,)
