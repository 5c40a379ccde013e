"""Which stratum a job belongs to: its workload and the class of its GPU count."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Class codes: 0 no GPU, 1 a fraction of one, then 1, 2, 3-4, 5-8 ... by powers of two.
UNKNOWN = -1
NONE = 0
FRACTION = 1
_ONE = 2
#: What small workloads are put together under.
OTHER = "other"


@dataclass(frozen=True)
class Strata:
    """The strata, and each job's.

    Attributes:
        index: number of each job's stratum, shape (jobs,).
        workload: workload code by stratum: -1 unknown, ``len(workloads)`` the small ones together.
        gpus: class code by stratum.
    """

    index: NDArray[np.int64]
    workload: list[int]
    gpus: list[int]


def size_class(num_gpus: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class of GPU counts, NaN = unknown.

    >>> size_class(np.array([np.nan, 0, 0.5, 1, 1.5, 2, 4, 8, 9])).tolist()
    [-1, 0, 1, 2, 3, 3, 4, 5, 6]
    """
    gpus = np.nan_to_num(num_gpus, nan=1.0)
    power = np.ceil(np.log2(np.maximum(gpus, 1.0))).astype(np.int64)
    code = np.where(gpus <= 0, NONE, np.where(gpus < 1, FRACTION, _ONE + power))
    return np.asarray(np.where(np.isnan(num_gpus), UNKNOWN, code))


def class_name(code: int) -> str:
    """Return a class in words.

    >>> [class_name(code) for code in (-1, 0, 1, 2, 3, 4, 5)]
    ['unknown', '0', '<1', '1', '2', '3-4', '5-8']
    """
    if code < _ONE:
        return {UNKNOWN: "unknown", NONE: "0", FRACTION: "<1"}[code]
    high = 2 ** (code - _ONE)
    return str(high) if high <= 2 else f"{high // 2 + 1}-{high}"  # noqa: PLR2004 - 1 and 2 alone


def strata_of(
    workload: NDArray[np.int64], workloads: int, num_gpus: NDArray[np.float64], min_count: int
) -> Strata:
    """Put every job into a stratum of at least ``min_count`` jobs.

    Small workloads are put together, with the largest one if they are too few even so. Within a
    workload a small class goes to its nearest neighbour.

    Args:
        workload: workload code of each job, -1 = unknown, shape (jobs,).
        num_gpus: GPUs of each job, NaN = unknown, shape (jobs,).
        min_count: smallest stratum; there are at least as many jobs.
    """
    kind = _merged_workloads(workload, workloads, min_count)
    gpus = size_class(num_gpus)
    for code in np.unique(kind).tolist():
        inside = np.flatnonzero(kind == code)
        gpus[inside] = _merged_classes(gpus[inside], min_count)
    pairs = np.stack([kind, gpus])
    unique, index = np.unique(pairs, axis=1, return_inverse=True)
    return Strata(index.reshape(-1), unique[0].tolist(), unique[1].tolist())


def _merged_workloads(
    workload: NDArray[np.int64], workloads: int, min_count: int
) -> NDArray[np.int64]:
    count = np.bincount(workload + 1, minlength=workloads + 2)
    small = (count > 0) & (count < min_count)
    merged = np.where(small[workload + 1], workloads, workload)
    others = int((merged == workloads).sum())
    if 0 < others < min_count:
        merged[merged == workloads] = int(count.argmax()) - 1
    return np.asarray(merged)


def _merged_classes(gpus: NDArray[np.int64], min_count: int) -> NDArray[np.int64]:
    gpus = gpus.copy()
    while True:
        codes, count = np.unique(gpus, return_counts=True)
        if len(codes) == 1 or int(count.min()) >= min_count:
            return gpus
        small = int(count.argmin())
        distance = np.abs(codes - codes[small]).astype(np.float64)
        distance[small] = np.inf
        # Equally near: rather a class that is large already.
        near = np.lexsort((-count, distance))[0]
        gpus[gpus == codes[small]] = codes[near]


def dealt_names(stem: str, count: int, rng: np.random.Generator) -> list[str]:
    """Return ``count`` names ``stem-A``, ``stem-B`` ... in random order.

    >>> sorted(dealt_names("x", 28, np.random.default_rng(0)))[-3:]
    ['x-X', 'x-Y', 'x-Z']
    """
    return [f"{stem}-{_letters(number)}" for number in rng.permutation(count).tolist()]


def _letters(number: int) -> str:
    """Return A ... Z, AA, AB ... for 0, 1 ...

    >>> [_letters(n) for n in (0, 25, 26, 52)]
    ['A', 'Z', 'AA', 'BA']
    """
    letters: Sequence[str] = string.ascii_uppercase
    text = letters[number % 26]
    while number >= 26:  # noqa: PLR2004 - letters of the alphabet
        number = number // 26 - 1
        text = letters[number % 26] + text
    return text
