"""What the tests on Ray share: the studies of the other tests, and one local cluster."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
STUDIES = HERE.parent / "study" / "grid"
sys.path[:0] = [str(HERE), str(STUDIES)]


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """A Ray cluster of two CPUs in processes of this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (make test-ray)")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Workers import windtunnel and the tests from where this process does.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own, about its next version
        context = ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": environment},
        )
    yield context.address_info["address"]
    ray.shutdown()
