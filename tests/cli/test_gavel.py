"""``windtunnel gavel allocate``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

SPEEDS = [{"v100": 4, "k80": 1}, {"v100": 3, "k80": 2}]


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    jobs = [{"id": name, "throughputs": row} for name, row in zip("ab", SPEEDS, strict=True)]
    path = tmp_path / "instance.json"
    path.write_text(json.dumps({"cluster": {"v100": 1, "k80": 1}, "jobs": jobs}))
    return path


def test_json(run: Callable[..., Ran], instance: Path) -> None:
    ran = run("gavel", "allocate", instance, "--policy", "total_throughput", "--json")
    found = ran.json
    assert ran.code == 0
    assert found["objective"] == pytest.approx(6)
    assert found["shares"]["a"] == pytest.approx({"v100": 1, "k80": 0})
    assert found["throughputs"] == pytest.approx({"a": 4, "b": 2})


def test_text(run: Callable[..., Ran], instance: Path) -> None:
    ran = run("gavel", "allocate", instance, "--policy", "max_min_fairness_perf")
    assert ran.code == 0
    assert "1 smallest normalised throughput" in ran.out
    assert "0.5000 0.5000 2.5" in " ".join(ran.out.split())


def test_wrong_input(refused: Callable[..., str], instance: Path, tmp_path: Path) -> None:
    assert "Did you mean 'allox'" in refused("gavel", "allocate", instance, "--policy", "alox")
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"cluster": {}}')
    assert "instance.cluster" in refused("gavel", "allocate", wrong, "--policy", "allox")
    for text in ("[", "[]", "{" * 100_000):
        wrong.write_text(text)
        assert "expected a" in refused("gavel", "allocate", wrong, "--policy", "allox")
    needs = refused("gavel", "allocate", instance, "--policy", "makespan")
    assert "num_steps_remaining" in needs
