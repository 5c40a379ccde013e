"""Slurm's recorded decisions, made again from the recorded states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DATA = os.environ.get("WINDTUNNEL_DATA", "")
SCENARIOS = Path(DATA, "slurm_reference")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA or not SCENARIOS.exists(), reason="WINDTUNNEL_DATA is not set"),
]


def checked(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    command = [
        sys.executable,
        str(HERE / "check_recordings.py"),
        str(folder),
        "--json",
        "--flights",
        "2",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    found: dict[str, dict[str, dict[str, int]]] = json.loads(run.stdout)
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("scenario", ["multifactor", "fair_classic", "bf_window"])
def test_the_same_jobs_start_on_the_same_nodes(scenario: str) -> None:
    found = checked(SCENARIOS / scenario)["all"]
    for name, least in (("decisions", 0.98), ("nodes", 0.99), ("reasons", 0.95)):
        assert found[name]["compared"] > 200
        assert found[name]["equal"] >= least * found[name]["compared"], name
    assert found["priorities"]["equal"] == found["priorities"]["compared"]


@pytest.mark.slow
def test_all_scenarios_keep_what_they_reached() -> None:
    found = checked(SCENARIOS)
    assert len(found["scenarios"]) == 17
    for name, least in (
        ("decisions", 0.98),
        ("nodes", 0.98),
        ("priorities", 1.0),
        ("reasons", 0.97),
    ):
        assert found["all"][name]["equal"] >= least * found["all"][name]["compared"], name
