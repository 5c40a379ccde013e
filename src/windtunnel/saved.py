"""Results and traces in one file: tables, arrays and plain data in a zip archive.

The same content gives the same bytes. Nothing in a file is code: tables are Parquet, arrays NumPy's
``.npy`` without objects, the rest JSON.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windtunnel import storage
from windtunnel.errors import TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Version of the layout; another one's files are refused.
VERSION = 1
_ABOUT = "about.json"
#: What marks a value in the plain data that JSON has no word for.
_MARKS = ("array", "table", "record", "tuple", "number", "struct")


def save(path: str | Path, what: str, value: Any) -> None:
    """Write a value, whole or not at all.

    Args:
        path: the file.
        what: what it is, as `load` will ask for it: ``outcome``.
        value: dataclasses, msgspec structs, Arrow tables, arrays, and plain data, in each other.

    Raises:
        TypeError: a part of it is none of these.
        OSError: the file cannot be written.
    """
    parts: dict[str, bytes] = {}
    about = {"windtunnel": what, "version": VERSION, "value": _Writer(parts).plain(value)}
    text = json.dumps(about, indent=1, sort_keys=True, allow_nan=False)
    with storage.replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, data in {_ABOUT: text.encode(), **parts}.items():
            entry = zipfile.ZipInfo(name)  # of 1980: no time of day
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def load(path: str | Path, what: str, kinds: Mapping[str, type]) -> Any:
    """Return what `save` wrote.

    Args:
        path: the file.
        what: what it is to be.
        kinds: the dataclasses and structs that may be in it, by name.

    Raises:
        TraceError: it cannot be read, is something else, or another version's.
    """
    expected = f"a windtunnel {what} as .save writes it"
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_ABOUT))
            if about["windtunnel"] == what and about["version"] == VERSION:
                return _Reader(archive, kinds).value(about["value"])
    except (OSError, zipfile.BadZipFile, pa.ArrowException, ValueError, KeyError) as error:
        raise TraceError(str(path), expected, hint=f"It cannot be read: {error}.") from error
    except (TypeError, AttributeError, msgspec.ValidationError, RecursionError) as error:
        raise TraceError(str(path), expected, hint="It was altered, or cut.") from error
    if about["windtunnel"] != what:
        raise TraceError(str(path), expected, value=f"a {about['windtunnel']}")
    raise TraceError(
        str(path),
        expected,
        hint=f"It has layout {quote(about['version'])}, this windtunnel reads {VERSION}: make it "
        "again with this one, or open it with the one that wrote it.",
    )


class _Writer:
    """Turns a value into plain data; tables and arrays become parts of the archive."""

    def __init__(self, parts: dict[str, bytes]) -> None:
        self.parts = parts
        self._tables: dict[int, str] = {}

    def plain(self, value: Any) -> Any:
        """Return a value as plain data.

        Raises:
            TypeError: it, or a part of it, cannot be saved.
        """
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is None or isinstance(plain, bool | str | int):
            return plain
        if isinstance(plain, list):
            return [self.plain(one) for one in plain]
        return self._marked(plain)

    def _marked(self, value: Any) -> dict[str, Any]:
        """Return a value that JSON has no word for, under a mark."""
        if isinstance(value, pa.Table):
            return {"table": self._table(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, tuple):
            return {"tuple": [self.plain(one) for one in value]}
        if isinstance(value, dict):
            return {"struct": [[self.plain(k), self.plain(v)] for k, v in value.items()]}
        if isinstance(value, float):
            return {"number": repr(value)}
        if isinstance(value, msgspec.Struct) or is_dataclass(value):
            names = _names(type(value))
            held = {name: self.plain(getattr(value, name)) for name in names}
            return {"record": [type(value).__name__, held]}
        raise TypeError(f"cannot be saved: {type(value).__name__}")

    def _table(self, table: pa.Table) -> str:
        if id(table) not in self._tables:
            name = self._tables[id(table)] = f"{len(self.parts)}.parquet"
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            self.parts[name] = sink.getvalue().to_pybytes()
        return self._tables[id(table)]

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype == object:
            return [self.plain(one) for one in array.tolist()]
        name = f"{len(self.parts)}.npy"
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        self.parts[name] = buffer.getvalue()
        return name


class _Reader:
    """Turns plain data of an archive back into a value."""

    def __init__(self, archive: zipfile.ZipFile, kinds: Mapping[str, type]) -> None:
        self.archive, self.kinds = archive, kinds
        self._tables: dict[str, pa.Table] = {}

    def value(self, data: Any) -> Any:
        """Return the value that plain data stands for."""
        if isinstance(data, list):
            return [self.value(one) for one in data]
        if not isinstance(data, dict):
            return data
        ((mark, held),) = data.items()
        if mark not in _MARKS:
            raise ValueError(f"unknown mark {quote(mark)}")
        return getattr(self, f"_{mark}")(held)

    def _number(self, text: str) -> float:
        return float(text)

    def _tuple(self, data: list[Any]) -> tuple[Any, ...]:
        return tuple(self.value(one) for one in data)

    def _struct(self, data: list[Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in data}

    def _record(self, data: list[Any]) -> Any:
        name, held = data
        kind = self.kinds[name]
        known = _names(kind)
        return kind(**{name: self.value(value) for name, value in held.items() if name in known})

    def _table(self, name: str) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = pq.read_table(pa.BufferReader(self.archive.read(name)))
        return self._tables[name]

    def _array(self, data: Any) -> np.ndarray:
        if isinstance(data, list):
            return np.array([*map(self.value, data), None], dtype=object)[:-1]
        found: np.ndarray = np.load(io.BytesIO(self.archive.read(data)), allow_pickle=False)
        return found


def _names(kind: Any) -> tuple[str, ...]:
    if issubclass(kind, msgspec.Struct):
        return tuple(kind.__struct_fields__)
    return tuple(field.name for field in fields(kind) if field.init)
