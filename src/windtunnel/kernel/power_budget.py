"""`PowerBudget`: what running jobs may add to what the machines draw without them."""

from __future__ import annotations

import cython
from cython.cimports.libc.math import floor

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.marks import compiled

#: Power is summed in whole nanowatts; a cap that is met but for rounding is met.
BUDGET_NANO = cython.declare(cython.double, 1e9)
BUDGET_SLACK = cython.declare(cython.double, 1e-9)
BUDGET_NONE = cython.declare(cython.longlong, 1 << 62)


@cython.final
@cython.cclass
class PowerBudget:
    """A power cap as the loop meets it.

    Attributes:
        now: nanowatts that jobs may add now; below 0 where the machines alone draw too much.
        cap_w: the cap that holds, W; inf = none.
    """

    now: cython.longlong
    cap_w: cython.double
    _base_w: cython.double
    _pue: cython.double

    def __init__(self) -> None:
        self.now = 0
        self.cap_w = ENDLESS
        self._base_w, self._pue = 0.0, 1.0

    def know(self, cap_w: float, base_w: float, pue: float) -> None:
        """Say what cap holds, and what machines draw with no job on them, W: for plans."""
        self.cap_w, self._base_w, self._pue = cap_w, base_w, pue

    @compiled
    def under(self, cap_w: cython.double) -> cython.longlong:
        """Return what jobs may add under a cap, nanowatts, with the nodes awake that are now.

        0 where the machines alone draw too much.
        """
        if cap_w == ENDLESS:
            return BUDGET_NONE
        watts: cython.double = cap_w / self._pue * (1 + BUDGET_SLACK) - self._base_w
        return max(cython.cast(cython.longlong, floor(watts * BUDGET_NANO)), 0)
