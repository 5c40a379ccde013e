"""Slow-down against the load of the node: a hand-worked table and numpy on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.slowdown import PERCENTS, RATES, node_load_cdfs, slowdown_by_load
from windtunnel.companions import TASK_COLUMNS, companion
from windtunnel.errors import SchemaError

if TYPE_CHECKING:
    from backends import Backend


def _tasks(rows: list[dict[str, Any]]) -> pa.Table:
    def floats(name: str) -> pa.Array:
        return pa.array([row.get(name) for row in rows], pa.float64())

    return companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array([str(i) for i in range(len(rows))]),
            "job_id": pa.array([row["job_id"] for row in rows], pa.string()),
            "status": pa.array([row.get("status", "completed") for row in rows], pa.string()),
            "start_time": floats("start_time"),
            "end_time": floats("end_time"),
            "machine_cpu": floats("machine_cpu"),
            "machine_gpu": floats("machine_gpu"),
        },
    )


def _task(job: str, run_time: float | None, cpu: float | None, **more: Any) -> dict[str, Any]:
    end = None if run_time is None else 5.0 + run_time
    return {"job_id": job, "start_time": 5.0, "end_time": end, "machine_cpu": cpu, **more}


#: Group a has five jobs whose median run time is 30 s; group b has one job; job x has no group.
BY_HAND = [
    _task("a1", 10.0, 5.0, machine_gpu=50.0),
    _task("a2", 20.0, 10.0),
    _task("a3", 30.0, 30.0),
    _task("a4", 40.0, 24.0),
    _task("a5", 50.0, 60.0, machine_gpu=10.0),
    _task("a5", 45.0, None),
    _task("a1", 15.0, 20.0),
    _task("a1", 900.0, 90.0, status="failed"),
    _task("a1", None, 90.0),
    _task("b1", 900.0, 90.0),
    _task("x", 900.0, 90.0),
    _task("not a job", 900.0, 90.0),
]
JOBS = pa.table(
    {
        "job_id": ["a1", "a2", "a3", "a4", "a5", "b1", "x"],
        "template": pa.array(["a"] * 5 + ["b", None], pa.string()),
    }
)
WHY = (
    "job not in the jobs table: 1; no template: 1; not completed: 1; no run time: 1; "
    "group of fewer than 5 jobs: 1"
)


def test_slowdown_by_hand(backend: Backend) -> None:
    late, others, late_gpu, others_gpu = slowdown_by_load(
        backend(_tasks(BY_HAND)), backend(JOBS)
    ).to_pylist()
    assert late == {
        "metric": "machine_cpu",
        "tasks": "delayed",
        "n": 2,
        "p25": pytest.approx(33.0),
        "p50": pytest.approx(42.0),
        "p75": pytest.approx(51.0),
        "busy_share": 0.5,  # 24 % is not above 24 %
        "unknown": 1,
        "groups": 1,
        "left_out": 5,
        "why": WHY,
    }
    assert (others["n"], others["p50"], others["busy_share"]) == (4, 15.0, 0.25)
    assert (late_gpu["n"], late_gpu["p50"], late_gpu["unknown"]) == (1, 10.0, 2)
    assert (others_gpu["n"], others_gpu["p50"]) == (1, 50.0)


def test_the_bounds_move_what_is_delayed_recurring_and_busy() -> None:
    table = _tasks(BY_HAND)
    late, others, *_ = slowdown_by_load(table, JOBS, delayed=1.5, min_jobs=1, busy=23.0).to_pylist()
    assert (late["n"], late["groups"]) == (1, 2)
    assert (others["n"], others["busy_share"]) == (6, 0.5)


def test_without_any_recurring_group_there_is_no_number() -> None:
    late, others, *_ = slowdown_by_load(_tasks(BY_HAND), JOBS.slice(5)).to_pylist()
    assert (late["n"], late["p50"], late["busy_share"], late["groups"]) == (0, None, None, 0)
    assert others["left_out"] == len(BY_HAND)


def test_without_the_nodes_metric_the_column_is_named() -> None:
    with pytest.raises(SchemaError, match="machine_cpu"):
        slowdown_by_load(_tasks(BY_HAND).drop_columns(["machine_cpu"]), JOBS)
    without_gpu = _tasks(BY_HAND).drop_columns(["machine_gpu"])
    assert slowdown_by_load(without_gpu, JOBS)["metric"].to_pylist() == ["machine_cpu"] * 2


@pytest.mark.slow
@given(
    rows=st.lists(
        st.builds(
            _task,
            st.sampled_from(["a1", "a2", "a3", "b1", "b2", "x"]),
            st.sampled_from([1.0, 2.0, 3.0, 8.0]),
            st.sampled_from([None, 1.0, 20.0, 30.0, 70.0]),
        ),
        min_size=1,
        max_size=14,
    ),
    delayed=st.sampled_from([1.0, 1.5]),
)
@settings(max_examples=20, deadline=None)
def test_slowdown_equals_numpy(rows: list[dict[str, Any]], delayed: float) -> None:
    jobs = pa.table(
        {
            "job_id": ["a1", "a2", "a3", "b1", "b2", "x"],
            "template": pa.array(["a", "a", "a", "b", "b", None], pa.string()),
        }
    )
    kinds: dict[bool, list[float | None]] = {True: [], False: []}
    for group in "ab":
        mine = [row for row in rows if row["job_id"].startswith(group)]
        if len({row["job_id"] for row in mine}) >= 2:
            median = np.median([row["end_time"] - 5 for row in mine])
            for row in mine:
                kinds[row["end_time"] - 5 > delayed * median].append(row["machine_cpu"])
    found = slowdown_by_load(_tasks(rows), jobs, delayed=delayed, min_jobs=2).to_pylist()[:2]
    for row, late in zip(found, (True, False), strict=True):
        known = np.array([v for v in kinds[late] if v is not None])
        assert row["n"] == len(known)
        assert row["unknown"] == len(kinds[late]) - len(known)
        assert row["left_out"] == len(rows) - len(kinds[True]) - len(kinds[False])
        if len(known):
            assert row["p50"] == pytest.approx(np.quantile(known, 0.5))
            assert row["p75"] == pytest.approx(np.quantile(known, 0.75))
            assert row["busy_share"] == pytest.approx((known > 24).mean())


def test_network_and_loads_are_drawn_where_the_table_has_them(backend: Backend) -> None:
    table = _tasks(BY_HAND).append_column("read", pa.array([2.0**27] * 11 + [None], pa.float64()))
    found = node_load_cdfs(backend(table), at=(20.0, 30.0), rates=(0.5, 1.0)).to_pylist()
    assert [(row["value"], row["x"], row["count"], row["n"]) for row in found] == [
        ("machine_cpu", 20.0, 3, 11),
        ("machine_cpu", 30.0, 5, 11),
        ("machine_gpu", 20.0, 1, 2),
        ("machine_gpu", 30.0, 1, 2),
        ("network", 0.5, 0, 11),
        ("network", 1.0, 11, 11),  # 8 x 2^27 / 2^30
    ]
    assert found[-1]["left_out"] == 1
    assert node_load_cdfs(table).num_rows == 2 * len(PERCENTS) + len(RATES)
    bare = table.select(["task_id"])
    assert node_load_cdfs(bare).num_rows == 0
