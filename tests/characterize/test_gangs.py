"""The sizes of gangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.gangs import gang_sizes, gangs_of_tasks
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def test_gang_sizes_by_hand(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0] * 4,
            "duration": [1] * 4,
            "num_gpus": [1] * 4,
            "num_tasks": [1, 1, 8, None],
        }
    )
    found = gang_sizes(backend(jobs), [1, 2, 9]).to_pylist()
    common = {"n": 3, "tasks": 10, "left_out": 1, "unsized": 0}
    assert found == [
        {"size": 1, "num_jobs": 3, "job_share": 1.0, "num_tasks": 10, "task_share": 1.0, **common},
        {"size": 2, "num_jobs": 1, "job_share": pytest.approx(1 / 3), "num_tasks": 8,
         "task_share": 0.8, **common},
        {"size": 9, "num_jobs": 0, "job_share": 0.0, "num_tasks": 0, "task_share": 0.0, **common},
    ]  # fmt: skip


@EXAMPLES
@given(st.lists(st.integers(1, 40), max_size=30), st.integers(0, 3))
def test_tasks_counted_by_job_make_the_same_gangs(sizes: list[int], orphans: int) -> None:
    of_job: list[str | None] = [str(i) for i, size in enumerate(sizes) for _ in range(size)]
    of_job += [None] * orphans
    tasks = pa.table({"job_id": pa.array(of_job, pa.string())})
    jobs = as_jobs(
        {
            "submit_time": [0.0] * len(sizes),
            "duration": [1.0] * len(sizes),
            "num_gpus": [1.0] * len(sizes),
            "num_tasks": pa.array(sizes, pa.int32()),
        }
    )
    counted, stated = gangs_of_tasks(tasks), gang_sizes(jobs)
    assert set(counted["left_out"].to_pylist()) == {orphans}
    assert counted.drop_columns(["left_out"]).equals(stated.drop_columns(["left_out"]))
    assert stated["task_share"][0].as_py() == (1.0 if sizes else None)


@EXAMPLES
@given(job_rows(), st.sampled_from(["gpu", "cpu", "all"]))
def test_gang_sizes_equal_plain_python(rows: list[Any], where: str) -> None:
    members, unknown = asked(rows, where)
    sizes = [r["num_tasks"] for r in members if r["num_tasks"] is not None]
    for row in gang_sizes(table_of(rows), [1, 2, 5], where=where).to_pylist():
        large = [size for size in sizes if size >= row["size"]]
        assert (row["num_jobs"], row["num_tasks"]) == (len(large), sum(large))
        assert (row["n"], row["tasks"]) == (len(sizes), sum(sizes))
        assert row["left_out"] == len(members) - len(sizes)
        assert row["unsized"] == len(unknown)


@pytest.mark.parametrize("at", [[], [0], [2, 1], [1.5], [True]])
def test_steps_that_are_no_sizes_are_refused(at: list[Any]) -> None:
    jobs = as_jobs({"submit_time": [0], "duration": [1], "num_gpus": [1]})
    with pytest.raises(SpecError, match="at: expected"):
        gang_sizes(jobs, at)
