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
    columns = {name: named(text, name) for name in IDENTITY}
    columns["batch_size"] = _integers(text, "batch_size", "a whole number of samples >= 1")
    columns["run"] = _integers(text, "run", "a whole number of a run >= 0", least=0)
    columns["target_metric"] = finite(text, "target_metric", "a number")
    what = "a whole number of epochs >= 1; nothing or nan where it never got there"
    reached = text.floats("target_epoch", what=what)
    reached = pc.if_else(pc.is_nan(reached), pa.scalar(None, pa.float64()), reached)
    refuse(text, "target_epoch", pc.less(reached, 1), what)
    refuse(text, "target_epoch", pc.not_equal(reached, pc.floor(reached)), what)
    refuse(text, "target_epoch", pc.greater(reached, _LARGEST), what)
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
    columns = {name: named(text, name) for name in IDENTITY}
    columns["batch_size"] = _integers(text, "batch_size", "a whole number of samples >= 1")
    columns["power_limit"] = _integers(text, "power_limit", "a whole number of watts >= 1")
    for name, what in (
        ("time_per_epoch", f"seconds from {_SMALLEST:g} to {_LARGEST:,}"),
        ("average_power", f"watts from {_SMALLEST:g} to {_LARGEST:,}"),
    ):
        columns[name] = finite(text, name, what)
        refuse(text, name, pc.less(columns[name], _SMALLEST), what)
        refuse(text, name, pc.greater(columns[name], _LARGEST), what)
    return _unique(text, pa.table(columns), POWER_KEY)


def named(text: TextTable, name: str) -> pa.ChunkedArray:
    """Return a column of names, none of them empty, without surrounding blanks.

    Raises:
        TraceError: there is no such column, or a cell has no name.
    """
    cells = pc.utf8_trim_whitespace(text.text(name))
    refuse(text, name, pc.fill_null(pc.equal(cells, ""), True), "a name")
    return cells


def _integers(text: TextTable, name: str, what: str, *, least: int = 1) -> pa.ChunkedArray:
    numbers = text.integers(name, what=what, largest=_LARGEST)
    refuse(text, name, pc.fill_null(pc.less(numbers, least), True), what)
    return numbers


def finite(text: TextTable, name: str, what: str) -> pa.ChunkedArray:
    """Return a column of finite numbers, float64, none of them unknown.

    Raises:
        TraceError: there is no such column, or a cell is no such number; ``what`` was expected.
    """
    numbers = text.floats(name, what=what)
    refuse(text, name, pc.fill_null(pc.invert(pc.is_finite(numbers)), True), what)
    return numbers


def refuse(text: TextTable, name: str, wrong: pa.ChunkedArray, what: str) -> None:
    """Refuse the first cell of a column that is wrong (null counts as right here).

    Raises:
        TraceError: there is one; an empty cell is named as such.
    """
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        value = text.text(name)[row].as_py() or ""
        raise TraceError(text.file, what, row=int(text.lines[row]), column=name, value=value)


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
