"""SenseTime Helios: the job logs of Earth, Saturn, Uranus and Venus, and all four in one table.

Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
Datacenters", SC'21; S-Lab-System-Group/HeliosData ``{cluster}/cluster_log.csv``. Times are local
wall-clock times without a zone. ``acme-helios`` reads the concatenation with a column ``cluster``
(HeliosArtifact ``all_cluster_log.csv``, AcmeTrace ``helios_trace.csv``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from windtunnel.traces.fields import (
    SLURM_STATES,
    Facts,
    differing,
    first_of,
    gang_size,
    header_has,
    numbered,
    numbers_if_there,
    seconds_since,
    states,
    trace_of,
    words_if_there,
)
from windtunnel.traces.philly import repeated_hour_note
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import parse_text
from windtunnel.traces.wallclock import named_epoch, to_utc

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable
    from windtunnel.traces.trace import Trace

ZONE = "Asia/Shanghai"
LICENCE = "CC BY 4.0 (S-Lab-System-Group/HeliosData; cite SC'21)"
_TIMES = ("submit_time", "start_time", "end_time")
_LOG = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", *_TIMES, "duration")
_USED = frozenset((*_LOG, "queue", "cluster"))


def _looks_helios(head: bytes) -> bool:
    return header_has(head, *_LOG, without=("cluster",))


def _looks_joined(head: bytes) -> bool:
    if header_has(head, "cluster", "gpu_num", "node_num", "state", "duration"):
        return True
    # The two columns that AcmeTrace's notebook reads, and nothing by which it could be another's.
    others = ("job_id", "submit_time", "state", "num_gpus")
    return header_has(head, "gpu_num", "duration", without=others)


@reader("helios", extensions=(".csv",), sniff=_looks_helios)
def read_helios(path: str | Path, *, zone: str = ZONE, bad_rows: str = "raise") -> Trace:
    """Read the job log of one cluster.

    ``duration`` and ``queue`` are the source's; the notes count the rows where they are not end
    minus start and start minus submission. ``queue`` is kept as ``source_queue``. Time 0 is the
    first submission; rows are sorted by submission. A state without a meaning (one row says
    SUSPENDED) becomes ``unknown``.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        zone: IANA zone of its times.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require(*_LOG)
    return _trace(path, text, zone, text.text("job_id"), bad_rows)


@reader("acme-helios", extensions=(".csv",), sniff=_looks_joined)
def read_acme_helios(path: str | Path, *, zone: str = ZONE, bad_rows: str = "raise") -> Trace:
    """Read the four clusters' logs in one table.

    Only ``gpu_num`` and ``duration`` must be there; every other column of the logs is read where
    it is there, and is null where it is not. ``cluster`` is kept, and stands before the job's id
    and the virtual cluster's name (``Venus/5``), which are unique within a cluster only. Without
    a column ``job_id`` ids are ``helios-N`` with N the row in the file, from 1.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        zone: IANA zone of its times.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require("gpu_num", "duration")
    if "job_id" not in text.table.column_names:
        return _trace(path, text, zone, numbered(text, "helios"), bad_rows)
    return _trace(path, text, zone, _in_cluster(text, text.text("job_id")), bad_rows)


def _in_cluster(text: TextTable, names: Any) -> Any:
    """Return names with their cluster's before them, where the file has clusters."""
    if "cluster" not in text.table.column_names:
        return names
    return pc.binary_join_element_wise(text.text("cluster"), names, "/")


def _trace(path: str | Path, text: TextTable, zone: str, ids: Any, bad_rows: str) -> Trace:
    there = set(text.table.column_names)
    unknown = np.full(text.num_rows, np.nan)
    clocks = [text.clock(name) if name in there else unknown for name in _TIMES]
    (submit, in_submit), (start, in_start), (end, in_end) = (to_utc(c, zone) for c in clocks)
    repeated = int(in_submit.sum() + in_start.sum() + in_end.sum())
    epoch = first_of(submit)
    duration = text.floats("duration", what="a number of seconds")
    queued = numbers_if_there(text, "queue", what="a number of seconds")
    columns: dict[str, Any] = {
        "job_id": ids,
        "submit_time": seconds_since(submit, epoch),
        "start_time": seconds_since(start, epoch),
        "end_time": seconds_since(end, epoch),
        "duration": duration,
        "num_gpus": text.floats("gpu_num", what="a number of GPUs"),
        "num_cpus": numbers_if_there(text, "cpu_num", what="a number of CPUs"),
        "user": words_if_there(text, "user"),
        "vc": _in_cluster(text, words_if_there(text, "vc")),
        "source_queue": queued,
    }
    notes: tuple[str, ...] = ()
    if "node_num" in there:
        columns["num_tasks"], more = gang_size(text, "node_num")
        notes += more
    if "state" in there:
        columns["status"], more = states(text, "state", SLURM_STATES)
        notes += more
    if "cluster" in there:
        columns["cluster"] = text.text("cluster")
    if epoch is None:
        notes += ("The table has no times of submission: it cannot be replayed in time.",)
    if repeated:
        notes += (repeated_hour_note(repeated, zone),)
    run = seconds_since(end - start, None)
    wait = seconds_since(start - submit, None)
    check = (
        f"The source's duration differs from end minus start in {differing(run, duration):,} "
        f"rows, its queueing time from start minus submission in {differing(wait, queued):,}."
    )
    facts = Facts(
        LICENCE,
        named_epoch(text.file, epoch),
        None if epoch is None else zone,
        (check, *notes),
        _USED,
    )
    return trace_of(path, text, columns, facts, bad_rows)
