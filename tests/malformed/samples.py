"""What a sample is: a small valid file of a format, and how it is read and counted."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grids import records

from windtunnel import open_trace
from windtunnel.telemetry import open_telemetry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from grids import Grid

    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class Reading:
    """What a reader gave for a file.

    Attributes:
        rows_read: records that it says it found.
        dropped: those that it says it left out.
        table: jobs, or samples.
        notes: its notes.
        trace: the trace, where it is one.
    """

    rows_read: int
    dropped: dict[str, int]
    table: pa.Table
    notes: tuple[str, ...]
    trace: Trace | None = None


@dataclass(frozen=True)
class Sample:
    """A valid file.

    Attributes:
        name: what the tests call it: its reader, and which of the reader's files.
        file: its name in a folder.
        data: its bytes.
        records: how many measurements or jobs it holds.
        read: reads it from the disk.
        count: counts the records in a content, in another way than the reader; None = nobody can
            tell.
        grid: the same as cells, where it is delimited text.
        tree: the same as JSON values.
        table: the same as Arrow table, where it is Parquet.
        ids: the job of each record, in the file's order; empty where it is not known.
        coupled: columns that say something about other records, too.
        beside: other files of the folder.
        cost: how many files may be tried, in percent of the usual number.
    """

    name: str
    file: str
    data: bytes
    records: int
    read: Callable[[Path], Reading]
    count: Callable[[bytes], int | None]
    grid: Grid | None = None
    tree: Any = None
    table: pa.Table | None = None
    ids: tuple[str, ...] = ()
    coupled: frozenset[str] = frozenset()
    beside: dict[str, bytes] = field(default_factory=dict)
    cost: int = 100

    def __repr__(self) -> str:
        return f"Sample({self.name!r})"

    def write(self, folder: Path, data: bytes, suffix: str = "") -> Path:
        """Put a content in the sample's place, the files beside it too; return its path."""
        for name, other in self.beside.items():
            (folder / name).write_bytes(other)
        path = folder / (self.file + suffix)
        for other in ("", ".gz"):  # of an earlier file of the sample
            (folder / (self.file + other)).unlink(missing_ok=True)
        path.write_bytes(data)
        return path


def reading_trace(name: str, *, folder: bool = False, main: str = "", **options: Any) -> Any:
    """Return a function that reads a trace.

    Args:
        name: the reader.
        folder: it is given the file's folder.
        main: it is given this file of the folder; empty = the file itself.
        options: for the reader.
    """

    def read(path: Path) -> Reading:
        target = path.parent if folder else path.with_name(main) if main else path
        trace = open_trace(target, format=name, **options)
        about = trace.metadata
        return Reading(about.rows_read, about.dropped, trace.jobs, about.notes, trace)

    return read


def reading_telemetry(name: str, **options: Any) -> Any:
    """Return a function that reads telemetry."""

    def read(path: Path) -> Reading:
        telemetry = open_telemetry(path, format=name, **options)
        table = telemetry.table()
        return Reading(telemetry.rows_read, telemetry.dropped, table, telemetry.notes)

    return read


def unpacked(data: bytes) -> bytes | None:
    """Return a content without its gzip, None where it is broken."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


def counting(sample: Grid, *, names: int | None = None) -> Callable[[bytes], int | None]:
    """Return a counter of delimited text.

    Args:
        sample: says how it is written.
        names: columns that are no measurement, where the others are one each; None = a record is
            one.
    """

    def count(data: bytes) -> int | None:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        found = records(text, sample.mark, quoted=sample.quoted)
        width = 1 if names is None or not found else sum(map(bool, found[0].cells)) - names
        if any(len(r.cells) == 1 and not r.cells[0].strip() for r in found):
            return None  # a line of blanks is a wrong row to some, none to others
        return (len(found) - sample.has_header) * width

    return count


def counting_lines(comment: str) -> Callable[[bytes], int | None]:
    """Return a counter of lines that are neither blank nor a comment."""

    def count(data: bytes) -> int | None:
        # A comment may hold any byte; only \n and \r end a line.
        lines = re.split(r"\r\n|\r|\n", data.decode("utf-8-sig", errors="replace"))
        return sum(bool(t.strip(" \t\v\f")) and not t.lstrip(" \t").startswith(comment)
                   for t in lines)  # fmt: skip

    return count


def counting_json(records_of: Callable[[Any], int]) -> Callable[[bytes], int | None]:
    """Return a counter of a JSON value's records."""

    def count(data: bytes) -> int | None:
        try:
            value = json.loads(data.decode("utf-8-sig"))
            return records_of(value)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return None

    return count


def uncountable(_: bytes) -> None:
    """Count nothing: for contents whose records only their reader can tell."""
