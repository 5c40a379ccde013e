"""This folder on the path: tests are no package, but share traces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from windtunnel.report.description import Description, describe_trace

sys.path.insert(0, str(Path(__file__).parent))

import described_traces


@pytest.fixture(scope="session")
def full() -> Description:
    """A trace that tells everything that jobs can tell."""
    return describe_trace(described_traces.full())


@pytest.fixture(scope="session")
def bare() -> Description:
    """A trace that tells next to nothing."""
    return describe_trace(described_traces.bare())
