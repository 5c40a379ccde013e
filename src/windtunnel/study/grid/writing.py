"""A study as the text of STUDY.toml, which reads back as the same study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.toml_file import toml_key, toml_value

if TYPE_CHECKING:
    from windtunnel.study.grid.spec import Study

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
    lines = [f"{toml_key(name)} = {toml_value(data[name])}" for name in data if name not in _TABLES]
    for name in _TABLES:
        if name in data:
            lines += ["", f"[{name}]"]
            lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in data[name].items()]
    return "\n".join(lines) + "\n"
