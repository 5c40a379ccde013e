"""Archives as traces are published in: tar, packed or not, and zip, with one file or several.

Where a reader wants a file, an archive with one is that file (`unpacked`); a reader of several
asks for them by name (`members`). What an archive says of itself is not believed: what comes out
is counted.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from windtunnel.errors import TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

#: No archive's files hold more than this together, bytes.
MAX_BYTES = 4 * 2**30
#: A zip file that grows by more than this factor is refused as a bomb ...
MAX_RATIO = 200
#: ... once it has grown beyond this, bytes.
RATIO_FLOOR = 64 * 2**20
_ZIP = b"PK\x03\x04"
_TAR, _TAR_AT = b"ustar", 257
#: Names in a zip file that make it a document of an office program, which is no archive of tables.
_DOCUMENT = {"[Content_Types].xml", "mimetype"}
_SHOWN = 5
_CHUNK = 4 * 2**20
#: How zipfile says that a file has a password, or is packed in a way that it does not know.
_SHUT = (RuntimeError, NotImplementedError)
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError),
)


def is_archive(head: bytes) -> bool:
    """Whether bytes begin as a zip or tar file does."""
    return head.startswith(_ZIP) or head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR


def unpacked(data: bytes, file: str) -> bytes:
    """Return the one file in an archive, or the bytes as they are where they are no archive.

    Raises:
        TraceError: the archive is damaged, holds no file or several, or grows far too much.
    """
    if not is_archive(data):
        return data
    found = members(data, file)
    if found is None:
        return data
    if len(found) == 1:
        return next(iter(found.values()))
    shown = ", ".join(quote(name) for name in [*found][:_SHOWN])
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    hint = f"It holds {shown}{more}: unpack it and name one." if found else "It holds none."
    raise TraceError(file, "an archive with one file", hint=hint)


def members(data: bytes, file: str) -> dict[str, bytes] | None:
    """Return an archive's files, name -> content, in its order, without what a Mac adds.

    None for a document of an office program, which is a zip file, too.

    Raises:
        TraceError: it is damaged, or grows far too much.
    """
    found: dict[str, bytes] = {}
    total = 0
    try:
        for name, stream in _files(io.BytesIO(data), is_zip=data.startswith(_ZIP)):
            if name in _DOCUMENT:
                return None
            chunks = []
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                _check_growth(total, len(data), file)
                chunks.append(chunk)
            found[name] = b"".join(chunks)
    except _BROKEN as error:
        raise TraceError(
            file, "a whole archive", hint=f"It is cut or damaged ({error}): copy it again."
        ) from error
    except _SHUT as error:
        raise TraceError(
            file,
            "an archive without a password, packed in a common way",
            hint="Unpack it and name the file.",
        ) from error
    return found


def first_file(path: str | Path, size: int) -> tuple[str, bytes]:
    """Return name and first bytes of an archive's first file, for guessing a format.

    It is not read further than that. A broken archive gives nothing, because the reader that opens
    it next says precisely what is wrong.
    """
    try:
        with Path(path).open("rb") as raw:
            for name, stream in _files(raw, is_zip=zipfile.is_zipfile(raw)):
                return name, stream.read(size)
    except (*_BROKEN, *_SHUT):
        pass
    return "", b""


def _files(raw: IO[bytes], *, is_zip: bool) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and content of each file of an archive."""
    raw.seek(0)
    if is_zip:
        with zipfile.ZipFile(raw) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and _is_meant(entry.filename):
                    with archive.open(entry) as stream:
                        yield entry.filename, stream
        return
    with tarfile.open(fileobj=raw) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None and _is_meant(member.name):
                yield member.name, content


def _is_meant(name: str) -> bool:
    """Whether a file is of the archive's content, and not what a Mac put beside it."""
    *folders, last = name.split("/")
    return "__MACOSX" not in folders and not last.startswith(".")


def _check_growth(total: int, packed: int, file: str) -> None:
    if total > MAX_BYTES:
        raise TraceError(file, f"files of at most {MAX_BYTES:,} bytes", hint="Unpack it first.")
    if total > RATIO_FLOOR and total > MAX_RATIO * packed:
        raise grown(file, "an archive", MAX_RATIO, "job log")


def grown(file: str, what: str, most: int, usual: str, unpack: str = "unpack") -> TraceError:
    """Return the error for a packed file that grows more than so many times: it may be a bomb."""
    hint = f"It grows far more than any {usual} does; if you trust it, {unpack} it first."
    return TraceError(file, f"{what} that grows at most {most} times", hint=hint)
