"""Loading the kernels with a compile cache that cannot be stale.

numba caches a compiled function under its own file's time stamp and does not see that a function it
inlines, or a constant, in another file, has changed. So the cache folder's name is a digest of all
kernel sources, and of those that their constants come from; it lies in the user's cache, which is
writable where site-packages may not be.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


#: Modules of the engine's kernels.
ENGINE = (
    *("room", "queue_kernel", "quota_kernel", "service_kernel"),
    *("easy_kernel", "conservative_kernel"),
)
#: Modules elsewhere that kernels take constants from, which numba compiles into them.
CONSTANTS = ("windtunnel.cluster.devices", "windtunnel.sim.disruptions.ledger")
#: Modules of the kernels for real devices.
DEVICES = ("arrivals_kernel", "device_tables", "devices")


@cache
def load_kernels(
    names: tuple[str, ...] = ENGINE, package: str = __package__ or ""
) -> dict[str, ModuleType]:
    """Return modules that hold kernels, by name; ``NUMBA_CACHE_DIR``, where set, is left alone.

    Args:
        names: modules of the package.
        package: the package of kernels; they may inline functions of `windtunnel.sim.compiled`.
    """
    import numba

    before = numba.config.CACHE_DIR
    if not before:
        numba.config.CACHE_DIR = str(_cache_folder(package))
    try:
        return {name: importlib.import_module(f"{package}.{name}") for name in names}
    finally:
        numba.config.CACHE_DIR = before


def are_compiled() -> bool:
    """Return whether some kernels of this version have been compiled here before.

    Where ``NUMBA_CACHE_DIR`` says where they go, nobody looks there: they count as compiled.
    """
    folder = _cache_folder(__package__ or "")
    return bool(os.environ.get("NUMBA_CACHE_DIR")) or (folder.is_dir() and any(folder.iterdir()))


def _cache_folder(package: str) -> Path:
    from platformdirs import user_cache_path

    digest = hashlib.sha256()
    for source in _sources(package):
        digest.update(source.read_bytes())
    return user_cache_path("windtunnel") / "kernels" / digest.hexdigest()[:16]


def _sources(package: str) -> list[Path]:
    """Return the files that decide what the kernels of a package are compiled to, in order."""
    own = Path(__file__).parent
    folders = {own, Path(str(importlib.import_module(package).__file__)).parent}
    sources = [source for folder in sorted(folders) for source in sorted(folder.rglob("*.py"))]
    return sources + [Path(str(importlib.import_module(name).__file__)) for name in CONSTANTS]
