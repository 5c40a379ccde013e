"""What tasks get on one node with devices: chosen, taken and given back."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import bit_at, count_bits, lowest_bit, without_lowest
from windtunnel.kernel.device_cluster import DEVICE_MILLI
from windtunnel.kernel.device_picks import device_copy_left, device_for
from windtunnel.kernel.device_scoring import BY_FGD, BY_RANDOM
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs


@compiled
def device_choose(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong,
    first: cython.longlong,
) -> cython.void:  # fmt: skip
    """Write what so many tasks get on a node that they fit; nothing is taken.

    Args:
        search: what is searched.
        kind: the job's kind.
        which: the node.
        tasks: how many of the job's tasks.
        first: how many of them are placed elsewhere already.
    """
    if search.kinds.milli[kind] == 0:
        for _ in range(tasks):
            search.place.add(which, 0)
    elif search.state.cluster.pooled:
        search.place.add(which, tasks * search.kinds.milli[kind])
    elif search.kinds.part[kind] == 0:
        search.place.add(
            which, search.state.first_devices(which, tasks * search.kinds.whole[kind], True)
        )
    else:
        device_choose_shares(search, kind, which, tasks, first)


@compiled
def device_choose_shares(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong,
    first: cython.longlong,
) -> cython.void:  # fmt: skip
    """Write the devices that the shares of so many tasks get; arguments as of `device_choose`."""
    device: cython.int = -1
    part: cython.int = cython.cast(cython.int, search.kinds.part[kind])
    cores: cython.longlong = search.state.cores[which]
    # The device that has least left and still fits is that for the next task, too.
    lasts: cython.bint = search.scoring.code not in (BY_FGD, BY_RANDOM)
    device_copy_left(search.state, which)
    for task in range(first, first + tasks):
        if device < 0 or not lasts or search.state.left[device] < part:
            device = device_for(search, kind, which, cores, task)
        search.state.left[device] -= part
        if search.state.cluster.size_cores[which] >= 0:
            cores -= search.kinds.cores[kind]
        search.place.add(which, bit_at(device))


@compiled
def device_tasks_of(
    search: DeviceSearch, kind: cython.int, grant: cython.longlong
) -> cython.longlong:
    """Return how many tasks of a job a grant on one node serves."""
    if grant == 0 or (search.kinds.part[kind] > 0 and not search.state.cluster.pooled):
        return 1
    if search.state.cluster.pooled:
        return grant // search.kinds.milli[kind]
    return count_bits(grant) // search.kinds.whole[kind]


@compiled
def device_change(
    search: DeviceSearch, kind: cython.int, pairs: Pairs, begin: cython.longlong,
    end: cython.longlong, sign: cython.int,
) -> cython.void:  # fmt: skip
    """Take (-1) or give back (1) the grants in entries ``begin`` to ``end``."""
    while begin < end:
        tasks: cython.longlong = 0
        milli: cython.longlong = 0
        which: cython.int = pairs.node[begin]
        while begin < end and pairs.node[begin] == which:
            tasks += device_tasks_of(search, kind, pairs.grant[begin])
            milli += device_change_devices(search, kind, which, pairs.grant[begin], sign)
            begin += 1
        search.state.total[which] += sign * cython.cast(cython.int, milli)
        search.state.free += sign * milli
        if not search.state.cluster.pooled:
            search.state.find_most_free(which)
        device_count_tasks(search, kind, which, tasks, sign)


@compiled
def device_change_devices(
    search: DeviceSearch, kind: cython.int, which: cython.int, grant: cython.longlong,
    sign: cython.int,
) -> cython.longlong:  # fmt: skip
    """Take (-1) or give back (1) the devices of a grant; return its thousandths of GPUs."""
    unit: cython.int = cython.cast(cython.int, search.kinds.unit[kind])
    milli: cython.longlong = 0
    if search.state.cluster.pooled:
        search.state.devices[which] += sign * cython.cast(cython.int, grant)
        return grant
    while grant != 0:
        device = which * search.state.cluster.each + lowest_bit(grant)
        grant = without_lowest(grant)
        if search.state.devices[device] == DEVICE_MILLI:
            search.state.idle[which] -= 1
        search.state.devices[device] += sign * unit
        if search.state.devices[device] == DEVICE_MILLI:
            search.state.idle[which] += 1
        milli += unit
    return milli


@compiled
def device_count_tasks(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong,
    sign: cython.int,
) -> cython.void:  # fmt: skip
    """Take (-1) or give back (1) what so many tasks on a node ask for besides GPUs."""
    group: cython.longlong = search.kinds.group[kind]
    count: cython.int = sign * cython.cast(cython.int, tasks)
    device_change_rest(search, kind, which, tasks, sign)
    if search.state.tasks[which] == 0:
        search.state.idlers -= 1
    search.state.tasks[which] -= count
    if search.state.tasks[which] == 0:
        search.state.idlers += 1
    if search.state.groups > 0 and group >= 0:
        search.state.held[which * search.state.groups + group] -= count
    search.state.mark(which)
    search.state.sort_in(which)


@compiled
def device_change_rest(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong,
    sign: cython.int,
) -> cython.void:  # fmt: skip
    """Take (-1) or give back (1) the cores and the memory of so many tasks."""
    if search.state.cluster.size_cores[which] >= 0:
        search.state.cores[which] += sign * tasks * search.kinds.cores[kind]
    if search.state.cluster.size_mem[which] >= 0:
        search.state.mem[which] += sign * tasks * search.kinds.mem[kind]


@compiled
def device_draft(
    search: DeviceSearch, kind: cython.int, which: cython.int, grant: cython.longlong,
    sign: cython.int,
) -> cython.bint:  # fmt: skip
    """Take (-1) or give back (1) a grant in the devices, cores and memory of a node alone.

    Nothing that follows from these is made anew: it is undone before anybody looks.

    Returns:
        Whether nothing of them is overdrawn now.
    """
    left: cython.longlong = grant
    least: cython.int = 0
    device_change_rest(search, kind, which, device_tasks_of(search, kind, grant), sign)
    device_change_devices(search, kind, which, grant, sign)
    if search.state.cluster.pooled:
        least = search.state.devices[which] if grant > 0 else 0
        left = 0
    while left != 0:
        least = min(
            least, search.state.devices[which * search.state.cluster.each + lowest_bit(left)]
        )
        left = without_lowest(left)
    return least >= 0 and search.state.cores[which] >= 0 and search.state.mem[which] >= 0


@compiled
def device_footprint(
    search: DeviceSearch, kind: cython.int, which: cython.int, grant: cython.longlong,
    into: Pairs, begin: cython.longlong,
) -> cython.void:  # fmt: skip
    """Add what a grant takes of a row (`DeviceState.store`), as (column, amount) pairs.

    Those from ``begin`` on are of the same job and node: it takes what is added up there.
    """
    at: cython.int = which * search.state.width()
    tasks: cython.longlong = device_tasks_of(search, kind, grant)
    if search.state.cluster.pooled:
        if grant > 0:
            into.add_up(begin, at, grant)
    else:
        while grant != 0:
            into.add_up(begin, at + lowest_bit(grant), search.kinds.unit[kind])
            grant = without_lowest(grant)
    at += search.state.cluster.each
    if search.state.cluster.size_cores[which] >= 0 and search.kinds.cores[kind] > 0:
        into.add_up(begin, at, tasks * search.kinds.cores[kind])
    if search.state.cluster.size_mem[which] >= 0 and search.kinds.mem[kind] > 0:
        into.add_up(begin, at + 1, tasks * search.kinds.mem[kind])
    into.add_up(begin, at + 2, tasks)
    if search.state.groups > 0 and search.kinds.group[kind] >= 0:
        into.add_up(begin, at + 3 + cython.cast(cython.int, search.kinds.group[kind]), tasks)
