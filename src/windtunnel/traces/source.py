"""Bytes of a trace file: plain, packed or standard input, read once and within a bound.

Everything that can go wrong below the level of text (no such file, a folder, a pipe, a cut or false
gzip, a bomb) becomes one `TraceError` here, so readers only see bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from windtunnel.errors import TraceError
from windtunnel.traces.archive import first_file, grown, is_archive, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

#: What stands for standard input in place of a path.
STDIN = "-"
#: No text file larger than this is read, counted after decompression.
MAX_BYTES = 4 * 2**30
#: A packed file that grows by more than this factor is refused as a bomb (logs of jobs reach 5-30,
#: the format's own limit is about 1,030) ...
MAX_RATIO = 200
#: ... once it has grown beyond this: a small file does no harm.
RATIO_FLOOR = 64 * 2**20
_CHUNK = 4 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"
#: What is unpacked here, by its first bytes ...
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    _GZIP_MAGIC: lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
#: ... the endings that say so, and what is not.
PACKED_ENDINGS = (".gz", ".xz", ".bz2")
_PACKERS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
}
#: What was taken of a pipe to look at it, until the pipe is read.
_TAKEN: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()
#: Characters of another library's message that are shown.
_MESSAGE_CHARS = 160


def source_name(path: str | Path) -> str:
    """Return what to call a source in messages: the path as given, or ``standard input``."""
    return "standard input" if str(path) == STDIN else _as_text(str(path))


def short_name(path: str | Path) -> str:
    """Return a trace's name made from its path: the file name without its endings.

    >>> short_name("logs/march.csv.gz")
    'march'
    """
    if str(path) == STDIN:
        return "stdin"
    name = Path(path).name
    for ending in (*PACKED_ENDINGS, ".csv", ".parquet", ".swf", ".json", ".txt"):
        name = name.removesuffix(ending)
    return _as_text(name or str(path))


def _as_text(path: str) -> str:
    r"""Return a path as text that can be written: a byte that is no UTF-8 as U+FFFD.

    >>> _as_text("gr\udcf6\udcdfe.csv")
    'gr\ufffd\ufffde.csv'
    """
    return path.encode(errors="surrogateescape").decode(errors="replace")


def plain_message(error: Exception) -> str:
    r"""Return another library's words as they may stand in a message: one line, plain, short.

    They quote the file, and a file may hold anything.

    >>> plain_message(ValueError("bad\x1b[31m\nmore"))
    'bad\\x1b[31m'
    """
    line = str(error).partition("\n")[0].rstrip(".")
    plain = escaped(line[: 2 * _MESSAGE_CHARS])
    return plain if len(plain) <= _MESSAGE_CHARS else f"{plain[: _MESSAGE_CHARS - 3]}..."


def escaped(text: str) -> str:
    """Return a text with line ends and everything else that does not print escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def read_bytes(path: str | Path) -> bytes:
    """Return a file's whole content, decompressed, or that of standard input for ``-``.

    Gzip, xz and bzip2 are recognised by their first bytes, whatever the name says, and so are zip
    and tar files, which stand for the one file in them.

    Raises:
        TraceError: no such file, a folder, no permission, an empty file, a ``.gz`` that is not
            gzip or is cut, an archive that is damaged or holds several files, or more content
            than `MAX_BYTES` or `MAX_RATIO` allow.
    """
    data = unpacked(packed_bytes(path), source_name(path))
    if not data:
        raise TraceError(source_name(path), "a file with content", hint="It is empty.")
    return data


def packed_bytes(path: str | Path) -> bytes:
    """Return what `read_bytes` does, but an archive as it is.

    Raises:
        TraceError: as there, except for archives.
    """
    name = source_name(path)
    with _open(path) as raw:
        try:
            data = _read(raw, name)
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise damaged(name, error) from error
        except OSError as error:  # the unpackers' own have no number of the system's
            raise (unreadable if error.errno else damaged)(name, error) from error
    if not data:
        raise TraceError(name, "a file with content", hint="It is empty.")
    return data


def read_head(path: str | Path, size: int = 4096) -> bytes:
    """Return the first ``size`` bytes of a source, decompressed; fewer where it is short or broken.

    For guessing a format only: a broken file gives what can be read and no error, because the
    reader that opens it next says precisely what is wrong.
    """
    try:
        if str(path) == STDIN:
            head = _peeked(_stdin(), size)
        else:
            with opened(path) as raw:
                head = raw.read(size)
                if _opener(head) is not None:
                    head += raw.read(_CHUNK)  # bzip2 unpacks whole blocks
    except (OSError, TraceError):
        return b""
    opener = _opener(head)
    if opener is not None:
        try:
            head = opener(io.BytesIO(head)).read1(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):
            return b""
    return first_file(path, size)[1] if is_archive(head) and str(path) != STDIN else head


def _stdin() -> IO[bytes]:
    """Return standard input."""
    if sys.stdin is None:
        raise TraceError(source_name(STDIN), "something to read", hint="It is closed.")
    return sys.stdin.buffer


def _peeked(stream: Any, size: int) -> bytes:
    """Return what a stream will give next; `_Unclosed` will give it again.

    A pipe is waited for: what has come so far is a matter of chance.
    """
    if stream.seekable():
        place = stream.tell()
        head: bytes = stream.read(size)
        stream.seek(place)
        return head
    taken = _TAKEN.get(stream, b"")
    if len(taken) < size:
        taken += stream.read(size - len(taken))
        _TAKEN[stream] = taken
    return taken[:size]


def _open(path: str | Path) -> io.BufferedReader:
    if str(path) == STDIN:
        # A second handle on the same bytes: closing it leaves the process's stdin open.
        return io.BufferedReader(_Unclosed(_stdin()))
    return opened(path)


def opened(path: str | Path) -> io.BufferedReader:
    """Open a file that can be read more than once.

    A format is found by a look at the first bytes: what a pipe gives then is gone for the reader,
    and one that nobody writes to would be waited for without end.

    Raises:
        TraceError: no such file, a folder, a pipe or a device, or no permission.
    """
    name = str(path)
    try:
        kind = Path(path).stat().st_mode
        if stat.S_ISDIR(kind):
            raise TraceError(name, "a file", hint="It is a folder: name one file in it.")
        if not stat.S_ISREG(kind):
            hint = "It is a pipe or a device: give it as standard input (-), or store it as a file."
            raise TraceError(name, "a file", hint=hint)
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise TraceError(name, "a file that exists") from error
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from error


def _opener(head: bytes) -> Callable[[Any], Any] | None:
    """Return what unpacks a file, by its first bytes; None = it is not packed."""
    return next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)


def check_packing(head: bytes, name: str) -> None:
    """Raise TraceError where first bytes are those of a packed file that is not read here."""
    for magic, packer in _PACKERS.items():
        if head.startswith(magic):
            hint = f"It is packed with {packer}: unpack it first."
            raise TraceError(name, "plain text, gzip, xz, bzip2, zip, tar or Parquet", hint=hint)


def is_gzip(raw: io.BufferedReader, name: str) -> bool:
    """Return whether a file that was just opened is gzip.

    Raises:
        TraceError: it is not, and its name says so.
    """
    if raw.peek(2)[:2] == _GZIP_MAGIC:
        return True
    if name.endswith(".gz") and raw.peek(1):
        raise TraceError(
            name,
            "gzip data, as the name ends in .gz",
            value=bytes(raw.peek(16)[:16]),
            hint="If it is plain text, take the .gz off its name.",
        )
    return False


class _Unclosed(io.RawIOBase):
    """A raw view of a stream that does not close it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._first = _TAKEN.pop(stream, b"")
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._first[: len(buffer)] or self._stream.read(len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position


def _read(buffered: io.BufferedReader, name: str) -> bytes:
    """Return the whole content, bounded; unpacked where it is packed."""
    is_gzip(buffered, name)
    head = bytes(buffered.peek(8)[:8])
    opener = _opener(head)
    check_packing(head, name)
    stream = buffered if opener is None else opener(buffered)
    chunks: list[bytes] = []
    total = 0
    while chunk := stream.read(_CHUNK):
        total += len(chunk)
        if total > MAX_BYTES:
            raise TraceError(
                name,
                f"at most {MAX_BYTES:,} bytes of text",
                hint="Split it, or convert it to Parquet, which is read column by column.",
            )
        if opener and total > RATIO_FLOOR and total > MAX_RATIO * buffered.tell():
            raise grown(name, "a packed file", MAX_RATIO, "job log")
        chunks.append(chunk)
    return b"".join(chunks)


def damaged(name: str, error: Exception) -> TraceError:
    """Return the error for a packed file that does not unpack."""
    hint = f"It is cut or damaged ({error}): copy or download it again."
    return TraceError(name, "a whole packed file", hint=hint)


def unreadable(name: str, error: Exception) -> TraceError:
    """Return the error for a file that the system does not give."""
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return TraceError(name, "a file that can be read", hint=f"The system says: {reason}.")
