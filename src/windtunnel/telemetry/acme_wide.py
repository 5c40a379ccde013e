"""Acme (Seren, Kalos) telemetry: wide CSV files, a column ``Time`` and one column a device.

Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI'24;
Qinghao/AcmeTrace ``data/utilization``. The metric is the file's name (``GPU_UTIL.csv``, in parts
``GPU_UTIL-2023-07.csv``); node files (``NODE_...``) name their columns by the node's address, GPU
files by address and index (``10.140.0.1-3``). One row every 15 seconds.

The steps that turn Acme's raw Prometheus exports into the published telemetry files.

The rules are those of InternLM/AcmeTrace ``data/generate_utilization_pkl.ipynb``. The published
files have been through them, a raw export has not, and a file does not tell which it is: the user
does. Columns and rows without any value give no samples in either case.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.telemetry.blocks import Block, Meter, after_header, file_size, line_blocks
from windtunnel.telemetry.clock import moments
from windtunnel.telemetry.row_index import indexed_blocks
from windtunnel.telemetry.rows import RowParser
from windtunnel.telemetry.sample_batches import Tiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from windtunnel.telemetry.blocks import Header
    from windtunnel.telemetry.sample_batches import Tally

#: Every step, in the order in which the notebook takes them.
STEPS: tuple[str, ...] = ("unique-time", "sort", "window", "percent", "round", "strip-nic")
#: NODE_MEMORY names its nodes wrongly from 11:35:00 to 14:01:00 on 2023-07-19 (+08:00), both ends
#: included; UTC seconds since 1970.
MANGLED = (1_689_737_700.0, 1_689_746_460.0)
#: What "strip-nic" takes off the names of the InfiniBand columns: a node has one adapter.
NIC = "-mlx5_0"


def steps_of(clean: str | Collection[str]) -> frozenset[str]:
    """Return the steps that an option names.

    Args:
        clean: ``"published"`` = none, ``"raw"`` = all, or a collection of names of `STEPS`.

    Raises:
        SpecError: a name is unknown, or it is neither a name nor several.
    """
    if not isinstance(clean, str | Collection):
        raise SpecError.unknown("clean", str(clean), ("published", "raw", *STEPS))
    if isinstance(clean, str):
        if clean not in {"published", "raw"}:
            raise SpecError.unknown("clean", clean, ("published", "raw"))
        return frozenset(STEPS if clean == "raw" else ())
    for name in clean:
        if name not in STEPS:
            raise SpecError.unknown("clean", name, STEPS)
    return frozenset(clean)


def in_mangled_window(metric: str, time: np.ndarray) -> np.ndarray:
    """Return which rows of a metric have wrongly named nodes.

    Args:
        time: UTC seconds since 1970, shape (rows,).
    """
    if "NODE_MEMORY" not in metric:
        return np.zeros(len(time), bool)
    first, last = MANGLED
    inside: np.ndarray = (time >= first) & (time <= last)
    return inside


def rescaled(metric: str, values: np.ndarray, steps: frozenset[str]) -> np.ndarray:
    """Return values in the published unit: ratios as percent, rounded as the notebook rounds.

    Args:
        values: as in the raw export, any shape; changed in place.
        steps: of `STEPS`; "percent" and "round" matter here.
    """
    is_node = metric.startswith("NODE_")
    is_ratio = any(
        word in metric
        for word in (("NODE_CPU", "NODE_MEMORY") if is_node else ("ACTIVE", "OCCUPANCY"))
    )
    if "percent" in steps and is_ratio:
        values *= 100.0
    if "round" in steps:
        if is_ratio:
            np.round(values, 3, out=values)
        elif "POWER" in metric:
            np.round(values, 1, out=values)
    return values


ZONE = "Asia/Shanghai"
TIME = "Time"
_ENDINGS = (".csv", ".csv.gz")
_PART = re.compile(r"^(?P<metric>.+?)-\d{4}-.*$")
_GPU_COLUMN = re.compile(r"^(?P<node>.+)-(?P<gpu>\d+)$")
#: The metric that ``gpu_mem_mib`` turns into percent, and what it is called then.
MEMORY, MEMORY_PERCENT = "FB_USED", "FB_USED_PERCENT"


@dataclass(frozen=True)
class WideMetric:
    """One metric and the files that hold it, in order.

    Attributes:
        name: the metric.
        files: one file, or its parts by name.
        unread: parts that lie beside the whole file and are not read.
    """

    name: str
    files: tuple[Path, ...]
    unread: tuple[Path, ...] = ()


class AcmeWide:
    """Reads wide files.

    Args:
        path: a file, or a folder whose ``.csv`` files are read.
        metric: read only these; None = all.
        zone: IANA zone of times without an offset.
        clean: ``"published"`` (the files as released) or ``"raw"`` (exports before the authors'
            cleaning, every step is taken), or names of
            `windtunnel.telemetry.acme_wide.STEPS`.
        gpu_mem_mib: memory of a GPU; given, FB_USED (MiB) becomes FB_USED_PERCENT. The authors
            take 80 x 1024.

    Raises:
        SpecError: an unknown metric or step, or ``gpu_mem_mib`` is no number above 0.
        TraceError: there is no such file, or no ``.csv`` file in the folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        metric: Collection[str] | None = None,
        zone: str | None = None,
        clean: str | Collection[str] = "published",
        gpu_mem_mib: float | None = None,
    ) -> None:
        if gpu_mem_mib is not None and not 0 < gpu_mem_mib < np.inf:
            raise SpecError("gpu_mem_mib", f"found {quote(gpu_mem_mib)}; expected a number above 0")
        found = wide_metrics(Path(path))
        known = [entry.name for entry in found]
        for name in metric or ():
            if name not in known:
                raise SpecError.unknown("metric", name, known)
        self._chosen = [entry for entry in found if metric is None or entry.name in metric]
        self._meaning = _Meaning(zone or ZONE, steps_of(clean), gpu_mem_mib)
        self.size = sum(file_size(path) for entry in self._chosen for path in entry.files)
        self.metrics: tuple[str, ...] | None = tuple(
            self._meaning.name_of(entry.name) for entry in self._chosen
        )

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples, metric by metric, in the order of the files' rows."""
        for entry in self._chosen:
            if entry.unread:
                tally.notes.append(
                    f"{entry.files[0].name} is there: {len(entry.unread):,} parts were not read."
                )
            if self._meaning.steps & {"unique-time", "sort"}:
                yield from self._ordered(entry, tally, meter)
                continue
            for path in entry.files:
                header, blocks = after_header(line_blocks(path, meter), str(path))
                sheet = _Sheet(self._meaning, entry.name, path, header)
                for block in blocks:
                    yield from sheet.samples(block, tally)
                sheet.finish(tally)

    def _ordered(self, entry: WideMetric, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield a metric's samples with each time once and in order, as far as asked."""
        sheets: dict[Path, _Sheet] = {}
        blocks = indexed_blocks(
            entry.files, TIME, self._meaning.zone, meter,
            unique="unique-time" in self._meaning.steps, ordered="sort" in self._meaning.steps,
        )  # fmt: skip
        for path, header, block, repeats in blocks:
            sheet = sheets.get(path)
            if sheet is None:
                sheet = sheets[path] = _Sheet(self._meaning, entry.name, path, header)
            if repeats:
                tally.rows_read += repeats * sheet.width
                tally.drop("a row whose time stood before", repeats * sheet.width)
            if block.data:
                yield from sheet.samples(block, tally)
        for sheet in sheets.values():
            sheet.finish(tally)


@dataclass(frozen=True)
class _Meaning:
    """How cells are to be understood: see `AcmeWide`."""

    zone: str
    steps: frozenset[str]
    gpu_mem_mib: float | None

    def name_of(self, metric: str) -> str:
        """Return what a metric is called once its values are understood."""
        return MEMORY_PERCENT if self.gpu_mem_mib and metric == MEMORY else metric

    def values_of(self, metric: str, values: np.ndarray) -> np.ndarray:
        """Return a metric's values in its unit; they may be changed in place."""
        values = rescaled(metric, values, self.steps)
        if self.gpu_mem_mib is None or metric != MEMORY:
            return values
        with np.errstate(over="ignore"):  # infinite then, and counted as such
            percent: np.ndarray = 100.0 * values / self.gpu_mem_mib
        return percent


class _Sheet:
    """One file's devices, and its rows as samples."""

    def __init__(self, meaning: _Meaning, metric: str, path: Path, header: Header) -> None:
        self._meaning = meaning
        self._metric = metric
        self._file = str(path)
        if TIME not in header.names:
            raise TraceError.missing_column(self._file, TIME, header.names)
        self._devices = [name for name in header.names if name != TIME]
        if not self._devices:
            raise TraceError(self._file, f"a column for each device beside {TIME}")
        if "" in self._devices:  # the index of a data frame, or a separator behind the rows
            raise TraceError(
                self._file,
                "a name for each column",
                row=header.line - 1,
                hint=f"Column {header.names.index('') + 1} has none.",
            )
        nodes, gpus = self._named(self._devices)
        self.width = len(self._devices)
        self._tiles = Tiles(meaning.name_of(metric), nodes, gpus)
        self._parser = RowParser(self._file, header.names, self._devices)
        self._seen = np.zeros(self.width, bool)

    def _named(self, devices: Sequence[str]) -> tuple[list[str], list[str | None]]:
        """Return node and GPU of each column."""
        strip = "strip-nic" in self._meaning.steps and "NODE_IB" in self._metric
        bare = [name.replace(NIC, "") for name in devices] if strip else list(devices)
        if len(set(bare)) < len(bare):
            twice = next(name for name in bare if bare.count(name) > 1)
            raise TraceError(self._file, "each device once", column=twice, value=twice)
        if self._metric.startswith("NODE_"):
            return bare, [None] * len(bare)
        matches = [_GPU_COLUMN.match(name) for name in bare]
        nodes = [m["node"] if m else name for m, name in zip(matches, bare, strict=True)]
        return nodes, [m["gpu"] if m else None for m in matches]

    def samples(self, block: Block, tally: Tally) -> Iterator[pa.RecordBatch]:
        """Yield a block's samples.

        Raises:
            TraceError: a row is no row, a time no time, or a value no number.
        """
        table = self._parser.parse(block)
        if table.num_rows == 0:
            return
        line = lambda row: self._parser.line(block, row)  # noqa: E731 (a bound argument)
        time = moments(table[TIME], self._meaning.zone, file=self._file, column=TIME, line=line)
        matrix = _matrix(table, self._devices)
        if "window" in self._meaning.steps:
            mangled = in_mangled_window(self._metric, time)
            lost = int(mangled.sum()) * self.width
            tally.rows_read += lost
            tally.drop("NODE_MEMORY from 11:35 to 14:01 on 2023-07-19: wrong node names", lost)
            time, matrix = time[~mangled], matrix[~mangled]
        self._seen |= ~np.isnan(matrix).all(axis=0)
        matrix = self._meaning.values_of(self._metric, matrix)
        for start in range(0, len(time), self._tiles.height):
            part = slice(start, start + self._tiles.height)
            yield self._tiles.batch(tally, time[part], matrix[part])

    def finish(self, tally: Tally) -> None:
        """Note the devices that have no value in the whole file."""
        empty = int((~self._seen).sum())
        if empty:
            tally.notes.append(
                f"{empty:,} of {self.width:,} columns of {Path(self._file).name} hold no value."
            )


def wide_metrics(path: Path) -> list[WideMetric]:
    """Return the metrics of a file or folder, by name.

    Where a folder has a metric's file whole and in parts, the whole one counts, as in the authors'
    notebook.

    Raises:
        TraceError: there is no such file, or no ``.csv`` file in the folder.
    """
    if not path.is_dir():
        return [WideMetric(_metric_of(path)[0], (path,))]
    files = [entry for entry in path.iterdir() if entry.name.endswith(_ENDINGS)]
    if not files:
        raise TraceError(str(path), "a folder with .csv files", hint="It has none.")
    return list(_grouped(sorted(files)))


def _grouped(files: Iterable[Path]) -> Iterator[WideMetric]:
    whole: dict[str, Path] = {}
    parts: dict[str, list[Path]] = {}
    for file in files:
        metric, is_part = _metric_of(file)
        if is_part:
            parts.setdefault(metric, []).append(file)
        else:
            whole.setdefault(metric, file)
    for metric in sorted({*whole, *parts}):
        found = tuple(parts.get(metric, ()))
        if metric in whole:
            yield WideMetric(metric, (whole[metric],), found)
        else:
            yield WideMetric(metric, found)


def _metric_of(path: Path) -> tuple[str, bool]:
    """Return a file's metric, and whether it is a part of several."""
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    match = _PART.match(stem)
    return (match["metric"], True) if match else (stem, False)


def _matrix(table: pa.Table, devices: Sequence[str]) -> np.ndarray:
    """Return the devices' columns as one float64 array, shape (rows, devices), null as NaN."""
    (rows,) = table.select(devices).combine_chunks().to_batches()
    tensor = rows.to_tensor(null_to_nan=True, row_major=True)
    values: np.ndarray = tensor.to_numpy()
    return values if values.flags.writeable else values.copy()
