"""Files that are written whole or not at all, as errors of ours where they cannot be."""

from __future__ import annotations

import contextlib
import gzip
import os
from typing import TYPE_CHECKING

from windtunnel import storage
from windtunnel.errors import TraceError
from windtunnel.traces.source import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@contextlib.contextmanager
def in_one_piece(path: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Lend a temporary file, or folder, that takes its place when all went well.

    Raises:
        TraceError: it cannot be written; nothing is left behind.
    """
    if str(path) == STDIN:
        raise TraceError(str(path), "the name of a file to write")
    try:
        with (storage.replacing_folder if folder else storage.replacing)(path) as temporary:
            yield temporary
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = "a folder" if folder else "a place"
        raise TraceError(
            str(path), f"{what} that can be written to", hint=f"The system says: {reason}."
        ) from error


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines of text, gzipped where the name ends in ``.gz``; the same lines, the same bytes.

    Raises:
        TraceError: the file cannot be written; it appears whole or not at all.
    """
    data = ("\n".join(lines) + "\n").encode()
    with in_one_piece(path) as temporary:
        is_packed = str(path).endswith(".gz")
        temporary.write_bytes(gzip.compress(data, 6, mtime=0) if is_packed else data)
