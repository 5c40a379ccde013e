"""setuptools, which asks for ziglang where there is no C compiler (PEP 517)."""

from __future__ import annotations

import os

import build_kernel
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks


def get_requires_for_build_wheel(config_settings: dict | None = None) -> list[str]:
    """Return what a wheel needs besides pyproject.toml's requirements."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: dict | None = None) -> list[str]:
    """Return what an editable installation needs besides."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def _compiler() -> list[str]:
    return [] if os.name == "nt" or build_kernel.found_compiler() else ["ziglang>=0.13"]
