"""What tasks get on one node with devices: chosen, taken and given back."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import bit_at, lowest_bit
from windtunnel.kernel.device_kinds import DEVICE_MILLI, DeviceKinds
from windtunnel.kernel.device_picks import device_copy_left, device_for
from windtunnel.kernel.device_room import DeviceRoom
from windtunnel.kernel.device_scoring import BY_FGD, BY_RANDOM, DeviceScoring
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs


@compiled
def device_whole_grant(
    room: DeviceRoom, which: cython.int, gpus: cython.longlong
) -> cython.longlong:
    """Return the first so many devices of a node that nobody uses, as bits."""
    device: cython.int
    first: cython.int = which * room.cluster.each
    held: cython.longlong = 0
    for device in range(room.cluster.gpus[which]):
        if gpus > 0 and room.devices[first + device] == DEVICE_MILLI:
            held |= bit_at(device)
            gpus -= 1
    return held


@compiled
def device_choose(
    room: DeviceRoom,
    scoring: DeviceScoring,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    tasks: cython.longlong,
    first: cython.longlong,
    place: Pairs,
) -> cython.void:
    """Write what so many tasks get on a node that has room for them.

    Args:
        room: what is free; nothing is taken.
        scoring: the placement.
        kinds: the kinds of jobs.
        kind: the job's.
        which: the node.
        tasks: how many of the job's tasks.
        first: how many of them are placed elsewhere already.
        place: where the pairs are written.
    """
    part: cython.int = cython.cast(cython.int, kinds.part[kind])
    if kinds.milli[kind] == 0:
        for _ in range(tasks):
            place.add(which, 0)
    elif room.cluster.pooled:
        place.add(which, tasks * kinds.milli[kind])
    elif part == 0:
        place.add(which, device_whole_grant(room, which, tasks * kinds.whole[kind]))
    else:
        device_choose_shares(room, scoring, kinds, kind, which, tasks, first, place)


@compiled
def device_choose_shares(
    room: DeviceRoom,
    scoring: DeviceScoring,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    tasks: cython.longlong,
    first: cython.longlong,
    place: Pairs,
) -> cython.void:
    """Write the devices that the shares of so many tasks get; arguments as of `device_choose`."""
    task: cython.longlong
    device: cython.int = -1
    part: cython.int = cython.cast(cython.int, kinds.part[kind])
    cores: cython.longlong = room.cores[which]
    # The device that has least left and still fits is that for the next task, too.
    lasts: cython.bint = scoring.code not in (BY_FGD, BY_RANDOM)
    device_copy_left(room, which)
    for task in range(first, first + tasks):
        if device < 0 or not lasts or room.left[device] < part:
            device = device_for(room, scoring, kinds, kind, which, cores, task)
        room.left[device] -= part
        if room.cluster.size_cores[which] >= 0:
            cores -= kinds.cores[kind]
        place.add(which, bit_at(device))


@compiled
def device_change(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    grant: cython.longlong,
    sign: cython.int,
) -> cython.void:
    """Take (-1) or give back (1) one grant of whole or pooled GPUs, or of none, on one node."""
    device: cython.int
    held: cython.int = 0
    first: cython.int = which * room.cluster.each
    tasks: cython.longlong = 1
    if room.cluster.pooled:
        if grant > 0:
            tasks = grant // kinds.milli[kind]
            room.devices[which] += sign * cython.cast(cython.int, grant)
            room.total[which] += sign * cython.cast(cython.int, grant)
            room.free += sign * grant
    elif grant != 0:
        for device in range(room.cluster.gpus[which]):
            if (grant >> device) & 1:
                held += 1
                if room.devices[first + device] == DEVICE_MILLI:
                    room.idle[which] -= 1
                room.devices[first + device] += sign * DEVICE_MILLI
                if room.devices[first + device] == DEVICE_MILLI:
                    room.idle[which] += 1
        room.total[which] += sign * DEVICE_MILLI * held
        room.free += sign * DEVICE_MILLI * held
        room.find_roomiest(which)
        tasks = held // kinds.whole[kind]
    device_count_tasks(room, kinds, kind, which, tasks, sign)


@compiled
def device_change_shares(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    pairs: Pairs,
    begin: cython.longlong,
    end: cython.longlong,
    sign: cython.int,
) -> cython.void:
    """Take (-1) or give back (1) the shares in entries ``begin`` to ``end``, all on one node."""
    at: cython.longlong
    device: cython.int
    which: cython.int = pairs.node[begin]
    part: cython.int = cython.cast(cython.int, kinds.part[kind])
    tasks: cython.longlong = end - begin
    for at in range(begin, end):
        device = which * room.cluster.each + lowest_bit(pairs.grant[at])
        if room.devices[device] == DEVICE_MILLI:
            room.idle[which] -= 1
        room.devices[device] += sign * part
        if room.devices[device] == DEVICE_MILLI:
            room.idle[which] += 1
    room.total[which] += sign * part * cython.cast(cython.int, tasks)
    room.free += sign * part * tasks
    room.find_roomiest(which)
    device_count_tasks(room, kinds, kind, which, tasks, sign)


@compiled
def device_count_tasks(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    tasks: cython.longlong,
    sign: cython.int,
) -> cython.void:
    """Take (-1) or give back (1) what so many tasks on a node ask for besides GPUs."""
    if room.cluster.size_cores[which] >= 0:
        room.cores[which] += sign * tasks * kinds.cores[kind]
    if room.cluster.size_mem[which] >= 0:
        room.mem[which] += sign * tasks * kinds.mem[kind]
    if room.tasks[which] == 0:
        room.idlers -= 1
    room.tasks[which] -= sign * cython.cast(cython.int, tasks)
    if room.tasks[which] == 0:
        room.idlers += 1
    if room.groups > 0 and kinds.group[kind] >= 0:
        room.held[which * room.groups + kinds.group[kind]] -= sign * cython.cast(cython.int, tasks)
    room.mark(which)
    room.sort_in(which)


@compiled
def device_change_all(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    pairs: Pairs,
    begin: cython.longlong,
    end: cython.longlong,
    sign: cython.int,
) -> cython.void:
    """Take (-1) or give back (1) the grants in entries ``begin`` to ``end``."""
    stop: cython.longlong
    shares: cython.bint = kinds.part[kind] > 0 and not room.cluster.pooled
    while begin < end:
        stop = begin + 1
        if shares:
            while stop < end and pairs.node[stop] == pairs.node[begin]:
                stop += 1
            device_change_shares(room, kinds, kind, pairs, begin, stop, sign)
        else:
            device_change(room, kinds, kind, pairs.node[begin], pairs.grant[begin], sign)
        begin = stop


@compiled
def device_draft(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    grant: cython.longlong,
    sign: cython.int,
) -> cython.bint:
    """Take (-1) or give back (1) a grant in the devices, cores and memory of a node alone.

    Returns:
        Whether nothing of them is overdrawn now.
    """
    device: cython.int
    first: cython.int = which * room.cluster.each
    tasks: cython.longlong = 1
    held: cython.longlong = 0
    part: cython.int = DEVICE_MILLI
    enough: cython.bint = True
    if room.cluster.pooled:
        if grant > 0:
            tasks = grant // kinds.milli[kind]
            room.devices[first] += sign * cython.cast(cython.int, grant)
            enough = room.devices[first] >= 0
    elif grant != 0:
        if kinds.part[kind] > 0:
            part = cython.cast(cython.int, kinds.part[kind])
        for device in range(room.cluster.gpus[which]):
            if (grant >> device) & 1:
                held += 1
                room.devices[first + device] += sign * part
                if room.devices[first + device] < 0:
                    enough = False
        if kinds.whole[kind] > 0:
            tasks = held // kinds.whole[kind]
    if room.cluster.size_cores[which] >= 0:
        room.cores[which] += sign * tasks * kinds.cores[kind]
    if room.cluster.size_mem[which] >= 0:
        room.mem[which] += sign * tasks * kinds.mem[kind]
    return enough and room.cores[which] >= 0 and room.mem[which] >= 0


@compiled
def device_footprint(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    grant: cython.longlong,
    into: Pairs,
) -> cython.void:
    """Append what a grant takes of a row (`DeviceRoom.store`), as (column, amount) pairs."""
    device: cython.int
    at: cython.int = which * room.width()
    tasks: cython.longlong = 1
    held: cython.longlong = 0
    part: cython.longlong = DEVICE_MILLI
    if room.cluster.pooled:
        if grant > 0:
            tasks = grant // kinds.milli[kind]
            into.add(at, grant)
    elif grant != 0:
        if kinds.part[kind] > 0:
            part = kinds.part[kind]
        for device in range(room.cluster.gpus[which]):
            if (grant >> device) & 1:
                held += 1
                into.add(at + device, part)
        if kinds.whole[kind] > 0:
            tasks = held // kinds.whole[kind]
    at += room.cluster.each
    if room.cluster.size_cores[which] >= 0 and kinds.cores[kind] > 0:
        into.add(at, tasks * kinds.cores[kind])
    if room.cluster.size_mem[which] >= 0 and kinds.mem[kind] > 0:
        into.add(at + 1, tasks * kinds.mem[kind])
    into.add(at + 2, tasks)
    if room.groups > 0 and kinds.group[kind] >= 0:
        into.add(at + 3 + cython.cast(cython.int, kinds.group[kind]), tasks)
