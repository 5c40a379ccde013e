"""Text files of any size as blocks of whole lines, with line numbers and a count of bytes read.

A block holds what a few megabytes of text hold, whatever the file's size; lines are never cut. The
file may be gzip. What can go wrong below the level of rows becomes one `TraceError` here.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError
from windtunnel.traces.archive import grown
from windtunnel.traces.header import BOM, MAX_LINE, first_text, read_header
from windtunnel.traces.source import damaged, opened, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Bytes of text parsed at once.
BLOCK_BYTES = 16 * 2**20
#: A gzip file that grows by more than this factor is refused as a bomb: blank cells by the million
#: may reach some hundreds, the format's own limit is about 1,030 ...
MAX_RATIO = 900
#: ... once it has grown beyond this.
RATIO_FLOOR = 64 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"


class Meter:
    """Tells a caller how far a reading is, in bytes of the files as they lie on the disk.

    Args:
        total: bytes of all files.
        report: called with (bytes read, total) after each block; None = nobody asks.
    """

    def __init__(self, total: int, report: Callable[[int, int], None] | None = None) -> None:
        self.total = total
        self.done = 0
        self._report = report

    def advance(self, count: int) -> None:
        """Count bytes that were read."""
        self.done += count
        if self._report is not None and count:
            self._report(self.done, self.total)


@dataclass(frozen=True)
class Block:
    """Whole lines of a file.

    Attributes:
        data: the lines, the last one with or without its end.
        line: 1-based number of the first of them.
        offset: where they begin in the (unpacked) file, bytes.
    """

    data: bytes
    line: int
    offset: int


@dataclass(frozen=True)
class Header:
    """The first line of a delimited file.

    Attributes:
        names: its columns.
        line: 1-based number of the line behind it.
        offset: where that line begins, bytes.
    """

    names: list[str]
    line: int
    offset: int


def file_size(path: str | Path) -> int:
    """Return a file's size on the disk in bytes, 0 where it is not known."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def files_of(path: str | Path, *endings: str) -> tuple[Path, ...]:
    """Return the file, or those of a folder with one of some endings, plain or gzip, by name.

    Raises:
        TraceError: the folder has none.
    """
    folder = Path(path)
    if not folder.is_dir():
        return (folder,)
    ends = (*endings, *(f"{ending}.gz" for ending in endings))
    files = tuple(sorted(file for file in folder.iterdir() if file.name.endswith(ends)))
    if not files:
        raise TraceError(str(path), f"a folder with {' or '.join(endings)} files", hint="None is.")
    return files


def is_gzip(path: str | Path) -> bool:
    """Return whether a file begins as gzip does."""
    with opened(path) as raw:
        return raw.read(2) == _GZIP_MAGIC


def line_blocks(
    path: str | Path, meter: Meter | None = None, size: int | None = None
) -> Iterator[Block]:
    """Yield a text file as blocks of whole lines, without its byte order mark.

    Args:
        path: plain or gzip file, distinguished by the first bytes.
        meter: counts the bytes read; None = nobody asks.
        size: about how many bytes a block has; None = `BLOCK_BYTES`.

    Raises:
        TraceError: no such file, a folder, no permission, an empty file, a cut gzip file, a line
            longer than `windtunnel.traces.header.MAX_LINE`, NUL bytes or UTF-16.
    """
    name = str(path)
    size = size or BLOCK_BYTES
    with opened(path) as raw:
        packed = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        rest, line, offset, counted, unpacked = b"", 1, 0, 0, 0
        while chunk := _chunk(stream, name, size):
            if packed:
                unpacked += len(chunk)
                _check_growth(name, raw.tell(), unpacked)
            if meter is not None:
                meter.advance(raw.tell() - counted)
                counted = raw.tell()
            data = rest + chunk
            if not offset and line == 1:
                data, offset = _without_mark(data, name)
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if len(rest) > MAX_LINE:
                raise _too_long(name, line + _line_ends(data), rest)
            # Blank lines by the million (a bomb) are counted, not parsed.
            if cut and not (line > 1 and data[:cut].isspace()):
                yield Block(_without_nul(data[:cut], name, line), line, offset)
            line += _line_ends(data[:cut])
            offset += cut
        if rest:
            yield Block(_without_nul(rest, name, line), line, offset)
        elif line == 1:
            raise TraceError(name, "a file with content", hint="It is empty.")


def header_of(block: Block, file: str) -> Header:
    """Return the header line of a file from its first block.

    Raises:
        TraceError: blank, not UTF-8, another delimiter, or a name that stands twice.
    """
    start, line = first_text(block.data, file)
    names, after, line = read_header(block.data, start, line, file, ",", quoted=True)
    return Header(names, line, block.offset + after)


def after_header(blocks: Iterator[Block], file: str) -> tuple[Header, Iterator[Block]]:
    """Return the header and the blocks of what follows it.

    Raises:
        TraceError: the file cannot be read, or has no header line; see `header_of`.
    """
    first = next(blocks)
    header = header_of(first, file)

    def remaining() -> Iterator[Block]:
        body = first.data[header.offset - first.offset :]
        if body:
            yield Block(body, header.line, header.offset)
        yield from blocks

    return header, remaining()


def _chunk(stream: Any, name: str, size: int) -> bytes:
    try:
        data: bytes = stream.read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged(name, error) from error
    except OSError as error:
        raise unreadable(name, error) from error
    return data


def _check_growth(name: str, packed: int, unpacked: int) -> None:
    if unpacked > RATIO_FLOOR and unpacked > MAX_RATIO * packed:
        raise grown(name, "a gzip file", MAX_RATIO, "telemetry", "gunzip")


def _without_mark(data: bytes, name: str) -> tuple[bytes, int]:
    """Return text without its byte order mark, and how many bytes that took off."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TraceError(name, "UTF-8 text", hint="It is UTF-16: save it as UTF-8.")
    marked = data.startswith(BOM)
    return (data[len(BOM) :], len(BOM)) if marked else (data, 0)


def _without_nul(data: bytes, name: str, line: int) -> bytes:
    where = data.find(b"\0")
    if where >= 0:
        raise TraceError(
            name,
            "text without NUL bytes",
            row=line + _line_ends(data[:where]),
            value=data[max(0, where - 10) : where + 10],
            hint="The file is binary, UTF-16, or was damaged when it was written.",
        )
    return data


def _line_ends(data: bytes) -> int:
    """Return how many lines end in some text, at LF, CR LF, or CR alone."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else ends


def _too_long(name: str, line: int, rest: bytes) -> TraceError:
    return TraceError(
        name, f"a line of at most {MAX_LINE:,} bytes", row=line, value=rest[:60], hint=""
    )
