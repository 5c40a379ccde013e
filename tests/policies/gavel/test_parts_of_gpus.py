"""Jobs of less than a GPU in rounds: their scale factor is that part; worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel import gavel
from windtunnel.throughput.measured import ThroughputTable

#: Two jobs of half a GPU, and one of a whole.
JOBS = {
    "submit_time": [0.0, 0.0, 0.0],
    "duration": [100.0, 100.0, 100.0],
    "num_gpus": [0.5, 0.5, 1.0],
}


def instance(scale_factors: list[float]) -> dict[str, Any]:
    jobs = [
        {"id": row, "throughputs": {"A": 1.0}, "scale_factor": gpus}
        for row, gpus in enumerate(scale_factors)
    ]
    return {"cluster": {"A": 1}, "jobs": jobs}


@pytest.mark.parametrize(
    ("scale_factors", "expected"),
    [
        ([0.5, 0.5], [1.0, 1.0]),
        ([0.5, 0.5, 0.5], [2 / 3] * 3),
        # The least X x GPUs is the largest where all are 1/3.
        ([0.5, 0.5, 1.0], [2 / 3, 2 / 3, 1 / 3]),
    ],
)
@pytest.mark.parametrize("policy", ["max_min_fairness", "max_min_fairness_perf"])
def test_shares_of_max_min(policy: str, scale_factors: list[float], expected: list[float]) -> None:
    found = gavel.allocate(policy, instance(scale_factors)).shares
    assert [found[row]["A"] for row in range(len(expected))] == pytest.approx(expected)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("cluster", ["1x1", "pool:1", "1x1:V100"])
def test_halves_run_beside_each_other(cluster: str, engine: str) -> None:
    """At first those that lack most: 2/3 of the round against 1/3; the third has what is left."""
    out = wt.simulate(JOBS, cluster, "gavel:max_min_fairness:round=200", engine=engine)
    assert out.table["start_time"].to_pylist() == [0.0, 0.0, 100.0]
    assert out.table["end_time"].to_pylist() == [100.0, 100.0, 200.0]


def test_ideal_shares_are_exact() -> None:
    """Shares of 2/3 take 150 s; the third has done 50 s by then, and is alone for the rest."""
    out = wt.simulate(JOBS, "1x1", "gavel:max_min_fairness:mechanism=ideal")
    assert out.table["end_time"].to_pylist() == pytest.approx([150.0, 150.0, 200.0])
    held = out.flight.gpu_time
    assert held is not None
    assert held.tolist() == pytest.approx([50.0, 50.0, 100.0])


def test_parts_lie_on_single_devices() -> None:
    """Three parts of 0.6 are 1.8 of 2 GPUs, of which each holds one: the third has to wait."""
    jobs = {"submit_time": [0.0] * 3, "duration": [100.0] * 3, "num_gpus": [0.6] * 3}
    for engine in ("compiled", "reference"):
        out = wt.simulate(jobs, "1x2", "gavel:max_min_fairness:round=1000", engine=engine)
        assert out.table["start_time"].to_pylist() == [0.0, 0.0, 100.0]
        pooled = wt.simulate(
            jobs, "1x2", "gavel:max_min_fairness:round=1000", engine=engine, sharing="pooled"
        )
        assert pooled.table["start_time"].to_pylist() == [0.0] * 3


def test_tenths_add_up_to_a_gpu() -> None:
    """Ten parts of 0.1 fill a GPU, though ten times 0.1 is no 1 in binary fractions."""
    jobs = {"submit_time": [0.0] * 11, "duration": [100.0] * 11, "num_gpus": [0.1] * 11}
    for cluster in ("1x1", "pool:1"):
        out = wt.simulate(jobs, cluster, "gavel:max_min_fairness:round=1000")
        assert out.table["start_time"].to_pylist() == [0.0] * 10 + [100.0]


@pytest.mark.parametrize("policy", ["shockwave:market", "shockwave:finish_time_fairness"])
def test_shockwave_takes_them_too(policy: str) -> None:
    out = wt.simulate(JOBS, "1x1", policy)
    assert out.table["end_time"].to_pylist() == [100.0, 100.0, 200.0]


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("gavel:max_min_fairness", {"compat": "gavel"}, "a whole number of GPUs >= 1"),
        ("gavel:max_min_fairness:mechanism=published", {}, "a whole number of GPUs >= 1"),
        ("shockwave:market", {"compat": "shockwave"}, "a whole number of GPUs >= 1"),
        ("gavel:allox", {}, "allox takes jobs of one GPU"),
    ],
)
def test_what_gives_out_whole_gpus_refuses_them(
    policy: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((wt.SchemaError, wt.SpecError), match=message):
        wt.simulate(JOBS, "1x1:V100", policy, **options)


def test_a_part_has_the_speed_that_was_measured_for_it() -> None:
    """One and a half GPUs are not one; a share that the table names has its own speed."""
    jobs: dict[str, Any] = {
        "submit_time": [0.0],
        "num_gpus": [0.5],
        "duration": [None],
        "template": ["m"],
        "total_steps": [100.0],
    }
    table = ThroughputTable(("V100",), {"V100": {("m", 1): 2.0, ("m", 0.5): 1.0}}, {})
    out = wt.simulate(jobs, "1x2:V100", "gavel:max_min_fairness", throughputs=table)
    assert out.table["end_time"].to_pylist() == [100.0]
    jobs["num_gpus"] = [1.5]
    with pytest.raises(wt.SchemaError, match="a job type with a speed"):
        wt.simulate(jobs, "1x2:V100", "gavel:max_min_fairness", throughputs=table)
