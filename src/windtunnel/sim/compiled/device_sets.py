"""Which nodes with devices run nothing, and which have GPUs left: sets that a search goes by.

On a cluster in use most nodes are full, or run nothing and are like others of their kind. So a
search looks at the nodes in between one by one, and of each kind at the first node that runs
nothing. A set is a run of words in row `SETS` of ``rows``, one bit a node.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.extending import intrinsic

from windtunnel.sim.compiled.device_tables import (
    FIRST_KIND,
    HINTS,
    IDLE_KINDS,
    KIND,
    SETS,
    TASKS,
    TOTAL,
    WORDS,
)
from windtunnel.sim.compiled.nodes import lowest_bit


@intrinsic
def bit_count(_context: Any, word: Any) -> Any:
    """Return how many bits of an int64 are set."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(word), codegen


@njit(cache=True)
def sort_in(node, rows, which):
    """Put a node that has changed into the sets that it belongs to."""
    word = which >> 6
    bit = 1 << (which & 63)
    words = rows[0, WORDS]
    own = node[KIND, which]
    busy = rows[SETS, word] & bit != 0
    if node[TASKS, which] == 0 and own >= 0:
        if busy:
            rows[SETS, word] ^= bit
            rows[SETS, words + word] &= ~bit
            rows[SETS, (FIRST_KIND + own) * words + word] |= bit
            rows[IDLE_KINDS, HINTS + own] = min(rows[IDLE_KINDS, HINTS + own], word)
        return
    if not busy:
        rows[SETS, word] |= bit
        rows[SETS, (FIRST_KIND + own) * words + word] ^= bit
    if node[TOTAL, which] > 0:
        rows[SETS, words + word] |= bit
    else:
        rows[SETS, words + word] &= ~bit


@njit(cache=True)
def first_idle(rows, own):
    """Return the first node of a kind that runs nothing, -1 if there is none."""
    words = rows[0, WORDS]
    begin = (FIRST_KIND + own) * words
    for word in range(rows[IDLE_KINDS, HINTS + own], words):
        bits = rows[SETS, begin + word]
        if bits != 0:
            rows[IDLE_KINDS, HINTS + own] = word
            return (word << 6) + lowest_bit(bits)
    rows[IDLE_KINDS, HINTS + own] = words
    return -1
