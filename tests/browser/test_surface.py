"""The page of a what-if surface: each control picks the run that `simulate` makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODES, POLICIES = (3, 4, 5, 6), ("fifo", "sjf", "easy")


def jobs(n: int = 150) -> Any:
    rng = np.random.default_rng(8)
    run = rng.exponential(2500, n)
    columns = {
        "submit_time": np.sort(rng.uniform(0, 40_000, n)).round(),
        "duration": run.round() + 1,
        "estimate": run.round() + 600,
        "num_gpus": rng.choice([1.0, 2.0, 8.0], n),
    }
    return as_jobs(columns)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_controls_pick_what_simulate_makes(
    watch: Callable[..., Any], tmp_path: Path, width: int
) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "page.html"
    write_csv(jobs(), log)
    words = ["whatif", log, "--cluster", "4x8", "--anyway", "--out", out]
    words += ["--surface", "nodes=3..6/1,policy=fifo,sjf,easy"]
    result = CliRunner().invoke(windtunnel, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    watched = watch(width)
    page = watched.page
    page.goto(out.as_uri())
    for step, policy in ((0, "fifo"), (3, "easy"), (1, "sjf"), (2, "easy"), (3, "fifo")):
        page.locator("#axis-0").fill(str(step))
        page.locator("#axis-1").select_option(label=policy)
        flown = wt.simulate(jobs(), f"{NODES[step]}x8", policy).metrics()
        shown = page.locator("[data-measure]").evaluate_all(
            "all => Object.fromEntries(all.map(x => [x.dataset.measure, x.dataset.value]))"
        )
        for name, value in shown.items():
            assert json.loads(value) == flown[name], (step, policy, name)
        assert page.locator("#across circle.here").count() == 1
        assert page.locator("output[for=axis-0]").text_content() == str(NODES[step])
    page.locator("#measure").select_option(label="Utilisation")
    assert page.locator("#across h3").text_content() == "Utilisation, %, by nodes"
    assert page.locator("#across circle").count() == len(NODES) * len(POLICIES)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    watched.assert_quiet()
