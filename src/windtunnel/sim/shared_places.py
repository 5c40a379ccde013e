"""GPU time of jobs that share places: each has an equal part while they are there together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import MILLI

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windtunnel.sim.problem import Problem


def gpu_time(
    problem: Problem,
    columns: Mapping[str, np.ndarray],
    shared: Iterable[tuple[int, int]],
    horizon: float,
) -> np.ndarray:
    """Return the GPU-seconds of each job, Float array (m,).

    Args:
        problem: the jobs.
        columns: the kernel's log of stays.
        shared: pairs of a stay and the one whose place it shares, in order of start.
        horizon: where the run was cut, s.
    """
    jobs, begins = columns["stay_job"].tolist(), columns["stay_start"].tolist()
    ends = [horizon if math.isnan(end) else end for end in columns["stay_end"].tolist()]
    place = list(range(len(jobs)))
    changes: dict[int, list[int]] = {}
    for stay, other in shared:
        place[stay] = place[other]
        changes.setdefault(place[stay], [place[stay]]).append(stay)
    found = [0.0] * len(problem.rows)
    units = _units(problem, columns)
    for stay, job in enumerate(jobs):
        members = changes.get(place[stay], [stay])
        began, over = begins[stay], ends[stay]
        times = {began, over}
        for other in members:
            times |= {t for t in (begins[other], ends[other]) if began < t < over}
        since = began
        for time in sorted(times)[1:]:
            among = sum(begins[other] <= since and ends[other] >= time for other in members)
            found[job] += (time - since) * units[place[stay]] / problem.units / among
            since = time
    return np.array(found, dtype=np.float64)


def _units(problem: Problem, columns: Mapping[str, np.ndarray]) -> list[int]:
    """Return the GPU units of each stay's place."""
    grants, first = columns["grants"].tolist(), columns["stay_first"].tolist()
    found = []
    for stay, job in enumerate(columns["stay_job"].tolist()):
        own = grants[first[stay] : first[stay + 1]]
        if problem.devices and not problem.pooled:
            each = problem.demands[problem.demand_of[job]].milli or MILLI
            own = [grant.bit_count() * each for grant in own]
        found.append(sum(own))
    return found
