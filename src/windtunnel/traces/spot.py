"""Alibaba GPU cluster v2026 with spot jobs: jobs and nodes.

Duan et al., "GFS: A Preemptive Scheduling Framework for GPU Clusters with Predictive Spot
Management", ASPLOS'26; alibaba/clusterdata ``cluster-trace-v2026-spot-gpu``. Times are seconds
since the first submission. A row tells when a job came and how long it ran, not when it started.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.schema import conform_rows
from windtunnel.traces.fields import header_has
from windtunnel.traces.node_table import beside, node_table
from windtunnel.traces.order import by_submission
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, short_name, source_name
from windtunnel.traces.tabular import MAX_GANG, TextTable, parse_text
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec

LICENCE = (
    "none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-v2026-spot-gpu; cite ASPLOS'26)"
)
#: High-priority jobs may preempt spot jobs: larger is more urgent.
_PRIORITY = {"HP": "1", "Spot": "0"}
_NODE_FILES = ("node_info_df.csv", "node_info_df.csv.gz")
_COLUMNS = (
    *("job_name", "organization", "gpu_model", "cpu_request", "gpu_request"),
    *("worker_num", "submit_time", "duration", "job_type"),
)


def _looks_spot(head: bytes) -> bool:
    return header_has(head, "job_name", "gpu_request", "worker_num", "job_type")


@reader("spot", extensions=(".csv",), sniff=_looks_spot)
def read_spot(
    path: str | Path, *, nodes: str | Path | None = None, bad_rows: str = "raise"
) -> Trace:
    """Read a list of jobs, and the nodes they ran on.

    Requests are those of one worker: ``num_gpus`` and ``num_cpus`` are multiplied by
    ``worker_num``, which is ``num_tasks``. ``workload`` is the job's type (HP, Spot), ``priority``
    1 for HP and 0 for Spot, ``vc`` the organisation.

    Args:
        path: ``job_info_df.csv``, plain or gzip; ``-`` = standard input.
        nodes: ``node_info_df.csv``; without it, the file of this name in the same folder is taken
            where it is there (and the metadata says so).
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: a file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: a number of a node's GPUs or cores is impossible.
    """
    file = source_name(path)
    text = parse_text(read_bytes(path), file)
    table, lines, moved = by_submission(_jobs(text), text.lines)
    jobs, dropped = conform_rows(table, bad_rows=bad_rows, source=file, lines=lines)
    notes: tuple[str, ...] = (
        "Requests are per worker and were multiplied by worker_num.",
        "The trace does not say when jobs started, how they ended or who preempted them.",
    )
    if moved:
        notes += ("Jobs were sorted by submission, ties in the file's order.",)
    found = nodes if nodes is not None else beside(path, *_NODE_FILES)
    table_of_nodes, cluster = read_spot_nodes(found) if found is not None else (None, None)
    if found is not None:
        notes += (f"Nodes are from {Path(found).name}.",)
    return Trace(
        jobs,
        TraceMetadata(
            name=short_name(path),
            source=file,
            licence=LICENCE,
            rows_read=text.num_rows,
            dropped=dropped,
            notes=notes,
        ),
        cluster=cluster,
        nodes=table_of_nodes,
    )


def _jobs(text: TextTable) -> pa.Table:
    """Return the schema's columns.

    Raises:
        TraceError: a column is missing, or a cell is not what it should be.
    """
    text.require(*_COLUMNS)
    workers = text.integers("worker_num", what="a whole number of workers", largest=MAX_GANG)
    _refuse_unknown(text, "worker_num", workers)
    priority = text.mapped("job_type", _PRIORITY)
    columns: dict[str, Any] = {
        "job_id": text.text("job_name"),
        "submit_time": text.floats("submit_time", what="a number of seconds"),
        "duration": text.floats("duration", what="a number of seconds"),
        "num_gpus": pc.multiply(text.floats("gpu_request", what="a number of GPUs"), workers),
        "num_tasks": workers,
        "num_cpus": pc.multiply(text.floats("cpu_request", what="a number of cores"), workers),
        "gpu_type": text.text("gpu_model"),
        "vc": text.text("organization"),
        "workload": pc.utf8_trim_whitespace(text.text("job_type")),
        "priority": priority.cast(pa.float64()),
    }
    return pa.table(columns)


def _refuse_unknown(text: TextTable, name: str, values: pa.ChunkedArray) -> None:
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise TraceError(text.file, "a value in every row", row=int(text.lines[row]), column=name)


def read_spot_nodes(path: str | Path) -> tuple[pa.Table, ClusterSpec]:
    """Read a list of nodes.

    Args:
        path: plain or gzip CSV with node_name, gpu_model, gpu_capacity_num, cpu_num.

    Returns:
        A table with the columns of `windtunnel.companions.NODE_COLUMNS`, one row a node in the
        file's order; and the cluster, nodes numbered in that order.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SpecError: a number of GPUs or cores is impossible.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require("node_name", "gpu_model", "gpu_capacity_num", "cpu_num")
    columns = {
        "node": text.text("node_name"),
        "gpu_type": text.text("gpu_model"),
        "num_gpus": text.integers("gpu_capacity_num", what="a whole number of GPUs"),
        "num_cpus": text.floats("cpu_num", what="a number of cores"),
    }
    spelt = {"node": "node_name", "num_gpus": "gpu_capacity_num"}
    return node_table(text, columns, short_name(path), spelt=spelt)
