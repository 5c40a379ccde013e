"""What tasks get on one node with devices, and giving it back, for the kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_scores import copy_left, device_for
from windtunnel.sim.compiled.device_sets import sort_in
from windtunnel.sim.compiled.device_tables import (
    CORES,
    DEVICES,
    FGD,
    FREE,
    GPUS,
    GROUP,
    HELD,
    IDLE,
    IDLERS,
    LEFT,
    MEM,
    PART,
    POOLED,
    RANDOM,
    ROOMIEST,
    SIZE_CORES,
    SIZE_MEM,
    TASKS,
    TOTAL,
    VERSION,
    WANT_CORES,
    WANT_MEM,
    WHOLE,
)
from windtunnel.sim.compiled.nodes import lowest_bit


@njit(cache=True)
def _find_roomiest(node, which):
    largest = np.int64(0)
    for device in range(node[GPUS, which]):
        largest = max(largest, node[DEVICES + device, which])
    node[ROOMIEST, which] = largest


@njit(cache=True)
def change(node, rows, classes, kind, which, grant, sign):
    """Take (-1) or give back (1) one grant of whole or pooled GPUs, or of none, on one node."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    tasks = 1
    if rows[0, POOLED]:
        if grant > 0:
            tasks = grant // (whole * MILLI + part)
            node[DEVICES, which] += sign * grant
            node[TOTAL, which] += sign * grant
            rows[0, FREE] += sign * grant
    elif grant != 0:
        held = 0
        for device in range(node[GPUS, which]):
            if (grant >> device) & 1:
                held += 1
                before = node[DEVICES + device, which]
                after = before + sign * MILLI
                node[DEVICES + device, which] = after
                if before == MILLI:
                    node[IDLE, which] -= 1
                if after == MILLI:
                    node[IDLE, which] += 1
        node[TOTAL, which] += sign * MILLI * held
        rows[0, FREE] += sign * MILLI * held
        _find_roomiest(node, which)
        tasks = held // whole
    _count_tasks(node, rows, classes, kind, which, tasks, sign)


@njit(cache=True)
def change_shares(node, rows, classes, kind, which, gpus, begin, end, sign):
    """Take (-1) or give back (1) the shares in entries ``begin`` to ``end``, all on one node."""
    part = classes[kind, PART]
    idle = 0
    for entry in range(begin, end):
        device = lowest_bit(gpus[entry])
        before = node[DEVICES + device, which]
        after = before + sign * part
        node[DEVICES + device, which] = after
        if before == MILLI:
            idle -= 1
        elif after == MILLI:
            idle += 1
    tasks = end - begin
    node[IDLE, which] += idle
    node[TOTAL, which] += sign * part * tasks
    rows[0, FREE] += sign * part * tasks
    _find_roomiest(node, which)
    _count_tasks(node, rows, classes, kind, which, tasks, sign)


@njit(cache=True)
def _count_tasks(node, rows, classes, kind, which, tasks, sign):
    """Take (-1) or give back (1) what so many tasks on a node ask for besides GPUs."""
    if node[SIZE_CORES, which] >= 0:
        node[CORES, which] += sign * tasks * classes[kind, WANT_CORES]
    if node[SIZE_MEM, which] >= 0:
        node[MEM, which] += sign * tasks * classes[kind, WANT_MEM]
    if node[TASKS, which] == 0:
        rows[0, IDLERS] -= 1
    node[TASKS, which] -= sign * tasks
    if node[TASKS, which] == 0:
        rows[0, IDLERS] += 1
    if classes[kind, GROUP] >= 0:
        node[rows[0, HELD] + classes[kind, GROUP], which] -= sign * tasks
    node[VERSION, which] += 1
    sort_in(node, rows, which)


@njit(cache=True)
def grant(node, rows, classes, kind, placement, which, tasks, first, nodes, gpus, entry):
    """Give so many tasks their devices on a node; return the next free entry."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    if (whole > 0 or part > 0) and (rows[0, POOLED] or part == 0):
        held = 0
        if rows[0, POOLED]:
            held = tasks * (whole * MILLI + part)
        else:
            rest = tasks * whole
            for device in range(node[GPUS, which]):
                if rest > 0 and node[DEVICES + device, which] == MILLI:
                    held |= 1 << device
                    rest -= 1
        nodes[entry] = which
        gpus[entry] = held
        change(node, rows, classes, kind, which, held, -1)
        return entry + 1
    if part == 0:
        for _ in range(tasks):
            nodes[entry] = which
            gpus[entry] = 0
            change(node, rows, classes, kind, which, 0, -1)
            entry += 1
        return entry
    begin = entry
    copy_left(node, rows, which)
    cores = node[CORES, which]
    step = classes[kind, WANT_CORES] if node[SIZE_CORES, which] >= 0 else 0
    device = -1
    for task in range(tasks):
        # The device that has least left and still fits is that for the next task, too.
        if device < 0 or placement in (FGD, RANDOM) or rows[LEFT, device] < part:
            device = device_for(node, rows, classes, kind, placement, which, cores, first + task)
        rows[LEFT, device] -= part
        cores -= step
        nodes[entry] = which
        gpus[entry] = np.int64(1) << device
        entry += 1
    change_shares(node, rows, classes, kind, which, gpus, begin, entry, -1)
    return entry


@njit(cache=True)
def give(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001 - as nodes'
    """Give back what a job of class ``kind`` holds in entries ``begin`` to ``end``."""
    change_all(node, rows, classes, kind, nodes, gpus, begin, end, 1)


@njit(cache=True)
def change_all(node, rows, classes, kind, nodes, gpus, begin, end, sign):
    """Take (-1) or give back (1) the grants in entries ``begin`` to ``end``."""
    shares = classes[kind, PART] > 0 and not rows[0, POOLED]
    entry = begin
    while entry < end:
        which = np.int64(nodes[entry])
        stop = entry + 1
        if shares:
            while stop < end and nodes[stop] == which:
                stop += 1
            change_shares(node, rows, classes, kind, which, gpus, entry, stop, sign)
        else:
            change(node, rows, classes, kind, which, gpus[entry], sign)
        entry = stop
