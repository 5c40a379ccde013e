"""Scores of nodes with devices: what `windtunnel.placements`' scored placements say, in C.

Scores are whole numbers made by the same operations, in the same order, as in plain Python.
"""

from __future__ import annotations

from typing import Any

import cython

from windtunnel.kernel.device_cluster import DEVICE_MILLI
from windtunnel.kernel.device_picks import (
    device_copy_left,
    device_fragments,
    device_gain_score,
    device_scored,
    device_try,
)
from windtunnel.kernel.device_scoring import (
    BY_ASKED,
    BY_BEST_FIT,
    BY_DOT_PROD,
    BY_FGD,
    BY_GPU_CLUSTERING,
    BY_GPU_PACKING,
    BY_LEAST_IDLE,
    BY_LOAD_RATE,
    BY_LOWEST_UTILIZATION,
    BY_MOST_IDLE,
    BY_OPENB_BEST_FIT,
    BY_WORST_FIT,
    DeviceScoring,
)
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.device_state import DeviceState
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.rounding import half_even


@compiled
def device_floor(value: cython.double) -> cython.longlong:
    """Return a number rounded down."""
    whole: cython.longlong = cython.cast(cython.longlong, value)
    return whole - 1 if whole > value else whole


@compiled
def device_fgd_score(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return how many fewer fragments a node has after so many tasks, as a score."""
    cores: cython.longlong = search.state.cores[which]
    if tasks == 1 and search.kinds.part[kind] > 0:
        device_copy_left(search.state, which)
        return device_scored(search, kind, which, cores, True)
    if search.scoring.frags_at[which] != search.state.stamp[which]:
        device_copy_left(search.state, which)
        search.scoring.frags[which] = device_fragments(search.state, search.scoring, which, cores)
        search.scoring.frags_at[which] = search.state.stamp[which]
    device_try(search, kind, which, tasks)
    after = device_fragments(
        search.state, search.scoring, which, cores - tasks * search.kinds.cores[kind]
    )
    return device_gain_score(search.scoring, search.scoring.frags[which] - after)


@compiled
def device_packing_score(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return a score of 50 to 100 for used GPUs, 33 to 50 for a used node, up to 33 else."""
    devices: cython.longlong = cython.cast(cython.longlong, search.state.cluster.gpus[which])
    scale: cython.longlong = search.scoring.scale
    opened: cython.longlong = 0
    percent: cython.longlong = 0
    milli: cython.longlong = 0
    if search.kinds.group[kind] < 0:
        return 0
    if search.state.idle[which] == devices:
        return max(33 - devices, devices) * scale
    device_try(search, kind, which, tasks)
    for device in range(search.state.cluster.gpus[which]):
        left = cython.cast(
            cython.longlong, search.state.devices[which * search.state.cluster.each + device]
        )
        if search.state.left[device] != left:
            if left == DEVICE_MILLI:
                opened += 1
            percent += left * 100 // DEVICE_MILLI
            milli += left
    if opened > 0:
        return max(50 - opened, cython.cast(cython.longlong, 33)) * scale
    part = percent // 10 if scale == 1 else milli * scale // 100
    return max(100 * scale - part, 50 * scale)


@compiled
def device_clustering_score(
    search: DeviceSearch, kind: cython.int, which: cython.int
) -> cython.longlong:
    """Return 75, 50, 25 or 0 by what runs on a node, and up to 25 for how full it is."""
    base: cython.longlong
    found: cython.int = 0
    first: cython.int = which * search.state.groups
    most: cython.longlong = search.state.cluster.max_milli
    if search.kinds.group[kind] < 0:
        return 0
    for at in range(first, first + search.state.groups):
        if search.state.held[at] > 0:
            found += 1
    base = 0 if found > 0 else 25
    if search.state.held[first + search.kinds.group[kind]] > 0:
        base = 75 if found == 1 else 50
    used = most - cython.cast(cython.longlong, search.state.total[which])
    return 25 * used * search.scoring.scale // most + base * search.scoring.scale


@compiled
def device_utilization_score(
    state: DeviceState, scoring: DeviceScoring, which: cython.int
) -> cython.longlong:
    """Return the mean share of GPUs and cores in use, in percent, negated."""
    gpus: cython.double = 0.0
    cores: cython.double = 0.0
    total: cython.longlong = cython.cast(cython.longlong, state.cluster.gpus[which]) * DEVICE_MILLI
    size: cython.longlong = state.cluster.size_cores[which]
    if total > 0:
        gpus = cython.cast(cython.double, total - state.total[which]) / total
    if size > 0:
        cores = cython.cast(cython.double, size - state.cores[which]) / size
    use = 100 * (gpus + cores)
    if total > 0 and size > 0:
        use = use / 2
    if scoring.scale > 1:
        return -device_floor(use * scoring.scale)
    return -half_even(use)


@compiled
def device_load_score(
    state: DeviceState, scoring: DeviceScoring, which: cython.int
) -> cython.longlong:
    """Return what the weighted rate of allocation leaves of 100."""
    value: cython.double = 0.0
    weight: cython.longlong = 0
    rate: cython.double = 0.0
    total: cython.longlong = cython.cast(cython.longlong, state.cluster.gpus[which]) * DEVICE_MILLI
    cores: cython.longlong = state.cluster.size_cores[which]
    mem: cython.longlong = state.cluster.size_mem[which]
    if total > 0:
        value += scoring.w_gpus * (cython.cast(cython.double, total - state.total[which]) / total)
        weight += scoring.w_gpus
    if cores > 0:
        value += scoring.w_cores * (cython.cast(cython.double, cores - state.cores[which]) / cores)
        weight += scoring.w_cores
    if mem > 0:
        value += scoring.w_mem * (cython.cast(cython.double, mem - state.mem[which]) / mem)
        weight += scoring.w_mem
    if weight > 0:
        rate = value / weight
    return device_floor((1.0 - rate) * 100 * scoring.scale)


@compiled
def device_leftover_score(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return the score of what is left over after placing, or of the dot product."""
    free: cython.double = search.state.total[which]
    want: cython.double = tasks * search.kinds.milli[kind]
    cores: cython.double = tasks * search.kinds.cores[kind]
    most_cores: cython.double = search.state.cluster.max_cores
    most_milli: cython.double = search.state.cluster.max_milli
    is_limited: cython.bint = search.state.cluster.size_cores[which] >= 0
    value: cython.double = 0.0
    if search.scoring.code == BY_OPENB_BEST_FIT:
        if is_limited:
            value += (search.state.cores[which] - cores) / most_cores * 0.5
        value += (free - want) / most_milli * 0.5
    else:
        if is_limited:
            value += search.state.cores[which] / most_cores * (cores / most_cores)
        value += free / most_milli * (want / most_milli)
        value = value / 2
    return device_floor((1.0 - value) * 100 * search.scoring.scale)


@cython.cfunc
def device_asked(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return what a placement of the user's own says of a node; 0 after it has raised something."""
    device: cython.int
    first: cython.longlong = cython.cast(cython.longlong, which) * search.state.cluster.each
    devices: list = []
    for device in range(min(search.state.cluster.gpus[which], search.state.cluster.each)):
        devices.append(search.state.devices[first + device])
    about = (
        which, devices, search.state.cores[which], search.state.mem[which],
        search.state.tasks[which], tasks,
        search.kinds.milli[kind], search.kinds.cores[kind], search.kinds.mem[kind],
    )  # fmt: skip
    score: Any = search.scoring.raised.call(search.scoring.ask, about)
    return 0 if score is None else score


@compiled
def device_score(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return the score of a node that so many tasks fit: the higher the better."""
    asked: cython.longlong
    idle: cython.longlong
    if search.scoring.code == BY_ASKED:
        with cython.gil:
            asked = device_asked(search, kind, which, tasks)
        return asked
    if search.scoring.code == BY_FGD:
        return device_fgd_score(search, kind, which, tasks)
    if search.scoring.code == BY_GPU_PACKING:
        return device_packing_score(search, kind, which, tasks)
    if search.scoring.code == BY_GPU_CLUSTERING:
        return device_clustering_score(search, kind, which)
    if search.scoring.code in (BY_OPENB_BEST_FIT, BY_DOT_PROD):
        return device_leftover_score(search, kind, which, tasks)
    if search.scoring.code == BY_LOWEST_UTILIZATION:
        return device_utilization_score(search.state, search.scoring, which)
    if search.scoring.code == BY_LOAD_RATE:
        return device_load_score(search.state, search.scoring, which)
    if search.scoring.code == BY_BEST_FIT:
        return -search.state.total[which]
    if search.scoring.code == BY_WORST_FIT:
        return search.state.total[which]
    if search.scoring.code in (BY_LEAST_IDLE, BY_MOST_IDLE):
        idle = (
            search.state.total[which] if search.state.cluster.pooled else search.state.idle[which]
        )
        return idle if search.scoring.code == BY_MOST_IDLE else -idle
    return 0


@compiled
def device_known_score(
    search: DeviceSearch, kind: cython.int, which: cython.int
) -> cython.longlong:
    """Return the score for the kind's chunk of tasks, found anew only where the node changed."""
    if search.scoring.classes == 0:
        return device_score(search, kind, which, search.kinds.chunk[kind])
    at = search.kinds.scored[kind] * search.scoring.nodes + which
    if search.scoring.kept_at[at] != search.state.stamp[which]:
        search.scoring.kept[at] = device_score(search, kind, which, search.kinds.chunk[kind])
        search.scoring.kept_at[at] = search.state.stamp[which]
    return search.scoring.kept[at]
