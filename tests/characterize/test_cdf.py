"""Cumulative distributions: hand-worked, against plain Python, and the published definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.cdf import GPU_GRID, POWERS_DURATION, POWERS_QUEUE, count_cdf, sum_cdf
from windtunnel.errors import SchemaError, SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend

#: Two GPU jobs and one of unknown duration, a CPU job, and one of unknown size.
SMALL = {
    "submit_time": [0, 0, 0, 0, 0],
    "duration": [4, 10, None, 7, 1],
    "num_gpus": [1, 3, 2, 0, None],
    "workload": ["a", None, "a", "a", None],
}


def test_grids_are_the_ones_of_the_notebook() -> None:
    assert POWERS_DURATION[0] == POWERS_QUEUE[0] == 1
    assert POWERS_DURATION[-1] == 2_097_152
    assert POWERS_QUEUE[-1] == 32_768
    assert tuple(range(1025)) == GPU_GRID


def test_count_cdf_by_hand(backend: Backend) -> None:
    jobs = backend(as_jobs(SMALL))
    rows = count_cdf(jobs, "duration", [3, 4, 10]).to_pylist()
    common = {"n": 2, "left_out": 1, "unsized": 1}
    assert rows == [
        {"x": 3.0, "count": 0, "percent": 0.0, **common},
        {"x": 4.0, "count": 1, "percent": 50.0, **common},
        {"x": 10.0, "count": 2, "percent": 100.0, **common},
    ]
    (cpu,) = count_cdf(jobs, "duration", [7], where="cpu").to_pylist()
    assert cpu == {"x": 7.0, "count": 1, "percent": 100.0, "n": 1, "left_out": 0, "unsized": 1}
    (every,) = count_cdf(jobs, "duration", [7], where="all").to_pylist()
    assert every == {"x": 7.0, "count": 3, "percent": 75.0, "n": 4, "left_out": 1, "unsized": 0}


def test_count_cdf_by_group_by_hand(backend: Backend) -> None:
    found = count_cdf(backend(as_jobs(SMALL)), "duration", [4, 12], by="workload")
    names = ["workload", "x", "count", "percent", "n", "left_out", "unsized"]
    assert found.column_names == names
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("a", 4.0, 1, 100.0, 1, 1, 0),
        ("a", 12.0, 1, 100.0, 1, 1, 0),
        ("(none)", 4.0, 0, 0.0, 1, 0, 1),
        ("(none)", 12.0, 1, 100.0, 1, 0, 1),
    ]


def test_sum_cdf_by_hand(backend: Backend) -> None:
    found = sum_cdf(backend(as_jobs(SMALL)), "num_gpus", "duration", [0, 1, 2, 3]).to_pylist()
    assert [row["sum"] for row in found] == [0.0, 4.0, 4.0, 34.0]
    assert [row["percent"] for row in found] == pytest.approx([0, 400 / 34, 400 / 34, 100])
    assert {(row["n"], row["left_out"], row["unsized"]) for row in found} == {(2, 1, 1)}


def test_a_curve_of_no_jobs_has_n_zero_and_no_percent() -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    for table in (count_cdf(empty, "wait", [1]), sum_cdf(empty, "num_gpus", "duration", [1])):
        (row,) = table.to_pylist()
        assert row["percent"] is None
        assert row["n"] == row["left_out"] == row["unsized"] == 0
    assert count_cdf(empty, "wait", [1], by="vc").num_rows == 0


def test_nothing_above_the_last_threshold_is_added_to_it() -> None:
    jobs = as_jobs({"submit_time": [0, 0], "duration": [1, 1], "num_gpus": [1024, 2048]})
    assert count_cdf(jobs, "num_gpus", GPU_GRID)["percent"][-1].as_py() == 50.0
    last = sum_cdf(jobs, "num_gpus", "duration", GPU_GRID)["percent"][-1].as_py()
    assert last == pytest.approx(100 / 3)


_grids = st.one_of(
    st.just([float(x) for x in range(8)]),
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.5, 3.0, 60.0, 999.5, 1e9]), min_size=1,
             unique=True).map(sorted),
)  # fmt: skip


@EXAMPLES
@given(job_rows(), _grids, st.sampled_from(["gpu", "cpu", "all"]),
       st.sampled_from(["duration", "wait", "num_gpus", "gpu_time"]))  # fmt: skip
def test_count_cdf_equals_plain_python(
    rows: list[Any], grid: list[float], where: str, fact: str
) -> None:
    members, unknown = asked(rows, where)
    known = [row[fact] for row in members if row[fact] is not None]
    table = count_cdf(table_of(rows), fact, grid, where=where)
    assert table["x"].to_pylist() == grid
    assert table["count"].to_pylist() == [sum(v <= x for v in known) for x in grid]
    for row in table.to_pylist():
        assert row["n"] == len(known)
        assert row["left_out"] == len(members) - len(known)
        assert row["unsized"] == len(unknown)
        assert row["percent"] == (pytest.approx(100 * row["count"] / len(known)) if known else None)


@EXAMPLES
@given(job_rows(), _grids)
def test_sum_cdf_by_workload_equals_plain_python(rows: list[Any], grid: list[float]) -> None:
    members, unknown = asked(rows, "gpu")
    found = sum_cdf(table_of(rows), "num_gpus", "duration", grid, by="workload").to_pylist()
    groups = {row["workload"] or "(none)" for row in (*members, *unknown)}
    assert [row["workload"] for row in found] == [
        g for g in sorted(groups, key=lambda g: (g == "(none)", g)) for _ in grid
    ]
    for row in found:
        mine = [r for r in members if (r["workload"] or "(none)") == row["workload"]]
        known = [r for r in mine if r["gpu_time"] is not None]
        total = sum(r["gpu_time"] for r in known)
        reached = sum(r["gpu_time"] for r in known if r["num_gpus"] <= row["x"])
        assert row["sum"] == pytest.approx(reached)
        assert row["percent"] == (pytest.approx(100 * reached / total) if total else None)
        assert (row["n"], row["left_out"]) == (len(known), len(mine) - len(known))


@pytest.mark.slow
def test_a_long_uneven_grid_equals_plain_python() -> None:
    values = [i * 0.37 for i in range(500)]
    jobs = as_jobs({"submit_time": [0] * 500, "duration": values, "num_gpus": [1] * 500})
    grid = [x * 0.1 + 0.05 for x in range(1500)]
    table = count_cdf(jobs, "duration", grid)
    assert table["count"].to_pylist() == [sum(v <= x for v in values) for x in grid]


def test_the_sources_own_figures_can_be_asked_beside_ours(
    holed: pa.Table, backend: Backend
) -> None:
    at = [10.0, 100.0, 1000.0]
    for fact in ("source_duration", "source_queue"):
        pairs = zip(holed[fact].to_pylist(), holed["num_gpus"].to_pylist(), strict=True)
        known = [value for value, gpus in pairs if value is not None and gpus]
        table = count_cdf(backend(holed), fact, at)
        assert table["count"].to_pylist() == [sum(v <= x for v in known) for x in at]
        assert table["n"][0].as_py() == len(known)


@pytest.mark.parametrize("at", [[], [1, 1], [2, 1], [float("nan")], [0, float("inf")]])
def test_thresholds_that_do_not_rise_are_refused(at: list[float]) -> None:
    with pytest.raises(SpecError, match="at: expected"):
        count_cdf(as_jobs(SMALL), "duration", at)


def test_unknown_names_are_refused_with_what_is_known() -> None:
    jobs = as_jobs({**SMALL, "source_queue": pa.array([0.5] * 5)})
    with pytest.raises(SpecError, match=r"Did you mean 'duration'\?.*source_queue"):
        count_cdf(jobs, "durations", [1])
    with pytest.raises(SpecError, match="unknown name 'source_gpu_time'"):
        count_cdf(jobs, "source_gpu_time", [1])
    with pytest.raises(SpecError, match="where: unknown name 'gpus'"):
        count_cdf(jobs, "duration", [1], where="gpus")
    with pytest.raises(SpecError, match="by: unknown name 'workloads'"):
        count_cdf(jobs, "duration", [1], by="workloads")
    with pytest.raises(SchemaError, match="start_time"):
        count_cdf(jobs.drop_columns(["start_time"]), "wait", [1])
