"""Random numbers that both engines draw alike, in any order, without a state.

Each number is a hash of (seed, how many jobs were placed so far, what it is for): SplitMix64's
finaliser (Steele, Lea, Flood, OOPSLA'14) over the three. An engine that asks again, or not at all,
because it knows the answer, changes no later draw.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def draw(seed: int, placed: int, purpose: int) -> int:
    """Return a number of 31 random bits.

    Args:
        seed: the run's seed, 0 or more.
        placed: jobs placed so far.
        purpose: tells several draws for one job apart, 0 or more.

    >>> draw(0, 0, 0) == draw(0, 0, 0) != draw(0, 0, 1)
    True
    """
    return _mixed(_mixed(_mixed(seed) + placed) + purpose) >> 33


def below(bound: int, seed: int, placed: int, purpose: int) -> int:
    """Return a random number from 0 to ``bound - 1`` (bound up to 2**31)."""
    return draw(seed, placed, purpose) * bound >> 31


def _mixed(value: int) -> int:
    word = (value + _GAMMA) & _MASK
    word = ((word ^ word >> 30) * _FIRST) & _MASK
    word = ((word ^ word >> 27) * _SECOND) & _MASK
    return word ^ word >> 31
