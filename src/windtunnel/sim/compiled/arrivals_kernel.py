"""The kernel of packing experiments: jobs arrive one by one, nothing departs."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.device_tables import (
    CORES,
    DEVICES,
    GPUS,
    NUM_SHAPES,
    S_ALLOWED,
    S_CORES,
    S_COUNT,
    S_GPUS,
    S_MASKED,
    S_MILLI,
    SHAPES,
    TASKS,
    TOTAL,
)
from windtunnel.sim.compiled.devices import take

#: Causes, in the order of `windtunnel.sim.fragmentation.CAUSES`.
NUM_CAUSES = 7
_Q1, _Q2, _Q3, _Q4, _XL, _XR, _NO_ACCESS = range(NUM_CAUSES)


@njit(cache=True)
def _causes(node, rows, which, causes):
    """Write a node's free GPU milli x tasks of the target workload, by cause."""
    total = node[TOTAL, which]
    devices = node[GPUS, which]
    for cause in range(NUM_CAUSES):
        causes[cause] = 0
    if total == 0:
        return
    for shape in range(SHAPES, SHAPES + rows[0, NUM_SHAPES]):
        count = rows[shape, S_COUNT]
        milli = rows[shape, S_MILLI]
        enough = node[CORES, which] >= rows[shape, S_CORES]
        if milli == 0:
            causes[_XL if enough else _XR] += count * total
            continue
        if rows[shape, S_MASKED] and not (
            (rows[shape, S_ALLOWED + (which >> 6)] >> (which & 63)) & 1
        ):
            causes[_NO_ACCESS] += count * total
            continue
        fitting = 0
        small = 0
        for device in range(devices):
            left = node[DEVICES + device, which]
            if left >= milli:
                fitting += 1
            else:
                small += left
        if fitting < rows[shape, S_GPUS]:
            causes[_Q2 if enough else _Q1] += count * total
        elif not enough:
            causes[_Q4] += count * total
        else:
            causes[_Q2] += count * small
            causes[_Q3] += count * (total - small)


@njit(cache=True)
def fly(node, rows, classes, placement, kinds, most_tasks):
    """Place jobs in order; one that does not fit is dropped.

    Args:
        node: table of the nodes, as `windtunnel.sim.compiled.devices.tables` made it.
        rows: the same, with a target workload.
        classes: the same.
        placement: its code.
        kinds: Int array (jobs,), class of each job, in order of arrival.
        most_tasks: the most tasks of a job.

    Returns:
        placed, Bool (jobs,): whether it found a place; used, Int (jobs,): GPU milli in use after
        it; causes, Int (jobs + 1, 7): free milli by cause before the first and after each; touched,
        Int (jobs, 2): nodes that run anything, and GPUs of these.
    """
    count = len(kinds)
    placed = np.zeros(count, dtype=np.bool_)
    used = np.empty(count, dtype=np.int64)
    causes = np.zeros((count + 1, NUM_CAUSES), dtype=np.int64)
    touched = np.empty((count, 2), dtype=np.int64)
    nodes = np.empty(most_tasks + 1, dtype=np.int32)
    gpus = np.empty(most_tasks + 1, dtype=np.int64)
    by_node = np.zeros((node.shape[1], NUM_CAUSES), dtype=np.int64)
    running = np.zeros(node.shape[1], dtype=np.bool_)
    left = node[TOTAL].copy()
    capacity = left.sum()
    idle = capacity
    num_nodes = 0
    num_gpus = np.int64(0)
    for which in range(node.shape[1]):
        _causes(node, rows, which, by_node[which])
        for cause in range(NUM_CAUSES):
            causes[0, cause] += by_node[which, cause]
    for job in range(count):
        taken = take(node, rows, classes, kinds[job], placement, nodes, gpus, 0)
        placed[job] = taken >= 0
        for cause in range(NUM_CAUSES):
            causes[job + 1, cause] = causes[job, cause]
        for entry in range(max(taken, 0)):
            changed = np.int64(nodes[entry])
            if entry > 0 and nodes[entry - 1] == nodes[entry]:
                continue
            for cause in range(NUM_CAUSES):
                causes[job + 1, cause] -= by_node[changed, cause]
            idle += node[TOTAL, changed] - left[changed]
            left[changed] = node[TOTAL, changed]
            _causes(node, rows, changed, by_node[changed])
            for cause in range(NUM_CAUSES):
                causes[job + 1, cause] += by_node[changed, cause]
            if not running[changed] and node[TASKS, changed] > 0:
                running[changed] = True
                num_nodes += 1
                num_gpus += node[GPUS, changed]
        used[job] = capacity - idle
        touched[job, 0] = num_nodes
        touched[job, 1] = num_gpus
    return placed, used, causes, touched
