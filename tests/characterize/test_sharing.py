"""GPU sharing: hand-worked tables, and a plain count at every instant."""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.contention import colocation, contention
from windtunnel.characterize.sharing import sharing_over_time, sharing_savings
from windtunnel.companions import TASK_COLUMNS, companion

if TYPE_CHECKING:
    from backends import Backend


def _tasks(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {c.name: c.type for c in TASK_COLUMNS}
    filled = [
        {"task_id": str(i), "job_id": "j", "status": "completed", **row}
        for i, row in enumerate(rows)
    ]
    names = {name for row in filled for name in row}
    columns = {name: pa.array([row.get(name) for row in filled], kinds[name]) for name in names}
    return companion(TASK_COLUMNS, columns)


def _task(gpu: str | None, start: float, end: float, asked: float, used: float) -> dict[str, Any]:
    times = {"start_time": start, "end_time": end}
    return {"node": "n", "gpu": gpu, **times, "num_gpus": asked, "gpus_used": used}


#: GPU 0 has one task, two from 100 s, one from 200 s; GPU 1 has two from 50 to 100 s.
BY_HAND = [
    _task("0", 0.0, 200.0, 0.5, 0.5),
    _task("0", 100.0, 300.0, 0.5, 0.5),
    _task("1|2", 0.0, 100.0, 3.0, 2.0),  # a third GPU asked for, not named
    _task("1", 50.0, 300.0, 0.25, 0.1),
    {**_task("0", 0.0, 9.0, 1.0, 1.0), "node": None},
    _task(None, 0.0, 9.0, 1.0, 1.0),
    _task("0", 0.0, 9.0, 0.0, 1.0),
]


def test_sharing_by_hand_at_instants(backend: Backend) -> None:
    found = sharing_over_time(backend(_tasks(BY_HAND)), step=100).to_pydict()
    assert found["time"] == [0.0, 100.0, 200.0]
    assert found["num_tasks"] == [2.0, 3.0, 2.0]
    assert found["gpus_asked"] == [3.5, 1.25, 0.75]
    assert found["gpus_unshared"] == [4.0, 3.0, 2.0]
    assert found["gpus_occupied"] == [4.0, 2.0, 2.0]
    assert found["gpus_saved"] == [0.0, 1.0, 0.0]
    assert found["saved_share"] == pytest.approx([0, 1 / 3, 0])
    assert found["n"] == [4] * 3
    assert found["left_out"] == [3] * 3
    assert found["why"] == ["asks for no GPU: 1; no node: 1; no gpu: 1"] * 3


def test_sharing_by_hand_as_means_over_steps() -> None:
    found = sharing_over_time(_tasks(BY_HAND), step=100, sample="mean").to_pydict()
    assert found["gpus_unshared"] == [4.5, 3.0, 2.0]
    assert found["gpus_occupied"] == [4.0, 2.0, 2.0]


def test_savings_by_hand() -> None:
    assert sharing_savings(_tasks(BY_HAND), step=100) == {
        "steps": 3,
        "mean_saved": pytest.approx(1 / 3),
        "saved_share": pytest.approx(1 / 9),
        "peak_saved": 1.0,
        "peak_time": 100.0,
        "n": 4,
        "left_out": {"asks for no GPU": 1, "no node": 1, "no gpu": 1},
    }


def test_a_gpu_of_another_node_is_another_gpu() -> None:
    rows = [_task("0", 0.0, 10.0, 0.5, 0.5), {**_task("0", 0.0, 10.0, 0.5, 0.5), "node": "m"}]
    assert sharing_savings(_tasks(rows), step=10)["peak_saved"] == 0.0


def test_nothing_to_share_is_no_number() -> None:
    found = sharing_savings(_tasks([_task(None, 0.0, 9.0, 1.0, 1.0)]))
    assert found["saved_share"] is None
    assert found["peak_saved"] is None
    assert found["left_out"] == {"no gpu": 1}


def test_colocation_by_hand(backend: Backend) -> None:
    tasks = backend(_tasks(BY_HAND[:4]))
    found = colocation(tasks).to_pydict()
    assert found["workers"] == [1, 2]
    assert found["gpu_time"] == [550.0, 150.0]
    assert found["busy_gpu_time"] == [0.0, 100.0]  # GPU 0; GPU 1 reaches 2 / 3 + 0.1
    assert found["num_gpus"] == [3, 2]
    assert found["busy_gpus"] == [0, 1]
    assert found["n"] == [4, 4]
    assert contention(tasks) == {
        "busy_gpu_time": 100.0,
        "shared_busy_gpu_time": 100.0,
        "share": 1.0,
        "n": 4,
        "left_out": {},
    }
    assert contention(tasks, busy=0.6)["share"] == pytest.approx(150 / (150 + 50 + 100))


def test_dust_does_not_keep_a_sum_from_being_busy() -> None:
    rows = [_task("0", 0.0, 10.0, 0.5, 0.095)] * 10
    assert reduce(operator.add, [0.095] * 10) < 0.95  # sum() of Python 3.12 makes up for it
    assert contention(_tasks(rows))["share"] == 1.0


def test_idle_gpus_have_no_share() -> None:
    found = contention(_tasks([_task("0", 0.0, 9.0, 1.0, 0.2)]))
    assert found["busy_gpu_time"] == 0.0
    assert found["share"] is None


TASKS = st.lists(
    st.builds(
        lambda gpu, start, length, asked, used, node: {
            **_task(gpu, start * 25.0, (start + length) * 25.0, asked, used),
            "node": node,
        },
        st.sampled_from(["0", "1", "0|1", "1|2|3", None]),
        st.integers(0, 12),
        st.integers(0, 12),
        st.sampled_from([0.25, 0.5, 1.0, 2.0, 2.5]),
        st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
        st.sampled_from(["n", "m", None]),
    ),
    min_size=1,
    max_size=10,
)


def _pairs(row: dict[str, Any]) -> set[tuple[str, str]]:
    return {(row["node"], gpu) for gpu in row["gpu"].split("|")}


@pytest.mark.slow
@given(rows=TASKS)
@settings(max_examples=20, deadline=None)
def test_sharing_equals_a_count_of_gpus_at_every_instant(rows: list[dict[str, Any]]) -> None:
    table = ibis.memtable(_tasks(rows))
    kept = [row for row in rows if row["node"] is not None and row["gpu"] is not None]
    found = sharing_over_time(table, step=100).to_pylist()
    assert (kept == []) == (found == [])
    for at in found:
        now = [r for r in kept if r["start_time"] <= at["time"] < r["end_time"]]
        assert at["num_tasks"] == len(now)
        assert at["gpus_unshared"] == sum(math.ceil(r["num_gpus"]) for r in now)
        named = {pair for r in now for pair in _pairs(r)}
        unnamed = sum(max(0, math.ceil(r["num_gpus"]) - len(_pairs(r))) for r in now)
        assert at["gpus_occupied"] == len(named) + unnamed
        assert at["n"] == len(kept)
        assert at["left_out"] == len(rows) - len(kept)


@pytest.mark.slow
@given(rows=TASKS)
@settings(max_examples=20, deadline=None)
def test_colocation_equals_a_walk_along_every_gpu(rows: list[dict[str, Any]]) -> None:
    kept = [row for row in rows if row["node"] is not None and row["gpu"] is not None]
    held: dict[int, list[float]] = {}
    for tick in range(24):
        start = tick * 25.0
        now = [r for r in kept if r["start_time"] <= start < r["end_time"]]
        for pair in {pair for r in now for pair in _pairs(r)}:
            on = [r for r in now if pair in _pairs(r)]
            use = sum(r["gpus_used"] / max(len(_pairs(r)), math.ceil(r["num_gpus"])) for r in on)
            sums = held.setdefault(len(on), [0.0, 0.0])
            sums[0] += 25.0
            sums[1] += 25.0 * (round(use, 6) >= 0.95)
    found = colocation(_tasks(rows)).to_pydict()
    assert dict(zip(found["workers"], found["gpu_time"], strict=True)) == {
        workers: sums[0] for workers, sums in held.items()
    }
    assert dict(zip(found["workers"], found["busy_gpu_time"], strict=True)) == {
        workers: sums[1] for workers, sums in held.items()
    }
    total = sum(sums[1] for sums in held.values())
    several = sum(sums[1] for workers, sums in held.items() if workers >= 2)
    share = contention(_tasks(rows))["share"]
    assert share == (pytest.approx(several / total) if total else None)
