"""Which waiting classes of a queue that goes on past what does not fit are worth trying.

A class is *open* or, once its head did not fit, *shut*. Less room never makes a job fit (see
`windtunnel.placements.gangs`), so a shut class stays shut until room is given back. With devices
only the nodes on which room was given back can then hold its jobs, and that is quickly seen. Shut
classes are kept in lists by what they ask of GPUs (their *group*), so that a whole list is passed
over where the GPUs that were given back do not suffice.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.device_search import gpus_may_fit, may_fit

#: Rows of ``book`` (7, classes + 1): the open classes; the next one in a shut class's list, -1 at
#: its end; the first one of each group's list, -1 if empty (there are no more groups than classes);
#: the decision at which a shut class was tried last; each class's group; the groups whose lists are
#: not empty, or were not when they were last walked; each group's place among these, or -1.
OPEN, NEXT, FIRST, TRIED, GROUP, LISTED, PLACE = range(7)


@njit(cache=True)
def new_book(group_of):
    """Return the book of classes of these groups, none of which is open or shut."""
    kinds = len(group_of)
    book = np.full((PLACE + 1, kinds + 1), -1, dtype=np.int64)
    book[GROUP, :kinds] = group_of
    book[LISTED, kinds] = 0
    return book


@njit(cache=True)
def shut(book, kind, point):
    """Put a class into its group's list: it did not fit at decision ``point``."""
    group = book[GROUP, kind]
    book[NEXT, kind] = book[FIRST, group]
    book[FIRST, group] = kind
    book[TRIED, kind] = point
    if book[PLACE, group] < 0:
        last = book.shape[1] - 1  # its entry of `LISTED`: how many there are
        book[PLACE, group] = book[LISTED, last]
        book[LISTED, book[LISTED, last]] = group
        book[LISTED, last] += 1


@njit(cache=True)
def take_out(book, kind):
    """Take a class out of its group's list."""
    group = book[GROUP, kind]
    if book[FIRST, group] == kind:
        book[FIRST, group] = book[NEXT, kind]
        return
    before = book[FIRST, group]
    while book[NEXT, before] != kind:
        before = book[NEXT, before]
    book[NEXT, before] = book[NEXT, kind]


@njit(cache=True)
def open_all(book, num_open):
    """Open every class; return how many are open."""
    last = book.shape[1] - 1
    for place in range(book[LISTED, last]):
        group = book[LISTED, place]
        kind = book[FIRST, group]
        while kind >= 0:
            book[OPEN, num_open] = kind
            num_open += 1
            kind = book[NEXT, kind]
        book[FIRST, group] = -1
        book[PLACE, group] = -1
    book[LISTED, last] = 0
    return num_open


@njit(cache=True)
def first_fitting(
    book, node, rows, classes, freed, num_freed, point, heap, class_start, best
):  # fmt: skip
    """Return the shut class, first in the queue's order, that room given back may hold.

    Args:
        book: the classes.
        node: free devices.
        rows: ditto.
        classes: demand classes.
        freed: nodes on which room was given back.
        num_freed: how many of them.
        point: number of the decision; what was tried at it is left out.
        heap: places in the queue's order; each class's first one is at its ``class_start``.
        class_start: see ``heap``.
        best: only classes before this place count.

    Returns:
        The class, or -1.
    """
    found = np.int64(-1)
    last = book.shape[1] - 1
    entry = 0
    while entry < book[LISTED, last]:
        group = book[LISTED, entry]
        kind = book[FIRST, group]
        if kind < 0:
            book[LISTED, last] -= 1
            moved = book[LISTED, book[LISTED, last]]
            book[LISTED, entry] = moved
            book[PLACE, moved] = entry
            book[PLACE, group] = -1
            continue
        entry += 1
        if not gpus_may_fit(node, rows, classes, kind, freed, num_freed):
            continue
        while kind >= 0:
            place = heap[class_start[kind]]
            if (
                place < best
                and book[TRIED, kind] != point
                and may_fit(node, rows, classes, kind, freed, num_freed)
            ):
                best = place
                found = kind
            kind = book[NEXT, kind]
    return found
