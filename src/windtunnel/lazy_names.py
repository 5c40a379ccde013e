"""`lazy_names`: a package's public names, each imported from its module on first use.

So importing the package, or any module in it, costs next to nothing. Which names there are, and
where they come from, stands in the package's ``__init__.pyi``, for type checkers and for us.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@functools.cache
def homes_of(file: str) -> dict[str, str]:
    """Return the public names of a package and the modules that they come from.

    A module comes from its own package.

    Args:
        file: the package's ``__file__``; its stub stands beside it.
    """
    import ast
    from pathlib import Path

    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: its ``__name__``.
        file: its ``__file__``.
    """

    def get(name: str) -> object:
        if name == "__all__":
            return names()
        if name.startswith("__") or name not in homes_of(file):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes_of(file)[name]
        if home == package:
            return importlib.import_module(f"{home}.{name}")
        found: object = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        own = {"__version__"} & vars(sys.modules[package]).keys()
        return sorted([*homes_of(file), *own])

    return get, names
