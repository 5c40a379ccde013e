"""What readers of published job tables share: zoned times, words of a state, what was not read.

A published table is read as it stands: a cell is cast or refused, never mended. Whatever a reader
interprets or leaves unread is said in the trace's notes, with counts; this module words them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError, quote
from windtunnel.schema import conform_rows
from windtunnel.traces.order import by_submission
from windtunnel.traces.source import short_name, source_name
from windtunnel.traces.tabular import MAX_GANG
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable

#: Slurm's words for how a job ended, as the Acme and Helios tables use them.
SLURM_STATES = {
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "timeout",
    "NODE_FAIL": "node_fail",
    "PREEMPTED": "preempted",
    "OUT_OF_MEMORY": "out_of_memory",
    "RUNNING": "running",
    "PENDING": "pending",
}
_INSTANT = pa.timestamp("us", "UTC")
_WORDS_SHOWN = 5


def header_has(head: bytes, *names: str, without: tuple[str, ...] = ()) -> bool:
    r"""Return whether a file's first line, as CSV, names all of ``names``, none of ``without``.

    >>> header_has(b"job_id,user\n1,u", "user"), header_has(b"a,b\n", "a", without=("b",))
    (True, False)
    """
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    try:
        row = next(csv.reader([line.decode().strip()]), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    found = {name.strip() for name in row}
    return found.issuperset(names) and not found.intersection(without)


def instants(text: TextTable, name: str) -> np.ndarray:
    """Return a column of times with an offset from UTC as UTC seconds since 1970.

    Returns:
        float64, shape (rows,), NaN = empty cell.

    Raises:
        TraceError: there is no such column, or a cell is not such a time.
    """
    cells = pc.utf8_trim_whitespace(text.text(name))
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    try:
        moments = cells.cast(_INSTANT)
    except pa.ArrowInvalid as error:
        row = _first_bad_instant(cells)
        raise TraceError(
            text.file,
            "a time with its offset, as YYYY-MM-DD HH:MM:SS+HH:MM",
            row=int(text.lines[row]),
            column=name,
            value=cells[row].as_py(),
        ) from error
    seconds = moments.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(seconds.to_numpy()) / 1e6


def _first_bad_instant(cells: pa.ChunkedArray) -> int:
    """Return the first index that is no time with an offset, by bisection; there is one."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cells.slice(low, middle - low).cast(_INSTANT)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low


def states(
    text: TextTable, name: str, meaning: dict[str, str], *, unknown: str | None = "unknown"
) -> tuple[pa.ChunkedArray, tuple[str, ...]]:
    """Return a column of states in the schema's words; other words become ``unknown``.

    Args:
        text: the table.
        name: the column.
        meaning: the source's word -> ours.
        unknown: what a word without a meaning becomes; None = null.

    Returns:
        Strings, null = empty cell; and notes: none, or one that counts the other words.

    Raises:
        TraceError: there is no such column.
    """
    cells = pc.utf8_trim_whitespace(text.text(name))
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    index = pc.index_in(cells, value_set=pa.array(list(meaning), pa.string()))
    ours = pc.take(pa.array(list(meaning.values()), pa.string()), index)
    strange = pc.and_(pc.is_null(index), pc.is_valid(cells))
    words = pc.value_counts(cells.filter(strange)).to_pylist()
    if not words:
        return ours, ()
    words.sort(key=lambda word: (-word["counts"], word["values"]))
    shown = ", ".join(f"{quote(w['values'])} ({w['counts']:,})" for w in words[:_WORDS_SHOWN])
    more = f" and {len(words) - _WORDS_SHOWN:,} others" if len(words) > _WORDS_SHOWN else ""
    note = f"States read as {unknown or 'not known'}: {shown}{more}."
    return pc.if_else(strange, pa.scalar(unknown, pa.string()), ours), (note,)


def seconds_since(moments: np.ndarray, epoch: float | None) -> pa.Array:
    """Return instants as seconds since the epoch (None = 0), NaN as null, float64."""
    return pa.array(moments - (epoch or 0.0), pa.float64(), from_pandas=True)


def first_of(moments: np.ndarray) -> float | None:
    """Return the earliest known instant, None where none is known."""
    known = moments[np.isfinite(moments)]
    return float(known.min()) if len(known) else None


def differing(ours: Any, theirs: Any) -> int:
    """Return in how many rows two numeric columns are both known and not equal."""
    return int(pc.sum(pc.not_equal(ours, theirs)).as_py() or 0)


def gang_size(text: TextTable, name: str) -> tuple[pa.ChunkedArray, tuple[str, ...]]:
    """Return a column of node counts as gang sizes; 0 nodes means that the size is unknown.

    Returns:
        int32, null = unknown; and notes: none, or one that counts the zeros.

    Raises:
        TraceError: there is no such column, or a cell is not a whole number of nodes.
    """
    counts = text.integers(name, what="a whole number of nodes", largest=MAX_GANG)
    nowhere = pc.equal(counts, 0)
    zeros = int(pc.sum(nowhere).as_py() or 0)
    sizes = pc.if_else(nowhere, pa.scalar(None, pa.int64()), counts)
    note = f"{zeros:,} rows name 0 nodes: their gang size is unknown."
    return sizes, (note,) * bool(zeros)


def numbers_if_there(text: TextTable, name: str, *, what: str = "a number") -> Any:
    """Return a column as float64, all null where the file has no such column.

    Raises:
        TraceError: a cell is not a number, or infinite.
    """
    if name not in text.table.column_names:
        return pa.nulls(text.num_rows, pa.float64())
    return text.finite(name, what=what)


def words_if_there(text: TextTable, name: str) -> Any:
    """Return a column as text, all null where the file has no such column."""
    if name not in text.table.column_names:
        return pa.nulls(text.num_rows, pa.string())
    return text.text(name)


def numbered(text: TextTable, stem: str) -> pa.Array:
    """Return ids ``stem-N`` with N the row in the file, from 1."""
    return pa.array([f"{stem}-{row}" for row in range(1, text.num_rows + 1)], pa.string())


@dataclass(frozen=True)
class Facts:
    """What a reader knows about its table beside the rows.

    Attributes:
        licence: the data's licence, as the source states it.
        epoch: UTC instant of time 0 as ISO 8601 text, None where unknown.
        zone: IANA zone of the source's wall clock, None where times are relative.
        notes: what a reader of results must know, one sentence each.
        used: columns of the file that were read or are derived from those that were.
    """

    licence: str
    epoch: str | None = None
    zone: str | None = None
    notes: tuple[str, ...] = ()
    used: frozenset[str] = field(default_factory=frozenset)

    def noting(self, *notes: str) -> Facts:
        """Return the same facts with further notes."""
        return replace(self, notes=(*self.notes, *notes))


def trace_of(
    path: str | Path, text: TextTable, columns: dict[str, Any], facts: Facts, bad_rows: str
) -> Trace:
    """Return the trace of a table whose every row is a job, in order of submission.

    Raises:
        SchemaError: rules of the schema are broken.
        SpecError: ``bad_rows`` is none of `windtunnel.schema.BAD_ROWS`.
    """
    file = source_name(path)
    table, lines, moved = by_submission(pa.table(columns), text.lines)
    unread = [quote(name) for name in text.table.column_names if name not in facts.used]
    if moved:
        facts = facts.noting("Rows were sorted by submission, ties in the file's order.")
    if unread:
        facts = facts.noting(f"Columns of the file that were not read: {', '.join(unread)}.")
    jobs, dropped = conform_rows(table, bad_rows=bad_rows, source=file, lines=lines)
    return Trace(
        jobs,
        TraceMetadata(
            name=short_name(path),
            source=file,
            licence=facts.licence,
            epoch=facts.epoch,
            zone=facts.zone,
            rows_read=text.num_rows,
            dropped=dropped,
            notes=facts.notes,
        ),
    )
