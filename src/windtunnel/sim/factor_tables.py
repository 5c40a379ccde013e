"""Tables of measured slow-downs as CSV: speeds of jobs spread over nodes, and of jobs that share.

Both begin with a header line. ``job_type`` (or ``workload``) is what a job's ``workload``, else its
``template``, is compared with.

* spread: ``job_type,num_gpus,factor``: speed over more nodes than needed / speed on as few as
  possible;
* share: ``job_type,other,factor,other_factor``: speeds of the two on one GPU / their speeds alone.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from windtunnel import storage
from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class SpreadFactor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Speed of one kind of job over more nodes than it needs.

    Attributes:
        job_type: its workload, or template.
        num_gpus: GPUs of the job.
        factor: speed / speed on as few nodes as possible.
    """

    job_type: str
    num_gpus: float
    factor: float


class ShareFactor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Speeds of two kinds of jobs on one GPU.

    Attributes:
        job_type: workload, or template, of the one.
        other: of the other.
        factor: speed of the one / its speed alone.
        other_factor: the same for the other.
    """

    job_type: str
    other: str
    factor: float
    other_factor: float


_Factor = TypeVar("_Factor", SpreadFactor, ShareFactor)


def read_spread(path: str | Path) -> tuple[SpreadFactor, ...]:
    """Read a table of spread factors.

    Raises:
        TraceError: the file is missing, lacks a column, or a cell is no number.
    """
    return _read(path, SpreadFactor)


def read_share(path: str | Path) -> tuple[ShareFactor, ...]:
    """Read a table of share factors.

    Raises:
        TraceError: the file is missing, lacks a column, or a cell is no number.
    """
    return _read(path, ShareFactor)


def write_factors(rows: Iterable[SpreadFactor | ShareFactor], path: str | Path) -> None:
    """Write a table that `read_spread` or `read_share` reads back."""
    rows = list(rows)
    names = (type(rows[0]) if rows else SpreadFactor).__struct_fields__
    with (
        storage.replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def _read(path: str | Path, kind: type[_Factor]) -> tuple[_Factor, ...]:
    """Return the rows of a table, whose columns are the fields of a kind of factor."""
    file, words = str(path), ("job_type", "other")
    found = []
    for line, row in _rows(path, kind.__struct_fields__):
        cells: list[Any] = [
            row[name] if name in words else _number(row, name, file, line)
            for name in kind.__struct_fields__
        ]
        found.append(kind(*cells))
    return tuple(found)


def _rows(path: str | Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, column -> cell), blank lines left out."""
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(file, "a CSV file that can be read", hint=f"{error}.") from error
    reader = csv.reader(text.splitlines(), strict=True)
    names: list[str] | None = None
    try:
        for cells in reader:
            line = reader.line_num
            if not cells:
                continue
            if names is None:
                names = ["job_type" if c.strip() == "workload" else c.strip() for c in cells]
                for column in columns:
                    if column not in names:
                        raise TraceError.missing_column(file, column, names)
                continue
            if len(cells) != len(names):
                expected = f"{len(names)} cells, as in the header line"
                raise TraceError(file, expected, row=line, value=len(cells))
            yield line, dict(zip(names, map(str.strip, cells), strict=True))
    except csv.Error as error:
        hint = f"{error}."
        raise TraceError(file, "a line of CSV", row=reader.line_num, hint=hint) from error
    if names is None:
        raise TraceError(file, f"a header line: {','.join(columns)}")


def _number(row: dict[str, str], column: str, file: str, line: int) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TraceError(file, "a number", row=line, column=column, value=row[column])
    return value
