"""Rows of wide files by time: each time once, in order, without holding the rows.

A first pass remembers of each row only its time and where it stands; there are about a hundred
thousand rows a metric, however wide. Where they are in order already, the second pass is a plain
read; else it picks the rows one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import TraceError
from windtunnel.telemetry.blocks import BLOCK_BYTES, Block, after_header, is_gzip, line_blocks
from windtunnel.telemetry.clock import moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from windtunnel.telemetry.blocks import Header, Meter


@dataclass(frozen=True)
class _Index:
    """Where the rows of several files stand, one entry a row, in the order of the files.

    Attributes:
        file: number of the file, int64, shape (rows,).
        offset: first byte of the row in its (unpacked) file, int64.
        length: bytes of the row with its end, int64.
        line: 1-based line in its file, int64.
        time: UTC seconds since 1970, float64.
    """

    file: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    line: np.ndarray
    time: np.ndarray


def indexed_blocks(
    files: Sequence[Path], column: str, zone: str, meter: Meter, *, unique: bool, ordered: bool
) -> Iterator[tuple[Path, Header, Block, int]]:
    """Yield blocks of rows, each with its file, that file's header and rows left out before it.

    Args:
        files: the parts of one table, in order.
        zone: IANA zone of times without an offset.
        meter: counts the bytes read, those of the second pass.
        unique: leave out a row whose time stood before, as files are ordered.
        ordered: yield rows in the order of time, equal times in the order of the files.

    Raises:
        TraceError: a file cannot be read, a time is no time, or a gzip file is not in order.
    """
    headers = [after_header(line_blocks(path), str(path))[0] for path in files]
    index = _indexed(files, headers, column, zone)
    kept = np.ones(len(index.time), bool)
    if unique:
        kept[:] = False
        kept[np.unique(index.time, return_index=True)[1]] = True
    for number, (path, header) in enumerate(zip(files, headers, strict=True)):
        repeats = int((~kept & (index.file == number)).sum())
        if repeats:
            yield path, header, Block(b"", header.line, header.offset), repeats
    rows = np.flatnonzero(kept)
    if ordered:
        rows = rows[np.argsort(index.time[rows], kind="stable")]
    if len(rows) == len(kept) and bool((np.diff(rows) == 1).all()):
        for path, header in zip(files, headers, strict=True):
            for block in after_header(line_blocks(path, meter), str(path))[1]:
                yield path, header, block, 0
        return
    for number, block in _picked(files, index, rows):
        meter.advance(len(block.data))
        yield files[number], headers[number], block, 0


def _indexed(files: Sequence[Path], headers: Sequence[Header], column: str, zone: str) -> _Index:
    parts: list[list[np.ndarray]] = []
    for number, (path, header) in enumerate(zip(files, headers, strict=True)):
        if column not in header.names:
            raise TraceError.missing_column(str(path), column, header.names)
        place = header.names.index(column)
        for block in after_header(line_blocks(path), str(path))[1]:
            offsets, lengths, lines, cells = _rows(block, place)
            if not len(cells):
                continue
            time = moments(
                pa.chunked_array([pa.array(cells, pa.string())]), zone,
                file=str(path), column=column, line=lines.__getitem__,
            )  # fmt: skip
            parts.append([np.full(len(time), number), offsets, lengths, np.asarray(lines), time])
    if not parts:
        parts.append([np.empty(0, np.int64)] * 4 + [np.empty(0)])
    file, offset, length, line, time = (np.concatenate(of) for of in zip(*parts, strict=True))
    return _Index(file, offset, length, line, time)


def _rows(block: Block, place: int) -> tuple[np.ndarray, np.ndarray, list[int], list[str | None]]:
    """Return where a block's rows stand, their lines, and the text of their times."""
    offsets, lengths, lines, cells = [], [], [], []
    start = block.offset
    for number, text in enumerate(block.data.splitlines(keepends=True), block.line):
        if text.strip():
            fields = text.split(b",", place + 1)
            cell = fields[place].strip().strip(b'"') if place < len(fields) else b""
            offsets.append(start)
            lengths.append(len(text))
            lines.append(number)
            cells.append(cell.decode(errors="replace") or None)
        start += len(text)
    return np.array(offsets, np.int64), np.array(lengths, np.int64), lines, cells


def _picked(files: Sequence[Path], index: _Index, rows: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Yield chosen rows in the order given, as blocks of one file each.

    A block begins anew where its lines would not follow one another, so that line numbers hold.
    """
    if not len(rows):
        return
    follows = (
        (np.diff(index.file[rows]) == 0)
        & (np.diff(rows) == 1)
        & (np.diff(index.offset[rows]) == index.length[rows][:-1])
    )
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(rows)]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield from _run(files, index, rows[first:last])


def _run(files: Sequence[Path], index: _Index, rows: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Yield rows that stand one behind the other in one file, at most a block at a time."""
    number = int(index.file[rows[0]])
    path = files[number]
    if is_gzip(path):
        raise TraceError(
            str(path),
            "rows in the order of time, each time once",
            hint="Rows of a gzip file cannot be picked one by one: gunzip it first.",
        )
    begin = 0
    sizes = np.cumsum(index.length[rows])
    while begin < len(rows):
        taken = int(np.searchsorted(sizes, (sizes[begin - 1] if begin else 0) + BLOCK_BYTES)) + 1
        part = rows[begin : max(begin + 1, taken)]
        with path.open("rb") as stream:
            stream.seek(int(index.offset[part[0]]))
            data = stream.read(int(index.length[part].sum()))
        yield number, Block(data, int(index.line[part[0]]), int(index.offset[part[0]]))
        begin += len(part)
