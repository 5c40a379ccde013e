"""``simulate --power``, ``--carbon`` and ``--tariff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = """\
job_id,submit_time,duration,num_gpus,user
a,0,100,2,u
b,0,50,1,w
"""
POWER = """\
host_w = 100
pue = 1.5

[gpus.default]
idle_w = 50
active_w = 250
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    jobs, power = tmp_path / "jobs.csv", tmp_path / "power.toml"
    jobs.write_text(JOBS, encoding="utf-8")
    power.write_text(POWER, encoding="utf-8")
    return ["simulate", str(jobs), "--cluster", "1x4", "--power", str(power)]


def test_json(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    carbon = tmp_path / "carbon.csv"
    carbon.write_text("time,g\n0,0\n50,360\n", encoding="utf-8")
    told = run(*words, "--carbon", carbon, "--tariff", "0.36", "--json").json
    # 50 s of 3 GPUs at 250 W and 1 idle, 50 s of 2 and 2, and the host.
    first, second = (3 * 250 + 50 + 100) * 50 * 1.5, (2 * 250 + 2 * 50 + 100) * 50 * 1.5
    assert told["energy_j"] == pytest.approx(first + second)
    assert told["cost"] == pytest.approx((first + second) * 1e-7)
    assert told["carbon_kg"] == pytest.approx(second * 1e-7)
    assert told["energy"]["jobs_j"] == pytest.approx(62_500)
    assert [row["energy_j"] for row in told["energy"]["by_user"]] == [50_000, 12_500]
    assert "--carbon" in told["command"]
    assert "energy_j" not in run(*words[:-2], "--json").json


def test_screen(run: Callable[..., Any], words: list[str]) -> None:
    told = run(*words, "--carbon", "400").out
    assert "overhead, PUE 1.5" in told
    assert "kg CO2eq" in told


def test_bad_input(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    alone = run(*words[:-2], "--carbon", "400")
    assert (alone.code, "--power" in alone.err) == (2, True)
    negative = run(*words, "--carbon=-1")
    assert (negative.code, "--carbon" in negative.err) == (2, True)
    file = tmp_path / "power.toml"
    file.write_text(POWER.replace("pue", "peu"), encoding="utf-8")
    wrong = run(*words)
    assert (wrong.code, "Did you mean" in wrong.err or "pue" in wrong.err) == (2, True)
