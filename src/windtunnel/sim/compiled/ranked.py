"""A sorted list of running jobs in blocks, with the GPUs of each block summed.

Entries are (key, job, GPUs) in ascending (key, job). Blocks hold up to `ROOM` entries, so that an
insertion moves few of them, and a walk in rank order can pass whole blocks by their sums.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

ROOM = 128

#: keys, jobs, gpus (blocks, ROOM); length, total (blocks,); order (blocks,): block ids in rank
#: order; spare (blocks,): ids not in use; size (3,): blocks in use, spare ids, GPUs of all entries.
Ranked = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Ranked", "keys jobs gpus length total order spare size"
)


@njit(cache=True)
def ranked(capacity):  # type: ignore[no-untyped-def]
    """Return an empty list for up to ``capacity`` entries.

    Neighbours that together fill at most half a block are merged, so 4 x capacity / ROOM blocks
    always suffice; untouched ones cost no memory.
    """
    blocks = 4 * capacity // ROOM + 4
    spare = np.arange(blocks - 1, -1, -1)
    size = np.array([0, blocks, 0])
    return Ranked(
        np.empty((blocks, ROOM)),
        np.empty((blocks, ROOM), dtype=np.int64),
        np.empty((blocks, ROOM), dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.empty(blocks, dtype=np.int64),
        spare,
        size,
    )


@njit(cache=True)
def _open(entries, place):  # type: ignore[no-untyped-def]
    """Put an unused block at ``place`` of the order; return its id."""
    size = entries.size
    size[1] -= 1
    block = entries.spare[size[1]]
    for later in range(size[0], place, -1):
        entries.order[later] = entries.order[later - 1]
    entries.order[place] = block
    size[0] += 1
    entries.length[block] = 0
    entries.total[block] = 0
    return block


@njit(cache=True)
def _close(entries, place):  # type: ignore[no-untyped-def]
    """Take the block at ``place`` out of the order."""
    size = entries.size
    entries.spare[size[1]] = entries.order[place]
    size[1] += 1
    size[0] -= 1
    for later in range(place, size[0]):
        entries.order[later] = entries.order[later + 1]


@njit(cache=True)
def _find(entries, key, job):  # type: ignore[no-untyped-def]
    """Return (place, index) of the first entry that is not before (key, job).

    The place is the last block where every entry is before it.
    """
    low = 0
    high = entries.size[0] - 1
    while low < high:
        middle = (low + high) >> 1
        block = entries.order[middle]
        last = entries.length[block] - 1
        at = entries.keys[block, last]
        if at < key or (at == key and entries.jobs[block, last] < job):
            low = middle + 1
        else:
            high = middle
    block = entries.order[low]
    left = 0
    right = entries.length[block]
    while left < right:
        middle = (left + right) >> 1
        at = entries.keys[block, middle]
        if at < key or (at == key and entries.jobs[block, middle] < job):
            left = middle + 1
        else:
            right = middle
    return low, left


@njit(cache=True)
def insert(entries, key, job, gpus):  # type: ignore[no-untyped-def]
    """Add an entry."""
    entries.size[2] += gpus
    if entries.size[0] == 0:
        _open(entries, 0)
        place, index = 0, 0
    else:
        place, index = _find(entries, key, job)
    block = entries.order[place]
    if entries.length[block] == ROOM:
        half = ROOM // 2
        upper = _open(entries, place + 1)
        moved = 0
        for entry in range(half, ROOM):
            entries.keys[upper, entry - half] = entries.keys[block, entry]
            entries.jobs[upper, entry - half] = entries.jobs[block, entry]
            entries.gpus[upper, entry - half] = entries.gpus[block, entry]
            moved += entries.gpus[block, entry]
        entries.length[upper] = ROOM - half
        entries.length[block] = half
        entries.total[upper] = moved
        entries.total[block] -= moved
        if index > half:
            block = upper
            index -= half
    for entry in range(entries.length[block], index, -1):
        entries.keys[block, entry] = entries.keys[block, entry - 1]
        entries.jobs[block, entry] = entries.jobs[block, entry - 1]
        entries.gpus[block, entry] = entries.gpus[block, entry - 1]
    entries.keys[block, index] = key
    entries.jobs[block, index] = job
    entries.gpus[block, index] = gpus
    entries.length[block] += 1
    entries.total[block] += gpus


@njit(cache=True)
def remove(entries, key, job):  # type: ignore[no-untyped-def]
    """Remove the entry (key, job), which must be there."""
    place, index = _find(entries, key, job)
    block = entries.order[place]
    entries.size[2] -= entries.gpus[block, index]
    entries.total[block] -= entries.gpus[block, index]
    entries.length[block] -= 1
    length = entries.length[block]
    for entry in range(index, length):
        entries.keys[block, entry] = entries.keys[block, entry + 1]
        entries.jobs[block, entry] = entries.jobs[block, entry + 1]
        entries.gpus[block, entry] = entries.gpus[block, entry + 1]
    if length == 0:
        _close(entries, place)
    elif place + 1 < entries.size[0]:
        other = entries.order[place + 1]
        if length + entries.length[other] <= ROOM // 2:
            for entry in range(entries.length[other]):
                entries.keys[block, length + entry] = entries.keys[other, entry]
                entries.jobs[block, length + entry] = entries.jobs[other, entry]
                entries.gpus[block, length + entry] = entries.gpus[other, entry]
            entries.length[block] += entries.length[other]
            entries.total[block] += entries.total[other]
            _close(entries, place + 1)


@njit(cache=True)
def pass_before(entries, place, index, used, shift, key, job):  # type: ignore[no-untyped-def]
    """Walk from (place, index) to the first entry that is not before (key, job).

    An entry's rank key is its stored key minus ``shift``.

    Returns:
        place, index, and ``used`` plus the GPUs of the entries passed.
    """
    while place < entries.size[0]:
        block = entries.order[place]
        length = entries.length[block]
        last = entries.keys[block, length - 1] - shift
        if index == 0 and (last < key or (last == key and entries.jobs[block, length - 1] < job)):
            used += entries.total[block]
            place += 1
            continue
        while index < length:
            at = entries.keys[block, index] - shift
            if not (at < key or (at == key and entries.jobs[block, index] < job)):
                return place, index, used
            used += entries.gpus[block, index]
            index += 1
        place += 1
        index = 0
    return place, 0, used


@njit(cache=True)
def pass_within(entries, place, index, used, limit):  # type: ignore[no-untyped-def]
    """Walk from (place, index) to the first entry whose GPUs bring ``used`` above ``limit``.

    Returns:
        place (= number of blocks where there is none), index, and the GPUs used before it.
    """
    while place < entries.size[0]:
        block = entries.order[place]
        if index == 0 and used + entries.total[block] <= limit:
            used += entries.total[block]
            place += 1
            continue
        while index < entries.length[block]:
            if used + entries.gpus[block, index] > limit:
                return place, index, used
            used += entries.gpus[block, index]
            index += 1
        place += 1
        index = 0
    return place, 0, used
