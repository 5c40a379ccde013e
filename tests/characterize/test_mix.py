"""The treemap's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.states import workload_mix
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def test_gpu_time_is_cut_to_whole_seconds_before_the_shares_are_taken(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0] * 5,
            "duration": [3.9, 1.95, 1.0, 7.0, 9.0],
            "num_gpus": [1, 2, 5, 1, 0],
            "workload": ["a", "a", "b", None, "a"],
        }
    )
    assert workload_mix(backend(jobs), ["b", "a", "c"]).to_pylist() == [
        _row("a", 2, 7, 200 / 3, 700 / 12),
        _row("b", 1, 5, 100 / 3, 500 / 12),
        _row("c", 0, 0, 0.0, 0.0),
        {**_row("(none)", 1, 7, None, None), "listed": False},
    ]


def _row(name: str, jobs: int, gpu_time: int, *percents: float | None) -> dict[str, Any]:
    share, time_share = (p if p is None else pytest.approx(p) for p in percents)
    return {
        "workload": name,
        "listed": True,
        "num_jobs": jobs,
        "gpu_time": gpu_time,
        "job_percent": share,
        "gpu_time_percent": time_share,
        "n": jobs,
        "left_out": 0,
        "unsized": 0,
    }


@EXAMPLES
@given(job_rows())
def test_every_job_is_in_one_row_and_the_listed_add_up_to_a_hundred(rows: list[Any]) -> None:
    members, unknown = asked(rows, "gpu")
    found = workload_mix(table_of(rows)).to_pylist()
    assert sum(row["num_jobs"] for row in found) == len(members)
    assert sum(row["left_out"] for row in found) == sum(r["gpu_time"] is None for r in members)
    assert sum(row["unsized"] for row in found) == len(unknown)
    listed = [row for row in found if row["listed"]]
    assert all((row["workload"] == "(none)") != row["listed"] for row in found)
    if any(row["num_jobs"] for row in listed):
        assert sum(row["job_percent"] for row in listed) == pytest.approx(100)
    if any(row["gpu_time"] for row in listed):
        assert sum(row["gpu_time_percent"] for row in listed) == pytest.approx(100)
    for row in found:
        mine = [r for r in members if (r["workload"] or "(none)") == row["workload"]]
        assert row["gpu_time"] == int(sum(r["gpu_time"] or 0.0 for r in mine))
