"""The simulator's event loop, compiled when windtunnel is installed.

The modules here are Cython in its pure-Python mode; ``build_kernel.py`` joins them into one
extension module, whose names this package has::

    from windtunnel import kernel

    pairs = kernel.Pairs()

See ``docs/guides/building.md``.
"""

from __future__ import annotations

from typing import Any

from windtunnel.kernel.loading import unit


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(unit(__name__), name)
