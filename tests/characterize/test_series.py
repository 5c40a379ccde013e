"""Running and waiting jobs over time: by hand, against counting, and Helios' own series."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES

from windtunnel.characterize.series import usage_series
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from backends import Backend

#: Mean utilisation of the VCs in May 2020.
EARTH = {
    "vcJkd": 0.008,
    "vcdI0": 0.279,
    "vchbv": 0.411,
    "vc8Sj": 0.499,
    "vcMod": 0.513,
    "vc3sl": 0.627,
    "vcTJs": 0.730,
    "vcpDC": 0.910,
}


def _jobs(rows: list[tuple[Any, ...]], **more: list[Any]) -> pa.Table:
    submit, start, end, gpus = (list(c) for c in zip(*rows, strict=True)) if rows else ([],) * 4
    kind = pa.float64()
    return as_jobs(
        {
            "submit_time": pa.array(submit, kind),
            "start_time": pa.array(start, kind),
            "end_time": pa.array(end, kind),
            "num_gpus": pa.array(gpus, kind),
            **more,
        }
    )


def test_averages_by_hand(backend: Backend) -> None:
    # One job waits 0-30 and runs 30-90 on 2 GPUs; one waits 60-90 and leaves without a start.
    jobs = backend(_jobs([(0, 30, 90, 2), (60, None, 90, 4), (None, None, None, 1)]))
    found = usage_series(jobs, 4).to_pylist()
    assert [row["time"] for row in found] == [0.0, 60.0]
    assert [row["running_jobs"] for row in found] == [0.5, 0.5]
    assert [row["running_gpus"] for row in found] == [1.0, 1.0]
    assert [row["waiting_jobs"] for row in found] == [0.5, 0.5]
    assert [row["waiting_gpus"] for row in found] == [1.0, 2.0]
    assert [row["idle_gpus"] for row in found] == [3.0, 3.0]
    assert [row["utilization"] for row in found] == [0.25, 0.25]
    assert {(row["n"], row["left_out"], row["unsized"]) for row in found} == {(1, 2, 0)}


def test_helios_counts_every_minute_that_a_job_touches(backend: Backend) -> None:
    jobs = backend(_jobs([(0, 59, 60, 2), (59, 61, 61, 3)]))
    found = usage_series(jobs, 4, compat="helios").to_pylist()
    assert [row["running_jobs"] for row in found] == [1.0, 2.0]
    assert [row["running_gpus"] for row in found] == [2.0, 4.0]  # clipped: there are no more
    assert [row["utilization"] for row in found] == [0.5, 1.0]
    assert [row["idle_gpus"] for row in found] == [2.0, 0.0]
    assert [row["waiting_jobs"] for row in found] == [1.0, 0.0]
    third = usage_series(backend(_jobs([(0, 0, 1, 1)])), 3, compat="helios")
    assert third["utilization"].to_pylist() == [0.333]


def test_steps_begin_at_whole_minutes_of_the_clock() -> None:
    jobs = _jobs([(0, 0, 60, 1)])
    found = usage_series(jobs, epoch="2020-04-01T00:00:45+00:00")
    assert found["time"].to_pylist() == [-45.0, 15.0]
    assert found["running_gpus"].to_pylist() == pytest.approx([0.25, 0.75])
    assert found["utilization"].to_pylist() == [None, None]


_instants = st.tuples(
    st.integers(0, 900), st.integers(0, 300), st.integers(0, 400), st.sampled_from([0.5, 1.0, 8.0])
)


@pytest.mark.slow
@EXAMPLES
@given(st.lists(_instants, min_size=1, max_size=12), st.sampled_from([60, 97, 600]))
def test_averages_equal_the_integral(cases: list[Any], step: int) -> None:
    rows = [(s, s + wait, s + wait + run, gpus) for s, wait, run, gpus in cases]
    for row in usage_series(_jobs(rows), step=step, epoch="1970-01-01T00:00:00+00:00").to_pylist():
        low, high = row["time"], row["time"] + step

        def within(a: float, b: float, low: float = low, high: float = high) -> float:
            return max(0.0, min(b, high) - max(a, low)) / step

        assert row["running_jobs"] == pytest.approx(sum(within(a, b) for _, a, b, _ in rows))
        gpus = sum(within(a, b) * g for _, a, b, g in rows)
        assert row["running_gpus"] == pytest.approx(gpus)
        waiting = sum(within(s, a) * g for s, a, _, g in rows)
        assert row["waiting_gpus"] == pytest.approx(waiting)


@pytest.mark.slow
@EXAMPLES
@given(st.lists(_instants, min_size=1, max_size=12), st.integers(1, 20))
def test_helios_equals_counting_minute_by_minute(cases: list[Any], total: int) -> None:
    rows = [(s, s + wait, s + wait + run, gpus) for s, wait, run, gpus in cases]
    jobs: Counter[int] = Counter()
    gpus: dict[int, float] = {}
    for _, start, end, g in rows:
        for minute in range(start // 60, end // 60 + 1):
            jobs[minute] += 1
            gpus[minute] = gpus.get(minute, 0.0) + g
    found = usage_series(_jobs(rows), total, compat="helios", epoch="1970-01-01T00:00:00+00:00")
    for row in found.to_pylist():
        minute = int(row["time"] // 60)
        running = min(total, gpus.get(minute, 0.0))
        assert row["running_jobs"] == jobs[minute]
        assert row["running_gpus"] == running
        assert row["utilization"] == round(running / total, 3)
    assert sum(found["running_jobs"].to_pylist()) == jobs.total()


def test_usage_by_vc_has_each_its_own_total(backend: Backend) -> None:
    jobs = backend(_jobs([(0, 0, 60, 2), (0, 60, 119, 1)], vc=["x", "y"]))
    found = usage_series(jobs, {"x": 4}, by="vc").to_pylist()
    assert [(row["vc"], row["time"], row["utilization"]) for row in found] == [
        ("x", 0.0, 0.5),
        ("x", 60.0, 0.0),
        ("y", 0.0, None),
        ("y", 60.0, None),
    ]


def test_usage_adds_up_to_the_gpu_time(holed: pa.Table, backend: Backend) -> None:
    found = usage_series(backend(holed), by="vc", step=3600)
    seconds = sum(
        (job["end_time"] - job["start_time"]) * (job["num_gpus"] or 0)
        for job in holed.to_pylist()
        if job["end_time"] is not None and job["start_time"] is not None
    )
    assert sum(found["running_gpus"].to_pylist()) * 3600 == pytest.approx(seconds)


def test_no_instants_make_no_rows() -> None:
    assert usage_series(_jobs([])).num_rows == 0
    assert usage_series(_jobs([]), by="vc").num_rows == 0


def test_bad_arguments_are_refused() -> None:
    jobs = _jobs([(0, 0, 1e9, 1)])
    with pytest.raises(SpecError, match="compat"):
        usage_series(jobs, compat="philly")
    for total in (-1, float("nan")):
        with pytest.raises(SpecError, match="total_gpus"):
            usage_series(jobs, total)
    with pytest.raises(SpecError, match="expected one number"):
        usage_series(jobs, {"x": 1})
    with pytest.raises(SpecError, match="for each group"):
        usage_series(jobs, 8, by="vc")
    for step in (0, float("inf"), True):
        with pytest.raises(SpecError, match="step"):
            usage_series(jobs, step=step)
    with pytest.raises(SpecError, match="too many"):
        usage_series(jobs, step=1)


@pytest.mark.slow
@pytest.mark.data
def test_the_published_series_of_earth_come_out_of_their_own_segments(data_dir: Path) -> None:
    """Each stretch of minutes with one number of GPUs is a job; the series must come back."""
    path = data_dir / "helios" / "earth_vc_minute_sequence_may2020.parquet"
    if not path.is_file():
        pytest.skip("no Helios data")
    table = pq.read_table(
        path, columns=["vc", "time", "total_gpu_num", "running_gpu_num", "gpu_utilization"]
    )
    rng = np.random.default_rng(0)
    rows: list[tuple[float, float, float, float]] = []
    vcs: list[str] = []
    published: dict[str, pa.Table] = {}
    totals: dict[str, float] = {}
    for name in EARTH:
        part = table.filter(pa.compute.equal(table["vc"].cast(pa.string()), name))
        published[name] = part
        (total,) = set(part["total_gpu_num"].to_pylist())
        totals[name] = float(total)
        gpus = part["running_gpu_num"].to_numpy()
        edges = np.flatnonzero(np.diff(gpus)) + 1
        bounds = [0, *edges.tolist(), len(gpus)]
        for first, after in itertools.pairwise(bounds):
            inside = rng.integers(0, 60, 2)  # the second within its minute does not count
            start, end = first * 60 + int(inside[0]), (after - 1) * 60 + int(inside[1])
            rows.append((start, min(start, end), max(start, end), float(gpus[first])))
            vcs.append(name)
    jobs = _jobs([(min(a, b), b, c, g) for a, b, c, g in rows], vc=vcs)
    found = usage_series(jobs, totals, by="vc", compat="helios", epoch="2020-04-30T16:00:00+00:00")
    assert found.num_rows == table.num_rows == 357_120
    for name, mean in EARTH.items():
        mine = found.filter(pa.compute.equal(found["vc"], name))
        gpus = published[name]["running_gpu_num"].to_numpy()
        assert (mine["running_gpus"].to_numpy() == gpus).all()
        assert mine["utilization"].to_numpy() == pytest.approx(
            published[name]["gpu_utilization"].to_numpy(), abs=1e-9
        )
        assert round(float(mine["utilization"].to_numpy().mean()), 3) == mean
