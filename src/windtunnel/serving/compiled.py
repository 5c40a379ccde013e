"""A placement as the kernels see it: flat arrays of hosts, stages and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.kernel.loading import unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.placement import Placement
    from windtunnel.serving.profile import Profile


def kernels() -> ModuleType:
    """Return the kernels: one module, compiled when windtunnel was installed."""
    return unit("windtunnel.serving", "windtunnel.serving.kernels")


class Tables(NamedTuple):
    """Arrays that describe a placement; see `kernels.immediate.serve_at_once`."""

    host_start: np.ndarray
    hosts: np.ndarray
    pair_first: np.ndarray
    clock_start: np.ndarray
    stage_time: np.ndarray


def tables(
    placement: Placement, models: Sequence[str], profile: Profile, overheads: Overheads
) -> Tables:
    """Return the arrays of a checked placement."""
    stages = np.array([group.parallel.pp for group in placement.groups], dtype=np.int64)
    hosts: list[list[int]] = [[] for _ in models]
    for index, group in enumerate(placement.groups):
        for model in group.models:
            hosts[model].append(index)
    times, first, known = [], [], {}
    total = 0
    for model, hosting in enumerate(hosts):
        for index in hosting:
            key = (models[model], placement.groups[index].parallel)
            if key not in known:
                known[key] = total
                times.append(overheads.stage_times(profile.stages(*key).latency))
                total += len(times[-1])
            first.append(known[key])
    return Tables(
        np.concatenate([[0], np.cumsum([len(groups) for groups in hosts])]).astype(np.int64),
        np.array([group for groups in hosts for group in groups], dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.concatenate([[0], np.cumsum(stages)]).astype(np.int64),
        np.concatenate([np.empty(0), *times]),
    )
