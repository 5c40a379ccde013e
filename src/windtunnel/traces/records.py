"""Where the records of delimited text begin: line numbers and field counts.

Arrow's parser tells neither, so they are found again from the bytes, but only when they are
needed: for text with blank lines or line ends inside quotes, and to explain an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LF, _CR, _QUOTE = 10, 13, 34
#: Bytes looked at together: bounds the index arrays that numpy makes of them.
_CHUNK = 4 * 2**20


def locate(
    body: memoryview, rows: int, file: str, *, first_line: int, delimiter: str, quoted: bool
) -> Sequence[int] | np.ndarray:
    """Return the line of each of ``rows`` parsed rows, and check that none was swallowed.

    A record over several lines has text on its first and on its last line, so there are as many
    rows as lines with text exactly when every record is one line; then quotes need no thought.

    Args:
        body: the text behind the header; a view of bytes.

    Raises:
        TraceError: an opened quote is never closed, or quotes stand where rows cannot be
            distinguished.
    """
    data = body.obj if isinstance(body.obj, bytes) else bytes(body)
    start = len(data) - len(body)
    last = data[max(data.rfind(b"\n", start, len(data) - 1) + 1, start) :]
    # A quote opened in the last line swallows no line, so no count would show it.
    opens = last.startswith(b'"') or delimiter.encode() + b'"' in last
    cut = quoted and opens and last.count(b'"') % 2 == 1
    if not cut:
        ends = data.count(b"\n", start) + (not data.endswith(b"\n"))
        if ends == rows and data.count(b"\r", start) == data.count(b"\r\n", start):
            return range(first_line, first_line + rows)
        lines = line_numbers(bytes(body), file, first_line=first_line, quoted=False)
        if len(lines) == rows:
            return lines
    if quoted:
        _refuse_torn(bytes(body), file, first_line=first_line, delimiter=delimiter)
    lines = line_numbers(bytes(body), file, first_line=first_line, quoted=quoted)
    if len(lines) != rows:
        raise TraceError(
            file,
            f"{len(lines):,} records, but {rows:,} can be distinguished",
            hint="A double quote stands inside a field: quote whole fields, doubling the quotes "
            "in them.",
        )
    return lines


def _refuse_torn(body: bytes, file: str, *, first_line: int, delimiter: str) -> None:
    """Refuse a field over several lines with text behind its closing quote.

    Two stray quotes in different rows look like one such field, which swallows the rows between.
    """
    text = np.frombuffer(body, dtype=np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    opening, closing = quotes[: len(quotes) // 2 * 2 : 2], quotes[1::2]
    closing = closing[closing < len(text) - 1]
    behind = text[closing + 1]
    torn = ~np.isin(behind, [_LF, _CR, _QUOTE, ord(delimiter)])
    for at in np.flatnonzero(torn).tolist():
        begin = int(opening[at])
        if b"\n" in body[begin : int(closing[at])]:
            raise TraceError(
                file,
                "a delimiter or the end of the line behind a closing quote",
                row=first_line + body.count(b"\n", 0, begin),
                hint="Two quotes in different rows make one field of all between them: quote whole "
                "fields, doubling the quotes in them.",
            )


def line_numbers(body: bytes, file: str, *, first_line: int, quoted: bool) -> np.ndarray:
    """Return the 1-based line on which each record begins; blank lines are no records.

    Args:
        body: the text behind the header.
        quoted: line ends between double quotes belong to the record.

    Returns:
        int64, shape (records,).

    Raises:
        TraceError: a quote is opened and never closed.
    """
    spans = list(_records(body, quoted=quoted))
    if spans and spans[-1].open_quote:
        raise TraceError(
            file,
            "every opened double quote closed",
            row=first_line + _odd_line(body),
            hint="The file is cut inside a quoted field, or a quote stands alone in a field.",
        )
    if not spans:
        return np.empty(0, np.int64)
    lines: np.ndarray = np.concatenate([span.lines for span in spans]) + first_line
    return lines


def field_counts(body: bytes, delimiter: str, *, quoted: bool) -> np.ndarray:
    """Return the number of fields in each record, int64, shape (records,)."""
    spans = list(_records(body, quoted=quoted, delimiter=delimiter))
    if not spans:
        return np.empty(0, np.int64)
    counts: np.ndarray = np.concatenate([span.delimiters for span in spans]) + 1
    return counts


class _Span(NamedTuple):
    """Records that end in one chunk: their first lines (from 0) and delimiters; no blank ones."""

    lines: np.ndarray
    delimiters: np.ndarray
    open_quote: bool


def _records(body: bytes, *, quoted: bool, delimiter: str = "") -> Iterator[_Span]:
    """Yield the records chunk by chunk, carrying what spans two chunks."""
    text = body if body.endswith((b"\n", b"\r")) else body + b"\n"
    data = np.frombuffer(text, np.uint8)
    mark = ord(delimiter) if delimiter else -1
    parity = lines_before = pending = 0
    record_line, record_start = 0, 0
    for base in range(0, len(data), _CHUNK):
        chunk = data[base : base + _CHUNK]
        ends = _line_ends(data, base, chunk)
        quotes = np.flatnonzero(chunk == _QUOTE) if quoted else np.empty(0, np.int64)
        closes = (np.searchsorted(quotes, ends) + parity) % 2 == 0
        marks = np.flatnonzero(chunk == mark)
        marks = marks[(np.searchsorted(quotes, marks) + parity) % 2 == 0]
        record_ends = ends[closes]
        before = np.searchsorted(marks, record_ends) + pending
        after_lines = np.flatnonzero(closes) + lines_before + 1
        lines = np.concatenate([[record_line], after_lines])
        starts = np.concatenate([[record_start], record_ends + base + 1])
        lengths = record_ends + base - starts[:-1]
        carriage = (lengths == 1) & (data[np.minimum(starts[:-1], len(data) - 1)] == _CR)
        parity = (parity + len(quotes)) % 2
        kept = (lengths > 0) & ~carriage
        yield _Span(lines[:-1][kept], np.diff(before, prepend=0)[kept], bool(parity))
        lines_before += len(ends)
        pending = len(marks) + pending - (int(before[-1]) if len(before) else 0)
        record_line, record_start = int(lines[-1]), int(starts[-1])


def _line_ends(data: np.ndarray, base: int, chunk: np.ndarray) -> np.ndarray:
    """Return where lines end in the chunk: LF, or a CR that no LF follows."""
    ends = chunk == _LF
    returns = np.flatnonzero(chunk == _CR)
    if len(returns):
        following = data[np.minimum(returns + base + 1, len(data) - 1)]
        ends[returns[following != _LF]] = True
    return np.flatnonzero(ends)


def _odd_line(body: bytes) -> int:
    """Return the first line, from 0, with an odd number of double quotes."""
    for index, text in enumerate(body.split(b"\n")):
        if text.count(b'"') % 2:
            return index
    return 0
