"""`Telemetry`: samples that are read when they are asked for, in bounded memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from windtunnel import storage
from windtunnel.errors import TraceError
from windtunnel.telemetry.blocks import Meter
from windtunnel.telemetry.clock import epoch_seconds
from windtunnel.telemetry.sample_batches import SCHEMA, Tally
from windtunnel.traces.wallclock import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import ibis.expr.types as ir

#: Memory that DuckDB may take before it writes to its temporary folder.
MEMORY_LIMIT = "2GiB"
_TABLE = "samples"


class Source(Protocol):
    """One way to read samples: what every format of this package implements.

    Attributes:
        size: bytes of its files on the disk.
        metrics: the metrics, where they are known before reading.
    """

    size: int
    metrics: tuple[str, ...] | None

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples with times as UTC seconds since 1970, counting into ``tally``."""


class Telemetry:
    """Measurements of a cluster, read as a stream.

    Every reading (`batches`, `table`, `relation`, `write_parquet`) reads the files anew and holds
    no more than a block of them.

    Attributes:
        source: the file or folder as the user named it.
        format: the name of its format.
        epoch: UTC instant of time 0 as ISO 8601 text.
    """

    def __init__(
        self,
        source: str,
        format: str,  # noqa: A002 (the public option's name)
        reading: Source,
        *,
        epoch: str | float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.source = source
        self.format = format
        self._zero = epoch_seconds(epoch)
        self.epoch = iso(self._zero)
        self._reading = reading
        self._progress = progress
        self._tally = Tally()
        self._metrics = reading.metrics

    def __repr__(self) -> str:
        return f"Telemetry({self.source!r}, format={self.format!r})"

    @property
    def rows_read(self) -> int:
        """Measurements found by the latest reading, so far: samples and those dropped."""
        return self._tally.rows_read

    @property
    def samples(self) -> int:
        """Samples that the latest reading gave, so far."""
        return self._tally.samples

    @property
    def dropped(self) -> dict[str, int]:
        """Measurements of the latest reading that are no samples: reason -> count.

        ``rows_read == samples + sum(dropped.values())``.
        """
        return dict(self._tally.dropped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results must know, one sentence each, from the latest reading."""
        return tuple(self._tally.notes)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics, by name; reads the files once where only their rows tell.

        Raises:
            TraceError: they cannot be read.
        """
        if self._metrics is None:
            names: set[str] = set()
            for found in self.batches():
                names.update(found.column("metric").unique().to_pylist())
            self._metrics = tuple(sorted(names))
        return self._metrics

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the samples as record batches of `windtunnel.companions.SAMPLE_COLUMNS`.

        Times are seconds since ``epoch``.

        Raises:
            TraceError: a file cannot be read, at the batch where that shows.
        """
        tally = self._tally = Tally()
        meter = Meter(self._reading.size, self._progress)
        for found in self._reading.batches(tally, meter):
            yield self._since_epoch(found) if self._zero else found

    def reader(self) -> pa.RecordBatchReader:
        """Return one reading as an Arrow stream; Arrow wraps the errors met on its way."""
        return pa.RecordBatchReader.from_batches(SCHEMA, self.batches())

    def table(self) -> pa.Table:
        """Return all samples in memory: for small sources.

        Raises:
            TraceError: a file cannot be read.
        """
        return pa.Table.from_batches(list(self.batches()), SCHEMA)

    def relation(self) -> ir.Table:
        """Return the samples as an Ibis table on DuckDB that reads the files at each query.

        Nothing is kept: a query that names the table once reads the files once. What a query must
        remember (groups, sorted rows) goes to a temporary folder beyond `MEMORY_LIMIT`.

        A query over it raises TraceError where a file cannot be read.
        """
        import ibis
        import ibis.expr.operations as ops

        backend: Any = ibis.duckdb.connect(memory_limit=MEMORY_LIMIT, temp_directory=_scratch())
        # A stream does not say how long it is: the other side of a join is the one to hash.
        backend.con.execute("SET disabled_optimizers='build_side_probe_side'")
        stream = _Stream(self)
        for name in ("to_pyarrow", "execute", "raw_sql", "to_parquet"):
            setattr(backend, name, stream.telling(getattr(backend, name)))
        backend.con.register(_TABLE, stream)
        # Named with its schema: asking DuckDB for it would open the files.
        table: ir.Table = ops.DatabaseTable(
            name=_TABLE, schema=ibis.schema(SCHEMA), source=backend
        ).to_expr()
        return table

    def write_parquet(self, path: str) -> int:
        """Write the samples to a Parquet file, compressed, and return how many there are.

        Raises:
            TraceError: a file cannot be read.
        """
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            for found in self.batches():
                writer.write_batch(found)
        return self.samples

    def _since_epoch(self, found: pa.RecordBatch) -> pa.RecordBatch:
        times = found.column("time").to_numpy(zero_copy_only=False) - self._zero
        moved = pa.array(np.asarray(times, np.float64), from_pandas=True)
        return pa.RecordBatch.from_arrays([moved, *found.columns[1:]], schema=SCHEMA)


class _Stream:
    """What DuckDB scans: an Arrow stream that begins anew at each scan and remembers its error."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.failure: TraceError | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(SCHEMA, self._remembering())
        capsule: object = reader.__arrow_c_stream__(requested_schema)
        return capsule

    def _remembering(self) -> Iterator[pa.RecordBatch]:
        self.failure = None
        try:
            yield from self._telemetry.batches()
        except TraceError as error:
            self.failure = error
            raise

    def telling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``call``, raising our own error where DuckDB reports that the stream broke."""

        @functools.wraps(call)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            import duckdb

            try:
                return call(*arguments, **options)
            except duckdb.Error as error:
                if self.failure is None:
                    raise
                raise self.failure from error

        return wrapper


@functools.cache
def _scratch() -> str:
    """Return a folder for what DuckDB cannot hold, removed at the end of the process."""
    return str(storage.scratch_folder())
