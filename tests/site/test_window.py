"""Windows: of which jobs a run is measured."""

from __future__ import annotations

import numpy as np
import pytest

from windtunnel.errors import SpecError
from windtunnel.site.window import Window

SUBMIT = np.array([100.0, 160.0, 130.0, 400.0, 220.0])
ALL = np.ones(5, dtype=bool)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("0%..100%", [1, 1, 1, 1, 1]),
        ("20%..80%", [0, 1, 1, 0, 1]),
        ("jobs:1..3", [0, 1, 1, 0, 0]),
        ("jobs:3..inf", None),
        ("30..2m", [0, 1, 1, 0, 0]),
        ("0..inf", [1, 1, 1, 1, 1]),
        ("2m..1d", [0, 0, 0, 1, 1]),
    ],
)
def test_jobs_inside_by_hand(text: str, inside: list[int] | None) -> None:
    if inside is None:
        with pytest.raises(SpecError, match="window"):
            Window.of(text)
        return
    assert Window.of(text).inside(SUBMIT, ALL).tolist() == [bool(one) for one in inside]


def test_rejected_jobs_count_nowhere() -> None:
    flown = np.array([False, True, True, True, True])
    assert Window.of("0%..25%").inside(SUBMIT, flown).tolist() == [False, False, True, False, False]
    assert Window.of("0..30").inside(SUBMIT, flown).tolist() == [False, False, True, False, False]


def test_halves_cut_a_log_without_overlap_or_gap() -> None:
    rng = np.random.default_rng(5)
    submit = rng.integers(0, 50, 997).astype(float)
    everyone = np.ones(997, dtype=bool)
    parts = [Window.of(f"{a}%..{b}%").inside(submit, everyone) for a, b in ((0, 37), (37, 100))]
    assert (parts[0] ^ parts[1]).all()


@pytest.mark.parametrize(
    "text",
    ["", "5", "9%..3%", "3..3", "a..b", "10%..5d", "50%..120%", "jobs:5..2", "-1..4", "1..2..3"],
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"window.*10%\.\.90%|window.*expected"):
        Window.of(text)
