"""Traces for the twin's tests: one with everything, and hostile ones by hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windtunnel.traces.trace import Trace, TraceMetadata

STATES = np.array(["completed", "failed", "cancelled", "node_fail"])


def rich_jobs(jobs: int, seed: int = 0) -> dict[str, Any]:
    """Columns of a made-up log: three workloads, forty users, batches, unknown values."""
    rng = np.random.default_rng(seed)
    workload = rng.choice(3, jobs, p=[0.6, 0.3, 0.1])
    gpus = np.where(
        workload == 2, rng.choice([8.0, 64.0, 72.0], jobs), rng.choice([1.0, 2.0], jobs)
    )
    user = np.minimum(rng.geometric(0.08, jobs) - 1, 39)
    submit = np.floor(np.sort(rng.uniform(0, 20 * 86_400, jobs)))
    wait = np.where(rng.random(jobs) < 0.5, 0.0, np.floor(rng.lognormal(4, 2, jobs)))
    duration = np.floor(rng.lognormal(6 + workload, 1.5, jobs)) + 1
    names = np.array(["Secret-Pretrain", "Hidden-Eval", "Private-SFT"])
    known = rng.random(jobs) < 0.8
    return {
        "job_id": [f"id§{n}" for n in range(jobs)],
        "submit_time": submit,
        "start_time": submit + wait,
        "end_time": submit + wait + duration,
        "duration": duration,
        "estimate": pa.array(np.ceil(duration * rng.choice([1.0, 1.5, 4.0], jobs)), mask=~known),
        "num_gpus": gpus,
        "num_tasks": np.maximum(gpus // 8, 1).astype(np.int32),
        "num_cpus": gpus * np.where(workload == 0, 12, 16),
        "user": [f"alice§{n}" for n in user],
        "vc": [f"lab§{n % 4}" for n in user],
        "workload": names[workload],
        "template": [f"run§{u}-{w}" for u, w in zip(user, workload, strict=True)],
        "status": STATES[rng.choice(4, jobs, p=[0.6, 0.3, 0.08, 0.02])],
    }


@pytest.fixture(scope="session")
def rich() -> Trace:
    """Three thousand jobs, of a known Monday in Berlin."""
    from windtunnel.schema import as_jobs

    return Trace(
        as_jobs(rich_jobs(3000)),
        TraceMetadata("hush", "hush.csv", epoch="2024-04-15T22:00:00+00:00", zone="Europe/Berlin"),
    )
