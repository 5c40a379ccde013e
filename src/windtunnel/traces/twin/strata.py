"""Which stratum a job belongs to: its workload and the class of its GPU count."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError

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


@dataclass(frozen=True)
class Columns:
    """Jobs as arrays of shape (jobs,), NaN = unknown, code -1 = unknown.

    Attributes:
        submit: s since the epoch.
        wait: start - submit, s.
        duration: run time, s; end - start where only those are known.
        has: which of submit, start, end and duration the source knows, as bits 1, 2, 4, 8.
        estimate: s.
        num_gpus: GPUs.
        num_tasks: gang size, 0 = unknown.
        num_cpus: cores.
        mem_gib: GiB.
        priority: larger is more urgent.
        restore_time: s that a stopped job needs to go on.
        codes: code of the value by column of text.
        values: values by column of text, in order of their codes.
    """

    submit: NDArray[np.float64]
    wait: NDArray[np.float64]
    duration: NDArray[np.float64]
    has: NDArray[np.int64]
    estimate: NDArray[np.float64]
    num_gpus: NDArray[np.float64]
    num_tasks: NDArray[np.int64]
    num_cpus: NDArray[np.float64]
    mem_gib: NDArray[np.float64]
    priority: NDArray[np.float64]
    restore_time: NDArray[np.float64]
    codes: dict[str, NDArray[np.int64]]
    values: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def gpu_time(self) -> NDArray[np.float64]:
        """GPU seconds, 0 where size or duration is unknown."""
        known = self.num_gpus * np.where(self.has & 8, self.duration, np.nan)
        return np.asarray(np.nan_to_num(known, nan=0.0))


def columns_of(jobs: pa.Table) -> Columns:
    """Return a jobs table's columns as arrays.

    Raises:
        SpecError: a further column holds what is no number of seconds.
    """
    submit, start, end, own = (
        _floats(jobs, name) for name in ("submit_time", "start_time", "end_time", "duration")
    )
    duration = np.where(np.isnan(own), np.maximum(end - start, 0.0), own)
    has = np.zeros(len(submit), dtype=np.int64)
    for bit, values in enumerate((submit, start, end, own)):
        has += np.isfinite(values).astype(np.int64) << bit
    texts = ("status", "user", "vc", "workload", "template", "gpu_type")
    encoded = {name: _encode(jobs[name]) for name in texts}
    return Columns(
        submit=submit,
        wait=start - submit,
        duration=duration,
        has=has,
        estimate=_floats(jobs, "estimate"),
        num_gpus=_floats(jobs, "num_gpus"),
        num_tasks=np.nan_to_num(_floats(jobs, "num_tasks"), nan=0.0).astype(np.int64),
        num_cpus=_floats(jobs, "num_cpus"),
        mem_gib=_floats(jobs, "mem_gib"),
        priority=_floats(jobs, "priority"),
        restore_time=_restore_times(jobs),
        codes={name: codes for name, (codes, _) in encoded.items()},
        values={name: values for name, (_, values) in encoded.items()},
    )


def _floats(jobs: pa.Table, name: str) -> NDArray[np.float64]:
    return np.array(jobs[name].cast(pa.float64()).to_numpy(), dtype=np.float64)


def _restore_times(jobs: pa.Table) -> NDArray[np.float64]:
    """Return what each job needs to go on, s: no column of the schema, and so checked here."""
    if "restore_time" not in jobs.column_names:
        return np.full(len(jobs), np.nan)
    try:
        found = _floats(jobs, "restore_time")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpecError("restore_time", f"expected seconds >= 0, or none: {error}") from None
    wrong = (found < 0) | np.isinf(found)
    if wrong.any():
        row = int(wrong.argmax())
        message = f"found {found[row]:g} in row {row + 1:,}; expected seconds >= 0, or none."
        raise SpecError("restore_time", message)
    return found


def _encode(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return codes in order of first appearance, -1 = null, and the values."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
