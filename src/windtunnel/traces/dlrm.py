"""Alibaba GPU cluster v2025: instances of disaggregated recommendation models (DLRM).

Yang et al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale" (Prism),
NSDI'25; alibaba/clusterdata ``cluster-trace-gpu-v2025/disaggregated_DLRM_trace.csv``. An instance
runs on a CPU node (role CN) or on a GPU node (HN). Times are seconds since the trace began.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, number, seconds, text

#: Kept under their own names: RDMA in percent of a network card, disk in GiB, -1 = no limit.
_KEPT = (
    *("rdma_request", "disk_request", "cpu_limit", "gpu_limit", "rdma_limit", "memory_limit"),
    *("disk_limit", "max_instance_per_node"),
)
_DLRM = Layout(
    "dlrm",
    licence="none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-gpu-v2025; cite NSDI'25)",
    columns={
        "job_id": text("instance_sn"),
        "submit_time": seconds("creation_time"),
        "start_time": seconds("scheduled_time"),
        "end_time": seconds("deletion_time"),
        "num_gpus": number("gpu_request", "GPUs"),
        "num_cpus": number("cpu_request", "CPUs"),
        "mem_gib": number("memory_request", "GiB"),
        "workload": text("role"),
        "template": text("app_name"),
        **{name: number(name).optional for name in _KEPT},
    },
)


@_DLRM.reader
def read_dlrm(rows: Rows) -> None:
    """Read the instances.

    An instance is a job of one task. No time of creation means that it was there before the trace
    began, no time of deletion that it was there when it ended: such times stay null, and so does
    ``duration``, deletion minus scheduling. Instances never deleted are ``running``; how the
    others ended is not in the file.
    """
    rows["duration"] = rows.minus("end_time", "start_time")
    rows["num_tasks"] = rows.ones()
    stays = pc.is_null(rows["end_time"])
    rows["status"] = pc.if_else(stays, "running", pa.scalar(None, pa.string()))
    rows.note(
        f"{rows['submit_time'].null_count:,} instances were there before the trace began: their "
        "submission is unknown.",
        f"{rows['end_time'].null_count:,} were there when it ended (running); how the others ended "
        "is not known.",
        f"{rows['duration'].null_count:,} have no duration, as scheduling or deletion is unknown.",
    )
