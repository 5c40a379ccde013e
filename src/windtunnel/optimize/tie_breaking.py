"""Costs that make one of many equally good solutions the only best one."""

from __future__ import annotations

import numpy as np


def distinct_costs(count: int) -> np.ndarray:
    """Return costs in [1, 2) without a pattern: over a face they have one optimum in practice.

    The mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA'14) on 1, 2, ...: the same
    numbers on every machine, and no sums of a few that are equal, as multiples of one number
    would have; shape (count,).
    """
    bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return 1.0 + (bits >> np.uint64(11)).astype(float) / 2.0**53
