"""Alibaba GenTD26's telemetry of serving containers: one file a metric, Parquet or CSV.

alibaba/clusterdata ``cluster-trace-v2026-GenAI`` (SoCC'25): ``timestamp_anon`` (s),
``container_ip``, ``value``, in ``qps`` also ``request_type``. The metric is the file's name
without ``_anon``; the unit is that of the source (percent, bytes, ms, requests per second).
"""

from __future__ import annotations

import operator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, TraceError
from windtunnel.telemetry.blocks import Meter, after_header, file_size, line_blocks
from windtunnel.telemetry.rows import RowParser
from windtunnel.telemetry.sample_batches import BATCH_ROWS, batch, repeated
from windtunnel.traces.parquet import check_columns, check_growth, damaged
from windtunnel.traces.source import read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeAlias

    from windtunnel.telemetry.sample_batches import Tally

    #: Row of a table -> its line in the file, or its number, from 1.
    Line: TypeAlias = Callable[[int], int]

TIME, NODE, VALUE, KIND = "timestamp_anon", "container_ip", "value", "request_type"
#: Documented as percent by its authors; the values are a fraction.
FRACTIONS = ("pod_memory_util",)
_MAGIC = b"PAR1"


class GenaiTelemetry:
    """Reads one metric's file.

    Args:
        path: the file, Parquet or CSV.
        metric: read only these; None = all. ``qps`` is split by type of request:
            ``qps[API Requests]``.

    Raises:
        SpecError: an unknown metric, where the file's name tells it.
    """

    def __init__(self, path: str | Path, *, metric: Collection[str] | None = None) -> None:
        self._path = Path(path)
        stem = self._path.name.removesuffix(".gz").removesuffix(".csv").removesuffix(".parquet")
        self._name = stem.removesuffix("_anon")
        for name in metric or ():
            if name.partition("[")[0] != self._name:
                raise SpecError.unknown("metric", name, (self._name,))
        self._metric = metric
        self.size = file_size(path)
        self.metrics: tuple[str, ...] | None = None if metric is None else tuple(sorted(metric))

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples in the order of the rows."""
        largest = 0.0
        for table, line in self._tables(meter):
            found = self._samples(table, line, tally)
            if found.num_rows:
                largest = max(largest, pc.max(found.column("value")).as_py())
            yield found
        if self._name in FRACTIONS:
            tally.notes.append(
                f"{self._name} is documented as percent; its largest value is {largest:g}: "
                f"{'a fraction' if largest <= 1 else 'not a fraction'}. Values are the file's own."
            )

    def _tables(self, meter: Meter) -> Iterator[tuple[pa.Table, Line]]:
        """Yield tables of the columns, each with what tells the place of a row in the file."""
        with_magic = read_head(self._path, len(_MAGIC)) == _MAGIC
        yield from self._parquet(meter) if with_magic else self._text(meter)

    def _parquet(self, meter: Meter) -> Iterator[tuple[pa.Table, Line]]:
        import pyarrow.parquet as pq

        file = str(self._path)
        first = 1
        try:
            with pq.ParquetFile(self._path) as opened:
                self._check(opened.schema_arrow.names)
                check_columns(opened.schema_arrow.names, file)
                check_growth(opened.metadata, self.size, file)
                share = self.size / max(1, opened.metadata.num_rows)
                advanced = 0
                for rows in opened.iter_batches(BATCH_ROWS):
                    rows.validate(full=True)
                    yield pa.Table.from_batches([rows]), partial(operator.add, first)
                    first += rows.num_rows
                    meter.advance(round(share * (first - 1)) - advanced)
                    advanced = round(share * (first - 1))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(file, error) from error

    def _text(self, meter: Meter) -> Iterator[tuple[pa.Table, Line]]:
        header, blocks = after_header(line_blocks(self._path, meter), str(self._path))
        self._check(header.names)
        parser = RowParser(str(self._path), header.names, [TIME, VALUE])
        for block in blocks:
            table = parser.parse(block)
            if table.num_rows:
                yield table, partial(parser.line, block)

    def _check(self, names: list[str]) -> None:
        for name in (TIME, NODE, VALUE):
            if name not in names:
                raise TraceError.missing_column(str(self._path), name, names)

    def _samples(self, table: pa.Table, line: Line, tally: Tally) -> pa.RecordBatch:
        time, value = self._numbers(table, TIME), self._numbers(table, VALUE)
        if np.isnan(time).any():
            row = int(np.flatnonzero(np.isnan(time))[0])
            raise TraceError(str(self._path), "a time in every row", row=line(row), column=TIME)
        node = self._words(table, NODE)
        metric = repeated(self._name, len(time))
        if KIND in table.column_names:
            kinds = self._words(table, KIND)
            joined = pc.binary_join_element_wise(self._name + "[", kinds, "]", "")
            metric = pc.coalesce(joined, metric)
        wanted = None
        if self._metric is not None:
            asked = pc.is_in(metric, value_set=pa.array(list(self._metric), pa.string()))
            wanted = asked.to_numpy(zero_copy_only=False)
        return batch(tally, time=time, value=value, node=node, metric=metric, wanted=wanted)

    def _words(self, table: pa.Table, name: str) -> pa.Array:
        names = table[name]
        if pa.types.is_floating(names.type) and names.null_count == len(names):
            return pa.nulls(len(names), pa.string())
        try:
            return names.cast(pa.string()).combine_chunks()
        except (pa.ArrowException, NotImplementedError) as error:
            raise TraceError(
                str(self._path), "a column of text", column=name, value=str(names.type)
            ) from error

    def _numbers(self, table: pa.Table, name: str) -> np.ndarray:
        try:
            cells = table[name].cast(pa.float64())
        except (pa.ArrowException, NotImplementedError) as error:
            raise TraceError(
                str(self._path), "a column of numbers", column=name, value=str(table[name].type)
            ) from error
        return np.asarray(cells.to_numpy(), np.float64)
