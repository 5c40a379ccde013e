"""Traces that tests describe: one that tells everything, and others that lack much of it."""

from __future__ import annotations

from typing import Any

from windtunnel.cluster import ClusterSpec
from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace, TraceMetadata

HOUR = 3600.0


def trace_of(columns: dict[str, Any], **about: Any) -> Trace:
    """Return a trace of columns, with more about it."""
    table = as_jobs(columns)
    known = {"name": "by-hand", "source": "made by hand", "rows_read": table.num_rows, **about}
    return Trace(table, TraceMetadata(**known))


def full() -> Trace:
    """Return ten jobs that tell everything; run times 1 to 10 h, waits 0 to 9 min.

    GPUs 1, 1, 2, 2, 4, 4, 8, 8, 16 and one CPU job; of them two dropped.
    """
    hours = range(1, 11)
    submit = [600.0 * i for i in range(10)]
    start = [at + 60.0 * i for i, at in enumerate(submit)]
    run = [HOUR * h for h in hours]
    jobs = {
        "job_id": [f"j{i}" for i in range(10)],
        "submit_time": submit,
        "start_time": start,
        "end_time": [s + r for s, r in zip(start, run, strict=True)],
        "duration": run,
        "num_gpus": [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0, 16.0, 0.0],
        "num_tasks": [1, 1, 1, 1, 1, 1, 1, 1, 2, 1],
        "num_cpus": [4.0] * 10,
        "mem_gib": [16.0] * 10,
        "gpu_type": ["V100"] * 9 + [None],
        "user": ["ann", "ann", "bob", "bob", "cy", "cy", "ann", "ann", "ann", "dee"],
        "vc": ["red"] * 5 + ["blue"] * 5,
        "workload": ["train", "eval"] * 5,
        "template": ["t1"] * 6 + ["t2"] * 4,
        "status": ["completed", "failed", "cancelled", "completed", "timeout"] * 2,
    }
    trace = trace_of(
        jobs,
        licence="CC0",
        epoch="2024-01-01T00:00:00+00:00",
        zone="UTC",
        rows_read=12,
        dropped={"no start": 2},
        notes=("Two clocks disagree.",),
    )
    cluster = ClusterSpec.uniform(nodes=8, gpus_per_node=8, gpu_type="V100")
    return Trace(trace.jobs, trace.metadata, cluster=cluster)


def bare() -> Trace:
    """Return three jobs of which nothing is known but submission, run time and GPUs."""
    return trace_of(
        {"submit_time": [0.0, 1.0, 2.0], "duration": [10.0, 20.0, None], "num_gpus": [1.0, 0.5, 4]}
    )


def held() -> Trace:
    """Return two jobs that held GPUs of node m1: both for 120 s, then the first for 120 s."""
    trace = trace_of(
        {
            "job_id": ["a", "b"],
            "submit_time": [0.0, 0.0],
            "start_time": [0.0, 120.0],
            "end_time": [120.0, 240.0],
            "duration": [120.0, 120.0],
            "num_gpus": [2.0, 1.0],
            "user": ["ann", "bob"],
        },
        epoch="2017-10-03T19:00:00+00:00",
    )
    holdings = companion(
        HOLDING_COLUMNS,
        {
            "job_id": _texts("a", "a", "b"),
            "node": _texts("m1", "m1", "m1"),
            "gpu": _texts("gpu0", "gpu1", "gpu0"),
            "start_time": _numbers(0, 0, 120),
            "end_time": _numbers(120, 120, 240),
        },
    )
    return Trace(trace.jobs, trace.metadata, holdings=holdings)


#: Telemetry of `held`'s node in Philly's layout: one reading is missing, three are of no job.
HELD_MINUTES = """\
time,machineId,gpu0_util,gpu1_util,
2017-10-03 12:00:00 PDT,m1,10,20,
2017-10-03 12:01:00 PDT,m1,30,40,
2017-10-03 12:02:00 PDT,m1,80,0,
2017-10-03 12:03:00 PDT,m1,100,NA,
2017-10-03 12:04:00 PDT,m1,7,5,
"""


def _texts(*values: str) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.string())


def _numbers(*values: float) -> Any:
    import pyarrow as pa

    return pa.array([float(value) for value in values], pa.float64())
