"""``windtunnel plan reliability``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from pathlib import Path

DOWN = "mtbf:10d/mttr:2h/cost:1m/restart:5m/checkpoint:2h"
ASKED = ["plan", "reliability", "--gpus", "64", "--work", "5d", "--disruptions", DOWN]


def test_a_plan_as_page_and_as_data(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    result = CliRunner().invoke(
        windtunnel, [*ASKED, "--repeats", "3", "--out", str(page), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["best"]["goodput"] >= found["now"]["goodput"]
    assert found["interval_low"] <= found["interval"] <= found["interval_high"]
    assert found["theory"].keys() == {"Young", "Daly", "Tc"}
    assert found["spares_in_theory"] is not None
    assert "How many spares" in page.read_text()
    assert page.stat().st_size < 300_000


def test_a_trace_is_planned_for_too(tmp_path: Path) -> None:
    log = tmp_path / "jobs.csv"
    log.write_text("job_id,submit_time,duration,num_gpus\na,0,200000,8\nb,10,300000,16\n")
    words = ["plan", "reliability", str(log), "--cluster", "3x8", "--disruptions", DOWN]
    result = CliRunner().invoke(windtunnel, [*words, "--repeats", "2", "--ettr", "0.5"])
    assert result.exit_code == 0, result.output
    assert "Spare nodes" in result.output


def test_a_plan_that_lacks_numbers_or_has_too_many_is_refused() -> None:
    for words in (
        ["plan", "reliability"],
        [*ASKED[:4]],
        [*ASKED, "--ettr", "0.9", "--deadline", "9d"],
    ):
        result = CliRunner().invoke(windtunnel, words)
        assert result.exit_code == 2, result.output
