"""Readers of measured training runs: epochs to a target, and time and power of an epoch.

The schema is that of the Zeus artifact (You, Chung, Chowdhury, NSDI'23): ``summary_train.csv`` says
after how many epochs a run reached a target, ``summary_power_{gpu}.csv`` how long an epoch takes
and what the GPU draws at a batch size and a power limit. Anybody's measurements in these columns
are read the same way. No row is dropped or repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.traces.tabular import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable

#: Columns that say what is trained; both files have them.
IDENTITY: tuple[str, ...] = ("dataset", "network", "optimizer")
#: What identifies a row of the training file, and of a power file.
TRAIN_KEY = (*IDENTITY, "batch_size", "run", "target_metric")
POWER_KEY = (*IDENTITY, "batch_size", "power_limit")
#: No batch, power or epoch is larger; sums of squares of much more would overflow.
_LARGEST = 2**31 - 1
#: No power or time of an epoch is smaller; what is divided by much less would overflow.
_SMALLEST = 1e-6


def read_train(path: str | Path) -> pa.Table:
    """Read a file of training runs.

    Args:
        path: CSV, plain or gzip; a row a run and target.

    Returns:
        Columns ``dataset``, ``network``, ``optimizer`` (string), ``batch_size``, ``run`` (int64),
        ``target_metric`` (float64) and ``target_epoch`` (float64, null = never reached), in the
        file's order.

    Raises:
        TraceError: the file cannot be read as such a table, or a key stands there twice.
    """
    text = read_text(path)
    columns = _identity(text)
    columns["batch_size"] = _integers(text, "batch_size", "a whole number of samples >= 1")
    columns["run"] = _integers(text, "run", "a whole number of a run >= 0", least=0)
    columns["target_metric"] = _floats(text, "target_metric", "a number")
    what = "a whole number of epochs >= 1; nothing or nan where it never got there"
    reached = text.floats("target_epoch", what=what)
    reached = pc.if_else(pc.is_nan(reached), pa.scalar(None, pa.float64()), reached)
    _check(text, "target_epoch", pc.less(reached, 1), what)
    _check(text, "target_epoch", pc.not_equal(reached, pc.floor(reached)), what)
    _check(text, "target_epoch", pc.greater(reached, _LARGEST), what)
    columns["target_epoch"] = reached
    return _unique(text, pa.table(columns), TRAIN_KEY)


def read_power(path: str | Path) -> pa.Table:
    """Read a file of epoch times and power of one kind of GPU.

    Args:
        path: CSV, plain or gzip; a row a workload, batch size and power limit.

    Returns:
        Columns ``dataset``, ``network``, ``optimizer`` (string), ``batch_size``, ``power_limit``
        (int64, W), ``time_per_epoch`` (float64, s) and ``average_power`` (float64, W), in the
        file's order.

    Raises:
        TraceError: the file cannot be read as such a table, or a key stands there twice.
    """
    text = read_text(path)
    columns = _identity(text)
    columns["batch_size"] = _integers(text, "batch_size", "a whole number of samples >= 1")
    columns["power_limit"] = _integers(text, "power_limit", "a whole number of watts >= 1")
    for name, what in (
        ("time_per_epoch", f"seconds from {_SMALLEST:g} to {_LARGEST:,}"),
        ("average_power", f"watts from {_SMALLEST:g} to {_LARGEST:,}"),
    ):
        columns[name] = _floats(text, name, what)
        _check(text, name, pc.less(columns[name], _SMALLEST), what)
        _check(text, name, pc.greater(columns[name], _LARGEST), what)
    return _unique(text, pa.table(columns), POWER_KEY)


def _identity(text: TextTable) -> dict[str, Any]:
    columns = {}
    for name in IDENTITY:
        cells = pc.utf8_trim_whitespace(text.text(name))
        _check(text, name, pc.fill_null(pc.equal(cells, ""), True), "a name")
        columns[name] = cells
    return columns


def _integers(text: TextTable, name: str, what: str, *, least: int = 1) -> pa.ChunkedArray:
    numbers = text.integers(name, what=what, largest=_LARGEST)
    _check(text, name, pc.fill_null(pc.less(numbers, least), True), what)
    return numbers


def _floats(text: TextTable, name: str, what: str) -> pa.ChunkedArray:
    numbers = text.floats(name, what=what)
    _check(text, name, pc.fill_null(_not_finite(numbers), True), what)
    return numbers


def _not_finite(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_finite(numbers))


def _check(text: TextTable, name: str, wrong: pa.ChunkedArray, what: str) -> None:
    """Refuse the first cell of a column that is wrong (null counts as right here)."""
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise TraceError(
            text.file,
            what,
            row=int(text.lines[row]),
            column=name,
            value=text.text(name)[row].as_py() or "",
        )


def _unique(text: TextTable, table: pa.Table, key: Sequence[str]) -> pa.Table:
    seen: set[tuple[Any, ...]] = set()
    for row, found in enumerate(zip(*(table[name].to_pylist() for name in key), strict=True)):
        if found in seen:
            raise TraceError(
                text.file,
                f"each {', '.join(key)} once",
                row=int(text.lines[row]),
                column=key[-1],
                value=found[-1],
            )
        seen.add(found)
    return table
