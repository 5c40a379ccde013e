"""Goodput of a log: a requeued job by hand, on the command line, and nodes in a log of Slurm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from windtunnel.characterize.goodput import PARTS, recorded_goodput
from windtunnel.cli.root import windtunnel
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from pathlib import Path

LOG = """\
JobID|User|Account|Partition|Submit|Start|End|State|AllocTRES|NodeList|NNodes
1|ann|a|p|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T05:00:00|NODE_FAIL|gres/gpu=8|n[1-2]|2
1|ann|a|p|2024-01-01T05:00:00|2024-01-01T06:00:00|2024-01-01T10:00:00|COMPLETED|gres/gpu=8|n[3-4]|2
2|bob|a|p|2024-01-01T00:00:00|2024-01-01T01:00:00|2024-01-01T03:00:00|COMPLETED|gres/gpu=4|n5|1
"""
HOUR = 3_600.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_a_requeued_job_by_hand(log: Path) -> None:
    """5 h, of which checkpoints saved 4; an hour in the queue; 4 h less 10 min to restart."""
    found = recorded_goodput(open_trace(log).jobs, checkpoint=2 * HOUR, restart=600)
    whole = found.summary()
    held = 5 * 8 + 4 * 8 + 2 * 4
    assert whole["gpu_time"] == held * HOUR
    assert whole["badput_lost_work"] == pytest.approx(8 / held)
    assert whole["badput_restart"] == pytest.approx(8 / 6 / held)
    assert whole["goodput"] == pytest.approx((held - 8 - 8 / 6) / held)
    assert whole["badput_waiting_for_replacement"] == pytest.approx(8 / held)
    assert whole["ettr"] == pytest.approx((held - 8 - 8 / 6) / (8 * 10 + 4 * 3))
    assert (whole["num_jobs"], whole["num_attempts"], whole["num_failures"]) == (2, 3, 1)
    assert whole["mttf"] == 11 * HOUR
    assert found.by_cause() == [
        {
            "cause": "node_fail",
            "num_attempts": 1,
            "lost_work": 8 * HOUR,
            "waiting_for_replacement": 8 * HOUR,
        }
    ]
    assert [row["size"] for row in found.by_size()] == ["3-4", "5-8"]


def test_without_checkpoints_all_is_lost(log: Path) -> None:
    whole = recorded_goodput(open_trace(log).jobs).summary()
    assert whole["badput_lost_work"] == pytest.approx(5 * 8 / 80)


def test_the_command_tells_the_same(log: Path) -> None:
    ran = CliRunner().invoke(
        windtunnel, ["report", "goodput", str(log), "--checkpoint", "2h", "--json"]
    )
    assert ran.exit_code == 0, ran.output
    data = json.loads(ran.output)
    assert data["num_failures"] == 1
    assert (data["lemons"], data["outages"]) == ([], [])
    assert sum(data[f"badput_{part}"] for part in PARTS[1:]) + data["goodput"] == pytest.approx(1)


def test_a_checkpoint_of_no_time_is_refused(log: Path) -> None:
    ran = CliRunner().invoke(windtunnel, ["report", "goodput", str(log), "--checkpoint", "0"])
    assert ran.exit_code == 2


def test_a_lemon_in_a_log() -> None:
    """Node n7 of 50 fails in every fourth attempt, the others in one of 200."""
    random = np.random.default_rng(1)
    node = np.tile(np.arange(50), 300)
    failed = random.random(len(node)) < np.where(node == 7, 0.25, 0.005)
    start = np.repeat(np.arange(300), 50) * 86_400.0 + random.uniform(0, 40_000, len(node))
    jobs = pa.table(
        {
            "job_id": [f"j{row}" for row in range(len(node))],
            "submit_time": start,
            "start_time": start,
            "end_time": start + 40_000,
            "duration": np.full(len(node), 40_000.0),
            "num_gpus": np.full(len(node), 8.0),
            "status": np.where(failed, "node_fail", "completed"),
            "nodelist": [f"n{number}" for number in node],
        }
    )
    found = recorded_goodput(jobs)
    assert found.nodes is not None
    assert [one.node for one in found.nodes.lemons] == ["n7"]
    assert sum(values.sum() for values in found.parts.values()) == pytest.approx(
        found.recorded.gpu_time.sum()
    )
