"""Acme's server power from the baseboard controllers (IPMI).

``GPU_AB_Power.csv``, ``GPU_C_Power.csv`` (GPU nodes) and ``CPU_D_Power.csv`` (CPU nodes) of
Qinghao/AcmeTrace ``data/utilization/ipmi``: ``Time, ..., Sys_Total_Power`` in watts. Rows of the
first that lack any value come from nodes of type B, which do not tell their memory's power, the
rest from type A; the power of GPU nodes is A, B and C together (the authors' notebook
``generate_utilization_pkl.ipynb``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, TraceError
from windtunnel.telemetry.blocks import Block, Meter, after_header, file_size, line_blocks
from windtunnel.telemetry.clock import moments
from windtunnel.telemetry.rows import RowParser
from windtunnel.telemetry.sample_batches import batch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from windtunnel.telemetry.sample_batches import Tally

ZONE = "Asia/Shanghai"
POWER = "Sys_Total_Power"
TIME = "Time"
GPU_NODES, CPU_NODES = "GPU_NODE_POWER", "CPU_NODE_POWER"
#: File -> what its nodes are, and their type; None = found row by row.
FILES: dict[str, tuple[str, str | None]] = {
    "GPU_AB_Power.csv": (GPU_NODES, None),
    "GPU_C_Power.csv": (GPU_NODES, "GPU_C"),
    "CPU_D_Power.csv": (CPU_NODES, "CPU_D"),
}
#: A column of one of these names, in any case, names the node.
NODE_COLUMNS = ("node", "ip", "host", "hostname", "server")


class Ipmi:
    """Reads the power of servers.

    Args:
        path: one of the three files, or a folder that has any of them.
        metric: read only these; None = all.
        zone: IANA zone of times without an offset.
        by_type: the metric is the node's type (``GPU_A``, ``GPU_B``, ``GPU_C``, ``CPU_D``)
            instead of ``GPU_NODE_POWER`` or ``CPU_NODE_POWER``.

    Raises:
        TraceError: none of the files is there.
        SpecError: an unknown metric.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        metric: Collection[str] | None = None,
        zone: str | None = None,
        by_type: bool = False,
    ) -> None:
        place = Path(path)
        here = [place / name for name in FILES] if place.is_dir() else [place]
        self._files = [file for file in here if file.is_file()]
        if not self._files:
            raise TraceError(str(path), f"one of {', '.join(FILES)}")
        for file in self._files:
            if file.name not in FILES:
                raise TraceError(str(file), f"a file called {', '.join(FILES)}")
        kinds = ("GPU_A", "GPU_B", "GPU_C", "CPU_D") if by_type else (GPU_NODES, CPU_NODES)
        for name in metric or ():
            if name not in kinds:
                raise SpecError.unknown("metric", name, kinds)
        self._metric = metric
        self._by_type = by_type
        self._zone = zone or ZONE
        self.size = sum(file_size(file) for file in self._files)
        self.metrics: tuple[str, ...] | None = None if metric is None else tuple(sorted(metric))

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples file by file, in the order of the rows."""
        for path in self._files:
            file = str(path)
            header, blocks = after_header(line_blocks(path, meter), file)
            for name in (TIME, POWER):
                if name not in header.names:
                    raise TraceError.missing_column(file, name, header.names)
            parser = RowParser(file, header.names, [POWER])
            for block in blocks:
                table = parser.parse(block)
                if table.num_rows:
                    yield self._samples(parser, block, table, path, tally)

    def _samples(
        self, parser: RowParser, block: Block, table: pa.Table, path: Path, tally: Tally
    ) -> pa.RecordBatch:
        line = lambda row: parser.line(block, row)  # noqa: E731 (a bound argument)
        time = moments(table[TIME], self._zone, file=str(path), column=TIME, line=line)
        metric = self._metrics_of(table, path)
        node = next((n for n in parser.names if n.lower() in NODE_COLUMNS), None)
        return batch(
            tally,
            time=time,
            value=np.asarray(table[POWER].to_numpy(), np.float64),
            node=table[node].combine_chunks() if node else None,
            metric=pa.array(metric, pa.string()),
            wanted=None if self._metric is None else np.isin(metric, list(self._metric)),
        )

    def _metrics_of(self, table: pa.Table, path: Path) -> np.ndarray:
        """Return the metric of each row, an array of text, shape (rows,)."""
        nodes, kind = FILES[path.name]
        if not self._by_type:
            return np.full(table.num_rows, nodes, dtype=object)
        if kind is not None:
            return np.full(table.num_rows, kind, dtype=object)
        lacking = np.zeros(table.num_rows, bool)
        for column in table.columns:
            lacking |= np.asarray(pc.is_null(column).to_numpy(), bool)
        return np.where(lacking, "GPU_B", "GPU_A").astype(object)
