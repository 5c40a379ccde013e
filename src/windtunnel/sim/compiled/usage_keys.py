"""Keys by what groups have used, for the kernels: twins of `UsageOrder` and `DecayedUsage`.

Every operation is that of the reference engine in the same order, so that keys have the same bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from windtunnel.sim.usage_order import decay_rate

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.usage_order import UsageOrder

#: Rows of ``books`` (5, groups + 1), the last column all groups together: usage when it was changed
#: last, what is held since, when that was; U / S, and the instant at which it was worked out.
USED, HELD, SINCE, RATIO, ASKED = range(5)
#: Indices into ``factors``. The base of powers is there so that the compiler does not know it: it
#: would take another function than `pow`, which may round otherwise.
RATE, EVERY, BY_RATIO, AGE, MAX_AGE, FAIRSHARE, BASE = range(7)
#: Rows of ``terms`` (4, m), by job: millionths of GPUs; submit time; what size and priority add.
PARTS, SUBMIT, SIZE, PRIORITY = range(4)


def fresh_books(order: UsageOrder) -> np.ndarray:
    """Return books in which nobody has used anything."""
    books = np.zeros((5, len(order.shares) + 1))
    books[ASKED] = np.nan
    return books


def factors(order: UsageOrder) -> np.ndarray:
    """Return the numbers that are the same for all jobs."""
    return np.array(
        [
            decay_rate(order.half_life), order.every, float(order.by_ratio), order.age,
            order.max_age, order.fairshare, 2.0,
        ]
    )  # fmt: skip


def terms(order: UsageOrder, problem: Problem) -> np.ndarray:
    """Return what differs by job, shape (4, m), in order of arrival."""
    rows = problem.rows
    return np.stack([order.parts[rows], problem.submit, order.sizes[rows], order.priorities[rows]])


@njit(cache=True)
def _used(books, number, rate, now):
    """Return what a group has used at ``now``."""
    used, held = books[USED, number], books[HELD, number]
    passed = now - books[SINCE, number]
    if passed == 0 or (used == 0 and held == 0):
        return used
    if rate == 0:
        return used + held * passed
    return used * math.exp(-rate * passed) + held * (-math.expm1(-rate * passed) / rate)


@njit(cache=True)
def charge(books, group, parts, rate, now):
    """From ``now`` on a group holds so many millionths of GPUs more."""
    for number in (group, books.shape[1] - 1):
        books[USED, number] = _used(books, number, rate, now)
        books[SINCE, number] = now
        books[HELD, number] += parts


@njit(cache=True)
def _ratio(books, shares, group, rate, now):
    """Return U / S of a group."""
    if books[ASKED, group] != now:
        total = _used(books, books.shape[1] - 1, rate, now)
        part = _used(books, group, rate, now) / total if total > 0 else 0.0
        books[RATIO, group] = part / shares[group]
        books[ASKED, group] = now
    return books[RATIO, group]


@njit(cache=True)
def key_of(books, shares, factors, terms, group_of, job, now):
    """Return the key of a job that waits at ``now``."""
    ratio = _ratio(books, shares, group_of[job], factors[RATE], now)
    if factors[BY_RATIO] != 0.0:
        return ratio
    waited = (now - terms[SUBMIT, job]) / factors[MAX_AGE]
    if not waited < 1.0:
        waited = 1.0
    total = factors[AGE] * waited
    total += terms[SIZE, job]
    total += factors[FAIRSHARE] * factors[BASE] ** -ratio
    total += terms[PRIORITY, job]
    return -total


@njit(cache=True)
def next_round(count, every, event, active):
    """Return the number of the next round, before the event at which somebody is active again."""
    if active or event == np.inf:
        return count
    return max(count, np.int64(math.ceil(event / every)))


@njit(cache=True)
def sift_down(keys, items, first, size, hole):
    """Let the entry at ``first + hole`` sink to its place in a heap of (key, item)."""
    key, item = keys[first + hole], items[first + hole]
    child = 2 * hole + 1
    while child < size:
        at = first + child
        if child + 1 < size and (
            keys[at + 1] < keys[at] or (keys[at + 1] == keys[at] and items[at + 1] < items[at])
        ):
            child += 1
            at += 1
        if key < keys[at] or (key == keys[at] and item < items[at]):
            break
        keys[first + hole], items[first + hole] = keys[at], items[at]
        hole = child
        child = 2 * hole + 1
    keys[first + hole], items[first + hole] = key, item


@njit(cache=True)
def heapify(keys, items, first, size):
    """Order ``size`` entries from ``first`` on as a heap of (key, item)."""
    for root in range(size // 2 - 1, -1, -1):
        sift_down(keys, items, first, size, root)
