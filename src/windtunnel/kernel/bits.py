"""Bits of 64-bit words: the lowest, the highest, how many.

Compiled, these are C that compilers have instructions for (``bits.pxd``); below are their twins for
the uncompiled run. Words are signed, as numpy's are: bit 63 is the sign.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.windtunnel.kernel.bits import (
        bit_at,
        count_bits,
        highest_bit,
        lowest_bit,
        without_lowest,
    )
else:
    from windtunnel.kernel.plain_bits import (
        bit_at,
        count_bits,
        highest_bit,
        lowest_bit,
        without_lowest,
    )

__all__ = ["bit_at", "count_bits", "highest_bit", "lowest_bit", "without_lowest"]
