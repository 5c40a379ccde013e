"""Standard Workload Format 2.2 of the Parallel Workloads Archive (Feitelson).

Eighteen numbers a line, -1 = unknown, and ``; Key: value`` comments. One processor counts as one
GPU. Reference: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.traces.header import BOM, begun
from windtunnel.traces.layout import Field, Layout, Rows, number, whole, words
from windtunnel.traces.source import short_name
from windtunnel.traces.tabular import TextTable, parse_text
from windtunnel.traces.wallclock import iso, zone_info

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    lines = begun(head).splitlines()
    first = lines[0].strip() if lines else b""
    if first.startswith(b";"):
        return b";" not in first.lstrip(b";")
    return len(first.split()) == len(FIELDS) and _RECORD.fullmatch(first) is not None


def _without_comments(data: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the records with single blanks between fields, and the header's keys.

    Comments become blank lines, so that line numbers stay those of the file.
    """
    header: dict[str, str] = {}
    lines = data.removeprefix(BOM).splitlines()
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


@dataclass(frozen=True)
class _Log(TextTable):
    """The records of a log, and its header's keys."""

    header: Mapping[str, str] = field(default_factory=dict)


def _parsed(data: bytes, file: str) -> _Log:
    body, header = _without_comments(data)
    found = parse_text(body, file, delimiter=" ", quoted=False, columns=FIELDS)
    return _Log(found.file, found.table, found.lines, header)


def _number(source: str) -> Field:
    return number(source, "a number, or -1 where unknown", unknown=-1)


def _name(source: str) -> Field:
    return whole(source, "a whole number, or -1 where unknown", unknown=-1)


#: The columns of a record.
SWF = Layout(
    "swf",
    columns={
        "job_id": _name("job"),
        "submit_time": _number("submit"),
        "start_time": _number("wait"),
        "duration": _number("run"),
        "estimate": _number("requested_time"),
        "num_gpus": _number("procs"),
        "mem_gib": _number("requested_memory"),
        "user": _name("user"),
        "vc": _name("queue"),
        "template": _name("executable"),
        "status": words("status", _STATUS, ""),
        "group": _name("group"),
        "partition": _name("partition"),
        "preceding_job": _name("preceding_job"),
        "think_time": _number("think_time"),
    },
    ignored=("requested_procs", "used_memory", "average_cpu"),
    sniff=_looks_swf,
    extensions=(".swf",),
    parse=_parsed,
)


@SWF.reader
def read_swf(rows: Rows) -> None:
    """Read a log in the Standard Workload Format.

    ``num_gpus`` is field 5, else 8; ``estimate`` field 9; ``mem_gib`` field 10, else 7, times the
    processors; ``vc`` the queue, ``template`` the executable. Group, partition, preceding job and
    think time are kept as further columns. A job cancelled (status 5) without a run time never
    started; its wait tells ``end_time``, when it left the queue. Header keys are kept in
    ``metadata.settings``.

    A job that was interrupted has one record for each of its parts (status 2, the last 3 or 4).
    One record is kept: the summary (status 0, 1, 5) where there is one, else the last part; the
    others are counted in ``metadata.dropped``.
    """
    for name in ("job_id", "user", "vc", "template", "group", "partition", "preceding_job"):
        rows[name] = rows[name].cast(pa.string())
    # The average CPU time is not kept, but a line whose fields have slipped is no record.
    others = ("requested_procs", "used_memory", "average_cpu")
    asked, used, _ = (rows.cells("num_gpus", _number(name)) for name in others)
    rows["num_gpus"] = pc.coalesce(rows["num_gpus"], asked)
    memory = pc.multiply(pc.coalesce(rows["mem_gib"], used), rows["num_gpus"])
    rows["mem_gib"] = pc.divide(memory, float(_KIB_PER_GIB))
    codes = rows.text.text("status")
    # A cancelled job without a run time never started: its wait says when it left the queue.
    never_ran = pc.and_(pc.equal(codes, _CANCELLED), pc.is_null(rows["duration"]))
    left = pc.add(rows["submit_time"], rows["start_time"])
    rows["start_time"] = pc.if_else(never_ran, pa.scalar(None, pa.float64()), left)
    ended = pc.add(rows["start_time"], rows["duration"])
    rows["end_time"] = pc.if_else(never_ran, left, ended)
    kept, notes = _whole_jobs(rows["job_id"], codes)
    rows.note(*notes)
    if len(kept) < rows.count:
        rows.keep(kept, "partial execution of an interrupted job")
    _tell_header(rows)


def _tell_header(rows: Rows) -> None:
    """Add what the header says: licence, epoch and zone, cluster, and all its keys."""
    header = cast("_Log", rows.text).header
    rows.epoch, zone, doubts = _epoch(header)
    cluster, more = _cluster(header, short_name(rows.path))
    rows.note(*doubts, *more)
    rows.beside["cluster"] = cluster
    licence = header.get("Acknowledge", "")
    rows.about |= {"licence": licence, "zone": zone, "settings": dict(header)}


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
    note = (
        f"{len(records):,} interrupted jobs are recorded in parts; of each one record is kept "
        "(the summary or the last part): run times of other parts are not counted."
    )
    notes = [note]
    if open_ended:
        notes.append(f"{open_ended:,} interrupted jobs have no last part: status running.")
    return np.setdiff1d(everything, left_out), tuple(notes)


def _epoch(header: Mapping[str, str]) -> tuple[float | None, str | None, tuple[str, ...]]:
    """Return epoch and zone from ``UnixStartTime`` and ``TimeZoneString``, and doubts."""
    notes: tuple[str, ...] = ()
    epoch = zone = None
    start = header.get("UnixStartTime")
    if start is not None:
        try:
            # 0 is what generators write: a log from 1970 there is not.
            epoch = float(start) if iso(float(start)) and float(start) > 0 else None
        except (ValueError, OverflowError, OSError):
            notes += (f"UnixStartTime {start[:40]!r} is not a number: the epoch is unknown.",)
    name = header.get("TimeZoneString")
    if name is not None:
        try:
            zone = zone_info(name).key
        except SpecError:
            notes += (f"TimeZoneString {name[:40]!r} is no known zone.",)
    return epoch, zone, notes


def _cluster(header: Mapping[str, str], name: str) -> tuple[ClusterSpec | None, tuple[str, ...]]:
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
