"""What failures cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.failures import FAILURES, failures_by, time_to_failure
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _jobs() -> Any:
    return as_jobs(
        {
            "submit_time": [0] * 6,
            "duration": [10, 20, 40, 5, None, 7],
            "num_gpus": [1, 1, 8, 8, 8, None],
            "status": ["completed", "failed", "out_of_memory", None, "timeout", "failed"],
        }
    )


def test_failures_by_hand(backend: Backend) -> None:
    (row,) = failures_by(backend(_jobs())).to_pylist()
    assert row == {
        "num_jobs": 5,
        "num_failed": 3,
        "failed_share": 0.6,
        "no_status": 1,
        "gpu_time": 390.0,
        "gpu_time_failed": 340.0,
        "lost_share": pytest.approx(340 / 390),
        "part_of_lost": 1.0,
        "avg_run": 30.0,
        "p50_run": 30.0,
        "p90_run": 38.0,
        "max_run": 40.0,
        "n": 2,
        "left_out": 1,
        "unsized": 1,
    }
    by_size = failures_by(backend(_jobs()), "gpu_count").to_pylist()
    assert [row["gpu_count"] for row in by_size] == ["1", "8", "(none)"]
    assert [row["part_of_lost"] for row in by_size] == pytest.approx([20 / 340, 320 / 340, 0])
    assert by_size[2]["num_jobs"] == 0


def test_time_to_failure_by_hand(backend: Backend) -> None:
    found = time_to_failure(backend(_jobs()), [20, 39, 40]).to_pylist()
    assert [row["count"] for row in found] == [1, 1, 2]
    assert {(row["n"], row["left_out"], row["unsized"]) for row in found} == {(2, 1, 1)}
    only = failures_by(backend(_jobs()), statuses=("failed",)).to_pylist()
    assert only[0]["num_failed"] == 1


@EXAMPLES
@given(job_rows())
def test_failures_by_user_equal_plain_python(rows: list[Any]) -> None:
    members, unknown = asked(rows, "gpu")
    found = failures_by(table_of(rows), "user").to_pylist()
    assert {r["user"] for r in found} == {r["user"] or "(none)" for r in (*members, *unknown)}
    for row in found:
        mine = [r for r in members if (r["user"] or "(none)") == row["user"]]
        failed = [r for r in mine if r["status"] in FAILURES]
        runs = [r["duration"] for r in failed if r["duration"] is not None]
        assert row["num_jobs"] == len(mine)
        assert row["num_failed"] == len(failed)
        assert row["no_status"] == sum(r["status"] is None for r in mine)
        assert row["gpu_time_failed"] == pytest.approx(sum(r["gpu_time"] or 0 for r in failed))
        assert row["gpu_time"] == pytest.approx(sum(r["gpu_time"] or 0 for r in mine))
        assert (row["n"], row["left_out"]) == (len(runs), len(failed) - len(runs))
        assert row["p50_run"] == (pytest.approx(np.median(runs)) if runs else None)
    lost = [row["part_of_lost"] for row in found if row["part_of_lost"] is not None]
    assert not lost or sum(lost) == pytest.approx(1)


def test_no_jobs_fail() -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    (row,) = failures_by(empty).to_pylist()
    assert row["num_jobs"] == 0
    assert row["failed_share"] is None
    (point,) = time_to_failure(empty, [1]).to_pylist()
    assert point["percent"] is None
