"""Scores of nodes for the kernels: the twin of `windtunnel.placements`' scored placements.

Scores are whole numbers made by the same operations, in the same order, as in plain Python; see
`windtunnel.sim.compiled.device_tables` for the tables.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_tables import (
    BEST_FIT,
    CORES,
    DEVICES,
    DOT_PROD,
    DRAWS,
    FGD,
    FRAGS,
    FRAGS_AT,
    GPU_CLUSTERING,
    GPU_PACKING,
    GPUS,
    GROUP,
    HELD,
    IDLE,
    LEAST_IDLE,
    LEFT,
    LOWEST_UTILIZATION,
    MAX_CORES,
    MAX_MILLI,
    MOST_IDLE,
    NUM_SHAPES,
    OPENB_BEST_FIT,
    PART,
    POOLED,
    RANDOM,
    S_ALLOWED,
    S_CORES,
    S_COUNT,
    S_GPUS,
    S_MASKED,
    S_MILLI,
    SCALE,
    SEED,
    SHAPES,
    SIZE_CORES,
    STEP_COUNT,
    STEPS,
    TOTAL,
    VERSION,
    WANT_CORES,
    WHOLE,
    WORST_FIT,
)

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S33 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(33)


@njit(cache=True)
def _mixed(word):
    word += _GAMMA
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@njit(cache=True)
def draw_bits(rows, purpose):
    """Return 31 random bits; see `windtunnel.placements.draws`."""
    word = _mixed(np.uint64(rows[0, SEED])) + np.uint64(rows[0, DRAWS])
    word = _mixed(_mixed(word) + np.uint64(purpose))
    return np.int64(word >> _S33)


@njit(cache=True)
def _fragments(rows, which, devices, cores):
    """Return a node's fragments x tasks of the target workload.

    The node has ``devices`` devices, their free thousandths in scratch row `LEFT`. Shapes are
    sorted by `S_MILLI`, so that what depends on it alone is counted once for several shapes.
    """
    total = 0
    for device in range(devices):
        total += rows[LEFT, device]
    if total == 0:
        return 0
    found = 0
    counted = -1
    enough = 0
    small = 0
    for shape in range(SHAPES, SHAPES + rows[0, NUM_SHAPES]):
        milli = rows[shape, S_MILLI]
        lost = total
        if milli > 0 and cores >= rows[shape, S_CORES]:
            if milli != counted:
                counted = milli
                enough = 0
                small = 0
                for device in range(devices):
                    left = rows[LEFT, device]
                    if left >= milli:
                        enough += 1
                    else:
                        small += left
            if enough >= rows[shape, S_GPUS] and (
                not rows[shape, S_MASKED]
                or (rows[shape, S_ALLOWED + (which >> 6)] >> (which & 63)) & 1 != 0
            ):
                lost = small
        found += rows[shape, S_COUNT] * lost
    return found


@njit(cache=True)
def _gain_score(rows, gain):
    """Return FGD's score of a gain: how many steps it reaches, or itself."""
    if rows[0, SCALE] > 1:
        return gain
    low, high = 0, STEP_COUNT
    while low < high:
        middle = (low + high) >> 1
        if gain < rows[STEPS, middle]:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def _scored_device(node, rows, classes, kind, which, cores):
    """Return the device of scratch row `LEFT` on which a share fragments least, and its score."""
    devices = node[GPUS, which]
    part = classes[kind, PART]
    before = _fragments(rows, which, devices, cores)
    best = np.int64(0)
    chosen = -1
    for device in range(devices):
        left = rows[LEFT, device]
        if left < part:
            continue
        seen = False
        for earlier in range(device):
            if rows[LEFT, earlier] == left:
                seen = True  # an equal device scores the same, and the first one wins
                break
        if seen:
            continue
        rows[LEFT, device] = left - part
        gain = before - _fragments(rows, which, devices, cores - classes[kind, WANT_CORES])
        rows[LEFT, device] = left
        score = _gain_score(rows, gain)
        if chosen < 0 or score > best:
            best = score
            chosen = device
    return chosen, best


@njit(cache=True)
def device_for(node, rows, classes, kind, placement, which, cores, task):
    """Return the device of scratch row `LEFT` that one task with a share gets."""
    if placement == FGD:
        return _scored_device(node, rows, classes, kind, which, cores)[0]
    devices = node[GPUS, which]
    part = classes[kind, PART]
    if placement == RANDOM:
        fitting = 0
        for device in range(devices):
            if rows[LEFT, device] >= part:
                fitting += 1
        skip = (draw_bits(rows, task) * fitting) >> 31
        for device in range(devices):
            if rows[LEFT, device] >= part:
                if skip == 0:
                    return device
                skip -= 1
    chosen = -1
    for device in range(devices):
        left = rows[LEFT, device]
        if left >= part and (chosen < 0 or left < rows[LEFT, chosen]):
            chosen = device
    return chosen


@njit(cache=True)
def copy_left(node, rows, which):
    """Copy what a node's devices have free to scratch row `LEFT`."""
    for device in range(node[GPUS, which]):
        rows[LEFT, device] = node[DEVICES + device, which]


@njit(cache=True)
def _try(node, rows, classes, kind, placement, which, tasks):
    """Leave in scratch row `LEFT` what the node's devices would have free after so many tasks."""
    copy_left(node, rows, which)
    whole = classes[kind, WHOLE]
    if whole > 0:
        rest = tasks * whole
        for device in range(node[GPUS, which]):
            if rest > 0 and rows[LEFT, device] == MILLI:
                rows[LEFT, device] = 0
                rest -= 1
    elif classes[kind, PART] > 0:
        cores = node[CORES, which]
        step = classes[kind, WANT_CORES] if node[SIZE_CORES, which] >= 0 else 0
        for task in range(tasks):
            device = device_for(node, rows, classes, kind, placement, which, cores, task)
            rows[LEFT, device] -= classes[kind, PART]
            cores -= step


@njit(cache=True)
def _fgd_score(node, rows, classes, kind, which, tasks):
    cores = node[CORES, which]
    if tasks == 1 and classes[kind, PART] > 0:
        copy_left(node, rows, which)
        return _scored_device(node, rows, classes, kind, which, cores)[1]
    if node[FRAGS_AT, which] != node[VERSION, which] + 1:
        copy_left(node, rows, which)
        node[FRAGS, which] = _fragments(rows, which, node[GPUS, which], cores)
        node[FRAGS_AT, which] = node[VERSION, which] + 1
    _try(node, rows, classes, kind, FGD, which, tasks)
    after = _fragments(rows, which, node[GPUS, which], cores - tasks * classes[kind, WANT_CORES])
    return _gain_score(rows, node[FRAGS, which] - after)


@njit(cache=True)
def _packing_score(node, rows, classes, kind, which, tasks):
    if classes[kind, GROUP] < 0:
        return 0
    scale = rows[0, SCALE]
    devices = node[GPUS, which]
    if node[IDLE, which] == devices:
        return max(33 - devices, devices) * scale
    _try(node, rows, classes, kind, GPU_PACKING, which, tasks)
    opened = 0
    percent = 0
    milli = 0
    for device in range(devices):
        left = node[DEVICES + device, which]
        if rows[LEFT, device] != left:
            if left == MILLI:
                opened += 1
            percent += left * 100 // MILLI
            milli += left
    if opened > 0:
        return max(50 - opened, 33) * scale
    part = percent // 10 if scale == 1 else milli * scale // 100
    return max(100 * scale - part, 50 * scale)


@njit(cache=True)
def _clustering_score(node, rows, classes, kind, which):
    group = classes[kind, GROUP]
    if group < 0:
        return 0
    held = rows[0, HELD]
    kinds = 0
    for column in range(held, node.shape[0]):
        if node[column, which] > 0:
            kinds += 1
    base = 0 if kinds > 0 else 25
    if node[held + group, which] > 0:
        base = 75 if kinds == 1 else 50
    scale = rows[0, SCALE]
    used = rows[0, MAX_MILLI] - node[TOTAL, which]
    return 25 * used * scale // rows[0, MAX_MILLI] + base * scale


@njit(cache=True)
def _utilization_score(node, rows, which):
    gpus = 0.0
    cores = 0.0
    total = node[GPUS, which] * MILLI
    if total > 0:
        gpus = (total - node[TOTAL, which]) / total
    if node[SIZE_CORES, which] > 0:
        cores = (node[SIZE_CORES, which] - node[CORES, which]) / node[SIZE_CORES, which]
    use = 100 * (gpus + cores)
    if total > 0 and node[SIZE_CORES, which] > 0:
        use = use / 2
    scale = rows[0, SCALE]
    if scale == 1:
        return -np.int64(np.rint(use))
    return -np.int64(math.floor(use * scale))


@njit(cache=True)
def _leftover_score(node, rows, classes, kind, placement, which, tasks):
    """Score of `OPENB_BEST_FIT` and `DOT_PROD`."""
    free = node[TOTAL, which]
    want = tasks * (classes[kind, WHOLE] * MILLI + classes[kind, PART])
    cores = tasks * classes[kind, WANT_CORES]
    most_cores = rows[0, MAX_CORES]
    most_milli = rows[0, MAX_MILLI]
    value = 0.0
    if placement == OPENB_BEST_FIT:
        if node[SIZE_CORES, which] >= 0:
            value += (node[CORES, which] - cores) / most_cores * 0.5
        value += (free - want) / most_milli * 0.5
    else:
        if node[SIZE_CORES, which] >= 0:
            value += node[CORES, which] / most_cores * (cores / most_cores)
        value += free / most_milli * (want / most_milli)
        value = value / 2
    return np.int64(math.floor((1.0 - value) * 100 * rows[0, SCALE]))


@njit(cache=True)
def score_of(node, rows, classes, kind, placement, which, tasks):
    """Return the score of a node that has room for so many tasks."""
    if placement == FGD:
        return _fgd_score(node, rows, classes, kind, which, tasks)
    if placement == GPU_PACKING:
        return _packing_score(node, rows, classes, kind, which, tasks)
    if placement == GPU_CLUSTERING:
        return _clustering_score(node, rows, classes, kind, which)
    if placement in (OPENB_BEST_FIT, DOT_PROD):
        return _leftover_score(node, rows, classes, kind, placement, which, tasks)
    if placement == LOWEST_UTILIZATION:
        return _utilization_score(node, rows, which)
    if placement == BEST_FIT:
        return -node[TOTAL, which]
    if placement == WORST_FIT:
        return node[TOTAL, which]
    if placement in (LEAST_IDLE, MOST_IDLE):
        idle = node[TOTAL, which] if rows[0, POOLED] else node[IDLE, which]
        return idle if placement == MOST_IDLE else -idle
    return 0
