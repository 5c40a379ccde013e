"""Microsoft Philly's telemetry: utilisation a minute of GPUs, CPUs and memory of each machine.

msr-fiddle/philly-traces ``cluster_gpu_util`` (time, machineId, gpu0_util ... gpu7_util),
``cluster_cpu_util`` (time, machine_id, cpu_util) and ``cluster_mem_util`` (time, machine_id,
mem_total, mem_free in kB). Times are Pacific wall-clock times with the zone's short name behind
them, which tells the two passes of autumn's repeated hour apart. ``NA`` = offline. Rows of
``cluster_gpu_util`` end in a comma. Memory in use is 100 (total - free) / total, as in the trace's
own notebook (figure 7).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, TraceError
from windtunnel.telemetry.blocks import Block, Meter, after_header, file_size, line_blocks
from windtunnel.telemetry.clock import moments
from windtunnel.telemetry.rows import RowParser
from windtunnel.telemetry.sample_batches import batch, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from windtunnel.telemetry.blocks import Header
    from windtunnel.telemetry.sample_batches import Tally

ZONE = "America/Los_Angeles"
#: Short names of zones and their offsets from UTC, s.
OFFSETS = {"PDT": -7 * 3600, "PST": -8 * 3600, "UTC": 0, "GMT": 0}
NO_TOTAL = "a machine with no memory at all (mem_total 0)"
ODD_ROW = "a row of another number of fields"
GPU, CPU, MEM = "gpu_util", "cpu_util", "mem_util"


#: What stands in place of a row in one of the two ways to write it.
_TAIL = {True: rb"\1,", False: rb"\1"}


class PhillyUtil:
    """Reads one of the three files.

    Args:
        path: plain or gzip CSV.
        kind: ``gpu_util``, ``cpu_util`` or ``mem_util``: which of them, and the metric's name.
        metric: read only these; None = all there is.
        zone: IANA zone of times without a zone of their own.
        bad_rows: ``"report"`` counts rows with another number of fields among the dropped (the
            published file has some), ``"raise"`` refuses them.

    Raises:
        SpecError: an unknown metric or way with bad rows.
    """

    def __init__(
        self,
        path: str | Path,
        kind: str,
        *,
        metric: Collection[str] | None = None,
        zone: str | None = None,
        bad_rows: str = "report",
    ) -> None:
        for name in metric or ():
            if name != kind:
                raise SpecError.unknown("metric", name, (kind,))
        if bad_rows not in {"report", "raise"}:
            raise SpecError.unknown("bad_rows", bad_rows, ("report", "raise"))
        self._path = path
        self._file = str(path)
        self._kind = kind
        self._zone = zone or ZONE
        self._bad_rows = bad_rows
        self.size = file_size(path)
        self.metrics: tuple[str, ...] | None = (kind,)

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples in the order of the rows, a machine's GPUs one behind the other."""
        header, blocks = after_header(line_blocks(self._path, meter), self._file)
        names, values = self._columns(header)
        width = len(values) if self._kind == GPU else 1
        parser: RowParser | None = None
        for block in blocks:
            if parser is None:
                parser = RowParser(self._file, self._with_tail(names, block), values)
            yield from self._of_block(parser, block, values, width, tally)

    def _of_block(
        self, parser: RowParser, block: Block, values: list[str], width: int, tally: Tally
    ) -> Iterator[pa.RecordBatch]:
        mended = _one_tail(block, parser.names)
        table = parser.parse(mended, skip_odd=self._bad_rows == "report")
        tally.rows_read += parser.skipped * width
        tally.drop(ODD_ROW, parser.skipped * width)
        if table.num_rows == 0:
            return
        line = lambda row: parser.line(mended, row)  # noqa: E731 (a bound argument)
        time = self._times(table["time"], line)
        nodes = table.column(1).combine_chunks()
        if self._kind == GPU:
            yield from self._gpus(table, time, nodes, values, tally)
            return
        yield batch(
            tally,
            time=time,
            value=self._values(table, tally),
            node=nodes,
            metric=repeated(self._kind, len(time)),
        )

    def _columns(self, header: Header) -> tuple[list[str], list[str]]:
        """Return all columns, and those with numbers."""
        names = [name for name in header.names if name]
        machine = "machineId" if self._kind == GPU else "machine_id"
        wanted = {GPU: ["gpu0_util"], CPU: ["cpu_util"], MEM: ["mem_total", "mem_free"]}
        for name in ("time", machine, *wanted[self._kind]):
            if name not in names:
                raise TraceError.missing_column(self._file, name, names)
        if names[:2] != ["time", machine]:
            raise TraceError(self._file, f"the columns time and {machine} first", row=1)
        return names, names[2:]

    def _with_tail(self, names: list[str], block: Block) -> list[str]:
        """Return the columns, with one more for the comma at the end of rows that have one."""
        first = block.data.split(b"\n", 1)[0].rstrip(b"\r")
        trailing = first.endswith(b",") and first.count(b",") == len(names)
        return [*names, "(end of row)"] if trailing else names

    def _times(self, cells: pa.ChunkedArray, line: Callable[[int], int]) -> np.ndarray:
        """Return UTC seconds since 1970 of times with a zone's short name, shape (rows,)."""
        zones = pc.utf8_slice_codeunits(cells, -3)
        known = pc.index_in(zones, value_set=pa.array(list(OFFSETS), pa.string()))
        if known.null_count == len(known):
            return moments(cells, self._zone, file=self._file, column="time", line=line)
        if known.null_count:
            row = pc.index(pc.is_null(known), True).as_py()
            raise TraceError(
                self._file,
                f"a time with one of {', '.join(OFFSETS)} behind it, as the first row has",
                row=line(row),
                column="time",
                value=cells[row].as_py(),
            )
        wall = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(cells, 0, -3))
        local = moments(wall, "UTC", file=self._file, column="time", line=line)
        offsets = np.array(list(OFFSETS.values()), np.float64)
        shifted: np.ndarray = local - offsets[known.to_numpy()]
        return shifted

    def _gpus(
        self, table: pa.Table, time: np.ndarray, nodes: pa.Array, values: list[str], tally: Tally
    ) -> Iterator[pa.RecordBatch]:
        matrix = np.column_stack(
            [np.asarray(table[name].to_numpy(), np.float64) for name in values]
        )
        names = pa.array([name.removesuffix("_util") for name in values], pa.string())
        count, width = matrix.shape
        rows = pa.array(np.repeat(np.arange(count), width))
        gpus = pa.array(np.tile(np.arange(width), count))
        yield batch(
            tally,
            time=np.repeat(time, width),
            value=matrix.ravel(),
            node=nodes.take(rows),
            gpu=names.take(gpus),
            metric=repeated(self._kind, matrix.size),
        )

    def _values(self, table: pa.Table, tally: Tally) -> np.ndarray:
        if self._kind == CPU:
            return np.asarray(table["cpu_util"].to_numpy(), np.float64)
        total = np.asarray(table["mem_total"].to_numpy(), np.float64)
        free = np.asarray(table["mem_free"].to_numpy(), np.float64)
        nothing = int((total == 0).sum())
        if nothing and NO_TOTAL not in tally.notes:
            tally.notes.append(f"{NO_TOTAL}: counted among those without a value.")
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            used: np.ndarray = np.where(total == 0, np.nan, 100.0 * (total - free) / total)
        return used


def _one_tail(block: Block, names: list[str]) -> Block:
    """Return a block whose every full row ends, or does not end, in a comma as the first does."""
    commas = len(names) - 1
    tailed = names[-1] == "(end of row)"
    if block.data.count(b",") == commas * (
        block.data.count(b"\n") + (not block.data.endswith(b"\n"))
    ):
        return block
    row = rb"(?m)^((?:[^,\r\n]*,){%d}[^,\r\n]*)" % (commas - 1 if tailed else commas)
    # Not line by line in Python: a block may be sixteen million blank lines.
    data = re.sub(row + (rb"(?=\r*$)" if tailed else rb",(?=\r*$)"), _TAIL[tailed], block.data)
    return Block(data, block.line, block.offset)
