"""Evaluation decoupled: what a trial holds its GPUs for, where, and after whom; by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.policies.evaluation import DecoupledEvaluation
from windtunnel.policies.feedback import feedback

PARTS = DecoupledEvaluation(loading=0.5, metrics=0.2, warm=0.2, keep="1h")


def trials(number: int, **more: Any) -> dict[str, Any]:
    base = {"submit_time": [0] * number, "duration": [100] * number, "num_gpus": [1] * number}
    return {**base, "workload": ["Eval"] * number, "user": ["a"] * number, **more}


def starts(outcome: wt.Outcome) -> list[float]:
    found: list[float] = outcome.table["start_time"].to_pylist()
    return found


def test_what_a_trial_holds_its_gpus_for() -> None:
    outcome = wt.simulate(trials(3, user=["a", "a", "b"]), "1x1", PARTS)
    # 80 s with the loading; 100 x (1 - 0.2 - 0.5 x 0.8) = 40 s where the model is; b has another.
    assert outcome.table["end_time"].to_pylist() == pytest.approx([80, 120, 200])
    metric = feedback(outcome)
    assert metric["mean"] == pytest.approx((100 + 140 + 220) / 3)
    assert metric["gpu_hours"] == pytest.approx(200 / 3600)


def test_a_model_is_there_once_it_is_loaded_and_for_a_while() -> None:
    jobs = trials(3, submit_time=[0, 49, 50], duration=[100, 10, 10])
    ends = wt.simulate(jobs, "1x3", PARTS).table["end_time"].to_pylist()
    assert ends == pytest.approx([80, 49 + 8, 50 + 4])
    late = trials(2, submit_time=[0, 4000])
    assert wt.simulate(late, "1x1", PARTS).table["end_time"].to_pylist() == pytest.approx(
        [80, 4080]
    )


def test_trials_go_where_their_model_is() -> None:
    jobs = trials(3, submit_time=[0, 0, 60], duration=[100, 200, 100], user=["a", "b", "b"])
    outcome = wt.simulate(jobs, "2x2", PARTS, placement="spread")
    nodes = [where[0] for where in outcome.segments["nodes"].to_pylist()]
    assert nodes[2] != nodes[1]  # b's model takes 100 s to load: not yet
    jobs["submit_time"][2] = 150
    outcome = wt.simulate(jobs, "2x2", PARTS, placement="spread")
    nodes = [where[0] for where in outcome.segments["nodes"].to_pylist()]
    assert nodes[2] == nodes[1]  # and not on the other, which is empty


def test_trials_take_what_others_leave_and_the_longest_goes_first() -> None:
    jobs = trials(
        4,
        duration=[10, 30, 20, 100],
        num_gpus=[1, 1, 1, 2],
        workload=["Eval", "Eval", "Eval", "Pretrain"],
        user=["a", "a", None, "x"],
    )
    outcome = wt.simulate(jobs, "1x3", DecoupledEvaluation(loading=0, metrics=0))
    assert starts(outcome) == [30, 0, 40, 0]
    assert feedback(outcome)["others_wait"] == 0


def test_with_nothing_to_separate_only_the_packing_is_left() -> None:
    random = np.random.default_rng(1)
    jobs = {
        "submit_time": np.sort(random.uniform(0, 3000, 80)),
        "duration": random.uniform(10, 400, 80),
        "num_gpus": random.choice([1.0, 2.0, 8.0], 80),
        "workload": ["Pretrain"] * 80,
        "user": ["a"] * 80,
    }
    plain = wt.simulate(jobs, "3x8", "fifo", queueing="skip")
    assert wt.simulate(jobs, "3x8", "decoupled-evaluation").table.equals(plain.table)


def test_the_metric_knows_the_parameters() -> None:
    for policy in (DecoupledEvaluation(metrics=0.5), "decoupled-evaluation:metrics=0.5"):
        outcome = wt.simulate(trials(1), "1x1", policy)
        assert outcome.table["end_time"].to_pylist() == [50]
        assert feedback(outcome)["mean"] == 100
    assert feedback(wt.simulate(trials(1), "1x1", "fifo"))["mean"] == 100


@pytest.mark.parametrize("wrong", [{"loading": 1.5}, {"metrics": -0.1}, {"loading": 0.8}])
def test_shares_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        DecoupledEvaluation(**wrong)
    with pytest.raises(SpecError, match="batch"):
        wt.simulate(trials(1), "1x1", DecoupledEvaluation(batch="modle"))


def test_a_burst_of_trials_on_one_idle_node() -> None:
    """The case that the coordinator was made for: one checkpoint, 63 data sets, 8 GPUs."""
    gains = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        lengths = random.lognormal(5.3, 0.9, 63)
        jobs = trials(63, duration=lengths)
        plain = wt.simulate(jobs, "1x8", "fifo").table["end_time"].to_numpy().max()
        outcome = wt.simulate(jobs, "1x8", DecoupledEvaluation())
        done = outcome.table["end_time"].to_numpy() + 0.2 * lengths
        gains.append(plain / done.max())
    assert min(gains) > 1.5


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_warm_node_of_another_type_is_none(engine: str) -> None:
    """The model is on a node whose GPUs the second trial does not accept."""
    jobs = {
        "submit_time": [0.0, 20.0],
        "duration": [10.0, 10.0],
        "num_gpus": [1.0, 1.0],
        "gpu_type": ["B", "A"],
        "workload": ["eval", "eval"],
        "user": ["ann", "ann"],
    }
    out = wt.simulate(
        jobs, "1x4:A,1x4:B", "decoupled-evaluation:workload=eval:keep=1000", engine=engine
    )
    assert out.table["nodes"].to_pylist() == [[1], [0]]
