"""Objects as plain data, for ``--json`` and for tables."""

from __future__ import annotations

from typing import Any


def fields_of(found: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by their names."""
    return {name: getattr(found, name) for name in names}
