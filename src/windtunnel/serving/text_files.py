"""Text files of requests, plain or gzipped: rows of CSV, JSON lines, and the cells of both."""

from __future__ import annotations

import csv
import gzip
import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    Rows = Iterator[tuple[int, dict[str, str]]]

#: What a gzipped file begins with.
GZIP = b"\x1f\x8b"
#: Of a request: sums over a trace, and pairs of tokens, stay within 64 bits.
MOST_TOKENS = 10**9


def begins(file: Path, magic: bytes) -> bool:
    """Return whether a file begins with some bytes."""
    with file.open("rb") as raw:
        return raw.read(len(magic)) == magic


def open_text(file: Path, encoding: str = "utf-8", errors: str = "strict") -> io.TextIOBase:
    """Return a file's text, line ends as they are."""
    if begins(file, GZIP):
        return gzip.open(file, "rt", encoding=encoding, errors=errors, newline="")
    return file.open(encoding=encoding, errors=errors, newline="")


def json_lines(file: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return the objects of JSON lines with their lines in the file; empty lines are none.

    Raises:
        TraceError: a line is no object.
    """
    for row, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip()) from error
        if not isinstance(data, dict):
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip())
        yield row, data


def number(file: Path, row: int, column: str, value: Any, least: float = 0.0) -> float:
    """Return a cell as a finite number >= ``least``.

    Raises:
        TraceError: it is none.
    """
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, bool) or not least <= found < math.inf:
        at_least = "" if math.isinf(least) else f" >= {least:g}"
        raise TraceError(
            str(file), f"a finite number{at_least}", row=row, column=column, value=str(value)
        )
    return found


def csv_rows(file: Path, needed: Sequence[str]) -> Rows:
    """Yield the rows of a CSV file, plain or gzipped, with their lines in the file.

    Args:
        file: with a heading.
        needed: columns that it must have.

    Raises:
        TraceError: it lacks one of them, or a line is no such row.
        OSError: the file cannot be read.
    """
    with open_text(file, "utf-8-sig", "replace") as lines:
        rows = csv.DictReader(lines, restval="")
        try:
            columns = rows.fieldnames or ()
            for column in needed:
                if column not in columns:
                    raise TraceError.missing_column(str(file), column, columns)
            yield from numbered(file, rows)
        except (csv.Error, EOFError, gzip.BadGzipFile) as error:
            hint = str(error)
            raise TraceError(str(file), "a line of CSV", row=rows.line_num, hint=hint) from error


def numbered(file: Path, reader: csv.DictReader[str], above: int = 0) -> Rows:
    """Return rows with their lines in the file, of which ``above`` were read before.

    Raises:
        TraceError: a row has more cells than the heading.
    """
    for row in reader:
        more: Any = row.pop(None, ())  # what csv has left over
        if any(more):
            expected = f"{len(reader.fieldnames or ())} cells, as in the heading"
            found = ",".join([*row.values(), *more])
            raise TraceError(str(file), expected, row=reader.line_num + above, value=found)
        yield reader.line_num + above, row


def tokens(file: Path, row: int, column: str, value: Any) -> int:
    """Return a cell as a number of tokens.

    Raises:
        TraceError: it is no whole number >= 0, or beyond any prompt.
    """
    found = number(file, row, column, value)
    if found != int(found) or found > MOST_TOKENS:
        expected = f"a whole number from 0 to {MOST_TOKENS}"
        raise TraceError(str(file), expected, row=row, column=column, value=str(value))
    return int(found)


def instant(file: Path, row: int, column: str, text: str) -> tuple[int, float]:
    """Return whole seconds and the fraction of a time stamp; without an offset it is UTC.

    Raises:
        TraceError: it is none.
    """
    before, _, after = text.strip().partition(".")
    fraction = after[: len(after) - len(after.lstrip("0123456789"))]
    try:
        moment = datetime.fromisoformat(before + after[len(fraction) :])
        part = float(f"0.{fraction}") if fraction else 0.0
    except ValueError as error:
        raise TraceError(
            str(file), "a time like 2023-11-16 18:17:03.97", row=row, column=column, value=text
        ) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()), part
