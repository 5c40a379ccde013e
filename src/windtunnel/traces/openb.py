"""Alibaba GPU cluster v2023 ("openb"): pods and nodes.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", ATC'23; alibaba/clusterdata ``cluster-trace-gpu-v2023/csv``. Times are seconds since an
unknown instant. The variants ``multigpuNN`` have only the five columns of requests: their times
are null, so they serve for packing, not for a replay in time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.schema import conform
from windtunnel.traces.node_table import beside, node_table
from windtunnel.traces.order import by_submission
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, short_name, source_name
from windtunnel.traces.tabular import TextTable, parse_text
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec

LICENCE = (
    "none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-gpu-v2023; cite ATC'23)"
)
_PHASE = {
    "Running": "running",
    "Succeeded": "completed",
    "Failed": "failed",
    "Pending": "pending",
}
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_NODE_FILES = ("openb_node_list_all_node.csv", "openb_node_list_all_node.csv.gz")


def _looks_openb(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf")
    return start.startswith(b"name,cpu_milli,memory_mib,num_gpu,gpu_milli")


@reader("openb", extensions=(".csv",), sniff=_looks_openb)
def read_openb(path: str | Path, *, nodes: str | Path | None = None) -> Trace:
    """Read a list of pods, and the nodes they ran on.

    A pod that asks for one GPU gets ``gpu_milli`` thousandths of it. ``duration`` is deletion
    minus scheduling; pods that were never scheduled (Pending) have no start and no duration.
    Rows are sorted by creation, ties in the file's order. ``qos`` becomes ``workload``.

    Args:
        path: the pods, plain or gzip CSV; ``-`` = standard input.
        nodes: the nodes, plain or gzip CSV; without it, ``openb_node_list_all_node.csv`` in the
            same folder is taken where it is there (and the metadata says so).

    Raises:
        TraceError: a file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    file = source_name(path)
    text = parse_text(read_bytes(path), file)
    timed = any(name in text.table.column_names for name in _TIMES)
    table, lines, moved = by_submission(_pods(text, timed=timed), text.lines)
    notes: tuple[str, ...] = ()
    if not timed:
        notes += (
            "This variant has no times, types or phases: it can be packed, not replayed in time.",
        )
    else:
        notes += (
            "Status is the last phase seen; Running pods have a deletion time too, their end.",
        )
    if moved:
        notes += ("Pods were sorted by creation, ties in the file's order.",)
    found = nodes if nodes is not None else beside(path, *_NODE_FILES)
    table_of_nodes, cluster = read_nodes(found) if found is not None else (None, None)
    if found is not None:
        notes += (f"Nodes are from {Path(found).name}.",)
    return Trace(
        conform(table, source=file, lines=lines),
        TraceMetadata(
            name=short_name(path),
            source=file,
            licence=LICENCE,
            rows_read=text.num_rows,
            notes=notes,
        ),
        cluster=cluster,
        nodes=table_of_nodes,
    )


def _pods(text: TextTable, *, timed: bool) -> pa.Table:
    """Return the schema's columns of a list of pods."""
    text.require("name", "num_gpu", "gpu_milli", "cpu_milli", "memory_mib")
    whole = text.floats("num_gpu", what="a number of GPUs")
    milli = text.floats("gpu_milli", what="thousandths of a GPU")
    shared = pc.divide(pc.multiply(whole, milli), 1000.0)
    columns: dict[str, Any] = {
        "job_id": text.text("name"),
        "num_gpus": pc.if_else(pc.equal(whole, 1.0), shared, whole),
        "num_tasks": pa.array(np.ones(text.num_rows, np.int32)),
        "num_cpus": pc.divide(text.floats("cpu_milli"), 1000.0),
        "mem_gib": pc.divide(text.floats("memory_mib"), 1024.0),
    }
    if not timed:
        unknown = pa.nulls(text.num_rows, pa.float64())
        return pa.table({**columns, "submit_time": unknown, "duration": unknown})
    text.require(*_TIMES)
    created, deleted, scheduled = (text.floats(n, what="a number of seconds") for n in _TIMES)
    columns |= {
        "submit_time": created,
        "start_time": scheduled,
        "end_time": deleted,
        "duration": pc.subtract(deleted, scheduled),
        "gpu_type": text.text("gpu_spec"),
        "workload": text.text("qos"),
        "status": text.mapped("pod_phase", _PHASE),
    }
    return pa.table(columns)


def read_nodes(path: str | Path) -> tuple[pa.Table, ClusterSpec]:
    """Read a list of nodes.

    Args:
        path: plain or gzip CSV with sn, cpu_milli, memory_mib, gpu, model.

    Returns:
        A table with the columns of `windtunnel.companions.NODE_COLUMNS`, one row a node in the
        file's order; and the cluster, nodes numbered in that order.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SpecError: a number of GPUs, cores or memory is impossible.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require("sn", "cpu_milli", "memory_mib", "gpu", "model")
    columns = {
        "node": text.text("sn"),
        "gpu_type": text.text("model"),
        "num_gpus": text.integers("gpu", what="a whole number of GPUs"),
        "num_cpus": pc.divide(text.floats("cpu_milli"), 1000.0),
        "mem_gib": pc.divide(text.floats("memory_mib"), 1024.0),
    }
    spelt = {"node": "sn", "num_gpus": "gpu"}
    return node_table(text, columns, short_name(path), spelt=spelt)
