"""A study as the text of STUDY.toml, which reads back as the same study."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.study.grid.spec import Study

_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: Tables that stand under a heading of their own.
_TABLES = ("parameters", "options", "energy", "search")


def to_toml(study: Study) -> str:
    """Return the text of a STUDY.toml.

    >>> from windtunnel.study.grid import Study
    >>> print(to_toml(Study.from_mapping({"traces": ["philly"], "policies": ["fifo"], "seeds": 3})))
    name = "study"
    traces = ["philly"]
    policies = ["fifo"]
    seeds = 3
    <BLANKLINE>
    """
    data = {"name": study.name, **study.to_mapping()}
    lines = [f"{_key(name)} = {_value(data[name])}" for name in data if name not in _TABLES]
    for name in _TABLES:
        if name in data:
            lines += ["", f"[{name}]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in data[name].items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    """Return a value as TOML writes it, all in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)  # integers and floats, inf and nan included


def _text(text: str) -> str:
    """Return a basic string: JSON's escapes, and one for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
