"""Shares by final state: by hand, and against plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.states import STATES, state_shares
from windtunnel.errors import SpecError
from windtunnel.schema import STATUSES, as_jobs

if TYPE_CHECKING:
    from backends import Backend

MEANING = {"timeout": "failed", "node_fail": "failed", None: "(none)"}


def test_only_failed_timeout_and_node_fail_count_as_failed(backend: Backend) -> None:
    statuses = [*STATUSES, None]
    jobs = as_jobs(
        {
            "submit_time": [0] * len(statuses),
            "duration": [10] * len(statuses),
            "num_gpus": [1] * len(statuses),
            "status": statuses,
        }
    )
    found = state_shares(backend(jobs)).to_pylist()
    assert [row["state"] for row in found] == list(STATES)
    assert {row["state"]: row["num_jobs"] for row in found} == {
        **{state: 1 for state in STATES if state != "failed"},
        "failed": 3,
    }
    assert {row["n"] for row in found} == {len(statuses)}
    assert sum(row["job_share"] for row in found) == pytest.approx(1)
    assert found[2]["gpu_time"] == 30.0
    assert found[2]["gpu_time_share"] == pytest.approx(3 / len(statuses))


def test_jobs_without_a_duration_are_in_no_gpu_time_and_counted(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0, 0, 0],
            "duration": [10, None, 5],
            "num_gpus": [2, 4, None],
            "status": ["failed", "failed", "completed"],
        }
    )
    rows = {row["state"]: row for row in state_shares(backend(jobs)).to_pylist()}
    assert rows["failed"]["num_jobs"] == 2
    assert rows["failed"]["gpu_time"] == 20.0
    assert rows["failed"]["left_out"] == 1
    assert rows["completed"]["num_jobs"] == 0
    assert {row["unsized"] for row in rows.values()} == {1}


def test_the_three_states_are_there_without_a_job() -> None:
    found = state_shares(as_jobs({"submit_time": [], "duration": [], "num_gpus": []}))
    assert found["state"].to_pylist() == ["completed", "cancelled", "failed"]
    assert found["job_share"].to_pylist() == [None] * 3
    assert found["gpu_time_share"].to_pylist() == [None] * 3


@EXAMPLES
@given(job_rows(), st.sampled_from(["gpu", "cpu", "all"]))
def test_state_shares_workload_equal_plain_python(rows: list[Any], where: str) -> None:
    members, unknown = asked(rows, where)
    found = state_shares(table_of(rows), "workload", where=where).to_pylist()
    groups = {row["workload"] or "(none)" for row in (*members, *unknown)}
    assert {row["workload"] for row in found} == groups
    for row in found:
        mine = [r for r in members if (r["workload"] or "(none)") == row["workload"]]
        of_state = [r for r in mine if MEANING.get(r["status"], r["status"]) == row["state"]]
        held = sum(r["gpu_time"] or 0.0 for r in of_state)
        total = sum(r["gpu_time"] or 0.0 for r in mine)
        assert row["num_jobs"] == len(of_state)
        assert row["n"] == len(mine)
        assert row["job_share"] == (pytest.approx(len(of_state) / len(mine)) if mine else None)
        assert row["gpu_time"] == pytest.approx(held)
        assert row["gpu_time_share"] == (pytest.approx(held / total) if total else None)
        assert row["left_out"] == sum(r["gpu_time"] is None for r in of_state)
    for group in groups:
        mine = [row for row in found if row["workload"] == group]
        assert sum(row["num_jobs"] for row in mine) == mine[0]["n"]


def test_state_shares_a_number_are_in_its_order(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0] * 4,
            "duration": [1] * 4,
            "num_gpus": [16, 2, 1024, 2],
            "status": ["completed"] * 4,
        }
    )
    found = state_shares(backend(jobs), "gpu_count")
    assert found["gpu_count"].to_pylist() == ["2"] * 3 + ["16"] * 3 + ["1024"] * 3
    assert found["num_jobs"].to_pylist() == [2, 0, 0, 1, 0, 0, 1, 0, 0]


def test_the_sources_gpu_time_can_be_added_up_instead() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0],
            "duration": [8],
            "num_gpus": [64],
            "status": ["failed"],
            "source_duration": pa.array([18.0]),
        }
    )
    assert state_shares(jobs)["gpu_time"][2].as_py() == 512.0
    assert state_shares(jobs, gpu_time="source_gpu_time")["gpu_time"][2].as_py() == 1152.0
    with pytest.raises(SpecError, match="gpu_times"):
        state_shares(jobs, gpu_time="gpu_times")
