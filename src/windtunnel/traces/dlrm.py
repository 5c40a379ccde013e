"""Alibaba GPU cluster v2025: instances of disaggregated recommendation models (DLRM).

Yang et al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale" (Prism),
NSDI'25; alibaba/clusterdata ``cluster-trace-gpu-v2025/disaggregated_DLRM_trace.csv``. An instance
runs on a CPU node (role CN) or on a GPU node (HN). Times are seconds since the trace began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.fields import Facts, header_has, numbers_if_there, trace_of
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

LICENCE = (
    "none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-gpu-v2025; cite NSDI'25)"
)
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_REQUESTS = ("cpu_request", "gpu_request", "memory_request")
_REQUIRED = ("instance_sn", "role", "app_name", *_REQUESTS, *_TIMES)
#: Kept under their own names where they are there.
_KEPT = (
    "rdma_request",
    "disk_request",
    "cpu_limit",
    "gpu_limit",
    "rdma_limit",
    "memory_limit",
    "disk_limit",
    "max_instance_per_node",
)
_USED = frozenset((*_REQUIRED, *_KEPT))


def _looks_dlrm(head: bytes) -> bool:
    return header_has(head, *_REQUIRED)


@reader("dlrm", extensions=(".csv",), sniff=_looks_dlrm)
def read_dlrm(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read the instances.

    An instance is a job of one task: ``role`` becomes ``workload``, ``app_name`` ``template``.
    No time of creation means that it was there before the trace began, no time of deletion that
    it was there when it ended: such times stay null, and so does ``duration``, deletion minus
    scheduling. Instances never deleted are ``running``; how the others ended is not in the file.
    RDMA (percent of a network card), disk (GiB), the limits and ``max_instance_per_node``
    (-1 = no limit) are kept as further columns. Rows are sorted by creation, ties in the file's
    order, unknown times last.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require(*_REQUIRED)
    created, scheduled, deleted = (text.floats(n, what="a number of seconds") for n in _TIMES)
    stays = pc.is_null(deleted)
    duration = pc.subtract(deleted, scheduled)
    columns: dict[str, Any] = {
        "job_id": text.text("instance_sn"),
        "submit_time": created,
        "start_time": scheduled,
        "end_time": deleted,
        "duration": duration,
        "num_gpus": text.floats("gpu_request", what="a number of GPUs"),
        "num_tasks": pa.array(np.ones(text.num_rows, np.int32)),
        "num_cpus": text.floats("cpu_request", what="a number of CPUs"),
        "mem_gib": text.floats("memory_request", what="a number of GiB"),
        "workload": text.text("role"),
        "template": text.text("app_name"),
        "status": pc.if_else(stays, "running", pa.scalar(None, pa.string())),
    }
    columns |= {name: numbers_if_there(text, name) for name in _KEPT}
    facts = Facts(LICENCE, used=_USED).noting(
        f"{created.null_count:,} instances were there before the trace began: their submission "
        "is unknown.",
        f"{deleted.null_count:,} were there when it ended (running); how the others ended is not "
        "known.",
        f"{duration.null_count:,} have no duration, as scheduling or deletion is unknown.",
    )
    return trace_of(path, text, columns, facts, bad_rows)
