"""Reserving-and-packing: plans by hand, what the paper says it brings, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.policies.reserving_packing import ReservingPacking

CLUSTER = wt.ClusterSpec((wt.NodeType(1, 4, "T4"), wt.NodeType(1, 4, "V100")))


def flown(rows: list[tuple[Any, ...]], cluster: Any = CLUSTER, **options: Any) -> list[Any]:
    """Fly jobs (submit time, duration, GPUs, GPU type, score); (start, node) of each."""
    names = ("submit_time", "duration", "num_gpus", "gpu_type", "score")
    jobs = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    policy = ReservingPacking(**{"score": "score", "threshold": 0.5, **options})
    table = wt.simulate(jobs, cluster, policy).table
    nodes = [held[0] if held else None for held in table["nodes"].to_pylist()]
    return list(zip(table["start_time"].to_pylist(), nodes, strict=True))


def test_high_on_strong_types_and_low_on_weak_ones() -> None:
    rows = [(0, 9, 2, None, 0.9), (0, 9, 2, None, 0.1), (0, 9, 2, None, None)]
    assert flown(rows) == [(0, 1), (0, 0), (0, 0)]
    assert flown(rows, types="T4/V100") == [(0, 0), (0, 1), (0, 1)]


def test_a_plan_is_tried_for_some_time_before_the_next_one() -> None:
    # The strong node is full until 100; the high-GPU job takes a weak one 30 s after it came.
    rows = [(0, 100, 4, None, 1.0), (10, 9, 2, None, 1.0), (20, 9, 4, "V100", 1.0)]
    assert flown(rows, attempt=30) == [(0, 1), (40, 0), (100, 1)]
    assert flown(rows, attempt=0)[1] == (10, 0)
    assert flown(rows, attempt=1000)[1] == (100, 1)


def test_each_step_has_its_own_time() -> None:
    three = wt.ClusterSpec(
        tuple(wt.NodeType(1, 2, kind) for kind in ("T4", "P100", "V100")), "three"
    )
    rows = [(0, 100, 2, None, 1.0)] * 3
    assert flown(rows, three, attempt=(5.0, 20.0)) == [(0, 2), (5, 1), (25, 0)]
    assert flown(rows, three, attempt=5) == [(0, 2), (5, 1), (10, 0)]


def test_high_gpu_jobs_are_tried_first() -> None:
    one = wt.ClusterSpec.uniform(1, 4, "V100")
    rows = [(0, 10, 4, None, 0.0), (1, 10, 4, None, 0.0), (2, 10, 4, None, 1.0)]
    assert flown(rows, one) == [(0, 0), (20, 0), (10, 0)]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("cluster", ["2x4", "pool:8"])
def test_gpus_without_a_type_are_of_one(cluster: str, engine: str) -> None:
    """The schedule is that of the same GPUs with a name, and there is nothing to try next."""
    jobs = {
        "submit_time": [0, 1, 2, 3, 4],
        "duration": [10, 10, 10, 10, 5],
        "num_gpus": [4, 4, 1, 4, 2],
    }
    runs = [
        wt.simulate(jobs, text, "reserving-packing", engine=engine)
        for text in (cluster, f"{cluster}:V100")
    ]
    columns = ("start_time", "end_time", "nodes")
    assert len({str([run.table[name].to_pylist() for name in columns]) for run in runs}) == 1
    # By hand: the two first fill all. At 10 job 3 (4 GPUs) goes before job 2 (1 GPU), which came
    # first; the job of 2 GPUs and job 2 share what is free at 11.
    assert runs[0].table["start_time"].to_pylist() == [0, 1, 11, 10, 11]
    assert runs[0].settings["parameters"]["types"] == ""
    assert "all GPUs are alike" in runs[0].notes[-1]


def test_jobs_without_gpus_go_anywhere() -> None:
    assert flown([(0, 10, 4, None, 1.0), (1, 5, 0, "V100", 1.0)])[1] == (1, None)


def pai_like(seed: int) -> tuple[dict[str, Any], wt.ClusterSpec]:
    """A mixed cluster and jobs of which a third need strong GPUs; more than enough to wait."""
    rng = np.random.default_rng(seed)
    count = 1500
    high = rng.random(count) < 0.3
    wants_v100 = high & (rng.random(count) < 0.7)
    jobs = {
        "submit_time": np.sort(rng.uniform(0, 40_000, count)).round(),
        "duration": rng.lognormal(6.5, 1.0, count).round() + 1,
        "num_gpus": np.where(high, rng.choice([1.0, 2.0, 4.0], count), 1.0),
        "gpu_type": [("V100" if v else None) for v in wants_v100],
        "efficiency": np.where(high, rng.uniform(0.6, 1.0, count), rng.uniform(0.0, 0.4, count)),
    }
    nodes = (wt.NodeType(8, 2, "T4"), wt.NodeType(6, 2, "P100"), wt.NodeType(3, 8, "V100"))
    return jobs, wt.ClusterSpec(nodes, "pai-like")


def sharing(jobs: dict[str, Any], cluster: wt.ClusterSpec) -> tuple[dict[str, Any], Any]:
    """The same, with jobs of low efficiency on shares of GPUs, and 12 cores a GPU to share out."""
    shares = np.random.default_rng(0).choice([0.25, 0.5, 0.75], len(jobs["num_gpus"]))
    num_gpus = np.where(jobs["efficiency"] < 0.5, shares, jobs["num_gpus"])
    nodes = tuple(
        wt.NodeType(n.count, n.gpus, n.gpu_type, 12.0 * n.gpus) for n in cluster.node_types
    )
    return jobs | {"num_gpus": num_gpus, "num_cpus": 8 * num_gpus}, wt.ClusterSpec(nodes, "shared")


@pytest.mark.sample(2)
@pytest.mark.parametrize("placement", ["spread", "load_rate:weights=1/0/2"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_it_brings(seed: int, placement: str) -> None:
    """High-GPU jobs wait less for V100, low ones use weak nodes more, and the work is the same."""
    jobs, cluster = pai_like(seed)
    if placement != "spread":
        jobs, cluster = sharing(jobs, cluster)
    policy = "reserving-packing:score=efficiency:threshold=0.5:attempt=600"
    before = wt.simulate(jobs, cluster, "fifo", queueing="skip", placement=placement)
    after = wt.simulate(jobs, cluster, policy, placement=placement)
    asks_v100 = np.array([kind == "V100" for kind in jobs["gpu_type"]])
    low = jobs["efficiency"] < 0.5
    num_weak = 14  # nodes of the two weaker types come first

    def wait(outcome: wt.Outcome) -> float:
        return float(outcome.table["wait"].to_numpy()[asks_v100].mean())

    def strong_share(outcome: wt.Outcome) -> float:
        table = outcome.table
        gpu_time = table["run_time"].to_numpy() * jobs["num_gpus"]
        strong = np.array([held[0] >= num_weak for held in table["nodes"].to_pylist()])
        return float(gpu_time[low & strong].sum() / gpu_time[low].sum())

    assert wait(after) < 0.9 * wait(before)
    assert strong_share(after) < 0.75 * strong_share(before)
    for outcome in (before, after):
        assert set(outcome.table["status"].to_pylist()) == {"finished"}
        assert outcome.table["run_time"].to_pylist() == jobs["duration"].tolist()
    assert after.settings["parameters"] == {
        "score": "efficiency",
        "threshold": 0.5,
        "types": "V100/P100/T4",
        "attempt": "600",
    }
    assert f"{int((~low).sum()):,} high-GPU jobs (efficiency above 0.5)" in after.notes[-1]


def test_the_default_score_is_the_number_of_gpus() -> None:
    jobs = {"submit_time": [0, 0], "duration": [5, 5], "num_gpus": [1, 2]}
    out = wt.simulate(jobs, CLUSTER, "reserving-packing")
    assert out.table["nodes"].to_pylist() == [[0], [1]]


@pytest.mark.parametrize(
    ("cluster", "text", "message"),
    [
        ("1x4,1x4:T4", "reserving-packing", "how strong are the GPUs without a type, beside T4"),
        ("1x4:X1,1x4:T4", "reserving-packing", "how strong is GPU type 'X1'"),
        ("1x4:V100,1x4:T4", "reserving-packing:types=V100/A100", "lacks the cluster's 'T4'"),
        ("1x4:V100", "reserving-packing:score=user", "no column of numbers"),
        ("1x4:V100", "reserving-packing:score=zeal", "no column of numbers"),
        ("1x4:V100,1x4:T4", "reserving-packing:score=num_tasks", "a plan has one GPU type"),
    ],
)
def test_runs_that_are_refused(cluster: str, text: str, message: str) -> None:
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1], "user": ["u"]}
    if "num_tasks" in text:
        jobs |= {"num_gpus": [8], "num_tasks": [8]}
    with pytest.raises(wt.PolicyError, match=message):
        wt.simulate(jobs, cluster, text)


def test_gangs_that_no_type_holds_alone_are_rejected_where_such_jobs_are() -> None:
    jobs = {
        "submit_time": [0, 1],
        "duration": [5, 5],
        "num_gpus": [8, 2],
        "num_tasks": [8, 2],
    }
    out = wt.simulate(jobs, CLUSTER, "reserving-packing", oversize="reject")
    assert out.table["status"].to_pylist() == ["rejected", "finished"]
    assert "a plan has one GPU type" in out.reasons[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "x"}, "threshold: found 'x'"),
        ({"attempt": -1}, "expected seconds >= 0"),
        ({"attempt": ()}, "expected seconds >= 0"),
        ({"types": "V100/V100"}, "each once"),
        ({"types": ()}, "each once"),
    ],
)
def test_parameters_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        ReservingPacking(**options)


def test_attempts_may_have_units() -> None:
    assert ReservingPacking(attempt="5m/1h").attempts == (300.0, 3600.0)
    assert ReservingPacking(attempt=60.0).attempts == (60.0,)
