"""The jobs table: every broken rule is reported at once, with its count and first row."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.schema import COLUMNS, JOBS, STATUSES, as_jobs, conform, source_of
from windtunnel.sim.slurm import asked as slurm_jobs

GOOD = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 1.0, 2.0],
    "start_time": [0.0, 1.0, None],
    "end_time": [5.0, 1.0, None],
    "duration": [5.0, 0.0, None],
    "num_gpus": [1.0, 0.5, 8.0],
    "num_tasks": [1, None, 2],
    "status": ["completed", None, "unknown"],
    "priority": [0.0, -1.5, None],
}


PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "jobs-table.md"


def test_the_page_lists_every_column() -> None:
    columns = {
        name
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    asked = re.findall(r'\.(?:text|number)\("(\w+)"', inspect.getsource(slurm_jobs))
    assert "array_limit" in asked
    assert {column.name for column in COLUMNS} | set(asked) <= columns
    assert {"eligible_time", "array_id", "depends_on", "topology", "reason"} <= columns


def broken(changes: dict[str, Any], **options: Any) -> wt.SchemaError:
    with pytest.raises(wt.SchemaError) as error:
        conform(pa.table({**GOOD, **changes}), source="jobs.csv", **options)
    return error.value


def test_a_good_table_gets_all_columns_in_order() -> None:
    jobs = conform(pa.table({"extra": [1, 2, 3], **GOOD}), source="jobs.csv")
    assert jobs.column_names == [*(c.name for c in COLUMNS), "extra"]
    assert jobs.schema.types[: len(COLUMNS)] == JOBS.types
    assert jobs["user"].to_pylist() == [None] * 3
    assert source_of(jobs) == "jobs.csv"
    assert source_of(pa.table(GOOD)) == "jobs"
    assert as_jobs(jobs) is jobs


def test_types_are_cast_where_no_value_is_lost() -> None:
    table = pa.table(
        {
            "job_id": pa.array([7, 8]),
            "submit_time": pa.array([0, 1], pa.int16()),
            "duration": pa.array(["1.5", "2"]),
            "num_gpus": pa.array([1, 2], pa.uint8()),
            "user": pa.array(["u", "v"]).dictionary_encode(),
        }
    )
    jobs = conform(table)
    assert jobs["job_id"].to_pylist() == ["7", "8"]
    assert jobs["duration"].to_pylist() == [1.5, 2.0]
    assert jobs["user"].type == pa.string()


def test_duration_may_follow_from_start_and_end() -> None:
    table = pa.table({name: values for name, values in GOOD.items() if name != "duration"})
    assert conform(table)["duration"].to_pylist() == [5.0, 0.0, None]


def test_every_violation_is_reported_at_once() -> None:
    error = broken(
        {
            "job_id": ["a", None, "a"],
            "submit_time": [0.0, np.nan, 9.0],
            "start_time": [-1.0, 1.0, 8.0],
            "end_time": [5.0, 0.5, np.inf],
            "duration": [-5.0, np.nan, -0.0],
            "num_gpus": [1.0, -0.5, -8.0],
            "num_tasks": [1, 0, -2],
            "status": ["done", None, "COMPLETED"],
            "priority": [np.inf, 0.0, 0.0],
        },
        first_line=2,
    )
    found = [(v.column, v.count, v.row, v.value) for v in error.violations]
    nan = pytest.approx(np.nan, nan_ok=True)
    assert found == [
        ("job_id", 1, 3, None),
        ("job_id", 1, 4, "a"),
        ("submit_time", 1, 3, nan),
        ("end_time", 1, 4, np.inf),
        ("priority", 1, 2, np.inf),
        ("duration", 3, 2, -5.0),
        ("num_gpus", 2, 3, -0.5),
        ("num_tasks", 2, 3, 0),
        ("start_time", 2, 2, -1.0),
        ("end_time", 1, 3, 0.5),
        ("status", 2, 2, "done"),
    ]
    text = str(error)
    assert text.startswith("jobs.csv: the jobs table breaks the schema:\n  - column 'job_id': ")
    line = "\n  - column 'duration': expected a finite number >= 0 (3 rows, first in line 2: -5.0)"
    assert line in text
    assert f"expected one of {', '.join(STATUSES)} (2 rows, first in line 2: 'done')" in text
    assert text.count("\n") == len(found)


def test_lines_of_the_source_are_named_where_known() -> None:
    error = broken({"duration": [5.0, -1.0, -2.0]}, lines=[10, 20, 30])
    assert [(v.row, v.value) for v in error.violations] == [(20, -1.0)]


def test_missing_columns_are_named_with_the_nearest() -> None:
    table = pa.table({"job_id": ["a"], "submittime": [0.0], "num_gpu": [1.0], "duration": [1.0]})
    with pytest.raises(wt.SchemaError) as error:
        conform(table, source="jobs.csv")
    text = str(error.value)
    assert (
        "column 'submit_time': expected a column of this name. Did you mean 'submittime'?" in text
    )
    assert "column 'num_gpus': expected a column of this name. Did you mean 'num_gpu'?" in text
    assert text.endswith("The table has: 'job_id', 'submittime', 'num_gpu', 'duration'.")
    with pytest.raises(wt.SchemaError, match="The table has: no columns"):
        conform(pa.table({}))


def test_values_of_the_wrong_type_are_reported_with_the_rest() -> None:
    error = broken({"num_gpus": ["one", "2", "3"], "duration": [-1.0, 1.0, 1.0]})
    assert [v.column for v in error.violations] == ["num_gpus", "duration"]
    assert "values of type double" in str(error)


def test_in_memory_nan_is_a_mistake_and_none_is_unknown() -> None:
    jobs = {"submit_time": [0.0, 1.0], "duration": [1.0, None], "num_gpus": [1.0, 1.0]}
    assert as_jobs(jobs)["duration"].to_pylist() == [1.0, None]
    with pytest.raises(wt.SchemaError, match=r"'duration': expected a finite number >= 0 \(1 row"):
        as_jobs({**jobs, "duration": [1.0, np.nan]})
    with pytest.raises(wt.SchemaError, match="'estimate': expected a finite number >= 0"):
        as_jobs({**jobs, "estimate": [-0.0, 1.0]})


def test_text_among_numbers_in_memory_is_named_with_its_column() -> None:
    jobs = {"submit_time": [0.0, 1.0], "duration": [1.0, 1.0], "num_gpus": [1, "x"]}
    with pytest.raises(wt.SchemaError) as error:
        as_jobs(jobs | {"vc": ["a", 3], "mine": [1, "x"]})
    assert [v.column for v in error.value.violations] == ["num_gpus", "vc", "mine"]
    assert "'num_gpus': expected values of type double (Could not convert 'x'" in str(error.value)
    assert "'mine': expected values of one type" in str(error.value)
    with pytest.raises(wt.SchemaError, match="'duration': expected values of type double"):
        as_jobs(jobs | {"num_gpus": [1, 1], "duration": 5})
    with pytest.raises(wt.SchemaError, match="expected columns of one length"):
        as_jobs(jobs | {"num_gpus": [1, 2, 3]})
