"""A sorted list of running jobs in blocks, with the GPUs of each block summed.

Entries are (key, job, GPUs) in ascending (key, job). Blocks hold up to `ROOM` entries, so that an
insertion moves few of them, and a walk in rank order can pass whole blocks by their sums.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ROOM = 64

#: Where the GPUs of a block's entries begin in ``cells``, behind their jobs.
GPUS = ROOM
#: Columns of ``blocks``: of a block, entries and their GPUs; of a place in the order, the block's
#: id; of the stack of unused blocks, an id.
LENGTH, TOTAL, ORDER, SPARE = range(4)
#: Columns of the last row of ``blocks``: blocks in use, spare ids, GPUs of all entries.
USED, SPARES, SUM = range(3)


def ranked(capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an empty list for up to ``capacity`` entries, as ``keys``, ``cells`` and ``blocks``.

    Neighbours that together fill at most half a block are merged, so 4 x capacity / ROOM blocks
    always suffice; untouched ones cost no memory.
    """
    room = 4 * capacity // ROOM + 4
    keys = np.empty((room, ROOM))
    cells = np.empty((room, 2 * ROOM), dtype=np.int64)
    blocks = np.zeros((room + 1, 4), dtype=np.int64)
    blocks[:room, SPARE] = np.arange(room - 1, -1, -1)
    blocks[room, SPARES] = room
    return keys, cells, blocks


@njit(cache=True)
def _open(blocks, place):
    """Put an unused block at ``place`` of the order; return its id."""
    last = len(blocks) - 1
    blocks[last, SPARES] -= 1
    block = blocks[blocks[last, SPARES], SPARE]
    for later in range(blocks[last, USED], place, -1):
        blocks[later, ORDER] = blocks[later - 1, ORDER]
    blocks[place, ORDER] = block
    blocks[last, USED] += 1
    blocks[block, LENGTH] = 0
    blocks[block, TOTAL] = 0
    return block


@njit(cache=True)
def _close(blocks, place):
    """Take the block at ``place`` out of the order."""
    last = len(blocks) - 1
    blocks[blocks[last, SPARES], SPARE] = blocks[place, ORDER]
    blocks[last, SPARES] += 1
    blocks[last, USED] -= 1
    for later in range(place, blocks[last, USED]):
        blocks[later, ORDER] = blocks[later + 1, ORDER]


@njit(cache=True)
def _find(keys, cells, blocks, key, job):
    """Return (place, index) of the first entry that is not before (key, job).

    The place is the last block where every entry is before it.
    """
    low = 0
    high = blocks[len(blocks) - 1, USED] - 1
    while low < high:
        middle = (low + high) >> 1
        block = blocks[middle, ORDER]
        last = blocks[block, LENGTH] - 1
        at = keys[block, last]
        if at < key or (at == key and cells[block, last] < job):
            low = middle + 1
        else:
            high = middle
    block = blocks[low, ORDER]
    left = 0
    right = blocks[block, LENGTH]
    while left < right:
        middle = (left + right) >> 1
        at = keys[block, middle]
        if at < key or (at == key and cells[block, middle] < job):
            left = middle + 1
        else:
            right = middle
    return low, left


@njit(cache=True)
def insert(keys, cells, blocks, key, job, gpus):
    """Add an entry."""
    blocks[len(blocks) - 1, SUM] += gpus
    if blocks[len(blocks) - 1, USED] == 0:
        _open(blocks, 0)
        place, index = 0, 0
    else:
        place, index = _find(keys, cells, blocks, key, job)
    block = blocks[place, ORDER]
    if blocks[block, LENGTH] == ROOM:
        half = ROOM // 2
        upper = _open(blocks, place + 1)
        moved = 0
        for entry in range(half, ROOM):
            keys[upper, entry - half] = keys[block, entry]
            cells[upper, entry - half] = cells[block, entry]
            cells[upper, GPUS + entry - half] = cells[block, GPUS + entry]
            moved += cells[block, GPUS + entry]
        blocks[upper, LENGTH] = ROOM - half
        blocks[block, LENGTH] = half
        blocks[upper, TOTAL] = moved
        blocks[block, TOTAL] -= moved
        if index > half:
            block = upper
            index -= half
    for entry in range(blocks[block, LENGTH], index, -1):
        keys[block, entry] = keys[block, entry - 1]
        cells[block, entry] = cells[block, entry - 1]
        cells[block, GPUS + entry] = cells[block, GPUS + entry - 1]
    keys[block, index] = key
    cells[block, index] = job
    cells[block, GPUS + index] = gpus
    blocks[block, LENGTH] += 1
    blocks[block, TOTAL] += gpus


@njit(cache=True)
def remove(keys, cells, blocks, key, job):
    """Remove the entry (key, job), which must be there."""
    place, index = _find(keys, cells, blocks, key, job)
    block = blocks[place, ORDER]
    blocks[len(blocks) - 1, SUM] -= cells[block, GPUS + index]
    blocks[block, TOTAL] -= cells[block, GPUS + index]
    blocks[block, LENGTH] -= 1
    length = blocks[block, LENGTH]
    for entry in range(index, length):
        keys[block, entry] = keys[block, entry + 1]
        cells[block, entry] = cells[block, entry + 1]
        cells[block, GPUS + entry] = cells[block, GPUS + entry + 1]
    if length == 0:
        _close(blocks, place)
        return
    if place + 1 < blocks[len(blocks) - 1, USED]:
        _merge(keys, cells, blocks, place)
    if place > 0:
        _merge(keys, cells, blocks, place - 1)


@njit(cache=True)
def _merge(keys, cells, blocks, place):
    """Move the entries of the block after ``place`` into the one there, if both are small."""
    block = blocks[place, ORDER]
    other = blocks[place + 1, ORDER]
    length = blocks[block, LENGTH]
    if length + blocks[other, LENGTH] > ROOM // 2:
        return
    for entry in range(blocks[other, LENGTH]):
        keys[block, length + entry] = keys[other, entry]
        cells[block, length + entry] = cells[other, entry]
        cells[block, GPUS + length + entry] = cells[other, GPUS + entry]
    blocks[block, LENGTH] += blocks[other, LENGTH]
    blocks[block, TOTAL] += blocks[other, TOTAL]
    _close(blocks, place + 1)


@njit(cache=True)
def pass_before(keys, cells, blocks, place, index, used, shift, key, job):
    """Walk from (place, index) to the first entry that is not before (key, job).

    An entry's rank key is its stored key minus ``shift``.

    Returns:
        place, index, and ``used`` plus the GPUs of the entries passed.
    """
    while place < blocks[len(blocks) - 1, USED]:
        block = blocks[place, ORDER]
        length = blocks[block, LENGTH]
        last = keys[block, length - 1] - shift
        if index == 0 and (last < key or (last == key and cells[block, length - 1] < job)):
            used += blocks[block, TOTAL]
            place += 1
            continue
        while index < length:
            at = keys[block, index] - shift
            if not (at < key or (at == key and cells[block, index] < job)):
                return place, index, used
            used += cells[block, GPUS + index]
            index += 1
        place += 1
        index = 0
    return place, 0, used


@njit(cache=True)
def pass_within(cells, blocks, place, index, used, limit):
    """Walk from (place, index) to the first entry whose GPUs bring ``used`` above ``limit``.

    Returns:
        place (= number of blocks where there is none), index, and the GPUs used before it.
    """
    while place < blocks[len(blocks) - 1, USED]:
        block = blocks[place, ORDER]
        if index == 0 and used + blocks[block, TOTAL] <= limit:
            used += blocks[block, TOTAL]
            place += 1
            continue
        while index < blocks[block, LENGTH]:
            if used + cells[block, GPUS + index] > limit:
                return place, index, used
            used += cells[block, GPUS + index]
            index += 1
        place += 1
        index = 0
    return place, 0, used
