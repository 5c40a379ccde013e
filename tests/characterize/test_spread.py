"""Quantiles of facts by group, against numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.characterize.population import GROUPS_BY
from windtunnel.characterize.spread import quantile_curve, spread_by
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    import pyarrow as pa
    from backends import Backend


def test_spread_by_workload_equals_numpy(holed: pa.Table, backend: Backend) -> None:
    found = spread_by(backend(holed), "wait", by="workload", percents=(0, 12.5, 50, 99.9))
    assert found["workload"].to_pylist() == ["Eval", "Pretrain", "SFT", "(none)"]
    jobs = holed.to_pylist()
    for row in found.to_pylist():
        mine = [j for j in jobs if (j["workload"] or "(none)") == row["workload"]]
        waits = np.array(
            [
                j["start_time"] - j["submit_time"]
                for j in mine
                if j["start_time"] is not None and j["submit_time"] is not None
            ]
        )
        assert row["n"] == len(waits)
        assert row["left_out"] == len(mine) - len(waits)
        assert row["unsized"] == 0
        assert row["avg"] == pytest.approx(waits.mean())
        for name, percent in (("min", 0), ("p0", 0), ("p12.5", 12.5), ("p50", 50), ("p99.9", 99.9)):
            assert row[name] == pytest.approx(np.percentile(waits, percent), rel=1e-9), name


@pytest.mark.parametrize("by", [*GROUPS_BY, "num_attempts", "num_tasks"])
def test_every_property_loses_no_job(holed: pa.Table, by: str, backend: Backend) -> None:
    found = spread_by(backend(holed), "duration", by=by)
    assert sum(found["n"].to_pylist()) + sum(found["left_out"].to_pylist()) == holed.num_rows
    labels = found[by].to_pylist()
    assert len(labels) == len(set(labels))
    assert all(labels)


def test_classes_of_sharing_are_those_of_the_pai_analysis(backend: Backend) -> None:
    cases = [  # GPUs of the job, tasks, class of the GPUs that one task asks for
        (0, 1, "no GPU"),
        (0.2, 1, "< 0.25"),
        (0.25, 1, "[0.25, 0.5)"),
        (2, 4, "[0.5, 1)"),
        (4, 4, "1"),
        (8, 4, "> 1"),
        (0.5, None, "[0.5, 1)"),
        (None, 1, "(none)"),
    ]
    jobs = as_jobs(
        {
            "submit_time": [0] * len(cases),
            "duration": [i + 1.0 for i in range(len(cases))],
            "num_gpus": [gpus for gpus, _, _ in cases],
            "num_tasks": [tasks for _, tasks, _ in cases],
        }
    )
    found = spread_by(backend(jobs), "duration", by="sharing").to_pylist()
    expected: dict[str, list[float]] = {}
    for i, (_, _, name) in enumerate(cases):
        expected.setdefault(name, []).append(i + 1.0)
    assert {row["sharing"]: row["avg"] for row in found} == {
        name: np.mean(values) for name, values in expected.items()
    }
    assert [row["sharing"] for row in found] == list(expected)


def test_an_empty_name_and_one_that_reads_none_are_names(backend: Backend) -> None:
    users = ["", "(none)", None, "=", "a"]
    jobs = as_jobs(
        {"submit_time": [0] * 5, "duration": [1, 2, 3, 4, 5], "num_gpus": [1] * 5, "user": users}
    )
    found = spread_by(backend(jobs), "duration", by="user").to_pylist()
    assert [(row["user"], row["max"]) for row in found] == [
        ("", 1.0),
        ("(none)", 2.0),
        ("=", 4.0),
        ("a", 5.0),
        ("(none)", 3.0),
    ]


def test_sizes_of_the_philly_notebook(backend: Backend) -> None:
    sizes = [0, 1, 2, 4, 5, 8, 9, None]
    jobs = as_jobs(
        {"submit_time": [0] * 8, "duration": list(range(1, 9)), "num_gpus": sizes},
    )
    found = spread_by(backend(jobs), "duration", by="philly_size").to_pylist()
    assert [(row["philly_size"], row["avg"]) for row in found] == [
        ("no GPU", 1.0),
        ("1", 2.0),
        ("2-4", 3.5),
        ("5-8", 5.5),
        ("> 8", 7.0),
        ("(none)", 8.0),
    ]


def test_a_quantile_curve_is_the_notebooks_cdf(backend: Backend) -> None:
    values = [5.0, 1.0, 9.0, 2.0, 2.0]
    jobs = as_jobs({"submit_time": [0] * 5, "duration": values, "num_gpus": [1] * 5})
    # Ordinate 100 i / (n - 1) of the i-th value in order.
    ordinates = [100 * i / 4 for i in range(5)]
    found = quantile_curve(backend(jobs), "duration", ordinates)
    assert found["percent"].to_pylist() == ordinates
    assert found["value"].to_pylist() == sorted(values)
    assert set(found["n"].to_pylist()) == {5}


def test_slowdown_and_no_run_time(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0, 0],
            "start_time": [5, 5],
            "end_time": [10, 5],
            "duration": [5, 0],
            "num_gpus": [1, 1],
        }
    )
    (row,) = spread_by(backend(jobs), "slowdown").to_pylist()
    assert (row["n"], row["left_out"], row["avg"]) == (1, 1, 2.0)


def test_bad_percents_are_refused(holed: pa.Table) -> None:
    for percents in ((), (101,), (-1,), (float("nan"),)):
        with pytest.raises(SpecError, match="percents"):
            spread_by(holed, "wait", percents=percents)


def test_no_jobs_have_one_empty_row() -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    (row,) = spread_by(empty, "wait").to_pylist()
    assert row["n"] == 0
    assert row["p50"] is None
    assert quantile_curve(empty, "wait", [50])["value"].to_pylist() == [None]
