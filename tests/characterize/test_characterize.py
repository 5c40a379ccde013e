"""What a trace looks like, checked against numpy on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.characterize import SHARES_BY, distribution, overview, shares
from windtunnel.characterize.overview import PERCENTS
from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles
from windtunnel.schema import COLUMNS, as_jobs
from windtunnel.sim.metrics import size_classes

if TYPE_CHECKING:
    import pyarrow as pa


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n = 1001
    submit = np.sort(rng.uniform(0, 1e6, n))
    wait = rng.exponential(100, n)
    duration = rng.lognormal(5, 2, n)
    return {
        "submit_time": submit,
        "start_time": [None if i % 7 == 0 else t for i, t in enumerate(submit + wait)],
        "duration": [None if i % 11 == 0 else d for i, d in enumerate(duration)],
        "num_gpus": rng.choice([0, 0.5, 1, 2, 3, 8, 9, 64, 512, 513, 4096], n),
        "vc": [None if i % 5 == 0 else f"vc{i % 3}" for i in range(n)],
        "user": [f"user{i % 17}" for i in range(n)],
        "status": ["failed" if i % 4 == 0 else "completed" for i in range(n)],
    }


@pytest.fixture(scope="module")
def jobs(columns: dict[str, Any]) -> pa.Table:
    return as_jobs(columns)


def _known(values: list[float | None]) -> np.ndarray:
    return np.array([v for v in values if v is not None], dtype=float)


def test_distribution_equals_numpy_and_counts_what_it_leaves_out(
    jobs: pa.Table, columns: dict[str, Any]
) -> None:
    known = _known(columns["duration"])
    found = distribution(jobs, "duration")
    assert found["n"] == len(known)
    assert found["left_out"] == len(columns["duration"]) - len(known)
    assert found["avg"] == pytest.approx(known.mean(), rel=1e-12)
    assert found["max"] == known.max()
    for p in PERCENTS:
        assert found[f"p{p}"] == pytest.approx(np.percentile(known, p), rel=1e-12)
        assert found[f"p{p}"] == pytest.approx(float(quantiles(known, p / 100)), rel=1e-12)


def test_overview_equals_numpy(jobs: pa.Table, columns: dict[str, Any]) -> None:
    facts = overview(jobs)
    gpus = columns["num_gpus"]
    assert facts["num_jobs"] == len(gpus)
    assert facts["num_gpu_jobs"] == (gpus > 0).sum()
    assert facts["num_cpu_jobs"] == (gpus == 0).sum()
    assert facts["num_users"] == 17
    assert facts["num_vcs"] == 3
    assert facts["first_submit"] == columns["submit_time"][0]
    assert facts["span_s"] == pytest.approx(np.ptp(columns["submit_time"]))
    held = [d * g for d, g in zip(columns["duration"], gpus, strict=True) if d is not None]
    assert facts["gpu_time"] == pytest.approx(sum(held))
    assert facts["gpu_time_n"] == len(held)
    waits = [
        start - submit
        for start, submit in zip(columns["start_time"], columns["submit_time"], strict=True)
        if start is not None
    ]
    assert facts["wait"]["n"] == len(waits)
    assert facts["wait"]["p90"] == pytest.approx(np.percentile(waits, 90))
    assert set(facts["missing"]) == {column.name for column in COLUMNS}
    assert facts["missing"]["vc"] == 201
    assert facts["missing"]["job_id"] == 0
    assert facts["missing"]["estimate"] == len(gpus)


def test_overview_of_no_jobs() -> None:
    facts = overview(as_jobs({"submit_time": [], "duration": [], "num_gpus": []}))
    assert facts["num_jobs"] == facts["num_gpu_jobs"] == 0
    assert facts["span_s"] is None
    assert facts["gpu_time"] == 0.0
    assert facts["duration"]["avg"] is None
    assert facts["duration"]["n"] == 0


def test_shares_by_size_use_the_classes_of_the_metrics(
    jobs: pa.Table, columns: dict[str, Any]
) -> None:
    table = shares(jobs, "num_gpus").to_pydict()
    classes, labels = size_classes(np.asarray(columns["num_gpus"], dtype=float))
    expected = [label for code, label in enumerate(labels) if (classes == code).any()]
    assert table["num_gpus"] == expected
    assert table["num_jobs"] == [int((classes == labels.index(label)).sum()) for label in expected]
    assert sum(table["job_share"]) == pytest.approx(1)
    assert sum(table["gpu_time_share"]) == pytest.approx(1)
    assert sum(table["left_out"]) == columns["duration"].count(None)


def test_shares_by_name_put_the_most_gpu_time_first(jobs: pa.Table) -> None:
    table = shares(jobs, "vc").to_pydict()
    assert set(table["vc"]) == {"vc0", "vc1", "vc2", "(none)"}
    assert table["gpu_time"] == sorted(table["gpu_time"], reverse=True)
    assert sum(table["num_jobs"]) == jobs.num_rows


@pytest.mark.parametrize("by", SHARES_BY)
def test_shares_work_by_every_property_and_on_no_jobs(by: str) -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    assert shares(empty, by).num_rows == 0
    one = as_jobs({"submit_time": [0], "duration": [5], "num_gpus": [None]})
    (row,) = shares(one, by).to_pylist()
    assert row[by] == "(none)"
    assert row["gpu_time"] == 0.0
    assert row["gpu_time_share"] is None
    assert row["left_out"] == 1


def test_unknown_names_are_refused_with_what_is_known(jobs: pa.Table) -> None:
    with pytest.raises(SpecError, match="Known: cpu_time, duration"):
        distribution(jobs, "durations")
    with pytest.raises(SpecError, match="workload"):
        shares(jobs, "workloads")
