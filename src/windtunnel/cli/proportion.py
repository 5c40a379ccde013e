"""Numbers that no cluster has: refused before anything is computed from them.

The schema knows no largest number, as a table is a table. What describes, draws or flies one counts
GPUs and GPU-seconds in whole numbers, and none of these would fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

#: 31,700 years: who has longer times has milliseconds or less.
MAX_SECONDS = 1e12
#: GPUs or cores of a job.
MAX_COUNT = 2**31 - 1
#: GPU- or core-seconds of all jobs: up to here float64 counts single ones.
MAX_WORK = 2**53
_TIMES = ("submit_time", "start_time", "end_time", "duration", "estimate")
_SOURCES = ("source_duration", "source_queue")


def refuse_out_of_proportion(jobs: pa.Table) -> None:
    """Check that times, counts and sums of a jobs table are such as clusters have.

    Args:
        jobs: a jobs table (`windtunnel.schema`).

    Raises:
        SchemaError: some are not; lists all of them, each with its first job.
    """
    import numpy as np

    from windtunnel.errors import SchemaError, Violation, quote
    from windtunnel.schema import source_of

    found = []

    def check(name: str, values: np.ndarray, largest: float, what: str) -> None:
        far = np.isfinite(values) & (np.abs(values) > largest)
        if far.any():
            row = int(far.argmax())
            rule = f"at most {largest:,.0f} {what}; job {quote(jobs['job_id'][row].as_py())} has "
            rule += f"{values[row]:g}"
            found.append(Violation(name, rule, int(far.sum())))

    for name in (*_TIMES, *_SOURCES):
        check(name, _floats(jobs, name), MAX_SECONDS, "s (milliseconds are no seconds)")
    for name in ("num_gpus", "num_cpus"):
        check(name, _floats(jobs, name), MAX_COUNT, "of them")
    for name, length in (
        ("num_gpus", "duration"),
        ("num_gpus", "source_duration"),
        ("num_cpus", "duration"),
    ):
        with np.errstate(over="ignore"):
            work = np.abs(_floats(jobs, name) * _floats(jobs, length))
        if not found and np.nansum(work[np.isfinite(work)]) > MAX_WORK:
            row = int(np.nanargmax(work))
            rule = f"that times {length} all jobs together have at most {MAX_WORK:,} s of them; "
            rule += f"job {quote(jobs['job_id'][row].as_py())} alone has {work[row]:g}"
            found.append(Violation(name, rule))
    if found:
        raise SchemaError(source_of(jobs), found)


def _floats(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a column of numbers as float64, NaN = unknown; all NaN where there is no such."""
    import numpy as np
    import pyarrow as pa

    if name not in jobs.column_names:
        return np.full(jobs.num_rows, np.nan)
    kind = jobs.schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(jobs.num_rows, np.nan)
    values = jobs[name].cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(), dtype=np.float64)
