"""Exact schedules of small logs, computed elsewhere: every start, end and published metric."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ("reference", "compiled")
pytestmark = [pytest.mark.data, pytest.mark.parametrize("engine", ENGINES)]

#: Column of the published schedules -> what we call it.
QUEUES = {
    "fcfs": ("pool:64", "fifo", "strict"),
    "firstfit": ("pool:64", "fifo", "skip"),
    "sjf_perfect": ("pool:64", "sjf", "strict"),
    "sjf_estimate": ("pool:64", "sjf-estimate", "strict"),
    "node_fifo": ("8x8", "fifo", "strict"),
    "node_sjf": ("8x8", "sjf", "strict"),
    "easy": ("pool:64", "easy", None),
    "easy_perfect": ("pool:64", "easy-perfect", None),
    "easy_sjbf": ("pool:64", "easy-sjbf", None),
    "conservative": ("pool:64", "conservative", None),
}
PREEMPTIVE = {
    "srtf_pool": ("pool:64", "srtf", 1806.88, 126),
    "srtf_node": ("8x8", "srtf", 1879.965, 104),
    "sjf_preemptive_pool": ("pool:64", "sjf-preemptive", 1876.055, 151),
    "sjf_preemptive_node": ("8x8", "sjf-preemptive", 2026.885, 156),
}


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    path = data_dir / "backfill_reference"
    if not path.is_dir():
        pytest.skip("WINDTUNNEL_DATA has no folder backfill_reference")
    return path


def columns(path: Path) -> dict[str, list[Any]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    texts = {"job_id", "user", "vc"}
    return {n: [r[n] if n in texts else float(r[n]) for r in rows] for n in rows[0]}


@pytest.mark.parametrize("name", QUEUES)
def test_all_starts(folder: Path, engine: str, name: str) -> None:
    cluster, policy, queueing = QUEUES[name]
    jobs = columns(folder / "small200.csv")
    expected = columns(folder / "small200_expected_starts.csv")
    assert expected["job_id"] == jobs["job_id"]
    out = wt.simulate(jobs, cluster, policy, queueing=queueing, engine=engine)
    assert len(out.table) == 200
    assert out.table["start_time"].to_pylist() == expected[name]


@pytest.mark.parametrize("name", QUEUES)
def test_all_metrics(folder: Path, engine: str, name: str) -> None:
    published = json.loads((folder / "small200_expected_metrics.json").read_text())
    cluster, policy, queueing = QUEUES[name]
    out = wt.simulate(
        columns(folder / "small200.csv"), cluster, policy, queueing=queueing, engine=engine
    )
    metrics, expected = out.metrics(), published[name]
    names = {
        "n": "num_finished",
        "avg_wait": "avg_wait",
        "median_wait": "p50_wait",
        "max_wait": "max_wait",
        "avg_jct": "avg_jct",
        "avg_bsld10": "avg_bounded_slowdown",
        "util": "utilization",
        "waited": "num_waited",
    }
    assert set(expected) == {*names, "makespan"}
    for theirs, ours in names.items():
        assert metrics[ours] == pytest.approx(expected[theirs], rel=1e-12), theirs
    # Theirs counts from the first submission, which is at 0.
    assert out.submit_time.min() == 0
    assert metrics["makespan"] == expected["makespan"]


@pytest.mark.parametrize("name", PREEMPTIVE)
def test_preemption(folder: Path, engine: str, name: str) -> None:
    cluster, policy, avg_jct, preemptions = PREEMPTIVE[name]
    jobs = columns(folder / "small200.csv")
    expected = columns(folder / "small200_expected_preemptive.csv")
    assert expected["job_id"] == jobs["job_id"]
    out = wt.simulate(jobs, cluster, policy, preemption="quota_walk", engine=engine)
    assert out.table["start_time"].to_pylist() == expected[f"{name}__first_start"]
    assert out.table["end_time"].to_pylist() == expected[f"{name}__end"]
    assert out.table["num_preemptions"].to_pylist() == expected[f"{name}__preemptions"]
    assert out.metrics()["avg_jct"] == pytest.approx(avg_jct, rel=1e-12)
    assert out.metrics()["num_preemptions"] == preemptions


TINY = {
    "fcfs": ("fifo", "strict"),
    "firstfit": ("fifo", "skip"),
    "sjf_estimate": ("sjf-estimate", "strict"),
}


@pytest.mark.parametrize("rule", TINY)
def test_tiny_cases(folder: Path, engine: str, rule: str) -> None:
    cases = json.loads((folder / "tiny_cases.json").read_text())
    assert len(cases) == 8
    policy, queueing = TINY[rule]
    for name, case in cases.items():
        jobs = {
            "job_id": [str(job["id"]) for job in case["jobs"]],
            "submit_time": [job["submit"] for job in case["jobs"]],
            "duration": [job["runtime"] for job in case["jobs"]],
            "estimate": [job["estimate"] for job in case["jobs"]],
            "num_gpus": [job["procs"] for job in case["jobs"]],
        }
        cluster = wt.ClusterSpec.pool(case["processors"])
        out = wt.simulate(jobs, cluster, policy, queueing=queueing, engine=engine)
        starts = dict(
            zip(out.table["job_id"].to_pylist(), out.table["start_time"].to_pylist(), strict=True)
        )
        assert starts == case["starts"][f"{rule}__batch"], name


def test_equal_instants_are_frequent_enough_to_matter(folder: Path, engine: str) -> None:
    # The tie cases are there because deciding after each event gives other starts.
    cases = json.loads((folder / "tiny_cases.json").read_text())
    starts = cases["tie_batch_differs"]["starts"]
    assert starts["easy__batch"] != starts["easy__submissions_first"]
    jobs = cases["tie_batch_differs"]["jobs"]
    instants = [job["submit"] for job in jobs] + [job["submit"] + job["runtime"] for job in jobs]
    assert len(np.unique(instants)) < len(instants)


#: How the tiny cases name a policy -> ours, with its head-of-line rule.
TINY = {
    "fcfs": ("fifo", None),
    "firstfit": ("fifo", "skip"),
    "sjf_estimate": ("sjf-estimate", None),
    "easy": ("easy", None),
    "easy_sjbf": ("easy-sjbf", None),
    "conservative": ("conservative", None),
}


def test_tiny_cases_under_every_order_of_events(folder: Path, engine: str) -> None:
    cases = json.loads((folder / "tiny_cases.json").read_text())
    seen = 0
    for name, case in cases.items():
        jobs = {
            "job_id": [str(job["id"]) for job in case["jobs"]],
            "submit_time": [job["submit"] for job in case["jobs"]],
            "num_gpus": [job["procs"] for job in case["jobs"]],
            "duration": [job["runtime"] for job in case["jobs"]],
            "estimate": [job["estimate"] for job in case["jobs"]],
        }
        for run, starts in case["starts"].items():
            policy, events = run.split("__")
            if engine == "compiled" and events != "batch" and policy == "conservative":
                continue  # it declares that it cannot; the reference engine flies these
            ours, queueing = TINY[policy]
            out = wt.simulate(
                jobs,
                f"pool:{case['processors']}",
                ours,
                queueing=queueing,
                events=events,
                engine=engine,
            )
            found = dict(zip(jobs["job_id"], out.table["start_time"].to_pylist(), strict=True))
            assert found == starts, (name, run)
            seen += 1
    assert seen == (8 * 7 if engine == "compiled" else 8 * 8)


@pytest.mark.sample(5)
@pytest.mark.parametrize("events", ["submissions_first", "completions_first"])
@pytest.mark.parametrize("name", ["easy", "easy_perfect", "easy_sjbf", "conservative"])
def test_the_log_has_no_ties_that_the_order_of_events_could_decide(
    folder: Path, engine: str, name: str, events: str
) -> None:
    if engine == "compiled" and name == "conservative":
        pytest.skip("the compiled engine declares that it cannot; the reference engine does")
    jobs = columns(folder / "small200.csv")
    out = wt.simulate(jobs, "pool:64", QUEUES[name][1], events=events, engine=engine)
    expected = columns(folder / "small200_expected_starts.csv")
    assert out.table["start_time"].to_pylist() == expected[name]
