"""Alibaba GPU cluster v2026 (ASI): how long pods ran and waited, and the servers with their racks.

alibaba/clusterdata ``cluster-trace-gpu-v2026``, tables ``asi_opensource_job_execution_summary``
and ``asi_opensource_server_hourly`` (its ``docs/schema.md``). All that it says of time is how long
a pod ran and waited, not when it was submitted: the trace can be described, not flown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole
from windtunnel.traces.node_table import NodeLayout
from windtunnel.traces.pai.jobs import repeats_of
from windtunnel.traces.pai.joins import numbered

if TYPE_CHECKING:
    from pathlib import Path

_HOUR = 3600.0
#: What a class of priority means; others have none.
_PRIORITIES = {"HP": 1.0, "LP": 0.0}
_PODS = Layout(
    "asi",
    licence="none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-gpu-v2026)",
    columns={
        "job_id": text("pod_id"),
        "duration": number("duration_hours", "hours"),
        "num_gpus": number("gpu_request", "GPUs"),
        "gpu_type": text("gpu_spec_public"),
        "workload": text("job_type_public"),
        "source_queue": seconds("schedule_delay_sec"),
        "priority_class": text("priority_class"),
        "model_type": text("model_type_public").optional,
        "workload_id": text("workload_id").optional,
        "server_id": text("server_id").optional,
        "ready_delay": seconds("ready_delay_sec").optional,
    },
    ignored=("is_genai_request", "ready_status", "schedule_status"),
    recognised_by=("pod_id", "gpu_spec_public", "duration_hours", "schedule_delay_sec"),
)
_SERVERS = NodeLayout(
    {
        "node": text("server_id"),
        "gpu_type": text("gpu_spec_public"),
        "num_gpus": whole("gpu_count", "GPUs"),
        "num_cpus": number("cpu_capacity_cores", "cores"),
        "rack": text("asw_id"),
    },
    files=("asi_opensource_server_hourly.parquet", "asi_opensource_server_hourly.csv"),
    once=False,
    rack="rack",
)


@_PODS.reader
def read_asi(rows: Rows, *, nodes: str | Path | None = None) -> None:
    """Read the execution spans of pods.

    ``duration`` is what was observed, in hours in the file. ``schedule_delay_sec``, what a pod
    waited to be scheduled, is kept as ``source_queue``, what it then took to be ready as
    ``ready_delay``. ``priority`` is 1 for HP, 0 for LP and unknown for others. A pod with several
    spans is a job for each: ``pod#2`` is the second. Nothing tells when pods were submitted.

    Args:
        rows: the file's.
        nodes: ``asi_opensource_server_hourly`` of an hour or more, CSV or Parquet; each server
            counts once, as its first row has it, and its access switch is its rack. Without it,
            the file of this name in the same folder is taken where it is there (and the metadata
            says so).
    """
    rows.text.refuse("pod_id", pc.is_null(rows["job_id"]), "a value in every row")
    rows["duration"] = pc.multiply(rows["duration"], _HOUR)
    rows["num_tasks"] = rows.ones()
    known = [pc.equal(rows["priority_class"], word) for word in _PRIORITIES]
    chosen = pc.if_else(known[0], _PRIORITIES["HP"], pa.scalar(None, pa.float64()))
    rows["priority"] = pc.if_else(known[1], _PRIORITIES["LP"], chosen)
    _number_spans(rows)
    rows.note(
        "Only GPU pods are in the table, and only how long they ran and waited: not when, nor how "
        "they ended."
    )
    _SERVERS.add(rows, nodes)


def _number_spans(rows: Rows) -> None:
    """Give the second and later spans of a pod ids of their own."""
    pods = pa.chunked_array(rows["job_id"]).combine_chunks()
    found = repeats_of(pods)
    if not len(found):
        return
    own = pods.unique()
    again = numbered(
        pods.take(pa.array(found.rows)),
        found.nth,
        lambda new: bool(pc.any(pc.is_in(new, own)).as_py()),
    )
    at = pa.array(np.isin(np.arange(len(pods)), found.rows))
    rows["job_id"] = pc.replace_with_mask(pods, at, again)
    rows.note(f"Later spans of a pod that has several, called pod#2, pod#3 ...: {len(found):,}.")
