"""A twin as a file: TOML or JSON, readable, the same bytes for the same twin; and its reader."""

from __future__ import annotations

import json
import textwrap
import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from windtunnel.errors import SpecError, TraceError
from windtunnel.toml_file import toml_key, toml_value
from windtunnel.traces.source import read_bytes, said, source_name
from windtunnel.traces.target import in_one_piece
from windtunnel.traces.twin.model import Statistics

if TYPE_CHECKING:
    from pathlib import Path

Kind = TypeVar("Kind", bound=Statistics)

_WIDTH = 100
_HEAD = """\
# A twin of a trace: statistics from which windtunnel generates jobs like those of the source.
# No number rests on fewer than min_count jobs. Of the source's names only those of the columns
# listed as `kept` are in it.
"""


def save(twin: Statistics, path: str | Path) -> None:
    """Write a twin as TOML, or as JSON where the name ends in ``.json``.

    Raises:
        TraceError: the file cannot be written; it appears whole or not at all.
    """
    text = to_json(twin) if str(path).endswith(".json") else to_toml(twin)
    with in_one_piece(path) as temporary:
        temporary.write_bytes(text.encode())


def load(path: str | Path, kind: type[Kind]) -> Kind:
    """Read a twin.

    Args:
        path: what `save` wrote; ``-`` = standard input.
        kind: the class of twins.

    Raises:
        TraceError: the file cannot be read, is neither TOML nor JSON, has a key that twins do not
            have or lacks one, or its numbers contradict each other.
    """
    file = source_name(path)
    try:
        text = read_bytes(path).decode("utf-8-sig")
        is_json = text.lstrip().startswith("{")
        data = json.loads(text) if is_json else tomllib.loads(text)
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, SpecError, RecursionError) as error:
        expected = "a twin as `windtunnel fit` writes it"
        raise TraceError(file, expected, hint=f"{said(error)}.") from error
    except ValueError as error:  # of any of the parsers; half a surrogate pair; endless digits
        raise TraceError(file, "a twin as TOML or JSON", hint=f"{said(error)}.") from error


def to_json(twin: Statistics) -> str:
    """Return a twin as JSON text."""
    plain = msgspec.to_builtins(twin)
    return (
        json.dumps(plain, separators=(",", ":"), allow_nan=False).replace('{"gpus":', '\n{"gpus":')
        + "\n"
    )


def to_toml(twin: Statistics) -> str:
    """Return a twin as TOML text."""
    lines: list[str] = []
    _table(msgspec.to_builtins(twin), (), lines)
    return _HEAD + "\n".join(lines) + "\n"


def _table(data: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """Add a table: its values first, then the tables in it."""
    inner: dict[str, Any] = {}
    for key, value in data.items():
        is_tables = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        if isinstance(value, dict) or is_tables:
            inner[key] = value
        else:
            lines.append(f"{toml_key(key)} = {_value(value)}")
    for key, value in inner.items():
        here = (*path, toml_key(key))
        for part in value if isinstance(value, list) else [value]:
            title = ".".join(here)
            lines.extend(("", f"[[{title}]]" if isinstance(value, list) else f"[{title}]"))
            _table(part, here, lines)


def _value(value: Any) -> str:
    """Return a value as TOML; long lists of numbers, and lists of lists, over several lines."""
    if not isinstance(value, list | tuple):
        return toml_value(value)
    if value and isinstance(value[0], list):
        return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    flat = toml_value(value)
    if len(flat) < _WIDTH - 18 or any(isinstance(item, str) for item in value):
        return flat
    filled = textwrap.fill(flat[1:-1], _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"[\n{filled},\n]"
