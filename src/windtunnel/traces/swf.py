"""Standard Workload Format 2.2 of the Parallel Workloads Archive (Feitelson).

Eighteen numbers a line, -1 = unknown, and ``; Key: value`` comments. One processor counts as one
GPU. Reference: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.schema import conform_rows
from windtunnel.traces.order import by_submission
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, short_name, source_name
from windtunnel.traces.tabular import TextTable, parse_text
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.wallclock import iso, zone_info

if TYPE_CHECKING:
    from pathlib import Path

#: The eighteen fields, in order.
FIELDS: tuple[str, ...] = (
    "job",
    "submit",
    "wait",
    "run",
    "procs",
    "average_cpu",
    "used_memory",
    "requested_procs",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_RECORD = re.compile(rb"[-+.0-9eE\s]+")
_KIB_PER_GIB = 1024**2
#: Codes 2, 3 and 4 are parts of a job that was interrupted: "will be continued", and the last part.
_STATUS = {
    "-1": None,
    "0": "failed",
    "1": "completed",
    "2": "running",
    "3": "completed",
    "4": "failed",
    "5": "cancelled",
}
_PART, _LAST_PARTS = "2", ("3", "4")
_CANCELLED = "5"


def _looks_swf(head: bytes) -> bool:
    """Return whether a file begins with a comment of SWF's, or with a record."""
    lines = head.removeprefix(b"\xef\xbb\xbf").lstrip().splitlines()
    first = lines[0].strip() if lines else b""
    if first.startswith(b";"):
        return b";" not in first.lstrip(b";")
    return len(first.split()) == len(FIELDS) and _RECORD.fullmatch(first) is not None


@reader("swf", extensions=(".swf",), sniff=_looks_swf)
def read_swf(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read a log in the Standard Workload Format.

    ``num_gpus`` is field 5, else 8; ``estimate`` field 9; ``mem_gib`` field 10, else 7, times the
    processors; ``vc`` the queue, ``template`` the executable. Group, partition, preceding job and
    think time are kept as further columns. A job cancelled (status 5) without a run time never
    started; its wait tells ``end_time``, when it left the queue. Header keys are kept in
    ``metadata.settings``.

    A job that was interrupted has one record for each of its parts (status 2, the last 3 or 4).
    One record is kept: the summary (status 0, 1, 5) where there is one, else the last part; the
    others are counted in ``metadata.dropped``.

    Args:
        path: plain or gzip file; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: not such a log; names the line.
        SchemaError: rules of the schema are broken (an id twice, an end before its start).
    """
    file = source_name(path)
    body, header = _without_comments(read_bytes(path))
    text = parse_text(body, file, delimiter=" ", quoted=False, columns=FIELDS)
    table, statuses = _columns(text)
    kept, notes = _whole_jobs(table["job_id"], statuses)
    dropped = text.num_rows - len(kept)
    lines: Any = text.lines
    if dropped:
        table, lines = table.take(kept), np.asarray(text.lines)[kept]
    table, lines, moved = by_submission(table, lines)
    if moved:
        notes = (*notes, "The log is not in order of submission; it was sorted, ties kept.")
    epoch, zone, more = _epoch(header)
    cluster, doubts = _cluster(header, short_name(path))
    jobs, left_out = conform_rows(table, bad_rows=bad_rows, source=file, lines=lines)
    parts = {"partial execution of an interrupted job": dropped} if dropped else {}
    return Trace(
        jobs,
        TraceMetadata(
            name=short_name(path),
            source=file,
            licence=header.get("Acknowledge", ""),
            epoch=epoch,
            zone=zone,
            rows_read=text.num_rows,
            dropped={**parts, **left_out},
            notes=(*notes, *more, *doubts),
            settings=dict(header),
        ),
        cluster=cluster,
    )


def _without_comments(data: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the records with single blanks between fields, and the header's keys.

    Comments become blank lines, so that line numbers stay those of the file.
    """
    header: dict[str, str] = {}
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    for index, line in enumerate(lines):
        if line.lstrip().startswith(b";"):
            lines[index] = b""
            # Comments are for people: a stray byte in one must not make the log unreadable.
            key, colon, value = line.decode(errors="replace").strip(" ;\t").partition(":")
            if colon and key.strip():
                name = key.strip()
                header[name] = (
                    f"{header[name]}\n{value.strip()}" if name in header else value.strip()
                )
        else:
            lines[index] = b" ".join(line.split())
    return b"\n".join(lines) + b"\n" if any(lines) else b"\n", header


def _columns(text: TextTable) -> tuple[pa.Table, pa.ChunkedArray]:
    """Return the schema's columns, and the status codes as text."""

    def number(name: str) -> Any:
        values = text.floats(name, what="a number, or -1 where unknown")
        return pc.if_else(pc.equal(values, -1), pa.scalar(None, pa.float64()), values)

    def word(name: str) -> Any:
        values = text.integers(name, what="a whole number, or -1 where unknown").cast(pa.string())
        return pc.if_else(pc.equal(values, "-1"), pa.scalar(None, pa.string()), values)

    number("average_cpu")  # is not kept, but a line whose fields have slipped is no record
    submit, wait, run = number("submit"), number("wait"), number("run")
    gpus = pc.coalesce(number("procs"), number("requested_procs"))
    left = pc.add(submit, wait)
    memory = pc.coalesce(number("requested_memory"), number("used_memory"))
    codes = text.text("status")
    # A cancelled job without a run time never started: its wait says when it left the queue.
    never_ran = pc.and_(pc.equal(codes, _CANCELLED), pc.is_null(run))
    start = pc.if_else(never_ran, pa.scalar(None, pa.float64()), left)
    known = {code: meaning or "" for code, meaning in _STATUS.items()}
    status = text.mapped("status", known)
    table = pa.table(
        {
            "job_id": word("job"),
            "submit_time": submit,
            "start_time": start,
            "end_time": pc.if_else(never_ran, left, pc.add(start, run)),
            "duration": run,
            "estimate": number("requested_time"),
            "num_gpus": gpus,
            "mem_gib": pc.divide(pc.multiply(memory, gpus), float(_KIB_PER_GIB)),
            "user": word("user"),
            "vc": word("queue"),
            "template": word("executable"),
            "status": pc.if_else(pc.equal(status, ""), pa.scalar(None, pa.string()), status),
            "group": word("group"),
            "partition": word("partition"),
            "preceding_job": word("preceding_job"),
            "think_time": number("think_time"),
        }
    )
    return table, codes


def _whole_jobs(ids: pa.ChunkedArray, codes: pa.ChunkedArray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the rows to keep, one a job, int64 ascending, and what to tell about the others.

    Only records of an interrupted job are ever left out; other repeated ids stay and break the
    schema, which reports them.
    """
    parts = pc.is_in(codes, value_set=pa.array([_PART, *_LAST_PARTS]))
    rows = np.flatnonzero(parts.to_numpy(zero_copy_only=False))
    everything = np.arange(len(ids))
    if len(rows) == 0:
        return everything, ()
    names = pc.unique(ids.take(rows))
    records: dict[str | None, list[int]] = {}
    for row in np.flatnonzero(
        pc.is_in(ids, value_set=names, skip_nulls=True).to_numpy(zero_copy_only=False)
    ).tolist():
        records.setdefault(ids[row].as_py(), []).append(row)
    left_out: list[int] = []
    open_ended = 0
    for same in records.values():
        kinds = [codes[row].as_py() for row in same]
        whole = [row for row, kind in zip(same, kinds, strict=True) if kind not in "234"]
        last = [row for row, kind in zip(same, kinds, strict=True) if kind in _LAST_PARTS]
        keep = whole or last or same[-1:]
        open_ended += not whole and not last
        left_out += [row for row in same if row not in keep]
    told = (
        f"{len(records):,} interrupted jobs are recorded in parts; of each one record is kept "
        "(the summary or the last part): run times of other parts are not counted."
    )
    notes: tuple[str, ...] = (told,)
    if open_ended:
        notes += (f"{open_ended:,} interrupted jobs have no last part: status running.",)
    return np.setdiff1d(everything, left_out), notes


def _epoch(header: dict[str, str]) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return epoch and zone from ``UnixStartTime`` and ``TimeZoneString``, and doubts."""
    notes: tuple[str, ...] = ()
    epoch = zone = None
    start = header.get("UnixStartTime")
    if start is not None:
        try:
            # 0 is what generators write: a log from 1970 there is not.
            epoch = iso(float(start)) if float(start) > 0 else None
        except (ValueError, OverflowError, OSError):
            notes += (f"UnixStartTime {start[:40]!r} is not a number: the epoch is unknown.",)
    name = header.get("TimeZoneString")
    if name is not None:
        try:
            zone = zone_info(name).key
        except SpecError:
            notes += (f"TimeZoneString {name[:40]!r} is no known zone.",)
    return epoch, zone, notes


def _cluster(header: dict[str, str], name: str) -> tuple[ClusterSpec | None, tuple[str, ...]]:
    """Return the cluster that ``MaxProcs`` and ``MaxNodes`` describe, where they do."""
    if "MaxProcs" not in header:
        return None, ()
    try:
        procs = int(header["MaxProcs"])
        nodes = int(header.get("MaxNodes", "0"))
        if nodes > 0 and procs % nodes == 0:
            return ClusterSpec.uniform(nodes, procs // nodes, name=name), ()
        return ClusterSpec.pool(procs, name=name), ()
    except (ValueError, SpecError):
        shown = header["MaxProcs"][:40]
        return None, (f"MaxProcs {shown!r} is not a number of processors: cluster unknown.",)
