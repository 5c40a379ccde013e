"""SenseTime Helios: the job logs of Earth, Saturn, Uranus and Venus, and all four in one table.

Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
Datacenters", SC'21; S-Lab-System-Group/HeliosData ``{cluster}/cluster_log.csv``. Times are local
wall-clock times without a zone. ``acme-helios`` reads the concatenation with a column ``cluster``
(HeliosArtifact ``all_cluster_log.csv``, AcmeTrace ``helios_trace.csv``).

Helios as it is published: ``data.zip``, or the folder that it unpacks to, a log a cluster.

S-Lab-System-Group/HeliosData ``data.zip``: ``{Earth,Saturn,Uranus,Venus}/cluster_log.csv``, and
beside each how many GPUs the cluster had on each day, which is not read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, TraceError
from windtunnel.schema import conform
from windtunnel.traces.archive import members
from windtunnel.traces.header import header_has
from windtunnel.traces.job_trace import by_submission
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
from windtunnel.traces.readers import reader
from windtunnel.traces.resuming import HELIOS, by_gpus
from windtunnel.traces.source import packed_bytes, read_bytes, short_name, source_name
from windtunnel.traces.tabular import parse_table
from windtunnel.traces.trace import Trace
from windtunnel.traces.wallclock import named_epoch

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
    a meaning (one row says SUSPENDED) becomes ``unknown``. ``restore_time`` is what Helios'
    simulator counts for a job that was stopped: 7 s, 30 s from 2 GPUs on, 60 s from 9 on.
    """
    _complete(rows)


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
    _complete(rows)


def log_of(file: str, data: bytes, *, bad_rows: str, zone: str) -> Trace:
    """Return the trace of one cluster's log from its bytes, as `read_helios` does of a file.

    Raises:
        TraceError: they are no such log; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone.
    """
    rows = _LOG.rows(file, zone, parse_table(data, file))
    _complete(rows)
    return rows.trace(bad_rows)


def _complete(rows: Rows) -> None:
    rows["restore_time"] = by_gpus(rows["num_gpus"], HELIOS)
    run, wait = rows.minus("end_time", "start_time"), rows.minus("start_time", "submit_time")
    rows.note(
        f"The source's duration differs from end minus start in {rows.differing(run, 'duration'):,}"
        " rows, its queueing time from start minus submission in "
        f"{rows.differing(wait, 'source_queue'):,}."
    )


CLUSTERS = ("Earth", "Saturn", "Uranus", "Venus")
_LOG_FILE = "cluster_log.csv"
_TIMES = ("submit_time", "start_time", "end_time")


def _is_release(names: frozenset[str]) -> bool:
    return not names.isdisjoint(CLUSTERS)


@reader("helios-release", extensions=("data.zip",), sniff_folder=_is_release)
def read_helios_release(
    path: str | Path, *, cluster: str = "", bad_rows: str = "raise", zone: str = "Asia/Shanghai"
) -> Trace:
    """Read the logs of one cluster, or of all in one table.

    Of several, the cluster's name stands before the job's id and the virtual cluster's
    (``Venus/5``), which are unique within a cluster only, and in a column ``cluster``.

    Args:
        path: ``data.zip``, or the folder with the four.
        cluster: one of ``Earth``, ``Saturn``, ``Uranus``, ``Venus``; empty = all that are there.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.
        zone: IANA zone of the wall clock.

    Raises:
        SpecError: no such cluster, or zone.
        TraceError: there is no log of it, or a log is not as it should be; names file and line.
        SchemaError: rules of the schema are broken.
    """
    known = {name.lower(): name for name in CLUSTERS}
    if cluster and cluster.lower() not in known:
        raise SpecError.unknown("cluster", cluster, CLUSTERS)
    wanted = (known[cluster.lower()],) if cluster else CLUSTERS
    logs = _folder(Path(path)) if Path(path).is_dir() else _archive(path)
    found = [name for name in wanted if name in logs]
    if not found:
        raise TraceError(
            source_name(path), f"{wanted[0]}/{_LOG_FILE}" + (" and its like" if not cluster else "")
        )
    traces = {name: log_of(*logs[name], bad_rows=bad_rows, zone=zone) for name in found}
    joined = next(iter(traces.values())) if len(found) == 1 else _joined(path, traces)
    named = f"{short_name(path)}-{found[0].lower()}" if len(found) == 1 else "helios"
    about = replace(joined.metadata, name=named, source=source_name(path))
    return replace(joined, metadata=about)


def _folder(path: Path) -> dict[str, tuple[str, bytes]]:
    """Return path and content of the logs in a folder, by cluster."""
    logs = ((name, path / name / _LOG_FILE) for name in CLUSTERS)
    there = (
        (n, next((p for p in (log, Path(f"{log}.gz")) if p.is_file()), None)) for n, log in logs
    )
    return {name: (str(log), read_bytes(log)) for name, log in there if log is not None}


def _archive(path: str | Path) -> dict[str, tuple[str, bytes]]:
    """Return name and content of the logs in an archive, by cluster."""
    file = source_name(path)
    files = members(packed_bytes(path), file) or {}
    places = {tuple(name.split("/")[-2:]): name for name in files}
    here = {name: places.get((name, _LOG_FILE)) for name in CLUSTERS}
    return {n: (f"{file}/{place}", files[place]) for n, place in here.items() if place is not None}


def _joined(path: str | Path, traces: dict[str, Trace]) -> Trace:
    """Return the clusters' traces as one, on the clock of the earliest."""
    starts = {name: trace.metadata.zero or 0.0 for name, trace in traces.items()}
    zero = min(starts.values())
    tables: list[pa.Table] = []
    notes: list[str] = []
    dropped: dict[str, int] = {}
    for name, trace in traces.items():
        jobs = trace.jobs.append_column("cluster", pa.array([name] * trace.jobs.num_rows))
        for column in ("job_id", "vc"):
            jobs = _put(jobs, column, pc.binary_join_element_wise(name, jobs[column], "/"))
        for column in _TIMES:
            jobs = _put(jobs, column, pc.add(jobs[column], starts[name] - zero))
        tables.append(jobs)
        notes += [f"{name}: {note}" for note in trace.metadata.notes]
        dropped |= {f"{name}: {why}": count for why, count in trace.metadata.dropped.items()}
    joined = pa.concat_tables(tables).combine_chunks()
    jobs, _, _ = by_submission(joined, range(joined.num_rows))
    first = next(iter(traces.values()))
    about = replace(
        first.metadata,
        epoch=named_epoch(source_name(path), zero),
        rows_read=sum(trace.metadata.rows_read for trace in traces.values()),
        dropped=dropped,
        notes=tuple(notes),
    )
    return Trace(conform(jobs, source=source_name(path)), about)


def _put(table: pa.Table, column: str, cells: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, cells)
