"""Rounding as Python rounds, and keys without the digits that rounding made."""

from __future__ import annotations

import cython
from cython.cimports.libc.math import isfinite

from windtunnel.kernel.marks import compiled


@compiled
def half_even(value: cython.double) -> cython.longlong:
    """Return the nearest whole number; of two that are as near the even one."""
    whole: cython.longlong = cython.cast(cython.longlong, value)
    rest: cython.double = value - cython.cast(cython.double, whole)
    if rest > 0.5 or (rest == 0.5 and whole & 1):
        whole += 1
    elif rest < -0.5 or (rest == -0.5 and whole & 1):
        whole -= 1
    return whole


@compiled
def in_32_bits(value: cython.double) -> cython.double:
    """Return a key as `windtunnel.sim.usage_order.in_32_bits` does."""
    scaled: cython.double = value * 2097153.0
    return scaled - (scaled - value) if isfinite(scaled) else value
