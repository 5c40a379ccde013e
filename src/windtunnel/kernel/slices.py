"""`Slices`: when the loop has gone on for so long that signals and progress have their turn."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled

if cython.compiled:
    from cython.cimports.libc.time import CLOCKS_PER_SEC, clock, clock_t
else:
    from windtunnel.kernel.plain_clock import CLOCKS_PER_SEC, clock, clock_t

#: Parts of a second of CPU time: a slice is one of the former, and the clock is looked at after
#: about one of the latter, or so many instants.
SLICES_A_SECOND = cython.declare(cython.int, 5)
SLICES_LOOKS = cython.declare(cython.int, 50)
SLICES_MOST_UNSEEN = cython.declare(cython.int, 256)


@cython.final
@cython.cclass
class Slices:
    """The CPU time of a loop, in slices."""

    _steps: cython.int
    _stride: cython.int
    _looked: clock_t
    _began: clock_t

    def __init__(self) -> None:
        self._steps = 0
        self._stride = 1
        self._looked = self._began = clock()

    @compiled
    def is_over(self) -> cython.bint:
        """Count an instant, and return whether a slice is over with it."""
        self._steps -= 1
        return self._steps <= 0 and self._look()

    @compiled
    def _look(self) -> cython.bint:
        """Look at the clock, and say after how many instants to look again."""
        now: clock_t = clock()
        if now - self._looked > CLOCKS_PER_SEC // SLICES_LOOKS:
            self._stride = max(self._stride // 2, 1)
        else:
            self._stride = min(2 * self._stride, SLICES_MOST_UNSEEN)
        self._steps = self._stride
        self._looked = now
        if now - self._began < CLOCKS_PER_SEC // SLICES_A_SECOND:
            return False
        self._began = now
        return True
