"""One page of a log: sums that add up, dates of the zone, names that stay text, one script."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.characterize.calendar import MOST_VALUES, OTHERS, WAITS, calendar
from windtunnel.cli.root import windtunnel as main

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86400.0
EVIL = "</script><script>alert(1)</script>"


def jobs(number: int = 400, *, days: float = 20, names: int = 3) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    submit = np.sort(rng.random(number) * days * DAY)
    start = submit + rng.exponential(4 * 3600, number)
    run = rng.exponential(9 * 3600, number)
    return {
        "job_id": [str(at) for at in range(number)],
        "submit_time": submit.tolist(),
        "start_time": start.tolist(),
        "end_time": (start + run).tolist(),
        "duration": run.tolist(),
        "num_gpus": rng.choice([0, 1, 4, 8], number).astype(float).tolist(),
        "gpu_type": rng.choice(["a100", "v100"], number).tolist(),
        "vc": [EVIL if name == 0 else f"lab{name}" for name in rng.integers(0, names, number)],
        "partition": rng.choice(["main", "quick"], number).tolist(),
        "qos": ["normal"] * number,
    }


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/Los_Angeles"])
@pytest.mark.parametrize("days", [20, 500])
def test_the_calendar_adds_up(zone: str | None, days: float) -> None:
    table = wt.schema.as_jobs(jobs(days=days))
    found = calendar(table, "2025-03-20T22:30:00+00:00", zone)
    start, submit, end = (np.array(table[f"{name}_time"]) for name in ("start", "submit", "end"))
    gpus = np.array(table["num_gpus"])
    assert found.jobs.sum() == len(start)
    assert found.waited.sum() * 3600 == pytest.approx((start - submit).sum())
    assert found.held.sum() * 3600 == pytest.approx((gpus * (end - start)).sum())
    assert found.queued.sum() * 3600 == pytest.approx((start - submit).sum())
    assert found.waits.sum() == len(start)
    assert found.hours.sum() * 3600 == pytest.approx(end.max() - submit.min())
    assert found.unit == ("day" if days == 20 else "week")
    assert len(found.dates) == len(found.hours)
    # Across a change of clocks a day of the zone has 23 hours.
    short = [at for at, hours in enumerate(found.hours[1:-1].tolist(), 1) if hours < 24]
    assert [found.dates[at] for at in short] == (
        ["2025-03-30"] if zone == "Europe/Berlin" and days == 20 else []
    )


def test_a_day_has_its_own_jobs_and_waits() -> None:
    made = {
        "submit_time": [0.0, 3600.0, DAY],
        "start_time": [7200.0, 3600.0, DAY + 5.0],
        "end_time": [DAY + 7200.0, 7200.0, DAY + 3600.0],
        "duration": [DAY, 3600.0, 3595.0],
        "num_gpus": [2.0, 1.0, 0.0],
        "vc": ["a", "b", "a"],
    }
    found = calendar(wt.schema.as_jobs(made), "2025-01-01T00:00:00+00:00", None)
    assert found.dates == ["2025-01-01", "2025-01-02"]
    assert found.values["vc"] == ["a", "b"]
    a, b = (found.groups.index((0, place, 0, 0)) for place in (0, 1))
    assert found.jobs[a].tolist() == [1, 1]
    assert found.jobs[b].tolist() == [1, 0]
    assert found.held[a].tolist() == [2 * 22.0, 2 * 2.0]
    assert found.queued[a].tolist() == pytest.approx([2.0, 5 / 3600])
    assert found.waits[b][0] == 1  # no longer than a second
    assert WAITS[found.waits[a].nonzero()[0]].tolist() == pytest.approx([5.18, 8483.4], rel=1e-3)


def test_small_accounts_are_others() -> None:
    found = calendar(wt.schema.as_jobs(jobs(names=40)), None, None)
    assert len(found.values["vc"]) == MOST_VALUES + 1
    assert found.values["vc"][-1] == OTHERS
    assert found.dates[:2] == ["day 0", "day 1"]


def test_a_page_holds_sums_one_script_and_harmless_names(tmp_path: Path) -> None:
    log, page = tmp_path / "log.parquet", tmp_path / "page.html"
    import pyarrow.parquet as pq

    table = wt.schema.as_jobs(jobs())
    pq.write_table(table, log)
    words = ["report", str(log), "--cluster", "8x8:a100,8x8:v100", "--price", "2"]
    result = CliRunner().invoke(main, [*words, "--out", str(page), "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    alone = CliRunner().invoke(main, ["report", "queue", *words[1:4], "--json"])
    assert data["queue"]["causes"] == json.loads(alone.stdout)["causes"]
    assert {"waste", "goodput", "cost", "calendar"} <= data.keys()
    assert sum(data["calendar"]["jobs"]) == table.num_rows
    text = page.read_text("utf-8")
    assert EVIL not in text
    assert text.count("<script>") == 1
    assert "default-src 'none'" in text
    held = json.loads(re.search(r'id="days">(.*?)</script>', text, re.DOTALL)[1])
    assert sum(day[1] for group in held["groups"] for day in group["days"]) == table.num_rows
    assert held["filters"] == [0, 1, 3]  # one QOS is nothing to pick
    assert text.index("Over the calendar") < text.index("Waits: The causes")


def test_what_is_no_log_is_no_command() -> None:
    result = CliRunner().invoke(main, ["report", "quue"])
    assert result.exit_code == 2
    assert "No such command" in str(result.exception) + result.output
