"""Reading and writing TOML that describes something: a cluster, quotas, disruptions, slow-downs."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import msgspec.inspect

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_LISTS = (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)


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


def struct_of(kind: type[_Struct], raw: Mapping[str, Any], source: str) -> _Struct:
    """Return plain data as a struct.

    Args:
        kind: of the struct.
        raw: the data.
        source: where they come from, for messages.

    Raises:
        SpecError: an unknown key, however deep; a missing one or a wrong value.
    """
    _check(_description(kind), raw, f"{source}: $")
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SpecError(source, str(error)) from error
    except SpecError as error:  # of a struct's own checks, which do not know the source
        if error.path.startswith(source):
            raise
        raise SpecError(f"{source}: {error.path}", str(error)[len(error.path) + 2 :]) from error


@cache
def _description(kind: type[msgspec.Struct]) -> msgspec.inspect.Type:
    """Return what a struct is made of; finding it is a tenth of a short run."""
    return msgspec.inspect.type_info(kind)


def _check(kind: msgspec.inspect.Type, raw: Any, path: str) -> None:
    """Check that a struct, and those in it, have all keys of plain data; not what they hold."""
    if isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            _check(one, raw, path)
    elif isinstance(kind, msgspec.inspect.StructType) and isinstance(raw, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        refuse_unknown_keys(raw, fields, path)
        for key, value in raw.items():
            _check(fields[key], value, f"{path}.{key}")
    elif isinstance(kind, msgspec.inspect.DictType) and isinstance(raw, dict):
        for key, value in raw.items():
            _check(kind.value_type, value, f"{path}.{key}")
    elif isinstance(kind, _LISTS) and isinstance(raw, list | tuple):
        for index, value in enumerate(raw):
            _check(kind.item_type, value, f"{path}[{index}]")


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
