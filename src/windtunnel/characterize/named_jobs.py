"""Which job does a sample mean by the name that it gives? Slurm's telemetry knows raw ids alone.

An exporter labels samples with the id under which Slurm runs a job: of a task ``17_3`` of an array
that is the task's raw id, and a job that was requeued has one id for all its runs, which are
records of their own here (``7``, ``7#2``). So a name stands for the job that had it and ran when
the sample was taken.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.companions import SAMPLE_COLUMNS

#: The column of a jobs table with the ids under which a scheduler runs jobs.
RAW_ID = "job_id_raw"
_AGAIN = "#"


def with_jobs_named(samples: Any, jobs: pa.Table) -> Any:
    """Return samples with the jobs of a table in place of the names that stand for them.

    A name that stands for no job of the table at that time is kept as it is.

    Args:
        samples: Ibis table of samples (`windtunnel.companions.SAMPLE_COLUMNS`), its times in the
            trace's time.
        jobs: a jobs table (`windtunnel.schema`); ``job_id_raw`` counts where it has it.

    Returns:
        Ibis table of the same columns and rows; samples stream through.
    """
    import ibis

    spans = _spans(jobs)
    if not spans.num_rows:
        return samples
    known = ibis.memtable(spans)
    during = [
        samples.job_id == known.name,
        samples.time >= known.begin,
        samples.time < known.finish,
    ]
    joined = samples.left_join(known, during)
    meant = joined.job.fill_null(joined.job_id)
    names = [column.name for column in SAMPLE_COLUMNS]
    return joined.mutate(meant=meant).drop("job_id").rename(job_id="meant").select(*names)


def _spans(jobs: pa.Table) -> pa.Table:
    """Return the names that are no job's id, or several runs': ``name begin finish job``.

    The spans of one name do not overlap, so that no sample counts twice: a later start ends the
    one before it. A raw id that several jobs share, as those of an array that waits, tells none.
    """
    ids = jobs["job_id"].to_pylist()
    raw = jobs[RAW_ID].to_pylist() if RAW_ID in jobs.column_names else [None] * len(ids)
    start, end, duration = (
        np.asarray(jobs[name].cast(pa.float64()).to_numpy(), np.float64)
        for name in ("start_time", "end_time", "duration")
    )
    end = np.where(np.isnan(end) & (jobs["status"].to_numpy() != "running"), start + duration, end)
    end = np.where(np.isnan(end), np.inf, end)
    plain = [name.split(_AGAIN)[0] for name in ids]
    sharers = Counter(name for name, _ in {*zip(raw, plain, strict=True)})
    again = {of for name, of in zip(ids, plain, strict=True) if name != of}
    rows = []
    for row, (job, base, other) in enumerate(zip(ids, plain, raw, strict=True)):
        names = {base} if base in again else set()
        if other is not None and other != base and sharers[other] == 1:
            names.add(other)
        if not np.isnan(start[row]):
            rows += [(name, float(start[row]), float(end[row]), job) for name in names]
    rows.sort()
    for place in range(len(rows) - 1):
        name, begin, finish, job = rows[place]
        if rows[place + 1][0] == name:
            rows[place] = (name, begin, min(finish, rows[place + 1][1]), job)
    kinds = {"name": pa.string(), "begin": pa.float64(), "finish": pa.float64(), "job": pa.string()}
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return pa.table(
        {
            name: pa.array(cells, kind)
            for (name, kind), cells in zip(kinds.items(), columns, strict=True)
        }
    )
