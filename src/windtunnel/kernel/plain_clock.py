"""What C's ``time.h`` has, in Python: for the uncompiled run of the kernel."""

from __future__ import annotations

from time import process_time

#: Ticks of `clock` a second.
CLOCKS_PER_SEC = 1_000_000
#: The type of a reading.
clock_t = int


def clock() -> int:
    """Return the CPU time of this process, in ticks."""
    return int(process_time() * CLOCKS_PER_SEC)
