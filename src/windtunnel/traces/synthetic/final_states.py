"""Final states whose jobs by size and whose GPU seconds are the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder, onto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.size_facts import SizeStatus

#: Powers of GPU time by which the odds of a final state may rise, and how finely they are searched.
_TILTS = (-3.0, 4.0)
_BISECTIONS = 24


def states_by_size(
    facts: SizeStatus,
    gpus: NDArray[np.int64],
    duration: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return each job's final state as an index into ``facts.names``, shape (jobs,).

    The jobs of each state are exact in every class of sizes (largest remainder). Within a class
    each state but the most frequent is drawn with odds that rise with a power of the GPU time, one
    for all classes: the one that brings the state's GPU time nearest to the published share.

    Args:
        facts: jobs by state and size, GPU seconds by state.
        gpus: GPUs of each job, shape (jobs,).
        duration: run time of each job, s, shape (jobs,).
    """
    names = facts.names
    order = sorted(range(len(names)), key=lambda i: sum(e.jobs[names[i]] for e in facts.by_gpus))
    weight = (gpus * duration).astype(np.float64)
    total = float(sum(facts.gpu_time.values()))
    logs, noise = np.log1p(weight), rng.gumbel(size=len(gpus))
    left = _classes(facts, gpus)
    counts = [
        largest_remainder([entry.jobs[name] for name in names], len(members))
        for entry, members in zip(facts.by_gpus, left, strict=True)
    ]
    state = np.full(len(gpus), order[-1], dtype=np.int64)
    for code in order[:-1]:
        wanted = facts.gpu_time[names[code]] / total * float(weight.sum())
        low, high = _TILTS
        best, miss = [], np.inf
        for _ in range(_BISECTIONS):
            tilt = (low + high) / 2.0
            key = tilt * logs + noise
            chosen = [
                _top(key, members, int(n[code])) for members, n in zip(left, counts, strict=True)
            ]
            reached = sum(float(weight[c].sum()) for c in chosen)
            if abs(reached - wanted) < miss:
                best, miss = chosen, abs(reached - wanted)
            low, high = (tilt, high) if reached < wanted else (low, tilt)
        for chosen_here in best:
            state[chosen_here] = code
        left = [members[state[members] != code] for members in left]
    return state


def _classes(facts: SizeStatus, gpus: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the jobs of each class of sizes: a job is in the first one that it fits."""
    free = np.ones(len(gpus), dtype=bool)
    classes = []
    for entry in facts.by_gpus:
        low, high = entry.gpus
        inside = free & (gpus >= low) & (gpus <= high)
        free &= ~inside
        classes.append(np.flatnonzero(inside))
    return classes


def _top(key: NDArray[np.float64], members: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the ``count`` members with the largest keys."""
    if count == 0:
        return members[:0]
    if count == len(members):
        return members
    return members[np.argpartition(-key[members], count - 1)[:count]]


def balance(
    facts: SizeStatus,
    state: NDArray[np.int64],
    gpus: NDArray[np.int64],
    duration: NDArray[np.int64],
    bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return run times with which every state's GPU time is exactly the published one.

    Seconds pass from the jobs with one GPU in one state to those in another, within the bounds of
    each: jobs by run time, and GPU time by size, stay what they are.

    Args:
        facts: GPU seconds by state.
        state: each job's state, shape (jobs,).
        gpus: GPUs of each job, shape (jobs,).
        duration: run time of each job, s, shape (jobs,); GPU time in total is the published one.
        bounds: smallest and largest run time of each job.
    """
    low, high = bounds
    result = duration.copy()
    for code, name in enumerate(facts.names):
        mine = state == code
        lacking = facts.gpu_time[name] - int(duration[mine] @ gpus[mine])
        single = np.flatnonzero(mine & (gpus == 1))
        if len(single) == 0:
            continue
        wanted = int(duration[single].sum()) + lacking
        result[single] = onto(duration[single], low[single], high[single], wanted)
    return result
