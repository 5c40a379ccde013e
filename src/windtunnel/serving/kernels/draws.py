"""Random whole numbers inside kernels: SplitMix64 (Steele, Lea & Flood, OOPSLA'14)."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled

_GAMMA = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_FIRST = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
_SECOND = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
#: What a word of 64 bits does by itself; plain Python needs this mask for it.
_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.final
@cython.cclass
class Draws:
    """A generator of random numbers."""

    state: cython.ulonglong

    def __init__(self, seed: cython.ulonglong) -> None:
        self.state = seed

    @compiled
    def below(self, limit: cython.longlong) -> cython.longlong:
        """Return the next number, 0 .. limit - 1."""
        word: cython.ulonglong
        self.state = (self.state + _GAMMA) & _WORD
        word = self.state
        word = ((word ^ (word >> 30)) * _FIRST) & _WORD
        word = ((word ^ (word >> 27)) * _SECOND) & _WORD
        word ^= word >> 31
        share: cython.double = (word >> 11) * (1.0 / 9007199254740992.0)
        return cython.cast(cython.longlong, share * limit)
