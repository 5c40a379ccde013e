"""The page of a log: what is picked on it is added up to what the jobs themselves say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY = 86_400
PARTS, KINDS = ("batch", "<b>debug</b>"), ("A100", "T4")


def jobs(n: int = 120) -> dict[str, Any]:
    """Return jobs of two partitions and two GPU types, all within nine days."""
    draw = np.random.default_rng(5)
    submit = np.sort(draw.integers(0, 8 * DAY, n)).astype(float)
    start = submit + draw.integers(0, 7200, n)
    run = draw.integers(60, 20_000, n).astype(float)
    return {
        "submit_time": submit,
        "start_time": start,
        "end_time": start + run,
        "duration": run,
        "num_gpus": draw.choice([1.0, 2.0, 4.0], n),
        "vc": draw.choice(PARTS, n),
        "gpu_type": draw.choice(KINDS, n),
        "status": ["completed"] * n,
    }


def facts(page: Any) -> dict[str, str]:
    """Return what the page says of the jobs that are picked."""
    found: dict[str, str] = page.locator("#chosen div").evaluate_all(
        "all => Object.fromEntries(all.map(x => [...x.children].map(y => y.textContent)))"
    )
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_picked_is_added_up(watch: Callable[..., Any], tmp_path: Path, width: int) -> None:
    log, out = jobs(), tmp_path / "page.html"
    write_csv(as_jobs(log), tmp_path / "log.csv")
    words = ["report", tmp_path / "log.csv", "--cluster", "4x8:A100,4x8:T4", "--out", out]
    made = CliRunner().invoke(windtunnel, [str(word) for word in words])
    assert made.exit_code == 0, made.output
    watched = watch(width)
    page = watched.page
    page.goto(out.as_uri())
    choices = page.locator(".controls select")
    parts, kinds = (
        next(one for one in choices.all() if name in one.inner_text()) for name in ("debug", "T4")
    )
    for part, kind in ((None, None), (PARTS[1], None), (PARTS[0], "T4"), (None, "A100")):
        parts.select_option(label=part or "all")
        kinds.select_option(label=kind or "all")
        mine = (log["vc"] == part) | (part is None)
        mine &= (log["gpu_type"] == kind) | (kind is None)
        waited = (log["start_time"] - log["submit_time"])[mine].mean() / 3600
        held = (log["duration"] * log["num_gpus"])[mine].sum() / 3600
        shown = facts(page)
        assert int(shown["Jobs started"]) == mine.sum()
        assert float(shown["Mean wait"].removesuffix(" h")) == pytest.approx(waited, rel=0.006)
        assert float(shown["GPU hours held"].replace(",", "")) == pytest.approx(held, rel=0.006)
        titles = page.locator("#wait rect title").all_text_contents()
        days = np.unique(log["submit_time"][mine] // DAY)
        assert len(titles) == len(days)
        assert page.locator("#use .there").count() == (part is None and kind is None)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    watched.assert_quiet()
