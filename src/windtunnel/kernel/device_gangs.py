"""How a gang is laid out over nodes with devices; see `windtunnel.placements.layouts`."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import lowest_bit, without_lowest
from windtunnel.kernel.device_best import device_best
from windtunnel.kernel.device_grants import device_choose
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.device_state import SET_IN_USE
from windtunnel.kernel.marks import compiled


@compiled
def device_put(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong,
    rest: cython.longlong,
) -> cython.longlong:  # fmt: skip
    """Write what tasks of a job get on a node, and look at it no more; return the tasks left.

    Args:
        search: what is searched.
        kind: the job's kind.
        which: the node; they fit it.
        tasks: how many.
        rest: tasks of the job that are not placed yet, these included.
    """
    first: cython.longlong = search.kinds.tasks[kind] - rest
    device_choose(search, kind, which, tasks, first)
    search.state.look_past(which)
    return rest - tasks


@compiled
def device_put_idle(
    search: DeviceSearch, kind: cython.int, rest: cython.longlong
) -> cython.longlong:
    """Let a gang have whole nodes that run nothing, lowest index first; return the tasks left."""
    words: cython.int = search.state.cluster.words
    # Nodes of one kind that run nothing hold as many tasks.
    for own in range(search.state.cluster.kinds):
        which = search.first_idle(kind, own)
        search.kind_fitting[own] = 0
        if which >= 0:
            search.kind_fitting[own] = search.fitting(kind, which)
    for word in range(words):
        if rest == 0:
            break
        found = search.state.sets[SET_IN_USE * words + word]  # those of no kind are among them
        for own in range(search.state.cluster.kinds):
            if 0 < search.kind_fitting[own] <= rest:
                found |= search.state.sets[(search.state.first_kind + own) * words + word]
        found &= search.state.within[word]
        while found != 0:
            which = (word << 6) + lowest_bit(found)
            found = without_lowest(found)
            if search.state.tasks[which] != 0 or not search.kinds.allows(kind, which):
                continue
            own = search.state.cluster.kind[which]
            if own >= 0 and (search.state.sets[SET_IN_USE * words + word] >> (which & 63)) & 1 == 0:
                tasks = search.kind_fitting[own]
            else:
                tasks = search.fitting(kind, which)
            if 0 < tasks <= rest:
                rest = device_put(search, kind, which, tasks, rest)
    return rest


@compiled
def device_put_gang(search: DeviceSearch, kind: cython.int) -> cython.bint:
    """Place a gang larger than a node: whole nodes that run nothing, the remainder on one more."""
    rest: cython.longlong = device_put_idle(search, kind, search.kinds.tasks[kind])
    if rest == 0:
        return True
    which = device_best(search, kind, rest)
    if which < 0:
        return False
    device_put(search, kind, which, rest, rest)
    return True


@compiled
def device_fitting_within(search: DeviceSearch, kind: cython.int) -> cython.longlong:
    """Return how many of a job's tasks fit the nodes within sight, at most all of them."""
    fitting: cython.longlong = 0
    count: cython.longlong = search.kinds.tasks[kind]
    for which in range(search.state.cluster.nodes):
        if search.state.is_within(which):
            fitting += search.fitting(kind, which)
            if fitting >= count:
                return count
    return fitting


@compiled
def device_fill(search: DeviceSearch, kind: cython.int, rest: cython.longlong) -> cython.longlong:
    """Put tasks on nodes, best scores first, as many on each as fit; return the tasks left.

    The scores are those before anything is placed: nothing is taken while nodes are chosen.
    """
    while rest > 0:
        which = device_best(search, kind, 1)
        if which < 0:
            break
        rest = device_put(
            search,
            kind,
            which,
            min(rest, search.fitting(kind, which)),
            rest,
        )
    return rest


@compiled
def device_put_filling(search: DeviceSearch, kind: cython.int) -> cython.bint:
    """Place a gang over nodes that are filled in the order of their scores."""
    count: cython.longlong = search.kinds.tasks[kind]
    if count > 1 and device_fitting_within(search, kind) < count:
        return False
    return device_fill(search, kind, count) == 0
