"""Pollux's workloads: training jobs with an application, GPUs and a batch size.

Qiao et al., OSDI'21; petuum/adaptdl, branch ``osdi21-artifact``, ``simulator/workloads``. How long
a job runs depends on the GPUs it gets, so none has a duration.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, seconds, text, whole

_POLLUX = Layout(
    "pollux",
    licence="none (petuum/adaptdl, branch osdi21-artifact; cite OSDI'21)",
    columns={
        "job_id": text("name"),
        "submit_time": seconds("time"),
        "num_tasks": whole("num_replicas", "GPUs"),
        "template": text("application"),
        "workload": text("application"),
        "batch_size": whole("batch_size", "examples"),
        "vc": text("workload").optional,
    },
    extensions=(".csv",),
)


@_POLLUX.reader
def read_pollux(rows: Rows) -> None:
    """Read a workload.

    ``name`` becomes ``job_id``, ``application`` ``template`` and ``workload``, ``num_replicas``
    ``num_gpus`` and ``num_tasks``; ``batch_size`` is kept. Where a file holds several workloads,
    a column ``workload`` that numbers them becomes ``vc``, by which the trace is cut, and stands
    before the names.
    """
    rows.text.refuse("num_replicas", pc.less(rows["num_tasks"], 1), "a whole number >= 1")
    rows.text.refuse("batch_size", pc.less(rows["batch_size"], 1), "a whole number >= 1")
    rows["num_gpus"] = pc.cast(rows["num_tasks"], pa.float64())
    if "vc" in rows:
        named = pc.binary_join_element_wise(rows["vc"], rows["job_id"], "/")
        rows["job_id"] = pc.coalesce(named, rows["job_id"])
    rows.note("Jobs have no durations: these depend on the GPUs they get.")
