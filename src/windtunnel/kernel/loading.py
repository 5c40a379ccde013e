"""Which build of the kernels runs: ``WINDTUNNEL_KERNEL`` says, for debugging."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import ModuleType

from windtunnel.errors import WindtunnelError

#: Extension modules by the name of a build; "python" are the sources as they are.
BUILDS = {"fast": "_kernel", "checked": "_checked", "sanitized": "_sanitized"}


@cache
def unit(package: str, sources: str = "") -> ModuleType:
    """Return the compiled unit of a package of kernels.

    Args:
        package: the package that the extension module is in.
        sources: the package of its sources, where that is another.

    Raises:
        WindtunnelError: there is no such build here.
    """
    build = os.environ.get("WINDTUNNEL_KERNEL") or "fast"
    if build == "python":
        return _uncompiled(sources or package)
    if build not in BUILDS:
        known = ", ".join([*BUILDS, "python"])
        raise WindtunnelError(f"WINDTUNNEL_KERNEL={build}: there is no such build ({known})")
    try:
        return import_module(f"{package}.{BUILDS[build]}")
    except ModuleNotFoundError as error:
        how = "make" if build == "fast" else f"make kernel-{build}"
        raise WindtunnelError(
            f"the {build} build of {package} is missing; in a checkout `{how}` makes it"
        ) from error


def _uncompiled(sources: str) -> ModuleType:
    """Return all names of a package's modules in one module, as in the compiled unit."""
    joined = ModuleType(f"{sources} (uncompiled)")
    for file in files(sources).iterdir():
        if file.name.endswith(".py") and not file.name.startswith("__"):
            name = file.name.removesuffix(".py")
            joined.__dict__.update(vars(import_module(f"{sources}.{name}")))
    for value in list(vars(joined).values()):
        if isinstance(value, type) and value.__module__.startswith(sources):
            for name, kind in vars(value).get("__annotations__", {}).items():
                if not hasattr(value, name):  # as C has it: numbers are 0, all else is None
                    setattr(value, name, 0 if _is_number(kind) else None)
    return joined


def _is_number(kind: str) -> bool:
    return kind.startswith("cython.") and not kind.endswith("]")
