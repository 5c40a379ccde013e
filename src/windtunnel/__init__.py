"""windtunnel: a wind tunnel for GPU clusters.

A trace is a set of tables. A policy turns tables into decisions. A run turns decisions into a
table. Everything we show is a function of tables.

>>> import windtunnel as wt
>>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
>>> wt.simulate(jobs, "pool:2", policy="fifo").metrics()["avg_jct"]
24.666666666666668

Names are imported on first use, so that ``import windtunnel`` costs next to nothing; which there
are stands in ``__init__.pyi``, for type checkers and for us.
"""

from __future__ import annotations

import functools as _functools
import importlib as _importlib

__version__ = "0.1.0"


@_functools.cache
def _homes() -> dict[str, str]:
    """Return the public names and the modules that they come from; a module comes from its own."""
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module 'windtunnel' has no attribute {name!r}")
    home = _homes()[name]
    if home == __name__:
        return _importlib.import_module(f"{home}.{name}")
    globals()[name] = getattr(_importlib.import_module(home), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*_homes(), "__version__"])
