"""What ``bits.pxd`` has in C, in Python: for the uncompiled run of the kernel."""

from __future__ import annotations

_WORD = (1 << 64) - 1
_SIGN = 1 << 63


def _signed(word: int) -> int:
    word &= _WORD
    return word - (1 << 64) if word & _SIGN else word


def bit_at(place: int) -> int:
    """Return a word with one bit set.

    >>> bit_at(3), bit_at(63)
    (8, -9223372036854775808)
    """
    return _signed(1 << int(place))


def lowest_bit(word: int) -> int:
    """Return the place of the lowest set bit of a word that is not 0.

    >>> lowest_bit(12)
    2
    """
    word = int(word)
    return (word & -word).bit_length() - 1


def highest_bit(word: int) -> int:
    """Return the place of the highest set bit of a word that is not 0.

    >>> highest_bit(12), highest_bit(-1)
    (3, 63)
    """
    return (int(word) & _WORD).bit_length() - 1


def without_lowest(word: int) -> int:
    """Return a word without its lowest set bit.

    >>> without_lowest(12)
    8
    """
    return _signed(int(word) & (int(word) - 1))


def count_bits(word: int) -> int:
    """Return how many bits of a word are set.

    >>> count_bits(-1)
    64
    """
    return (int(word) & _WORD).bit_count()
