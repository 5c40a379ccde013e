"""The store of a study's results: a folder that is right at every instant, whatever is killed.

A finished run is one Parquet file of one row, ``runs/<run id>.parquet``: written beside, then
renamed, so that it is there whole or not at all. When all runs are there, ``results.parquet`` is
made of them, in the order of the study. Neither holds a time of day or a duration of a run, so that
the same study gives the same bytes; those go to ``timings.jsonl``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windtunnel import storage
from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.notebook import as_html
from windtunnel.study.grid.measure import FAILED, METRICS, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Version of the store's layout.
FORMAT = 1
MANIFEST, RESULTS, TIMINGS, TRIALS = (
    "manifest.json",
    "results.parquet",
    "timings.jsonl",
    "trials.parquet",
)
#: What to do about results that another windtunnel wrote.
_ANOTHER = (
    "Another version of windtunnel wrote it: fly the study again into another folder "
    "(windtunnel study run STUDY.toml --out NEW), or read it with that version."
)
#: What a notebook shows of a study's results: columns of a run, and so many runs.
_SHOWN = (
    *("trace", "cluster", "policy", "seed", "status"),
    *("avg_wait", "p90_wait", "avg_jct", "utilization"),
)
_MOST_SHOWN = 20
#: How often a lock is sought whose file others take away.
_TRIES = 20
#: One row is written four times as fast without what helps only many.
_PLAIN = {"compression": "none", "use_dictionary": False, "write_statistics": False}


class Store:
    """A folder of results that one process at a time may add to.

    Args:
        folder: where; made where it is missing.

    Raises:
        SpecError: the folder holds something else.
        OSError: it cannot be written to.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._is_new = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        strange = not (self.folder / MANIFEST).exists() and any(
            path.suffix != ".part" and path.name not in {"runs", "inputs", ".lock"}
            for path in self.folder.iterdir()
        )
        if strange:
            raise SpecError(
                f"--out {self.folder}", "is a folder with other files; expected an empty one."
            )
        self.runs = self.folder / "runs"
        self.inputs = self.folder / "inputs"
        self._make()

    def _make(self) -> None:
        for folder in (self.runs, self.inputs):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from adding to the store; the lock dies with this process.

        Raises:
            SpecError: another process holds it.
        """
        with self._lock():
            for leftover in self.folder.rglob("*.part"):
                leftover.unlink()
            try:
                yield
            finally:
                self._forget_if_unused()

    def _lock(self) -> IO[str]:
        """Return the lock's file, open and locked.

        Another process may give up here just now, and take away the folder that it made: then the
        file that was locked is nobody's, and the folder is made once more.
        """
        path = self.folder / ".lock"
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
                self._make()
                file = stack.enter_context(path.open("w"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    break
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    stack.pop_all()
                    return file
        message = "another process is flying this study; wait for it, or use another one."
        raise SpecError(f"--out {self.folder}", message)

    def _forget_if_unused(self) -> None:
        """Take away a folder that we made and in which nothing was begun."""
        if not self._is_new or (self.folder / MANIFEST).exists():
            return
        for path in (*self.inputs.glob("*.arrow"), self.folder / ".lock"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another process may begin here just now
            for folder in (self.inputs, self.runs, self.folder):
                folder.rmdir()

    def finished(self) -> set[str]:
        """Return the ids of the runs that are there, failed ones included."""
        return {path.stem for path in self.runs.glob("*.parquet")}

    def add(self, row: pa.Table) -> None:
        """Keep a finished run's row, in `measure.SCHEMA`."""
        name = row["run_id"][0].as_py()
        write_parquet(self.runs / f"{name}.parquet", row, **_PLAIN)

    def row(self, run_id: str) -> pa.Table:
        """Return a run's row.

        Raises:
            TraceError: its file is not what was written.
        """
        return _read(self.runs / f"{run_id}.parquet")

    def drop_failed(self) -> None:
        """Forget the runs that gave an error, so that they are flown again."""
        for run_id in self.finished():
            if self.row(run_id)["status"][0].as_py() == FAILED:
                (self.runs / f"{run_id}.parquet").unlink()

    def gather(self, run_ids: Iterable[str]) -> pa.Table:
        """Write ``results.parquet`` from these runs' rows, in this order; return it."""
        rows = [self.row(run_id) for run_id in run_ids]
        table = pa.concat_tables(rows).combine_chunks() if rows else SCHEMA.empty_table()
        write_parquet(self.folder / RESULTS, table)
        for path in self.inputs.glob("*.arrow"):
            path.unlink()
        return table

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the manifest; None where nothing has been flown yet.

        Raises:
            SpecError: it cannot be read, or is a later windtunnel's.
        """
        path = self.folder / MANIFEST
        return read_manifest(path) if path.exists() else None

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Keep the manifest, whole or not at all."""
        text = json.dumps({"format": FORMAT, **manifest}, indent=2, sort_keys=True)
        write_bytes(self.folder / MANIFEST, f"{text}\n".encode())

    def note_time(self, run_id: str, seconds: float, status: str) -> None:
        """Note how long a run took, in s, apart from the results."""
        line = json.dumps({"run_id": run_id, "seconds": round(seconds, 6), "status": status})
        with (self.folder / TIMINGS).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a loss of power."""
    with storage.replacing(path, durable=True) as temporary:
        temporary.write_bytes(data)


def write_parquet(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a table as Parquet; the same table, the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"compression": "zstd", **options})
    write_bytes(path, sink.getvalue().to_pybytes())


def _read(path: Path) -> pa.Table:
    try:
        table = pq.ParquetFile(path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise TraceError(str(path), "a run's result as windtunnel wrote it") from error
    if table.schema.names != SCHEMA.names:
        raise TraceError(str(path), "the columns of this windtunnel's results", hint=_ANOTHER)
    return table


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a manifest.

    Raises:
        SpecError: it cannot be read, or is a later windtunnel's.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        known = manifest["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(str(path), "cannot be read as the manifest of a study.") from error
    if not known:
        found = f"is of format {quote(manifest['format'])}; expected {FORMAT}. {_ANOTHER}"
        raise SpecError(str(path), found)
    result: dict[str, Any] = manifest
    return result


@dataclass(frozen=True)
class Results:
    """What a study's folder holds.

    Attributes:
        folder: the folder.
        manifest: ``name``, ``study`` (as plain data), ``versions``, ``seeds``, ``made``
            (traces drawn anew for each seed), ``grid`` (its places, `plan.Cell.to_mapping`),
            ``runs`` (ids, in order), ``inputs`` (trace -> digest, jobs, notes), ``energy``
            (digests).
        table: the finished runs, a row each (`measure.SCHEMA`), in the order of the study.
    """

    folder: Path
    manifest: dict[str, Any]
    table: pa.Table

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.manifest["name"])

    @property
    def num_runs(self) -> int:
        """Runs that the study asks for."""
        return len(self.manifest["runs"])

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The finished runs as plain data; metrics of the user's own stand beside the others."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        for row in rows:
            row |= {own["name"]: own["value"] for own in row.pop("own") or ()}
        return rows

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of a run that there are, those of the user's own last."""
        own = {name: None for row in self.rows for name in row if name not in SCHEMA.names}
        return (*METRICS, *own)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The runs that gave an error."""
        return [row for row in self.rows if row["status"] == FAILED]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of `table`."""
        yield from self.table.to_pylist()

    def _repr_html_(self) -> str:
        done, first = self.table.num_rows, self.rows[:_MOST_SHOWN]
        notes = [f"The first {len(first)} are shown."] if done > len(first) else []
        rows = [[row[name] for name in _SHOWN] for row in first]
        return as_html(f"{self.name}: {done:,} of {self.num_runs:,} runs", _SHOWN, rows, notes)


def open_results(folder: str | Path) -> Results:
    """Return what a study's folder holds, finished or not.

    Raises:
        SpecError: it is no study's folder.
        TraceError: a result cannot be read.
    """
    path = Path(folder)
    if not (path / MANIFEST).is_file():
        raise SpecError(str(path), "expected the folder of a study, which `study run` makes.")
    manifest = read_manifest(path / MANIFEST)
    if (path / RESULTS).is_file():
        table = _read(path / RESULTS)
        if table["run_id"].to_pylist() == manifest["runs"]:
            return Results(path, manifest, table)
    there = {found.stem for found in (path / "runs").glob("*.parquet")}
    rows = [_read(path / "runs" / f"{run}.parquet") for run in manifest["runs"] if run in there]
    return Results(path, manifest, pa.concat_tables(rows) if rows else SCHEMA.empty_table())
