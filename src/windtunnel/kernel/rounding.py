"""Rounding as Python rounds."""

from __future__ import annotations

import cython

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
