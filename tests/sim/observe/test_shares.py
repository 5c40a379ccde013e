"""Who got how much: Jain's index and shares of the cluster, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.sim.observe.shares import jain

#: On two GPUs, first come, first served: a 0-30, b 0-10, c 10-35 (waits 9 s), d 30-70 (26 s).
JOBS = {
    "job_id": list("abcd"),
    "submit_time": [0, 0, 1, 4],
    "duration": [30, 10, 25, 40],
    "num_gpus": [1, 1, 1, 1],
    "vc": ["x", "y", None, "x"],
    "user": ["u", "v", "u", "v"],
}


@pytest.fixture
def flown() -> wt.Outcome:
    return wt.simulate(JOBS, "pool:2", "fifo")


def test_jain_of_known_allocations() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == 1
    assert jain(np.array([0.0, 0.0, 5.0, 0.0])) == 0.25
    # Three of ten share equally, and the others get nothing: 30 %.
    assert jain(np.array([2.0] * 3 + [0.0] * 7)) == pytest.approx(0.3, rel=1e-15)
    assert jain(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / 42, rel=1e-15)
    assert jain(np.zeros(3)) is None
    # Squares of such numbers are beyond float64.
    assert jain(np.array([1e200, 1e200])) == 1
    assert jain(np.array([1e-200, 0.0])) == 0.5


@settings(max_examples=200)
@given(
    st.lists(st.just(0.0) | st.floats(1e-6, 1e12), min_size=1, max_size=30),
    st.floats(1e-6, 1e6),
)
def test_jain_lies_between_one_nth_and_one_whatever_the_unit(
    values: list[float], unit: float
) -> None:
    index = jain(np.array(values))
    if index is None:
        assert max(values) == 0
        return
    assert 1 / len(values) * (1 - 1e-12) <= index <= 1 + 1e-12
    assert jain(np.array(values) * unit) == pytest.approx(index, rel=1e-9)


def test_the_index_of_a_run_per_demand(flown: wt.Outcome) -> None:
    # x holds 70 of the 30 + 66 GPU s it asked for, y all of its 10; c is of no virtual cluster.
    x = 70 / 96
    expected = (x + 1) ** 2 / (2 * (x**2 + 1))
    assert flown.jain_index("vc") == pytest.approx(expected, rel=1e-12)
    assert flown.metrics()["jain_vc"] == flown.jain_index("vc")
    u, v = 55 / 64, 50 / 76
    expected = (u + v) ** 2 / (2 * (u**2 + v**2))
    assert flown.metrics()["jain_user"] == pytest.approx(expected, rel=1e-12)


def test_the_index_of_a_run_per_entitlement(flown: wt.Outcome) -> None:
    assert flown.jain_index("vc", per="equal") == pytest.approx(80**2 / (2 * (70**2 + 10**2)))
    assert flown.jain_index("vc", per={"x": 14, "y": 2}) == 1
    assert flown.jain_index("vc", per={"x": 1, "y": 1}) == flown.jain_index("vc", per="equal")
    with pytest.raises(SpecError, match="'y'"):
        flown.jain_index("vc", per={"x": 14})
    with pytest.raises(SpecError, match="quota"):
        flown.jain_index("vc", per={"x": 14, "y": 0})
    with pytest.raises(SpecError, match="Did you mean 'equal'"):
        flown.jain_index("vc", per="equall")
    with pytest.raises(SpecError, match="Did you mean 'user'"):
        flown.jain_index("users")


def test_no_names_no_index() -> None:
    out = wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, "pool:2", "fifo")
    assert out.metrics()["jain_user"] is None
    assert out.metrics()["jain_vc"] is None
    assert out.jain_index("vc") is None
    nothing = wt.simulate({"submit_time": [], "duration": [], "num_gpus": []}, "pool:2", "fifo")
    assert nothing.metrics()["jain_user"] is None
    assert nothing.shares().num_rows == 0


def test_shares_by_virtual_cluster(flown: wt.Outcome) -> None:
    rows = {row["vc"]: row for row in flown.shares().to_pylist()}
    assert list(rows) == ["(none)", "x", "y"]
    assert rows["x"] == {
        "vc": "x",
        "num_jobs": 2,
        "gpu_time": 70.0,
        "asked_gpu_time": 96.0,
        "satisfaction": pytest.approx(70 / 96),
        "gpu_time_share": pytest.approx(70 / 105),
        "gpus_at_horizon": 0.0,
        "dominant_share": pytest.approx(70 / 140),
        "dominant_resource": "gpu",
    }
    assert sum(row["gpu_time_share"] for row in rows.values()) == pytest.approx(1)


def test_shares_at_a_horizon_count_what_runs_and_waits() -> None:
    out = wt.simulate(JOBS, "pool:2", "fifo", until=20)
    rows = {row["vc"]: row for row in out.shares().to_pylist()}
    # a runs 20 s, d waits 16 s; c runs since 10.
    assert (rows["x"]["gpu_time"], rows["x"]["asked_gpu_time"]) == (20, 36)
    assert [rows[vc]["gpus_at_horizon"] for vc in ("x", "y", "(none)")] == [1, 0, 1]


def test_the_dominant_share_is_of_the_resource_that_is_scarcest() -> None:
    jobs = {
        "submit_time": [0, 0, 0],
        "duration": [10, 10, 5],
        "num_gpus": [2, 1, 1],
        "num_cpus": [2, 8, None],
        "mem_gib": [1, 1, 18],
        "vc": ["g", "c", "m"],
    }
    cluster = wt.ClusterSpec.uniform(1, 4, cpus_per_node=10, mem_gib_per_node=20)
    rows = wt.simulate(jobs, cluster, "fifo").shares().to_pylist()
    found = {row["vc"]: (row["dominant_share"], row["dominant_resource"]) for row in rows}
    assert found["g"] == (pytest.approx(0.5), "gpu")
    assert found["c"] == (pytest.approx(0.8), "cpu")
    assert found["m"] == (pytest.approx(0.45), "mem")
    # A cluster that does not say how many cores and how much memory it has: GPUs only.
    rows = wt.simulate(jobs, "1x4", "fifo").shares().to_pylist()
    assert {row["dominant_resource"] for row in rows} == {"gpu"}
    assert math.isclose(rows[0]["dominant_share"], 0.25)
