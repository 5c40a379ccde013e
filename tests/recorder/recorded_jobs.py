"""Jobs for recorded runs."""

from __future__ import annotations

from typing import Any

import numpy as np


def a_log(count: int, seed: int, *, least: int = 0) -> Any:
    """Return jobs with many ties: whole seconds, few sizes, a queue most of the time."""
    chance = np.random.default_rng(seed)
    duration = chance.integers(least, 40, count).astype(float)
    return {
        "submit_time": np.sort(chance.integers(0, count * 4, count)).astype(float),
        "duration": duration,
        "estimate": duration * chance.integers(1, 4, count) + 1,
        "num_gpus": chance.choice((1, 1, 2, 4, 8, 12, 16), count).astype(float),
        "priority": chance.integers(0, 4, count).astype(float),
        "user": chance.choice(["a", "b", "c"], count),
    }
