"""Which device of a node a share of a GPU gets, and how much of what is left is fragments then."""

from __future__ import annotations

import cython

from windtunnel.kernel.device_cluster import DEVICE_MILLI
from windtunnel.kernel.device_scoring import BY_FGD, BY_RANDOM, DeviceScoring
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.device_state import DeviceState
from windtunnel.kernel.marks import compiled


@compiled
def device_fragments(
    state: DeviceState, scoring: DeviceScoring, which: cython.int, cores: cython.longlong
) -> cython.longlong:
    """Return a node's fragments x tasks of the target workload.

    Its devices have in ``state.left`` what is free. Shapes are sorted by their thousandths, so that
    what depends on these alone is counted once for several shapes.
    """
    devices: cython.int = state.cluster.gpus[which]
    total: cython.longlong = 0
    found: cython.longlong = 0
    counted: cython.longlong = -1
    enough: cython.longlong = 0
    small: cython.longlong = 0
    for device in range(devices):
        total += state.left[device]
    if total == 0:
        return 0
    for shape in range(scoring.shapes):
        milli = scoring.shape_milli[shape]
        lost = total
        if milli > 0 and cores >= scoring.shape_cores[shape]:
            if milli != counted:
                counted = milli
                enough = 0
                small = 0
                for device in range(devices):
                    if state.left[device] >= milli:
                        enough += 1
                    else:
                        small += state.left[device]
            mask = scoring.shape_mask[shape]
            if enough >= scoring.shape_gpus[shape] and (mask < 0 or scoring.sets.has(mask, which)):
                lost = small
        found += scoring.shape_count[shape] * lost
    return found


@compiled
def device_gain_score(scoring: DeviceScoring, gain: cython.longlong) -> cython.longlong:
    """Return FGD's score of a gain: how many steps it reaches, or itself."""
    low: cython.int = 0
    high: cython.int = cython.cast(cython.int, scoring.steps.shape[0])
    if scoring.scale > 1:
        return gain
    while low < high:
        middle = (low + high) >> 1
        if gain < scoring.steps[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def device_scored(
    search: DeviceSearch, kind: cython.int, which: cython.int, cores: cython.longlong,
    wants_score: cython.bint,
) -> cython.longlong:  # fmt: skip
    """Return the device of ``state.left`` on which a share fragments least, or its score."""
    part: cython.int = cython.cast(cython.int, search.kinds.part[kind])
    before: cython.longlong = device_fragments(search.state, search.scoring, which, cores)
    best: cython.longlong = 0
    chosen: cython.int = -1
    for device in range(search.state.cluster.gpus[which]):
        left = search.state.left[device]
        if left < part:
            continue
        seen = False
        for earlier in range(device):
            if search.state.left[earlier] == left:
                seen = True  # an equal device scores the same, and the first one wins
                break
        if seen:
            continue
        search.state.left[device] = left - part
        score = before - device_fragments(
            search.state, search.scoring, which, cores - search.kinds.cores[kind]
        )
        search.state.left[device] = left
        score = device_gain_score(search.scoring, score)
        if chosen < 0 or score > best:
            best = score
            chosen = device
    return best if wants_score else chosen


@compiled
def device_for(
    search: DeviceSearch, kind: cython.int, which: cython.int, cores: cython.longlong,
    task: cython.longlong,
) -> cython.int:  # fmt: skip
    """Return the device of ``state.left`` that one task with a share gets; -1 if none suffices."""
    fitting: cython.longlong = 0
    chosen: cython.int = -1
    devices: cython.int = search.state.cluster.gpus[which]
    part: cython.int = cython.cast(cython.int, search.kinds.part[kind])
    if search.scoring.code == BY_FGD:
        return cython.cast(cython.int, device_scored(search, kind, which, cores, False))
    if search.scoring.code == BY_RANDOM:
        for device in range(devices):
            if search.state.left[device] >= part:
                fitting += 1
        skip = (search.scoring.draw_for(task) * fitting) >> 31
        for device in range(devices):
            if search.state.left[device] >= part:
                if skip == 0:
                    return device
                skip -= 1
        return -1
    for device in range(devices):
        if search.state.left[device] >= part and (
            chosen < 0 or search.state.left[device] < search.state.left[chosen]
        ):
            chosen = device
    return chosen


@compiled
def device_copy_left(state: DeviceState, which: cython.int) -> cython.void:
    """Copy what a node's devices have free to ``state.left``."""
    first: cython.int = which * state.cluster.each
    for device in range(state.cluster.gpus[which]):
        state.left[device] = state.devices[first + device]


@compiled
def device_try(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.void:
    """Leave in ``state.left`` what a node's devices would have free after so many tasks."""
    cores: cython.longlong = search.state.cores[which]
    rest: cython.longlong = tasks * search.kinds.whole[kind]
    device_copy_left(search.state, which)
    if rest > 0:
        for device in range(search.state.cluster.gpus[which]):
            if rest > 0 and search.state.left[device] == DEVICE_MILLI:
                search.state.left[device] = 0
                rest -= 1
    elif search.kinds.part[kind] > 0:
        for task in range(tasks):
            device = device_for(search, kind, which, cores, task)
            search.state.left[device] -= cython.cast(cython.int, search.kinds.part[kind])
            if search.state.cluster.size_cores[which] >= 0:
                cores -= search.kinds.cores[kind]
