"""``simulate --power``, ``--carbon`` and ``--tariff``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
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
    data = run(*words, "--carbon", carbon, "--tariff", "0.36", "--json").json
    # 50 s of 3 GPUs at 250 W and 1 idle, 50 s of 2 and 2, and the host.
    first, second = (3 * 250 + 50 + 100) * 50 * 1.5, (2 * 250 + 2 * 50 + 100) * 50 * 1.5
    assert data["energy_j"] == pytest.approx(first + second)
    assert data["cost"] == pytest.approx((first + second) * 1e-7)
    assert data["carbon_kg"] == pytest.approx(second * 1e-7)
    assert data["energy"]["jobs_j"] == pytest.approx(62_500)
    assert [row["energy_j"] for row in data["energy"]["by_user"]] == [50_000, 12_500]
    assert "--carbon" in data["command"]
    assert "energy_j" not in run(*words[:-2], "--json").json


def test_screen(run: Callable[..., Any], words: list[str]) -> None:
    shown = run(*words, "--carbon", "400").out
    assert "overhead, PUE 1.5" in shown
    assert "kg CO2eq" in shown


def test_work_that_no_job_has(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    (tmp_path / "power.toml").write_text(POWER + "[workloads]\nEvil = 0.5\n", encoding="utf-8")
    note = "names the kind of work 'Evil', which no job has"
    assert any(note in one for one in run(*words, "--json").json["notes"])


def test_a_type_by_its_alias(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    (tmp_path / "power.toml").write_text(POWER.replace("default", "A100-SXM4"), encoding="utf-8")
    nodes = '[[node_types]]\ncount = 1\ngpus = 4\ngpu_type = "A100"\n'
    file, words[3] = tmp_path / "cluster.toml", str(tmp_path / "cluster.toml")
    file.write_text(nodes, encoding="utf-8")
    refused = run(*words)
    assert (refused.code, "gpus.A100-SXM4: unknown name" in refused.err) == (2, True)
    file.write_text(f'aliases = {{ "a100-sxm4" = "A100" }}\n{nodes}', encoding="utf-8")
    assert run(*words, "--json").json["energy"]["jobs_j"] == pytest.approx(62_500)
    file.write_text(f'aliases = {{ "a100-sxm4" = "A10" }}\n{nodes}', encoding="utf-8")
    refused = run(*words)
    assert (refused.code, "Did you mean 'A100'?" in refused.err) == (2, True)


def test_bad_input(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    alone = run(*words[:-2], "--carbon", "400")
    assert (alone.code, "--power" in alone.err) == (2, True)
    negative = run(*words, "--carbon=-1")
    assert (negative.code, "--carbon" in negative.err) == (2, True)
    file = tmp_path / "power.toml"
    file.write_text(POWER.replace("pue", "peu"), encoding="utf-8")
    wrong = run(*words)
    assert (wrong.code, "Did you mean" in wrong.err or "pue" in wrong.err) == (2, True)


def test_policies_of_power(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    # The host and four idle GPUs draw 450 W with PUE 1.5; a job adds 300 W a GPU.
    data = run(*words, "--power-cap", "1.05kW", "--json").json
    assert data["energy"]["peak_power_w"] <= 1050
    assert data["energy"]["capped_time"] == 100  # b waits for a: two GPUs are free, not power
    assert data["settings"]["power_cap"] == {
        "rows": [[0.0, 1050.0]],
        "limits": "none",
        "count": "measured",
    }
    again = shlex.split(data["command"])[1:]
    assert run(*again, "--json").json == data
    carbon = tmp_path / "carbon.csv"
    carbon.write_text("time,g\n0,400\n100,100\n200,400\n", encoding="utf-8")
    plain = run(*words, "--carbon", carbon, "--json").json
    shifted = run(*words, "--carbon", carbon, "--shift", "max_delay=5m", "--json").json
    assert (shifted["energy"]["num_shifted"], shifted["energy"]["num_late"]) == (2, 0)
    by_user = [row["carbon_kg"] for row in shifted["energy"]["by_user"]]
    assert sum(by_user) < 0.5 * sum(row["carbon_kg"] for row in plain["energy"]["by_user"])
    screen = run(*words, "--carbon", carbon, "--shift", "max_delay=5m").out
    assert "jobs shifted" in screen
    asleep = run(*words, "--node-sleep", "saturn,wake_time=1m", "--json").json
    assert asleep["energy"]["num_wakes"] == 0


def test_energy_of_every_job(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    out = tmp_path / "jobs.parquet"
    assert run(*words, "--out", out).code == 0
    table = pq.read_table(out)
    assert table.select(["job_id", "energy_j"]).to_pylist() == [
        {"job_id": "a", "energy_j": 50_000},
        {"job_id": "b", "energy_j": 12_500},
    ]


@pytest.mark.slow
def test_comparing_energy(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    compare = ["compare", words[1], "--policies", "fifo,sjf", *words[2:], "--tariff", "0.36"]
    data = run(*compare, "--power-cap", "1050", "--out", page, "--json").json
    fifo, sjf = data["runs"]
    assert {"energy_j", "carbon_kg", "cost"} <= fifo.keys()
    assert fifo["carbon_kg"] is None
    assert fifo["cost"] == pytest.approx(fifo["energy_j"] * 1e-7)
    assert sjf["energy"]["capped_time"] == 50  # the short job first
    html = page.read_text(encoding="utf-8")
    assert "<h2><bdi>Energy</bdi></h2>" in html
    assert "Power over time, by source" in html
    assert "Energy by user" in html
    assert "Time at the cap" in run(*compare, "--power-cap", "1050").out
    assert "<h2><bdi>Energy</bdi></h2>" not in _page(run, words, tmp_path)


def _page(run: Callable[..., Any], words: list[str], tmp_path: Path) -> str:
    page = tmp_path / "plain.html"
    run("compare", words[1], "--policies", "fifo,sjf", "--cluster", "1x4", "--out", page)
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("option", "word"),
    [
        (("--power-cap", "100"), "450 W already"),
        (("--power-cap", "600"), "never fit"),
        (("--power-cap", "none.csv"), "none.csv"),
        (("--power-cap", "1050,limits=unifrom"), "uniform"),
        (("--shift", "max_delay=1h"), "series"),
        (("--shift", "max_dely=1h,series=3"), "max_delay"),
        (("--shift", "series=3"), "max_delay"),
        (("--node-sleep", "satrun"), "saturn"),
        (("--node-sleep", "saturn,wake_time=x"), "wake_time"),
    ],
)
def test_bad_policies(
    run: Callable[..., Any], words: list[str], option: tuple[str, str], word: str
) -> None:
    refused = run(*words, *option)
    assert (refused.code, refused.out) == (2, "")
    assert word in refused.err


def test_a_cap_needs_a_model(run: Callable[..., Any], words: list[str]) -> None:
    alone = run(*words[:-2], "--power-cap", "1000")
    assert (alone.code, "--power" in alone.err) == (2, True)


def test_policies_from_files(run: Callable[..., Any], words: list[str], tmp_path: Path) -> None:
    cap, table, shift, sleep = (
        tmp_path / name for name in ("cap.toml", "cap.csv", "shift.toml", "sleep.toml")
    )
    table.write_text("time,W\n0,1050\n60,1500\n7200,1500\n", encoding="utf-8")
    cap.write_text(f"watts = {str(table)!r}\nlimits = 'uniform'\n", encoding="utf-8")
    shift.write_text("rows = [[0, 9], [100, 1]]\nmax_delay = '5m'\n", encoding="utf-8")
    sleep.write_text("rule = 'venus'\nbuffer = 2\nwake_time = '1m'\n", encoding="utf-8")
    capped = run(*words, "--power-cap", cap, "--json").json
    assert capped["energy"]["capped_time"] == 60  # then there is power for both
    assert capped["settings"]["power_cap"]["rows"][1] == [60, 1500]
    assert any("no tables of power limits" in note for note in capped["notes"])
    assert run(*words, "--power-cap", table, "--json").json["energy"]["capped_time"] == 60
    assert run(*words, "--shift", shift, "--json").json["energy"]["num_shifted"] == 2
    slept = run(*words, "--node-sleep", sleep, "--json").json["settings"]["node_sleep"]
    assert (slept["history"], slept["de"], slept["buffer"]) == (3, 2, 2)
