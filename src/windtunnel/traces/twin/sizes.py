"""`Sizes`: GPU counts and gang sizes that many jobs share; the rare ones only as means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.traces.twin.bins import rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """GPU counts and gang sizes of a stratum.

    Attributes:
        jobs: jobs of each, shape (sizes,).
        num_tasks: gang size, 0 = unknown, shape (sizes,).
        num_gpus: GPUs of the gang, shape (sizes,); empty where unknown in the whole stratum.
    """

    jobs: list[int]
    num_tasks: list[int]
    num_gpus: list[float] = msgspec.field(default_factory=list)

    def fault(self) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if not self.jobs or len(self.num_tasks) != len(self.jobs):
            return "one gang size for each number of jobs, and at least one"
        if self.num_gpus and len(self.num_gpus) != len(self.jobs):
            return "one number of GPUs for each number of jobs"
        if min(self.jobs) < 1 or not all(0 <= tasks < 2**31 for tasks in self.num_tasks):
            return "at least one job, and gang sizes >= 0"
        return "" if all(0 <= g < math.inf for g in self.num_gpus) else "numbers of GPUs >= 0"


def fit_sizes(
    num_gpus: NDArray[np.float64],
    num_tasks: NDArray[np.int64],
    *,
    min_count: int,
    bins: int,
) -> Sizes:
    """Return the GPU counts and gang sizes of a stratum.

    What ``min_count`` jobs share is published as it is. The others are put together in order of
    size, at least ``min_count`` at a time; if there are fewer, with the nearest published size.

    Args:
        num_gpus: GPUs of each job, NaN = unknown, shape (jobs,); at least ``min_count`` jobs.
        num_tasks: gang size of each job, 0 = unknown, shape (jobs,).
        min_count: smallest number published.
    """
    known = np.isfinite(num_gpus)
    if int(known.sum()) < min_count:
        return Sizes([len(num_gpus)], [_common_gang(num_tasks, min_count)])
    gpus, tasks = num_gpus[known], num_tasks[known]
    pairs, code, count = np.unique(
        np.stack([gpus, tasks]), axis=1, return_inverse=True, return_counts=True
    )
    common = np.flatnonzero(count >= min_count).tolist()
    jobs_of = {(float(pairs[0, n]), int(pairs[1, n])): int(count[n]) for n in common}
    rare = np.flatnonzero(count[code.reshape(-1)] < min_count)
    rare = rare[np.lexsort((tasks[rare], gpus[rare]))]
    if 0 < len(rare) < min_count:
        jobs_of[_nearest(list(jobs_of), float(gpus[rare].mean()))] += len(rare)
    elif len(rare):
        for part in np.array_split(rare, min(len(rare) // min_count, bins)):
            size = _typical(gpus[part], tasks[part], min_count)
            jobs_of[size] = jobs_of.get(size, 0) + len(part)
    if 0 < int((~known).sum()) < min_count:  # counted with the most frequent
        jobs_of[max(jobs_of, key=lambda size: jobs_of[size])] += int((~known).sum())
    order = sorted(jobs_of)
    return Sizes([jobs_of[size] for size in order], [t for _, t in order], [g for g, _ in order])


def _common_gang(tasks: NDArray[np.int64], min_count: int) -> int:
    """Return the most frequent gang size, 0 (unknown) where too few jobs share it."""
    value, count = np.unique(tasks, return_counts=True)
    return int(value[count.argmax()]) if int(count.max()) >= min_count else 0


def _nearest(sizes: list[tuple[float, int]], gpus: float) -> tuple[float, int]:
    """Return the size nearest in ratio."""
    tiny = 1e-3  # a job may have no GPU
    return min(sizes, key=lambda size: abs(math.log((size[0] + tiny) / (gpus + tiny))))


def _typical(
    gpus: NDArray[np.float64], tasks: NDArray[np.int64], min_count: int
) -> tuple[float, int]:
    """Return a size for several: about the mean, and one that a cluster can place.

    Whole GPUs stay a multiple of what all have in common, and each task of a gang gets equal whole
    GPUs where that holds for all.
    """
    mean = float(gpus.mean())
    gangs = tasks[tasks > 0]
    gang = max(round(float(gangs.mean())), 1) if len(gangs) >= min_count else 0
    if not np.all(gpus == np.rint(gpus)):
        return rounded(mean), gang
    unit = int(np.gcd.reduce(gpus.astype(np.int64)))
    if gang == 0:
        return float(max(round(mean / max(unit, 1)), 1) * unit), 0
    known = tasks > 0
    each = gpus[known] / tasks[known]
    if not np.all(each == np.rint(each)):
        return float(max(round(mean / max(unit, 1)), 1) * unit), gang
    share = round(float(each[0])) if np.all(each == each[0]) else max(round(mean / gang), 1)
    if share == 0:
        return 0.0, gang
    gang = max(round(mean / share), 1)
    return float(gang * share), gang
