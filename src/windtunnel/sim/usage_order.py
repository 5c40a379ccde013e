"""`UsageOrder`: an order that goes by what groups of jobs have used, as numbers alone.

Usage is forgotten by half every half-life: a group that holds g GPUs from a to b has used, at an
instant t >= b, g * H / ln 2 * (2^(-(t-b)/H) - 2^(-(t-a)/H)) GPU-seconds. With U a group's part of
all usage and S its part of all shares, the key of a job at ``now``, lower first, is U / S, or

    -(age * min(1, (now - submit_time) / max_age) + sizes + fairshare * 2^(-U / S) + priorities),

to 32 bits: groups that have had the same of their due are to be equal, whatever rounding made of
the two sums. It is asked when the job begins to wait and for all waiting jobs at every round. It is
what the compiled engine goes by; a policy's ``key`` must agree with it to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class UsageOrder:
    """All that decides the keys; arrays by row of the jobs table (n,) or by group (groups,).

    Attributes:
        group_of: Int array (n,), whose usage a job counts as.
        parts: Float array (n,), whole millionths of GPUs that a job holds.
        shares: Float array (groups,), part of all shares.
        half_life: s; inf = nothing is forgotten.
        every: seconds between rounds.
        by_ratio: the key is U / S.
        age: weight of the time waited.
        max_age: wait at which it counts in full, s.
        fairshare: weight of 2^(-U / S).
        sizes: Float array (n,), what a job's size adds.
        priorities: Float array (n,), what its priority adds.
    """

    group_of: np.ndarray
    parts: np.ndarray
    shares: np.ndarray
    half_life: float
    every: float
    by_ratio: bool
    age: float
    max_age: float
    fairshare: float
    sizes: np.ndarray
    priorities: np.ndarray


def decay_rate(half_life: float) -> float:
    """Return ln 2 over a half-life, 1/s; 0 = nothing is forgotten."""
    return 0.0 if math.isinf(half_life) else math.log(2) / half_life


def in_32_bits(value: float) -> float:
    """Return a key without its last 21 bits, to the nearest (Veltkamp)."""
    scaled = value * 2097153.0
    return scaled - (scaled - value) if math.isfinite(scaled) else value


def all_in_32_bits(values: np.ndarray) -> np.ndarray:
    """Return keys, float array (n,), each as `in_32_bits` does."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * 2097153.0
        rounded: np.ndarray = np.where(np.isfinite(scaled), scaled - (scaled - values), values)
    return rounded
