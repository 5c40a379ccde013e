"""Alibaba GPU cluster v2023 ("openb"): pods and nodes.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", ATC'23; alibaba/clusterdata ``cluster-trace-gpu-v2023/csv``. Times are seconds since an
unknown instant. The variants ``multigpuNN`` have only the five columns of requests: their times
are null, so they serve for packing, not for a replay in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole, words
from windtunnel.traces.node_table import NodeLayout

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cluster.spec import ClusterSpec

_PHASES = {
    "Running": "running",
    "Succeeded": "completed",
    "Failed": "failed",
    "Pending": "pending",
}
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_REQUESTS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_PODS = Layout(
    "openb",
    licence="none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-gpu-v2023; cite ATC'23)",
    columns={
        "job_id": text("name"),
        "submit_time": seconds("creation_time").optional,
        "start_time": seconds("scheduled_time").optional,
        "end_time": seconds("deletion_time").optional,
        "num_gpus": number("num_gpu", "GPUs"),
        "num_cpus": number("cpu_milli", per=1000),
        "mem_gib": number("memory_mib", per=1024),
        "gpu_type": text("gpu_spec").optional,
        "workload": text("qos").optional,
        "status": words("pod_phase", _PHASES, "").optional,
    },
    ignored=("gpu_milli",),
    recognised_by=_REQUESTS,
)
_NODES = NodeLayout(
    {
        "node": text("sn"),
        "gpu_type": text("model"),
        "num_gpus": whole("gpu", "GPUs"),
        "num_cpus": number("cpu_milli", per=1000),
        "mem_gib": number("memory_mib", per=1024),
    },
    files=("openb_node_list_all_node.csv", "openb_node_list_all_node.csv.gz"),
)


@_PODS.reader
def read_openb(rows: Rows, *, nodes: str | Path | None = None) -> None:
    """Read a list of pods, and the nodes they ran on.

    A pod that asks for one GPU gets ``gpu_milli`` thousandths of it. ``duration`` is deletion
    minus scheduling; pods that were never scheduled (Pending) have no start and no duration.
    ``qos`` becomes ``workload``.

    Args:
        rows: the file's.
        nodes: the nodes, plain or gzip CSV; without it, ``openb_node_list_all_node.csv`` in the
            same folder is taken where it is there (and the metadata says so).
    """
    rows.text.require("gpu_milli")
    asked = rows["num_gpus"]
    milli = rows.text.floats("gpu_milli", what="thousandths of a GPU")
    shared = pc.divide(pc.multiply(asked, milli), 1000.0)
    rows["num_gpus"] = pc.if_else(pc.equal(asked, 1.0), shared, asked)
    rows["num_tasks"] = rows.ones()
    if any(map(rows.text.has, _TIMES)):
        rows.text.require(*_TIMES, "gpu_spec", "qos", "pod_phase")
        rows.note(
            "Status is the last phase seen; Running pods have a deletion time too, their end."
        )
    rows["duration"] = rows.minus("end_time", "start_time")
    _NODES.add(rows, nodes)


def read_nodes(path: str | Path) -> tuple[pa.Table, ClusterSpec]:
    """Read a list of nodes; see `windtunnel.traces.node_table.NodeLayout.read`."""
    return _NODES.read(path)
