"""How a gang is laid out over nodes with devices, and within racks.

See `windtunnel.placements.layouts` and `windtunnel.placements.racks`.
"""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import bit_at, lowest_bit, without_lowest
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


# By racks.


@compiled
def device_look_at_rack(search: DeviceSearch, rack: cython.int, adds: cython.bint) -> cython.void:
    """Let the search look at one rack alone, or at its nodes, too."""
    if not adds:
        search.look_at_none()
    for at in range(
        search.state.cluster.rack_begin[rack], search.state.cluster.rack_begin[rack + 1]
    ):
        which = search.state.cluster.rack_node[at]
        if search.is_in_sight(which):
            search.state.within[which >> 6] |= bit_at(which & 63)


@compiled
def device_rack_fitting(
    search: DeviceSearch, kind: cython.int, rack: cython.int, idle: cython.bint
) -> cython.longlong:
    """Return how many of a job's tasks fit a rack's nodes, or those of them that run nothing."""
    fitting: cython.longlong = 0
    for at in range(
        search.state.cluster.rack_begin[rack], search.state.cluster.rack_begin[rack + 1]
    ):
        which = search.state.cluster.rack_node[at]
        if search.is_in_sight(which) and not (idle and search.state.tasks[which] != 0):
            fitting += search.fitting(kind, which)
    return fitting


@compiled
def device_put_in_one_rack(search: DeviceSearch, kind: cython.int) -> cython.bint:
    """Place a job in the rack with the fewest GPUs free to it that can hold it, if there is one."""
    free: cython.longlong
    for rack in range(search.state.cluster.racks):
        free = 0
        for at in range(
            search.state.cluster.rack_begin[rack], search.state.cluster.rack_begin[rack + 1]
        ):
            which = search.state.cluster.rack_node[at]
            if search.is_in_sight(which):
                free += search.state.total[which]
        if (
            free < search.kinds.tasks[kind] * search.kinds.milli[kind]
            or device_rack_fitting(search, kind, rack, False) < search.kinds.tasks[kind]
        ):
            free = -1  # it will not do
        search.rack_scratch[rack] = free
    while True:
        best = -1
        for rack in range(search.state.cluster.racks):
            if search.rack_scratch[rack] >= 0 and (
                best < 0 or search.rack_scratch[rack] < search.rack_scratch[best]
            ):
                best = rack
        if best < 0:
            return False
        search.rack_scratch[best] = -1
        search.place.count = 0
        device_look_at_rack(search, best, False)
        if search.scoring.fills:
            fits = device_put_filling(search, kind)
        else:
            fits = device_put_gang(search, kind)
        if fits:
            return True


@compiled
def device_put_over_racks(search: DeviceSearch, kind: cython.int) -> cython.bint:
    """Place a job over several racks, those that hold most first, if all fit."""
    fills: cython.bint = search.scoring.fills
    total: cython.longlong = 0
    rest: cython.longlong = search.kinds.tasks[kind]
    search.place.count = 0
    for rack in range(search.state.cluster.racks):
        search.rack_scratch[rack] = device_rack_fitting(search, kind, rack, not fills)
        total += search.rack_scratch[rack]
    if fills and total < rest:
        return False
    while rest > 0:
        best = 0
        for rack in range(search.state.cluster.racks):
            if search.rack_scratch[rack] > search.rack_scratch[best]:
                best = rack
        if search.rack_scratch[best] <= 0:
            break
        device_look_at_rack(search, best, False)
        before = rest
        rest = device_fill(search, kind, rest) if fills else device_put_idle(search, kind, rest)
        search.rack_scratch[best] = -1 if rest < before else 0  # -1: the job uses it
    return rest == 0 or device_put_rest(search, kind, rest)


@compiled
def device_put_rest(search: DeviceSearch, kind: cython.int, rest: cython.longlong) -> cython.bint:
    """Place what remains on one more node, in a rack that the job uses where one holds it."""
    which: cython.int = -1
    search.look_at_none()
    for rack in range(search.state.cluster.racks):
        if search.rack_scratch[rack] < 0:
            device_look_at_rack(search, rack, True)
    for at in range(search.place.count):
        search.state.look_past(search.place.node[at])
    which = device_best(search, kind, rest)
    if which < 0:
        search.look_at_all()
        for at in range(search.place.count):
            search.state.look_past(search.place.node[at])
        which = device_best(search, kind, rest)
    if which < 0:
        return False
    device_put(search, kind, which, rest, rest)
    return True


@compiled
def device_put_by_racks(search: DeviceSearch, kind: cython.int) -> cython.bint:
    """Place a job that may go over several nodes by racks."""
    if device_put_in_one_rack(search, kind):
        return True
    return search.scoring.spills and device_put_over_racks(search, kind)
