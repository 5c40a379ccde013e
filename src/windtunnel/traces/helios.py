"""SenseTime Helios: the job logs of Earth, Saturn, Uranus and Venus, and all four in one table.

Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
Datacenters", SC'21; S-Lab-System-Group/HeliosData ``{cluster}/cluster_log.csv``. Times are local
wall-clock times without a zone. ``acme-helios`` reads the concatenation with a column ``cluster``
(HeliosArtifact ``all_cluster_log.csv``, AcmeTrace ``helios_trace.csv``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from windtunnel.traces.header import header_has
from windtunnel.traces.layout import (
    SLURM_STATES,
    Layout,
    Rows,
    clock,
    number,
    seconds,
    text,
    whole,
    words,
)
from windtunnel.traces.tabular import parse_table

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

_COLUMNS = {
    "job_id": text("job_id"),
    "submit_time": clock("submit_time"),
    "start_time": clock("start_time"),
    "end_time": clock("end_time"),
    "duration": seconds("duration"),
    "num_gpus": number("gpu_num", "GPUs"),
    "num_tasks": whole("node_num", "nodes"),
    "num_cpus": number("cpu_num", "CPUs"),
    "user": text("user"),
    "vc": text("vc"),
    "status": words("state", SLURM_STATES),
    "source_queue": seconds("queue").optional,
}
_LOG = Layout(
    "helios",
    licence="CC BY 4.0 (S-Lab-System-Group/HeliosData; cite SC'21)",
    columns=_COLUMNS,
    ignored=("cluster",),
    without=("cluster",),
    zone="Asia/Shanghai",
)


def _looks_joined(head: bytes) -> bool:
    if header_has(head, "cluster", "gpu_num", "node_num", "state", "duration"):
        return True
    # The two columns that AcmeTrace's notebook reads, and nothing by which it could be another's.
    others = ("job_id", "submit_time", "state", "num_gpus")
    return header_has(head, "gpu_num", "duration", without=others)


_NEEDED = ("duration", "num_gpus")
_JOINED = replace(
    _LOG,
    name="acme-helios",
    columns={name: f if name in _NEEDED else f.optional for name, f in _COLUMNS.items()}
    | {"cluster": text("cluster").optional},
    sniff=_looks_joined,
)


@_LOG.reader
def read_helios(rows: Rows) -> None:
    """Read the job log of one cluster.

    ``duration`` and ``queue`` are the source's; the notes count the rows where they are not end
    minus start and start minus submission. ``queue`` is kept as ``source_queue``. A state without
    a meaning (one row says SUSPENDED) becomes ``unknown``.
    """
    _tell_differences(rows)


@_JOINED.reader
def read_acme_helios(rows: Rows) -> None:
    """Read the four clusters' logs in one table.

    Only ``gpu_num`` and ``duration`` must be there. ``cluster`` is kept, and stands before the
    job's id and the virtual cluster's name (``Venus/5``), which are unique within a cluster only.
    Without a column ``job_id`` ids are ``helios-N`` with N the row in the file, from 1.
    """
    if "cluster" in rows:
        for name in ("job_id", "vc"):
            rows[name] = pc.binary_join_element_wise(rows["cluster"], rows[name], "/")
    if not rows.text.has("job_id"):
        rows["job_id"] = rows.numbered("helios")
    _tell_differences(rows)


def log_of(file: str, data: bytes, *, bad_rows: str, zone: str) -> Trace:
    """Return the trace of one cluster's log from its bytes, as `read_helios` does of a file.

    Raises:
        TraceError: they are no such log; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone.
    """
    rows = _LOG.rows(file, zone, parse_table(data, file))
    _tell_differences(rows)
    return rows.trace(bad_rows)


def _tell_differences(rows: Rows) -> None:
    run, wait = rows.minus("end_time", "start_time"), rows.minus("start_time", "submit_time")
    rows.note(
        f"The source's duration differs from end minus start in {rows.differing(run, 'duration'):,}"
        " rows, its queueing time from start minus submission in "
        f"{rows.differing(wait, 'source_queue'):,}."
    )
