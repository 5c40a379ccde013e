"""`mixed`: SplitMix64 (Steele, Lea & Flood, OOPSLA'14), by which placements and searches draw."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled

#: What is added to the state, and the finaliser's two factors.
MIX_GAMMA = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
MIX_FIRST = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
MIX_SECOND = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
#: What a word of 64 bits does by itself; plain Python needs it spelled out.
MIX_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@compiled
def mixed(word: cython.ulonglong) -> cython.ulonglong:
    """Return a word whose bits are mixed."""
    word = (word + MIX_GAMMA) & MIX_MASK
    word = ((word ^ (word >> 30)) * MIX_FIRST) & MIX_MASK
    word = ((word ^ (word >> 27)) * MIX_SECOND) & MIX_MASK
    return word ^ (word >> 31)
