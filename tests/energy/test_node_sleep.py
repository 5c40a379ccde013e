"""Sleeping nodes: the CES rule by hand and on Philly's nodes, and runs in which nodes sleep."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.energy import CES_RULES, CesRule, PowerModel, account, sleeping, smape
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

MODEL = PowerModel.from_mapping(
    {
        "gpus": {"default": {"idle_w": 50, "active_w": 250}},
        "host_w": 200,
        "asleep_w": 20,
        "pue": 1.5,
    }
)


def test_the_rule_by_hand() -> None:
    # 20 nodes. Six first steps at used + 5; use falls from 10 to 4, and the forecast goes on down.
    rule = CesRule(history=3, future=2, his=1, fut=1, de=2, buffer=5, keep=3)
    used = [10] * 7 + [4, 4, 4, 15, 4, 4, 4, 4, 4]
    forecast = np.array([10.0] * 7 + [4, 3, 2, 1, 1, 1, 1, 1, 1])
    found = sleeping(used, 20, forecast, rule)
    # Step 7: mean(10, 10, 4) - 4 = 4 >= 1; 4 - mean(3, 2) >= 1; 2.5 >= mean(3, 2, 1, 1): down to 9.
    # Step 10: 15 in use wake 20; none sleeps before step 13, then mean(4, 4, 4) - 4 < his.
    assert found.active.tolist() == [15] * 7 + [9] * 3 + [20] * 6
    assert (found.wakes, found.changes) == (11, 3)
    assert found.mean_asleep == pytest.approx(20 - (15 * 7 + 9 * 3 + 20 * 6) / 16)
    # A fall of less than `de` is none.
    assert sleeping(used, 20, forecast, CesRule(3, 2, 1, 1, 7, 5, 3)).active[9] == 15


@given(
    used=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    predicted=st.lists(st.floats(0, 30), min_size=60, max_size=60),
    name=st.sampled_from(sorted(CES_RULES)),
)
def test_enough_nodes_are_awake(used: list[int], predicted: list[float], name: str) -> None:
    found = sleeping(used, 30, np.array(predicted[: len(used)]), CES_RULES[name])
    assert (found.active >= found.used).all()
    assert (found.active <= 30).all()
    assert found.used_of_active >= found.used_of_all


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", sorted(CES_RULES))
def test_on_the_nodes_of_philly(data_dir: Path, name: str) -> None:
    # Spec 4.3: `active` is the nodes in use, `total` all; mean active/total 0.739.
    with gzip.open(data_dir / "philly" / "philly_node_sequence.csv.gz", "rt") as file:
        rows = [(int(row["active"]), int(row["total"])) for row in csv.DictReader(file)]
    series = np.array(rows)
    assert (series[:, 0] / series[:, 1]).mean() == pytest.approx(0.739, abs=5e-4)
    steps = len(series) // 10
    used = series[: 10 * steps, 0].reshape(steps, 10).max(axis=1)
    total = int(series[:, 1].max())
    predicted = np.append(np.full(144, used[0]), used[:-144])  # as it was a day before
    assert 1 < smape(predicted, used) < 40
    assert smape(used, used) == 0
    found = sleeping(used, total, predicted, CES_RULES[name])
    assert found.changes <= steps
    assert (found.active >= found.used).all()
    assert (found.active <= total).all()
    assert found.used_of_active >= found.used_of_all
    assert found.mean_asleep > 10


def test_a_sleeping_cluster_by_hand() -> None:
    # 4 nodes of 2 GPUs, one job of 1 GPU for 1 h, then after a pause one that needs 3 nodes.
    jobs = {"submit_time": [0, 7200], "duration": [3600, 600], "num_gpus": [1, 6]}
    request = {"buffer": 1, "wake_time": 60, "step": 600, "forecast": "last", "fut": 0, "his": 0}
    run = wt.simulate(jobs, "4x2", "fifo", power=MODEL, node_sleep=request)
    # At 600 s one node is in use and one more is the buffer: two sleep. From the job's end on no
    # node is in use; the rule lets one more sleep at the step after (used = 1 at most before).
    record = run.flight.power
    assert record is not None
    assert sorted(zip(record.asleep_start.tolist(), record.asleep_node.tolist(), strict=True)) == [
        (600, 2),
        (600, 3),
        (4200, 1),
    ]
    assert record.asleep_end.tolist() == [7200, 7200, 7200]
    assert record.num_wakes == 3
    assert run.table["start_time"].to_pylist() == [0, 7260]
    numbers = account(run, MODEL).summary()
    slept = 2 * 6600 + 3000
    assert numbers["host_j"] == pytest.approx(4 * 200 * 7860 - slept * 180)
    assert numbers["idle_j"] == pytest.approx(50 * (8 * 7860 - 3600 - 6 * 600 - 2 * slept))
    assert numbers["jobs_j"] == pytest.approx(250 * (3600 + 6 * 600))


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("policy", "queueing"),
    [("priority", "strict"), ("sjf", "strict"), ("priority", "easy"), ("priority", "conservative")],
)
def test_nodes_are_called_for_the_first_in_the_queue(
    policy: str, queueing: str, engine: str
) -> None:
    # One node is awake at 100. The job that comes first would get it, but it is not its turn: the
    # first in the queue needs both nodes. Neither falls asleep before that has run.
    jobs = {
        "submit_time": [0, 100, 100],
        "duration": [5, 500, 50],
        "num_gpus": [1, 2, 4],
        "estimate": [5, 500, 50],
        "priority": [1.0, 1.0, 9.0],
    }
    request = {"buffer": 1, "wake_time": 30, "step": 10, "forecast": "last", "fut": 0, "his": 0}
    run = wt.simulate(jobs, "2x2", policy, queueing=queueing, node_sleep=request, engine=engine)
    assert run.table["start_time"].to_pylist() == [0, 180, 130]
    assert run.flight.power is not None
    assert run.flight.power.num_wakes == 1


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("queueing", ["easy", "conservative"])
def test_nodes_are_called_in_time_for_a_start_that_is_planned(queueing: str, engine: str) -> None:
    # Two of three nodes fall asleep at 10. From 50 on the second job is to start at 100, when the
    # first is over: they are called at 70.
    jobs = {"submit_time": [0, 50], "duration": [100, 20], "num_gpus": [1, 3]}
    request = {"buffer": 0, "wake_time": 30, "step": 10, "forecast": "last", "fut": 0, "his": 0}
    given: dict[str, Any] = {"queueing": queueing, "estimates": "perfect", "engine": engine}
    run = wt.simulate(jobs, "3x1", "fifo", node_sleep=request, **given)
    assert run.table["start_time"].to_pylist() == [0, 100]
    assert run.flight.power is not None
    assert run.flight.power.asleep_end.tolist() == [70, 70]
    # An idle node that would be called by now does not fall asleep at 20.
    jobs = {"submit_time": [0, 15], "duration": [40, 20], "num_gpus": [1, 2]}
    run = wt.simulate(jobs, "2x1", "fifo", node_sleep=request | {"step": 20}, **given)
    assert run.table["start_time"].to_pylist() == [0, 40]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "conservative"])
def test_nodes_are_called_for_a_job_that_then_preempts(queueing: str, engine: str) -> None:
    # One of two nodes falls asleep at 10. At 50 an urgent job comes that needs both: the other is
    # called, and ready at 80. The first job, stopped then after 80 s, goes on from 100 to 120.
    jobs = {
        "submit_time": [0, 50],
        "duration": [100, 20],
        "num_gpus": [1, 2],
        "priority": [1.0, 5.0],
        "estimate": [100, 20],
    }
    request = {"buffer": 0, "wake_time": 30, "step": 10, "forecast": "last", "fut": 0, "his": 0}
    given: dict[str, Any] = {"queueing": queueing, "engine": engine, "node_sleep": request}
    run = wt.simulate(jobs, "2x1", "priority-preemptive", **given)
    assert run.table["end_time"].to_pylist() == [120, 100]
    assert run.flight.power is not None
    assert run.flight.power.asleep_end.tolist() == [50]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_no_node_falls_asleep_that_a_job_would_get(engine: str) -> None:
    # The second comes at an instant at which the rule lets all idle nodes sleep.
    jobs = {"submit_time": [0, 10], "duration": [5, 5], "num_gpus": [1, 1]}
    request = {"buffer": 0, "wake_time": 30, "step": 10, "forecast": "last", "fut": 0, "his": 0}
    run = wt.simulate(jobs, "2x2", "fifo", node_sleep=request, engine=engine, until=12)
    assert run.table["start_time"].to_pylist() == [0, 10]
    assert run.flight.power is not None
    assert run.flight.power.asleep_node.tolist() == [1]


@pytest.mark.slow
@given(
    cases=st.lists(
        st.tuples(st.integers(0, 50_000), st.integers(1, 9000), st.sampled_from([1, 2, 4, 8])),
        min_size=1,
        max_size=20,
    ),
    policy=st.sampled_from(["fifo", "sjf", "srtf", "fair-share", "las:quantum=500"]),
    easy=st.booleans(),
    forecast=st.sampled_from(["last", "daily"]),
    buffer=st.integers(0, 3),
)
def test_everybody_runs_though_nodes_sleep(
    *, cases: list[Any], policy: str, easy: bool, forecast: str, buffer: int
) -> None:
    names = ("submit_time", "duration", "num_gpus")
    jobs: dict[str, Any] = dict(zip(names, map(list, zip(*cases, strict=True)), strict=True))
    easy = easy and policy in ("fifo", "sjf", "fair-share")
    request = {
        "buffer": buffer,
        "wake_time": 100,
        "forecast": forecast,
        "fut": 0,
        "his": 0,
        "keep": 2,
    }
    options: dict[str, Any] = {
        "queueing": "easy" if easy else None,
        "estimates": "perfect" if easy else None,
        "engine": "reference",
    }
    awake = wt.simulate(jobs, "4x4", policy, **options)
    run = wt.simulate(jobs, "4x4", policy, node_sleep=request, power=MODEL, **options)
    assert run.metrics()["num_finished"] == len(cases)
    assert run.metrics()["gpu_time"] == pytest.approx(awake.metrics()["gpu_time"])
    record = run.flight.power
    assert record is not None
    # Nobody is on a node while it sleeps, nor before it is ready.
    flight = run.flight
    sleeps = zip(record.asleep_node, record.asleep_start, record.asleep_end, strict=True)
    for node, begin, end in sleeps:
        there = np.repeat(np.arange(len(flight.segment_job)), np.diff(flight.node_offset))[
            flight.nodes == node
        ]
        ready = np.inf if np.isnan(end) else end + 100
        assert ((flight.segment_end[there] <= begin) | (flight.segment_start[there] >= ready)).all()
    book = account(run, MODEL)
    power = book.power
    widths = np.diff(np.append(power["time"].to_numpy(), book.span[1]))[: power.num_rows]
    area = float((power["power_w"].to_numpy() * widths).sum())
    assert book.summary()["energy_j"] == pytest.approx(area, rel=1e-9)
    assert (power["host_w"].to_numpy() >= 4 * 20).all()


def test_what_cannot_sleep_is_refused() -> None:
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [1]}
    with pytest.raises(SpecError, match="pool"):
        wt.simulate(jobs, "pool:4", "fifo", node_sleep="earth")
    with pytest.raises(SpecError, match="earth"):
        wt.simulate(jobs, "1x4", "fifo", node_sleep="eart")
    with pytest.raises(SpecError, match="buffer"):
        wt.simulate(jobs, "1x4", "fifo", node_sleep="earth,buffer=-1")
    draws = {"gpus": {"default": {"idle_w": 50, "active_w": 250}}, "host_w": 100, "asleep_w": 301}
    capped: dict[str, Any] = {"power": draws, "power_cap": 5000, "node_sleep": "earth"}
    with pytest.raises(SpecError, match="found 301 W; awake and idle node 0 draws 300 W"):
        wt.simulate(jobs, "1x4", "fifo", **capped)
    capped["power"] = draws | {"asleep_w": 300}
    assert wt.simulate(jobs, "1x4", "fifo", **capped).metrics()["num_finished"] == 1
