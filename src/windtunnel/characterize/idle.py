"""Which jobs held GPUs that did nothing: never, no longer, or not all of them.

A sample is idle where the metric is at most a threshold. An average hides a job that worked for a
minute and then held its GPUs for hours (PrincetonUniversity/jobstats#28), so what is asked of each
job is also when it was last busy, and how many of its GPUs ever were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.characterize.relation import typed
from windtunnel.characterize.telemetry_jobs import attributed, located
from windtunnel.characterize.telemetry_segments import segments_of
from windtunnel.checked import checked_number

if TYPE_CHECKING:
    from windtunnel.companions import Relation


def idle_jobs(
    samples: Relation, holdings: Relation | None, metric: str, *, idle_at: float = 0.0
) -> pa.Table:
    """Return what telemetry says of each job's idleness, by one metric.

    A sample belongs to a job as in `windtunnel.characterize.telemetry_jobs`.

    Args:
        samples: a table of samples (`windtunnel.companions.SAMPLE_COLUMNS`) in the trace's time.
        holdings: who held which device when; None = only samples that name a job count.
        metric: which measurement, such as ``DCGM_FI_DEV_GPU_UTIL``.
        idle_at: a sample of at most this value, in the metric's unit, is idle.

    Returns:
        One row a job with samples, by name: ``job_id``, ``n`` (samples), ``n_idle``, ``devices``
        (GPUs, or nodes, with samples), ``unused_devices`` (those without a busy sample),
        ``first_sample``, ``last_sample``, ``last_busy`` (s; null = never busy). The schema's
        metadata ``windtunnel.left_out`` counts the samples that belong to no job.

    Raises:
        SchemaError: a column is missing, or a holding has no start, or ends before it.
        SpecError: ``idle_at`` is no number from 0 on.
    """
    import ibis

    checked_number("idle_at", idle_at, "a number from 0 on", least=0)
    found = segments_of(holdings)
    owned = attributed(located(samples, metric, found), found)
    busy = owned.value > idle_at
    by_device = owned.group_by(["job", "node", "gpu"]).aggregate(
        n=owned.count(),
        n_idle=(~busy).sum(),
        first=owned.time.min(),
        last=owned.time.max(),
        last_busy=ibis.ifelse(busy, owned.time, ibis.null("float64")).max(),
    )
    by_job = by_device.group_by("job").aggregate(
        n=by_device.n.sum(),
        n_idle=by_device.n_idle.sum(),
        devices=by_device.count(),
        unused_devices=by_device.last_busy.isnull().sum(),
        first_sample=by_device["first"].min(),
        last_sample=by_device["last"].max(),
        last_busy=by_device.last_busy.max(),
    )
    rows = by_job.to_pyarrow().to_pylist()
    left_out = sum(row["n"] for row in rows if row["job"] is None)
    named = sorted((row for row in rows if row["job"] is not None), key=lambda row: row["job"])
    names = "job_id n n_idle devices unused_devices first_sample last_sample last_busy"
    schema = typed(names, "tiiiifff")
    result = pa.Table.from_pylist([{**row, "job_id": row["job"]} for row in named], schema=schema)
    return result.replace_schema_metadata({"windtunnel.left_out": str(left_out)})
