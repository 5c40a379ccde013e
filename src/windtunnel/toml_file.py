"""Reading and writing TOML that describes something: a cluster, quotas, disruptions, slow-downs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


#: Descriptions are written by people: reading takes fifty times the memory of the file.
MAX_BYTES = 8 << 20


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return a TOML file's data; a byte order mark before it is skipped.

    Raises:
        SpecError: the file is missing or not TOML.
    """
    try:
        size = Path(path).stat().st_size
        if size > MAX_BYTES:
            message = f"has {size:,} bytes; expected a description of at most {MAX_BYTES:,}."
            raise SpecError(str(path), message)
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise SpecError(str(path), "cannot be read as TOML: it is nested too deeply") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(str(path), f"cannot be read as TOML: {error}") from error


def refuse_unknown_keys(raw: Iterable[str], known: Iterable[str], path: str) -> None:
    """Refuse keys that are not known.

    Args:
        raw: the keys.
        known: what they may be; the nearest is suggested.
        path: where they stand: ``FILE: $`` is the whole of a file.

    Raises:
        SpecError: there is one.
    """
    for key in raw:
        if key not in known:
            raise SpecError.unknown(f"{path}.{key}", key, known)


def struct_of(
    kind: type[_Struct],
    raw: Mapping[str, Any],
    source: str,
    parts: Mapping[str, type[msgspec.Struct]] | None = None,
) -> _Struct:
    """Return plain data as a struct.

    Args:
        kind: of the struct.
        raw: the data.
        source: where they come from, for messages.
        parts: key -> what its table is, or each of its tables.

    Raises:
        SpecError: an unknown key, here or in the tables of a part; a missing one or a wrong value.
    """
    refuse_unknown_keys(raw, kind.__struct_fields__, f"{source}: $")
    for key, part in (parts or {}).items():
        given = raw.get(key)
        many = isinstance(given, list | tuple)
        for index, table in enumerate(given if many else [given]):  # type: ignore[arg-type] # it is
            where = f"{source}: $.{key}[{index}]" if many else f"{source}: $.{key}"
            if isinstance(table, dict):
                refuse_unknown_keys(table, part.__struct_fields__, where)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SpecError(source, str(error)) from error


def toml_key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return plain data as TOML writes it, all in one line.

    >>> toml_value({"a b": [1, 2.5, True]})
    '{ "a b" = [1, 2.5, true] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A basic string of TOML is one of JSON, which leaves DEL as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        pairs = (f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)  # integers and floats, inf and nan included
