"""Columns too long for memory: written to the store's folder in passing, then mapped from there.

A mapped column costs memory only where it is looked at, and the system takes that back at will.
Everything here is append-only and keeps the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pathlib import Path

#: Rows of text that are written at once.
_AT_ONCE = 2**15
#: Rows of text that are encoded at once.
_CODED_AT_ONCE = 2**16


class Growing:
    """Numbers that come some at a time, in one piece of memory.

    Memory that nobody used before is dear: to keep the pieces and join them takes it twice.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = dtype
        # The system moves its pages when it grows, which neither copies nor touches them.
        self._bytes = bytearray()

    def append(self, values: np.ndarray) -> None:
        """Append numbers of the type, shape (numbers,)."""
        self._bytes += np.ascontiguousarray(values, self._dtype).data.cast("B")

    def array(self) -> np.ndarray:
        """Return all of them, shape (numbers,); nothing may be appended any more."""
        return np.frombuffer(self._bytes, self._dtype)


class Numbers:
    """A column of float64.

    Attributes:
        path: its file, new.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = pa.OSFile(str(path), "wb")
        self._known = Growing(np.bool_)
        self._unknown = 0
        self._rows = 0

    def append(self, values: pa.Array) -> None:
        """Append rows, float64; null = unknown."""
        self._rows += len(values)
        self._unknown += values.null_count
        self._known.append(known(values))
        self._file.write(values.to_numpy(zero_copy_only=False))

    def mapped(self) -> pa.Array:
        """Return the whole column, float64; nothing may be appended any more.

        Values below the nulls are NaN.
        """
        self._file.close()
        if not self._rows:
            return pa.array([], pa.float64())
        bits = None
        if self._unknown:
            bits = pa.py_buffer(np.packbits(self._known.array(), bitorder="little"))
        values = pa.py_buffer(np.memmap(self.path, np.float64, mode="r"))
        return pa.Array.from_buffers(pa.float64(), self._rows, [bits, values], self._unknown)


def known(values: pa.Array) -> np.ndarray:
    """Return which values are not null, bool, shape (values,)."""
    if not values.null_count:
        return np.ones(len(values), bool)
    found: np.ndarray = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def as_floats(column: pa.Array) -> np.ndarray:
    """Return a mapped column as float64, shape (rows,), without copying it; NaN = unknown."""
    found: np.ndarray = np.frombuffer(column.buffers()[1] or b"", np.float64)
    return found


class Texts:
    """Columns of text side by side."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self._path = path
        self._schema = pa.schema([(name, pa.string()) for name in names])
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch may have other columns too."""
        self._waiting.append(batch.select(self._schema.names))
        self._rows += batch.num_rows
        if self._rows >= _AT_ONCE:
            self._write()

    def close(self) -> TextFile:
        """Return the rows; nothing may be appended any more."""
        self._write()
        self._writer.close()
        self._sink.close()
        return TextFile(self._path)

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
        self._writer.write_table(table)
        self._waiting, self._rows = [], 0


@dataclass(frozen=True)
class TextFile:
    """Columns of text in a file.

    Attributes:
        path: the file.
    """

    path: Path

    def mapped(self) -> pa.Table:
        """Return all the rows; memory that looking at them took goes with the table."""
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all()

    def rows(self, name: str, rows: np.ndarray) -> pa.Array:
        """Return some rows of a column, in one piece; the others are not looked at.

        Args:
            rows: in any order, shape (rows,).
        """
        return rows_of(self.mapped()[name], rows)


def rows_of(column: pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """Return some rows of a column, in one piece; the others are not looked at.

    Args:
        rows: integers in any order, shape (rows,).
    """
    if bool(np.any(rows[1:] < rows[:-1])):
        order = np.argsort(rows, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows_of(column, rows[order]).take(pa.array(back))
    chunks = column.chunks
    ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)
    cuts = np.searchsorted(rows, ends)
    parts = [pa.array([], pa.string())]
    begin = row = 0
    for chunk, cut, end in zip(chunks, cuts.tolist(), ends.tolist(), strict=True):
        if cut > begin:
            parts.append(chunk.take(pa.array(rows[begin:cut] - row)))
        begin, row = cut, end
    return pa.concat_arrays(parts)


@dataclass(frozen=True)
class Coded:
    """A column of text as places in the list of its different values.

    Attributes:
        codes: int32, shape (rows,); -1 = null.
        words: the different values, in order of their first row.
    """

    codes: np.ndarray
    words: list[str]

    def array(self) -> pa.Array:
        """Return the column as an Arrow dictionary array."""
        return looked_up(index_of(self.codes), pa.array(self.words, pa.string()))


class Codes:
    """A column of few different texts."""

    def __init__(self) -> None:
        self._words = pa.array([], pa.string())
        self._waiting: list[pa.Array] = []
        self._rows = 0
        self._codes = Growing(np.int32)

    def append(self, values: pa.Array) -> None:
        """Append rows of text."""
        self._waiting.append(values)
        self._rows += len(values)
        # All words are looked at each time: where they are many, so are the rows at once.
        if self._rows >= max(_CODED_AT_ONCE, len(self._words)):
            self._encode()

    def coded(self) -> Coded:
        """Return the whole column; nothing may be appended any more."""
        self._encode()
        return Coded(self._codes.array(), self._words.to_pylist())

    def _encode(self) -> None:
        if not self._waiting:
            return
        values = pa.concat_arrays(self._waiting)
        self._waiting, self._rows = [], 0
        codes = self._found(values)
        if codes.null_count > values.null_count:  # there are words that were not met before
            new = values.filter(pc.and_(codes.is_null(), values.is_valid())).unique()
            self._words = pa.concat_arrays([self._words, new])
            codes = self._found(values)
        self._codes.append(codes.fill_null(-1).to_numpy())

    def _found(self, values: pa.Array) -> pa.Array:
        """Return the place of each text among the words, int32; null = it is none of them."""
        return pc.index_in(values, value_set=self._words, skip_nulls=True)


def index_of(places: np.ndarray) -> pa.Array:
    """Return places as an Arrow index.

    Args:
        places: signed integers, shape (rows,); -1 = null.
    """
    lacking = places < 0
    return pa.array(places, mask=lacking) if lacking.any() else pa.array(places)


def looked_up(index: pa.Array, values: pa.Array) -> pa.Array:
    """Return an Arrow dictionary array: ``values`` at some places, without copying them.

    Args:
        index: see `index_of`; the places must be there.
    """
    return pa.DictionaryArray.from_arrays(index, values, safe=False)
