"""Published allocation instances, and this folder on the path for `gavel_instances`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cases(data_dir: Path) -> list[dict[str, Any]]:
    """The 23 published instances with their objectives."""
    path = data_dir / "gavel" / "policy_cases.json"
    if not path.is_file():
        pytest.skip("no gavel/policy_cases.json among the reference data")
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["cases"]
    return found
