"""The golden numbers of a million jobs, drawn here from a seed, on the compiled engine."""

from __future__ import annotations

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

Columns = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def million() -> Columns:
    rng = np.random.default_rng(0)
    count = 1_000_000
    weights = [0.55, 0.15, 0.12, 0.13, 0.03, 0.015, 0.005]
    num_gpus = rng.choice([1, 2, 4, 8, 16, 32, 64], p=weights, size=count)
    duration = np.ceil(rng.lognormal(6.0, 1.8, count))
    span = (num_gpus * duration).sum() / (0.95 * 812 * 8)
    submit = np.sort(rng.uniform(0, span, count))
    return {"submit_time": submit, "duration": duration, "num_gpus": num_gpus}


def test_the_draw_is_the_published_one(million: Columns) -> None:
    assert million["num_gpus"].sum() == 3_660_581
    assert million["duration"].sum() == 2_043_061_551
    assert (million["num_gpus"] * million["duration"]).sum() == 7_524_559_805
    assert million["submit_time"][-1] == 1_219_300.2344348242


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queueing", "policy", "expected"),
    [
        (
            "strict",
            "fifo",
            (154.67467153663995, 2197.73622253664, 2206.7504840239417, 306_196, 1_992_163),
        ),
        (
            "strict",
            "sjf",
            (18.281231537004263, 2061.342782537004, 11_525.690703655942, 131_021, 1_998_443),
        ),
        (
            "skip",
            "fifo",
            (6.723449683488039, 2049.785000683488, 10_077.584367819363, 42_012, 1_999_990),
        ),
        (
            "skip",
            "sjf",
            (2.5524352576111196, 2045.6139862576113, 38_155.48553496378, 31_643, 1_999_986),
        ),
    ],
)
def test_a_million_jobs(
    million: Columns, queueing: str, policy: str, expected: tuple[float, ...]
) -> None:
    out = wt.simulate(million, "812x8", policy, queueing=queueing, engine="compiled")
    metrics = out.metrics()
    names = ("avg_wait", "avg_jct", "max_wait", "num_waited", "scheduling_points")
    for name, value in zip(names, expected, strict=True):
        assert metrics[name] == pytest.approx(value, rel=1e-9), name
    assert metrics["makespan"] == pytest.approx(3_329_346.133706627, rel=1e-9)
    assert metrics["num_finished"] == 1_000_000


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("policy", "queueing", "count", "nodes"),
    [
        ("sjf", "skip", 4_000, 24),
        ("sjf", "strict", 4_000, 24),
        ("fifo", "skip", 4_000, 24),
        ("fifo", "strict", 4_000, 24),
        ("srtf", "skip", 3_000, 30),
        ("sjf-preemptive", "strict", 3_000, 30),
    ],
)
def test_the_first_of_them_are_the_same_on_both_engines(
    million: Columns, policy: str, queueing: str, count: int, nodes: int
) -> None:
    # Few nodes and the arrivals drawn together, so that there is something to decide.
    jobs = {name: values[:count] for name, values in million.items()}
    work = float((jobs["num_gpus"] * jobs["duration"]).sum())
    squeeze = work / (2 * nodes * 8) / float(jobs["submit_time"][-1])
    jobs["submit_time"] = np.floor(jobs["submit_time"] * squeeze)
    runs = [
        wt.simulate(jobs, f"{nodes}x8", policy, queueing=queueing, engine=engine)
        for engine in ("reference", "compiled")
    ]
    assert_outcomes_equal(*runs)
    assert runs[0].metrics()["num_waited"] > count // 50
    assert (runs[0].metrics()["num_preemptions"] > 0) == (policy in ("srtf", "sjf-preemptive"))
