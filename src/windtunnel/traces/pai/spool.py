"""Columns too long for memory: written to the store's folder in passing, then mapped from there.

A mapped column costs memory only where it is looked at, and the system takes that back at will.
Everything here is append-only and keeps the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

#: Rows of text that are encoded, or written, at once.
_AT_ONCE = 2**15


class Numbers:
    """A column of float64.

    Attributes:
        path: its file, new.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = pa.OSFile(str(path), "wb")
        self._known: list[np.ndarray] = []
        self._unknown = 0
        self._rows = 0

    def append(self, values: pa.Array) -> None:
        """Append rows, float64; null = unknown."""
        self._rows += len(values)
        self._unknown += values.null_count
        if values.null_count:
            self._known.append(values.is_valid().to_numpy(zero_copy_only=False))
        else:
            self._known.append(np.ones(len(values), bool))
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
            bits = pa.py_buffer(np.packbits(np.concatenate(self._known), bitorder="little"))
        values = pa.py_buffer(np.memmap(self.path, np.float64, mode="r"))
        return pa.Array.from_buffers(pa.float64(), self._rows, [bits, values], self._unknown)


def as_floats(column: pa.Array) -> np.ndarray:
    """Return a mapped column as float64, shape (rows,), without copying it; NaN = unknown."""
    found: np.ndarray = np.frombuffer(column.buffers()[1] or b"", np.float64)
    return found


class Texts:
    """Columns of text side by side.

    Args:
        path: a new file for them.
        names: of the columns.
    """

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
            name: the column.
            rows: in any order, shape (rows,).
        """
        if bool(np.any(rows[1:] < rows[:-1])):
            order = np.argsort(rows, kind="stable")
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            return self.rows(name, rows[order]).take(pa.array(back))
        chunks = self.mapped()[name].chunks
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
        self._place: dict[str, int] = {}
        self._waiting: list[pa.Array] = []
        self._codes: list[np.ndarray] = []

    def append(self, values: pa.Array) -> None:
        """Append rows of text."""
        self._waiting.append(values)
        if sum(len(waiting) for waiting in self._waiting) >= _AT_ONCE:
            self._encode()

    def coded(self) -> Coded:
        """Return the whole column; nothing may be appended any more."""
        self._encode()
        codes = np.concatenate([np.empty(0, np.int32), *self._codes])
        return Coded(codes, list(self._place))

    def _encode(self) -> None:
        if not self._waiting:
            return
        encoded = pa.concat_arrays(self._waiting).dictionary_encode()
        self._waiting = []
        places = [
            self._place.setdefault(word, len(self._place))
            for word in encoded.dictionary.to_pylist()
        ]
        # The last place is the one that -1 means.
        ours = np.array([*places, -1], np.int32)
        self._codes.append(ours[encoded.indices.fill_null(-1).to_numpy()])


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
        values: any array.
    """
    return pa.DictionaryArray.from_arrays(index, values, safe=False)
