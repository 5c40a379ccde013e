"""The temporary database that a PAI trace lives in, gone when the trace goes.

7.5 million instances do not belong in memory: the tables are parsed once into DuckDB on disk, and
everything asked of them later is an Ibis expression.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.traces.pai.parse import Parsed

#: What the database may keep in memory while it loads; beyond it, it spills into its folder.
_LOADING = "512MiB"
_MAX_THREADS = 4
_MEBIBYTES = {"MiB": 1, "GiB": 1024}
#: With less than this (MiB) not even the tables of a small trace are joined.
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
    """An on-disk database in a folder of its own.

    Attributes:
        backend: the Ibis backend. The folder is removed when nothing refers to it any more, at
            the latest when the process ends.
        file: what to call the trace in messages.
    """

    def __init__(self, file: str) -> None:
        import ibis

        self.file = file
        folder = Path(tempfile.mkdtemp(prefix="windtunnel-pai-"))
        try:
            self.backend: Any = ibis.duckdb.connect(
                folder / "tables.duckdb",
                memory_limit=_LOADING,
                threads=min(_MAX_THREADS, os.cpu_count() or 1),
                temp_directory=str(folder / "spill"),
                preserve_insertion_order=False,  # rows carry their numbers
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # The callback must not refer to the backend, or the backend would never go.
        weakref.finalize(self.backend, _discard, self.backend.con, folder)
        # Names are random and nothing is kept: packing them costs more than writing them.
        self.run("PRAGMA force_compression='uncompressed'")

    def run(self, statement: str) -> None:
        """Execute a statement of the database's own.

        Raises:
            TraceError: there is no room for it.
        """
        with self.in_the_room():
            self.backend.con.execute(statement)

    def open_for_questions(self, memory: str) -> None:
        """Let the database keep as much in memory as `checked_memory` allows."""
        self.run(f"SET memory_limit='{checked_memory(memory)}'")

    def load(self, name: str, parsed: Parsed, query: str = "SELECT * FROM batches") -> None:
        """Make a table of parsed rows.

        Args:
            name: the new table.
            parsed: the rows.
            query: what to take of them; they are the relation ``batches``.

        Raises:
            TraceError: a row is not as it should be, or there is no room.
        """
        self.backend.con.register("batches", parsed.batches())
        try:
            with self.in_the_room():
                # A stream does not say how long it is: the other side of a join is the one to hash.
                self.backend.con.execute("SET disabled_optimizers='build_side_probe_side'")
                self.backend.con.execute(f"CREATE TABLE {name} AS {query}")
        except TraceError:
            parsed.check()  # the parser's own error says more than the database's
            raise
        finally:
            self.backend.con.execute("SET disabled_optimizers=''")
            self.backend.con.unregister("batches")
        parsed.check()

    def keep(self, name: str, expression: Any) -> Any:
        """Compute an Ibis expression once; return the table that holds it.

        Raises:
            TraceError: there is no room for it.
        """
        with self.in_the_room(), _ibis_at_work():
            return self.backend.create_table(name, expression)

    def drop(self, *names: str) -> None:
        """Drop tables that nothing asks for any more."""
        for name in names:
            self.run(f"DROP TABLE {name}")

    def view(self, name: str, expression: Any) -> Any:
        """Give an Ibis expression a name in the database; return it as a table of that name."""
        with self.in_the_room(), _ibis_at_work():
            return self.backend.create_view(name, expression)

    def table(self, name: str) -> Any:
        """Return a table of the database as an Ibis table."""
        with _ibis_at_work():
            return self.backend.table(name)

    def count(self, expression: Any) -> int:
        """Return the number of rows of an Ibis table.

        Raises:
            TraceError: there is no room to count them.
        """
        with self.in_the_room():
            return int(expression.count().to_pyarrow().as_py())

    @contextmanager
    def in_the_room(self) -> Iterator[None]:
        """Turn the database's errors into ours.

        Raises:
            TraceError: it ran out of memory or of disk space, or failed in another way.
        """
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            raise TraceError(
                self.file,
                "room for its tables in the folder for temporary files",
                hint=f"The database says: {said} TMPDIR names another folder.",
            ) from error


@contextmanager
def _ibis_at_work() -> Iterator[None]:
    """Keep silent about names of DuckDB that Ibis uses and DuckDB has deprecated since."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _discard(connection: Any, folder: Path) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)
