"""What a PAI trace lives in: a database in memory, and a folder that is gone when the trace goes.

7.5 million instances do not belong in memory: the tables are parsed once, long columns go to files
in the folder (`windtunnel.traces.pai.spool`), and everything asked of them later is an Ibis
expression over the mapped files.
"""

from __future__ import annotations

import os
import re
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windtunnel import storage
from windtunnel.errors import SpecError, TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

#: What the database may keep in memory until `Store.open_for_questions` allows more.
_LOADING = "512MiB"
_MAX_THREADS = 4
_MEBIBYTES = {"MiB": 1, "GiB": 1024}
#: With less than this (MiB) not even the questions about a small trace are answered.
_LEAST = 256


def checked_memory(memory: str) -> str:
    """Return an amount of memory that the database understands.

    Raises:
        SpecError: it is none, or below `_LEAST`.

    >>> checked_memory("1.5 GiB")
    '1536MiB'
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) ?(MiB|GiB)", memory.strip())
    mebibytes = float(found[1]) * _MEBIBYTES[found[2]] if found else 0.0
    if mebibytes < _LEAST:
        raise SpecError(
            "memory", f"found {quote(memory)}; expected at least {_LEAST}MiB, as '1GiB' or '800MiB'"
        )
    return f"{int(mebibytes)}MiB"


class Store:
    """A database, and a folder of its own for long columns and for what the database spills.

    Attributes:
        backend: the Ibis backend. The folder is removed when nothing refers to it any more, at
            the latest when the process ends.
        file: what to call the trace in messages.
    """

    def __init__(self, file: str) -> None:
        import ibis

        self.file = file
        self._folder = storage.scratch_folder()
        try:
            self.backend: Any = ibis.duckdb.connect(
                memory_limit=_LOADING,
                threads=min(_MAX_THREADS, os.cpu_count() or 1),
                temp_directory=str(self._folder / "spill"),
                preserve_insertion_order=False,  # rows carry their numbers
            )
        except BaseException:
            storage.drop_scratch(self._folder)
            raise
        # The callback must not refer to the backend, or the backend would never go.
        weakref.finalize(self.backend, _discard, self.backend.con, self._folder)

    def path(self, name: str) -> Path:
        """Return a place for a file of this name, gone with the store."""
        return self._folder / name

    def open_for_questions(self, memory: str) -> None:
        """Let the database keep as much in memory as `checked_memory` allows."""
        with self.errors_explained():
            self.backend.con.execute(f"SET memory_limit='{checked_memory(memory)}'")

    def table(self, name: str, rows: pa.Table) -> Any:
        """Let the database look at an Arrow table; return it as an Ibis table."""
        self.backend.con.register(name, rows)
        with _ibis_at_work():
            return self.backend.table(name)

    def texts(self, name: str, of_rows: Callable[[pa.Array], pa.Array]) -> Callable[[Any], Any]:
        """Give the database a function of rows; return it as one of Ibis columns.

        Args:
            of_rows: row numbers, integers, to texts; called from several threads at once.
        """
        import ibis

        # The database reads annotations, so this has none; it hands over one array in pieces.
        self.backend.con.create_function(
            name,
            lambda rows: of_rows(rows.combine_chunks()),
            ["INTEGER"],
            "VARCHAR",
            type="arrow",
            null_handling="special",  # a text may be unknown
        )

        found: Callable[[Any], Any] = ibis.udf.scalar.builtin(
            lambda _: None, name=name, signature=(("int32",), "string")
        )
        return found

    def view(self, name: str, expression: Any) -> Any:
        """Give an Ibis expression a name in the database; return it as a table of that name."""
        with self.errors_explained(), _ibis_at_work():
            return self.backend.create_view(name, expression)

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Turn the errors of the database and of files that are written into ours.

        Raises:
            TraceError: memory or disk space ran out, or the database failed in another way.
        """
        import duckdb

        try:
            yield
        except (duckdb.Error, OSError) as error:
            message = str(error).partition("\n")[0]
            raise TraceError(
                self.file,
                "room for its tables in the folder for temporary files",
                hint=f"({message}) TMPDIR names another folder.",
            ) from error


@contextmanager
def _ibis_at_work() -> Iterator[None]:
    """Keep silent about names of DuckDB that Ibis uses and DuckDB has deprecated since."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _discard(connection: Any, folder: Path) -> None:
    connection.close()
    storage.drop_scratch(folder)
