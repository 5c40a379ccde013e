"""What the serving tests share: published profiles, and properties that try the same cases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from windtunnel.serving import Profile, read_profile

sys.path.insert(0, str(Path(__file__).parent))

_SLOW = [HealthCheck.too_slow, HealthCheck.differing_executors]
settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def published(data_dir: Path) -> Profile:
    """AlpaServe's profile of seven models."""
    return read_profile(data_dir / "alpaserve" / "profile_stages.csv")
