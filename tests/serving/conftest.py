"""What the serving tests share: published profiles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from windtunnel.serving import Profile, read_profile

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def published(data_dir: Path) -> Profile:
    """AlpaServe's profile of seven models."""
    return read_profile(data_dir / "alpaserve" / "profile_stages.csv")
