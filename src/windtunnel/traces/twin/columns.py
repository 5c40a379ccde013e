"""The source's jobs as arrays of numbers: names become codes here and go no further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    """Return a jobs table's columns as arrays."""
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
        codes={name: codes for name, (codes, _) in encoded.items()},
        values={name: values for name, (_, values) in encoded.items()},
    )


def _floats(jobs: pa.Table, name: str) -> NDArray[np.float64]:
    return np.array(jobs[name].cast(pa.float64()).to_numpy(), dtype=np.float64)


def _encode(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return codes in order of first appearance, -1 = null, and the values."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
