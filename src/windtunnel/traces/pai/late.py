"""Columns of text that few questions ask for: read when one does, in a second pass over the table.

To keep every text of 7.5 million instances would cost as much as all the rest that is kept of
them. A question that asks for such a column waits for that pass; the ones after it do not.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from windtunnel.errors import TraceError
from windtunnel.traces.pai.parse import Parsed
from windtunnel.traces.pai.spool import Texts, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.traces.pai.tables import Table


class LateTexts:
    """Columns of a table that was read once without them.

    Args:
        path: the table's file, as it was at that time.
        table: which table it is.
        spool: a place for a new file, which holds the columns once they are read.
    """

    def __init__(self, path: Path, table: Table, spool: Path, names: tuple[str, ...]) -> None:
        self._path = path
        self._table = table
        self._spool = spool
        self._names = names
        self._was = _state(path)
        self._lock = threading.Lock()
        self._read: pa.Table | None = None

    def column(self, name: str) -> Callable[[pa.Array], pa.Array]:
        """Return what gives the column's texts at some rows: integers, null nowhere."""

        def texts(rows: pa.Array) -> pa.Array:
            return rows_of(self._columns()[name], rows.to_numpy())

        return texts

    def _columns(self) -> pa.Table:
        """Return the columns, read now if they have not been.

        Raises:
            TraceError: the file is no longer what it was.
        """
        # A database asks from several threads at once.
        with self._lock:
            if self._read is None:
                self._read = self._second_pass()
            return self._read

    def _second_pass(self) -> pa.Table:
        parsed = Parsed(self._path, self._table, only=self._names)
        texts = Texts(self._spool, self._names)
        with parsed.explained():
            for batch in parsed.batches():
                texts.append(batch)
        if _state(self._path) != self._was:
            raise TraceError(
                str(self._path),
                "the file that was opened",
                hint=f"It has changed since, and {', '.join(self._names)} are only read from it "
                "when a question asks for them: open the trace again.",
            )
        return texts.close().mapped()


def _state(path: Path) -> tuple[int, int, int, int]:
    """Return what differs between a file and another one, or a later state of it.

    Raises:
        TraceError: it is not there any more.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise TraceError(str(path), "a file that is still there") from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
