"""The bytes of one PAI table, plain, gzip or in its released archive, as a bounded stream.

Tables are larger than memory should be, so nothing here holds a file: bytes pass once, and what can
be seen of them in passing (lines, quotes, NUL, UTF-8) is noted, to be compared with what the
parser made of them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import tarfile
import zlib
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.traces import source
from windtunnel.traces.archive import grown
from windtunnel.traces.header import checked_text, first_text
from windtunnel.traces.pai.tables import is_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.traces.pai.tables import Table

_NEWLINE = ord("\n")
#: Bytes of an archive read at once.
_BLOCK = 2**20
#: What is read of a file before its rows, to look for a header line.
_HEAD = 64 * 2**10
#: Bytes looked at at once: as many as stay near the processor from one look to the next.
_LOOK = 128 * 2**10
#: No header line of the release is longer.
_HEADER = 4096
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError)


class NotTextError(ValueError):
    """A byte that text does not hold was met; where it stands is found by reading again."""


class RowStream(io.RawIOBase):
    """The rows of a table as bytes, without byte order mark and header line.

    Attributes:
        file: what to call it in messages.
        first_line: line of the file on which the rows begin.
        quoted: whether a double quote was among what was read.
        problem: what went wrong while reading, kept because parsers replace exceptions.
    """

    def __init__(
        self,
        content: IO[bytes],
        packed: IO[bytes] | None,
        file: str,
        table: Table,
        *,
        checked: bool = True,
    ) -> None:
        self.file = file
        self._checked = checked
        self.problem: Exception | None = None
        self._content = content
        self._packed = packed
        self._read_bytes = 0
        self._newlines = self._returns = self._pairs = 0
        self.quoted = False
        self._last = b""
        self._is_line = np.empty(_LOOK, bool)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._waiting, self.first_line = self._behind_header(table)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer; 0 = the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most ``size``; empty = the end.

        Raises:
            TraceError: the file is damaged, or grows beyond `windtunnel.traces.source`'s bounds.
            NotTextError: NUL, or a byte that is not UTF-8.
        """
        try:
            chunk = self._waiting or self._take(size if size > 0 else _HEAD)
            if 0 < size < len(chunk):
                chunk, self._waiting = chunk[:size], chunk[size:]
            else:
                self._waiting = b""
            if self._checked:
                for begin in range(0, max(len(chunk), 1), _LOOK):
                    self._look(chunk, begin, min(begin + _LOOK, len(chunk)))
        except Exception as error:
            self.problem = error
            raise
        return chunk

    def one_line_each(self, rows: int) -> bool:
        """Return whether this many rows are what was read, each on one line, none blank.

        False means that it cannot be known without looking at the records one by one.
        """
        lines = self._newlines + bool(self._last and self._last != b"\n")
        return lines == rows and not self.quoted and self._returns == self._pairs

    def _look(self, chunk: bytes, begin: int, end: int) -> None:
        """Count what tells lines in part of a chunk, and refuse what is not text."""
        part = np.frombuffer(chunk, np.uint8)[begin:end]
        # As signed numbers, NUL and what is not ASCII are those not above 0: one look for both.
        if self._decoder.getstate()[0] or not len(part) or part.view(np.int8).min() <= 0:
            if chunk.find(b"\0", begin, end) >= 0:
                raise NotTextError
            try:
                self._decoder.decode(chunk[begin:end], final=not len(part))
            except UnicodeDecodeError as error:
                raise NotTextError from error
        # Lines are many: to compare them all at once is cheaper than to find one after another.
        is_line = np.equal(part, _NEWLINE, out=self._is_line[: len(part)])
        self._newlines += int(np.count_nonzero(is_line))
        self.quoted = self.quoted or chunk.find(b'"', begin, end) >= 0
        if chunk.find(b"\r", begin, end) >= 0:
            self._returns += chunk.count(b"\r", begin, end)
            self._pairs += chunk.count(b"\r\n", begin, end)
        if self._last == b"\r" and chunk[begin : begin + 1] == b"\n":
            self._pairs += 1
        self._last = chunk[end - 1 : end] if end > begin else self._last

    def _take(self, size: int) -> bytes:
        """Return the next bytes of the content, within the bounds."""
        try:
            chunk = self._content.read(size)
        except _DAMAGED as error:
            raise source.damaged(self.file, error) from error
        except OSError as error:
            raise source.unreadable(self.file, error) from error
        self._read_bytes += len(chunk)
        if self._read_bytes > source.MAX_BYTES:
            raise TraceError(self.file, f"at most {source.MAX_BYTES:,} bytes of text")
        packed = self._packed.tell() if self._packed is not None else self._read_bytes
        if self._read_bytes > max(source.RATIO_FLOOR, source.MAX_RATIO * packed):
            raise grown(self.file, "a packed file", source.MAX_RATIO, "table")
        return chunk

    def _behind_header(self, table: Table) -> tuple[bytes, int]:
        """Read the head; return what of it are rows, and the line on which they begin."""
        head = b""
        while len(head) < _HEAD and (more := self._take(_HEAD)):
            head += more
        if not head:
            raise TraceError(
                self.file,
                "a file with content",
                hint="It is empty: take it out of the folder if the trace has no such rows.",
            )
        text = checked_text(head, self.file)
        start, line = first_text(text, self.file)
        first = text[start:].splitlines(keepends=True)[0]
        name_line = first[:_HEADER].decode(errors="replace").rstrip("\r\n")
        cells = next(csv.reader([name_line]), [])
        if not is_header(cells, table, self.file, line):
            return text, 1
        rest = text[start + len(first) :]
        if not rest.strip():
            raise TraceError(self.file, "at least one row", hint="It has a header line only.")
        return rest, line + 1


@contextmanager
def open_rows(path: Path, table: Table, *, checked: bool = True) -> Iterator[RowStream]:
    """Open a table's file for one pass over its rows.

    Args:
        path: ``.csv`` (gzip is recognised by its first bytes), ``.csv.gz``, or ``.tar.gz`` with
            one file ``<table>.csv`` in it.
        table: which table it is.
        checked: look at every byte in passing; for parsers that do not.

    Raises:
        TraceError: the file cannot be read, is empty or damaged, is not text at all, or the
            archive holds anything else.
    """
    file = str(path)
    with source.opened(path) as raw:
        packed = source.is_gzip(raw, file)
        content: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
        if not path.name.endswith(".tar.gz"):
            yield RowStream(content, raw if packed else None, file, table, checked=checked)
            return
        try:
            archive = tarfile.open(fileobj=content, mode="r|", bufsize=_BLOCK)  # noqa: SIM115 - closed below
        except _DAMAGED as error:
            raise source.damaged(file, error) from error
        with archive:
            member = _only_member(archive, file, table)
            yield RowStream(member, raw, file, table, checked=checked)
            _no_other_member(archive, file, table)


def _only_member(archive: tarfile.TarFile, file: str, table: Table) -> IO[bytes]:
    """Return the one file of an archive, which is never written anywhere."""
    try:
        member = archive.next()
    except _DAMAGED as error:
        raise source.damaged(file, error) from error
    expected = f"{table.name}.csv"
    if member is None:
        raise TraceError(file, f"an archive with {expected} in it", hint="It is empty.")
    plain = member.isreg() and not member.issparse()
    if not plain or PurePosixPath(member.name) != PurePosixPath(expected):
        raise TraceError(
            file,
            f"an archive with one plain file, {expected}",
            value=member.name,
            hint="" if plain else "That member is a link, a folder or a special file.",
        )
    content = archive.extractfile(member)
    if content is None:
        raise TraceError(file, f"an archive with one plain file, {expected}", value=member.name)
    return content


def _no_other_member(archive: tarfile.TarFile, file: str, table: Table) -> None:
    """Check, after the table was read, that nothing follows it."""
    try:
        other = archive.next()
    except _DAMAGED as error:
        raise source.damaged(file, error) from error
    if other is not None:
        expected = f"an archive with one plain file, {table.name}.csv"
        raise TraceError(file, expected, value=other.name, hint="That is a second member.")


def records(path: Path, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a table one by one: the line on which each begins, and its cells.

    Bytes that are not UTF-8 come as lone surrogates. Slow: for finding what is wrong, and where.

    Raises:
        TraceError: the file is damaged, or its quotes are.
    """
    with open_rows(path, table, checked=False) as rows:
        text = io.TextIOWrapper(
            io.BufferedReader(rows, _BLOCK), "utf-8", "surrogateescape", newline=""
        )
        reader = csv.reader(text, strict=True)
        before = 0
        try:
            for cells in reader:
                if cells:
                    yield rows.first_line + before, cells
                before = reader.line_num
        except csv.Error as error:
            raise TraceError(
                rows.file,
                f"balanced quotes, and fields of at most {csv.field_size_limit():,} characters",
                row=rows.first_line + before,
                hint=f"({error})",
            ) from error
