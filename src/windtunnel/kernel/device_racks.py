"""Gangs that stay within racks; the rule is that of `windtunnel.placements.racks`."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import bit_at
from windtunnel.kernel.device_best import device_best
from windtunnel.kernel.device_gangs import (
    device_fill,
    device_put,
    device_put_filling,
    device_put_gang,
    device_put_idle,
)
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.marks import compiled


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
