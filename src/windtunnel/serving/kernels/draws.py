"""Random whole numbers inside kernels: SplitMix64 (Steele, Lea & Flood, OOPSLA'14)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def draw_below(state, limit):
    """Return the generator's next state, and a number 0 .. limit - 1."""
    state += np.uint64(0x9E3779B97F4A7C15)
    word = state
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    share = (word >> np.uint64(11)) * (1.0 / 9007199254740992.0)
    return state, np.int64(share * limit)
