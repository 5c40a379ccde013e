"""Fixtures for every room: the reference data folder, and a clean environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that ``WINDTUNNEL_DATA`` names, with the published traces; skips without it."""
    chosen = os.environ.get("WINDTUNNEL_DATA", "")
    if not chosen:
        pytest.skip("WINDTUNNEL_DATA is not set: no reference data")
    folder = Path(chosen)
    if not folder.is_dir():
        pytest.skip(f"WINDTUNNEL_DATA={chosen} is not a folder")
    return folder
