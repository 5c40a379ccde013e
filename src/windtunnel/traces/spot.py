"""Alibaba GPU cluster v2026 with spot jobs: jobs and nodes.

Duan et al., "GFS: A Preemptive Scheduling Framework for GPU Clusters with Predictive Spot
Management", ASPLOS'26; alibaba/clusterdata ``cluster-trace-v2026-spot-gpu``. Times are seconds
since the first submission. A row tells when a job came and how long it ran, not when it started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole, words
from windtunnel.traces.node_table import NodeLayout

if TYPE_CHECKING:
    from pathlib import Path


_SPOT = Layout(
    "spot",
    licence="none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-v2026-spot-gpu; cite ASPLOS'26)",
    columns={
        "job_id": text("job_name"),
        "submit_time": seconds("submit_time"),
        "duration": seconds("duration"),
        "num_gpus": number("gpu_request", "GPUs"),
        "num_tasks": whole("worker_num", "workers"),
        "num_cpus": number("cpu_request", "cores"),
        "gpu_type": text("gpu_model"),
        "vc": text("organization"),
        "workload": words("job_type", {"HP": "HP", "Spot": "Spot"}, ""),
    },
    recognised_by=("job_name", "gpu_request", "worker_num", "job_type"),
)
_NODES = NodeLayout(
    {
        "node": text("node_name"),
        "gpu_type": text("gpu_model"),
        "num_gpus": whole("gpu_capacity_num", "GPUs"),
        "num_cpus": number("cpu_num", "cores"),
    },
    files=("node_info_df.csv", "node_info_df.csv.gz"),
)


@_SPOT.reader
def read_spot(rows: Rows, *, nodes: str | Path | None = None) -> None:
    """Read a list of jobs, and the nodes they ran on.

    Requests are those of one worker: ``num_gpus`` and ``num_cpus`` are multiplied by
    ``worker_num``, which is ``num_tasks``. ``workload`` is the job's type (HP, Spot), ``priority``
    1 for HP, which may preempt, and 0 for Spot, ``vc`` the organisation.

    Args:
        rows: the file's.
        nodes: ``node_info_df.csv``; without it, the file of this name in the same folder is taken
            where it is there (and the metadata says so).
    """
    workers = rows["num_tasks"]
    rows.text.refuse("worker_num", pc.is_null(workers), "a value in every row")
    for name in ("num_gpus", "num_cpus"):
        rows[name] = pc.multiply(rows[name], workers)
    rows["priority"] = pc.equal(rows["workload"], "HP").cast(pa.float64())
    rows.note(
        "Requests are per worker and were multiplied by worker_num.",
        "The trace does not say when jobs started, how they ended or who preempted them.",
    )
    _NODES.add(rows, nodes)
