"""What is expected to be free from now on, for the kernels: the twin of `windtunnel.sim.profile`.

A profile is arrays of steps, of which ``size`` are used. Each begins at ``times`` (steps,); its
free state lies in slot ``place`` (steps,): a permutation of all slots, the unused rest of which are
free ones. Slots are ``free`` (slots, ...), and ``totals`` (slots,) of free GPU units. On nodes and
pools ``free`` is (slots, nodes, 2), free GPU units and thousandths of cores, and ``books`` is None.
On devices it is (slots, ..., nodes), tables ``node`` of `windtunnel.sim.compiled.device_tables`,
and ``books`` (slots, ...) has what of ``rows`` goes with them. Which of the two it is is known when
a function is compiled, and only that one is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled import device_profile
from windtunnel.sim.compiled.nodes import (
    BITS,
    COUNT,
    CPUS,
    FREE,
    FREE_CPUS,
    HINT,
    POOL,
    SIZE,
    give,
    take,
    take_there,
)

#: Steps for which there is room at first.
FIRST_STEPS = 64


def empty_profile(
    tables: tuple[np.ndarray, np.ndarray, np.ndarray], *, devices: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return ``free`` and ``books`` of a profile, not filled.

    Args:
        tables: the cluster, with nothing running.
        devices: they are tables of `windtunnel.sim.compiled.device_tables`.
    """
    node, rows, _ = tables
    if devices:
        books = np.empty((FIRST_STEPS, device_profile.BOOK, rows.shape[1]), dtype=np.int64)
        return np.empty((FIRST_STEPS, *node.shape), dtype=np.int64), books
    return np.empty((FIRST_STEPS, len(node), 2), dtype=np.int64), None


@njit(cache=True)
def step_at(times, place, free, totals, books, size, time):
    """Return the step that begins at ``time``, made where there is none, and the new size.

    There must be room for one more step. A time before the first step counts as that step.
    """
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if (low < size and times[low] == time) or low == 0:
        return low, size
    slot = place[size]
    for index in range(size, low, -1):
        times[index] = times[index - 1]
        place[index] = place[index - 1]
    times[low] = time
    place[low] = slot
    before = place[low - 1]
    free[slot] = free[before]
    totals[slot] = totals[before]
    if books is not None:
        books[slot] = books[before]
    return low, size + 1


@njit(cache=True)
def forget(times, place, size, now):
    """Drop what lies before ``now``; return the new size."""
    step = 0
    while step + 1 < size and times[step + 1] <= now:
        step += 1
    if step > 0:
        dropped = place[:step].copy()
        for index in range(step, size):
            times[index - step] = times[index]
            place[index - step] = place[index]
        place[size - step : size] = dropped
    times[0] = now
    return size - step


@njit(cache=True)
def begin(times, place, free, totals, books, now, node, rows):
    """Let the profile have one step: what is free now."""
    times[0] = now
    slot = place[0]
    if books is None:
        totals[slot] = 0
        for which in range(len(node)):
            free[slot, which, 0] = node[which, FREE]
            free[slot, which, 1] = node[which, FREE_CPUS]
            totals[slot] += node[which, FREE]
    else:
        totals[slot] = device_profile.store(free[slot], books[slot], node, rows)


@njit(cache=True)
def change(
    place, free, totals, books, rows, first, last, classes, kind, placement, nodes, gpus, entry,
    stop, sign,
):  # fmt: skip
    """Give (1) or take (-1) what stands in entries ``entry`` to ``stop``, a job's of a class.

    It changes the steps ``first`` to before ``last``. ``rows`` are scratch.
    """
    for step in range(first, last):
        slot = place[step]
        if books is None:
            cores = classes[kind, CPUS] if placement == POOL else 0
            for index in range(entry, stop):
                free[slot, nodes[index], 0] += sign * gpus[index]
                free[slot, nodes[index], 1] += sign * cores
                totals[slot] += sign * gpus[index]
        else:
            totals[slot] = device_profile.change(
                free[slot], books[slot], rows, classes, kind, nodes, gpus, entry, stop, sign
            )


@njit(cache=True)
def _fill(node, rows, room, placement):
    """Make the tables of `windtunnel.sim.compiled.nodes` from what is free, shape (nodes, 2)."""
    last = len(rows) - 1
    total = 0
    if placement != POOL:
        rows[:last] = 0
        rows[:last, HINT] = rows.shape[1] - BITS
    for which in range(len(node)):
        gpus = room[which, 0]
        node[which, FREE] = gpus
        node[which, FREE_CPUS] = room[which, 1]
        total += gpus
        if placement != POOL:
            word = which >> 6
            bit = 1 << (which & 63)
            rows[gpus, BITS + word] |= bit
            rows[gpus, COUNT] += 1
            rows[gpus, HINT] = min(rows[gpus, HINT], word)
            if gpus == node[which, SIZE]:
                rows[last - 1, BITS + word] |= bit
                rows[last - 1, COUNT] += 1
                rows[last - 1, HINT] = min(rows[last - 1, HINT], word)
    rows[last, COUNT] = total


@njit(cache=True)
def _take_at(
    free, books, slot, node, rows, classes, kind, placement, nodes, gpus, offset
):  # fmt: skip
    """Return how many entries a job would get in the state of a slot, or -1; nothing is taken."""
    if books is None:
        _fill(node, rows, free[slot], placement)
        taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
    else:
        taken = device_profile.try_take(
            free[slot], books[slot], rows, classes, kind, placement, nodes, gpus, offset
        )
    return taken


@njit(cache=True)
def _take_all_along(
    place, free, books, first, last, node, rows, classes, kind, placement, nodes, gpus, offset
):  # fmt: skip
    """Return how many entries a job would get of what is free in all of some steps, or -1."""
    if books is None:
        room = free[place[first]].copy()
        for later in range(first + 1, last):
            slot = place[later]
            for which in range(len(room)):
                room[which, 0] = min(room[which, 0], free[slot, which, 0])
                room[which, 1] = min(room[which, 1], free[slot, which, 1])
        _fill(node, rows, room, placement)
        taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
    else:
        node[:] = free[place[first]]
        for later in range(first + 1, last):
            device_profile.meet(node, rows, free[place[later]])
        device_profile.sum_up(node, rows, books[place[first]])
        taken = device_profile.take(node, rows, classes, kind, placement, nodes, gpus, offset)
    return taken


@njit(cache=True)
def earliest(
    times, place, free, totals, books, size, node, rows, classes, kind, placement, length, nodes,
    gpus, offset,
):  # fmt: skip
    """Return the first step from which room stays free for ``length`` s, and how many entries.

    The entries are written from ``offset`` on. ``node`` and ``rows`` are scratch.
    """
    for first in range(size):
        if totals[place[first]] < classes[kind, 0]:
            continue
        taken = _take_at(
            free, books, place[first], node, rows, classes, kind, placement, nodes, gpus, offset
        )
        if taken < 0:
            continue
        stop = times[first] + length
        last = first + 1
        while last < size and times[last] < stop:
            last += 1
        if last > first + 1:
            taken = _take_all_along(
                place, free, books, first, last, node, rows, classes, kind, placement,
                nodes, gpus, offset,
            )  # fmt: skip
        if taken >= 0:
            return first, taken
    return -1, -1


@njit(cache=True)
def give_back(books, node, rows, classes, kind, placement, nodes, gpus, first, last):
    """Give back what a job of class ``kind`` holds in entries ``first`` to ``last``."""
    if books is None:
        give(node, rows, classes, kind, placement, nodes, gpus, first, last)
    else:
        device_profile.give(node, rows, classes, kind, placement, nodes, gpus, first, last)


@njit(cache=True)
def take_promised(books, node, rows, classes, kind, placement, nodes, gpus, first, last):
    """Take what stands in entries ``first`` to ``last`` for a job of class ``kind``."""
    if books is None:
        take_there(node, rows, classes, kind, placement, nodes, gpus, first, last)
    else:
        device_profile.take_now(node, rows, classes, kind, placement, nodes, gpus, first, last)


@njit(cache=True)
def _larger(values):
    shape = (2 * len(values), *values.shape[1:])
    larger = np.empty(shape, dtype=np.int64)
    larger[: len(values)] = values
    return larger


@njit(cache=True)
def grown(times, place, free, totals, books):
    """Return the arrays with twice the room."""
    more_times = np.empty(2 * len(times))
    more_times[: len(times)] = times
    more_place = np.arange(2 * len(place))
    more_place[: len(place)] = place
    more_books = None if books is None else _larger(books)
    return more_times, more_place, _larger(free), _larger(totals), more_books
