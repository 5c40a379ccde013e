"""Microsoft Philly, the job records derived for the Sia artifact.

Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", ATC'19
(trace: msr-fiddle/philly-traces, CC BY 4.0); the CSV is siasosp23/artifacts
``sia-simulator/traces/philly.csv``. Its times are Pacific wall-clock times without a zone. The
original job log is read by `philly_raw`.
"""

from __future__ import annotations

from windtunnel.traces.layout import Layout, Rows, clock, number, seconds, text

ZONE = "America/Los_Angeles"
_SIA = Layout(
    "philly",
    licence="CC BY 4.0 (msr-fiddle/philly-traces); the derived table in siasosp23/artifacts states "
    "none",
    columns={
        "submit_time": clock("timestamp"),
        "duration": seconds("duration"),
        "num_gpus": number("num_gpus", "GPUs"),
        "vc": text("cluster"),
    },
    ignored=("gpu_time",),  # duration times GPUs
    recognised_by=("timestamp", "duration", "num_gpus", "gpu_time", "cluster"),
    zone=ZONE,
)


@_SIA.reader
def read_philly(rows: Rows) -> None:
    """Read the derived CSV; ``job_id`` is ``philly-N`` with N the row in the file, from 1."""
    rows["job_id"] = rows.numbered("philly")
    rows.note("The file has no start, status, user or estimate.")
