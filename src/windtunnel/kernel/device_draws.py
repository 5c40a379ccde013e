"""Random numbers of placements on devices; see `windtunnel.placements.draws`."""

from __future__ import annotations

import cython

from windtunnel.kernel.device_scoring import DeviceScoring
from windtunnel.kernel.marks import compiled

#: SplitMix64's finaliser; see `windtunnel.placements.draws`.
MIX_GAMMA = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
MIX_FIRST = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
MIX_SECOND = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
MIX_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@compiled
def device_mix(word: cython.ulonglong) -> cython.ulonglong:
    """Return a word whose bits are mixed."""
    word = (word + MIX_GAMMA) & MIX_MASK
    word = ((word ^ (word >> 30)) * MIX_FIRST) & MIX_MASK
    word = ((word ^ (word >> 27)) * MIX_SECOND) & MIX_MASK
    return word ^ (word >> 31)


@compiled
def device_draw(scoring: DeviceScoring, purpose: cython.longlong) -> cython.longlong:
    """Return 31 random bits for a purpose of the job at hand."""
    word: cython.ulonglong = scoring.draw + cython.cast(cython.ulonglong, purpose)
    return cython.cast(cython.longlong, device_mix(word) >> 33)
