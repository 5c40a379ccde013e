"""The end of every reader: columns of jobs become a trace, sorted, checked, with its notes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.schema import conform_rows
from windtunnel.traces.source import short_name, source_name
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.wallclock import named_epoch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


def by_submission(
    table: pa.Table, lines: Sequence[int] | np.ndarray
) -> tuple[pa.Table, Sequence[int] | np.ndarray, bool]:
    """Sort rows by ``submit_time``, equal times in the source's order, unknown times last.

    Args:
        table: has a float64 column ``submit_time``.
        lines: line of each row in the source, shape (rows,).

    Returns:
        The table, the lines in its new order, and whether anything moved.
    """
    submit = np.asarray(table["submit_time"].to_numpy(), dtype=np.float64)  # null becomes NaN
    if not np.isnan(submit).any() and bool(np.all(submit[1:] >= submit[:-1])):
        return table, lines, False
    order = np.argsort(submit, kind="stable")
    if bool(np.all(order == np.arange(len(order)))):
        return table, lines, False
    return table.take(order), np.asarray(lines)[order], True


def _spelt_alike(table: pa.Table, notes: list[str]) -> pa.Table:
    """Spell GPU types that differ by case alone as the one that comes first, and say so."""
    at = table.column_names.index("gpu_type") if "gpu_type" in table.column_names else -1
    if at < 0 or not pa.types.is_string(table.schema.field(at).type):
        return table
    cells = table.column(at).combine_chunks().dictionary_encode()
    words = cells.dictionary.to_pylist()
    first: dict[str, str] = {}
    spelt = [
        "|".join(dict.fromkeys(first.setdefault(kind.lower(), kind) for kind in cell.split("|")))
        for cell in words
    ]
    if spelt == words:
        return table
    notes.append("GPU types that differ by case alone are taken as one, as first spelt.")
    return table.set_column(at, "gpu_type", pa.array(spelt, pa.string()).take(cells.indices))


def job_trace(
    path: str | Path,
    columns: Mapping[str, Any] | pa.Table,
    lines: Sequence[int] | np.ndarray,
    *,
    bad_rows: str,
    notes: Iterable[str] = (),
    epoch: float | None = None,
    counted: str = "",
    dropped: Mapping[str, int] | None = None,
    ids_unique: bool = False,
    beside: Mapping[str, Any] | None = None,
    **about: Any,
) -> Trace:
    """Return the trace of a table whose every row is a job, in order of submission.

    Args:
        path: the file; ``-`` = standard input.
        columns: our columns, arrays of one length.
        lines: line of each row in the file, shape (rows,).
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.
        epoch: UTC seconds since 1970 of time 0; None = not known.
        counted: what ``lines`` counts, where that is no line (``rows are jobs of the list``).
        dropped: what the reader left out itself: reason -> count.
        ids_unique: ids were made so that none is there twice.
        beside: other attributes of the trace, such as its ``cluster``.
        about: further attributes of its metadata.

    Raises:
        SchemaError: rules of the schema are broken.
        SpecError: ``bad_rows`` is none of `windtunnel.schema.BAD_ROWS`.
        TraceError: the epoch is no date.
    """
    file = source_name(path)
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    rows_read, sentences = table.num_rows, list(notes)
    table, lines, moved = by_submission(_spelt_alike(table, sentences), lines)
    if moved:
        sentences.append("Rows were sorted by submission, ties in the file's order.")
    source = f"{file} ({counted})" if counted else file
    jobs, left_out = conform_rows(
        table, bad_rows=bad_rows, source=source, lines=lines, ids_unique=ids_unique
    )
    left_out = {**(dropped or {}), **left_out}
    metadata = TraceMetadata(
        name=short_name(path),
        source=file,
        epoch=named_epoch(file, epoch),
        rows_read=rows_read + sum((dropped or {}).values()),
        dropped={reason: count for reason, count in left_out.items() if count},
        notes=tuple(sentences),
    )
    return Trace(jobs, replace(metadata, **about), **(beside or {}))


def counted(entries: Iterable[tuple[Any, str]]) -> list[str]:
    """Return a sentence for each count, or mask that is counted, that is not 0: words: count."""
    counts = ((int(np.sum(count)), words) for count, words in entries)
    return [f"{words}: {count:,}." for count, words in counts if count]
