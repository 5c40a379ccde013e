"""Mistakes in a user's own policies and metrics: each has a message that says what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError
from windtunnel.sim.own_metrics import measured

JOBS = {"submit_time": [0, 0], "duration": [10, 10], "num_gpus": [1, 1]}
HUGE = 10**400


def fly(policy: Any, **options: Any) -> wt.Outcome:
    return wt.simulate(JOBS, "2x2", policy, **options)


class Fifo(wt.Policy):
    """First come, first served."""

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        """Start whoever fits."""
        for job in queue.startable:
            yield wt.Start(job)


def with_method(name: str, function: Any, **attributes: Any) -> Any:
    return type("Mine", (Fifo,), {name: function, **attributes})


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("decide", lambda self, now, queue: [], r"expected decide\(now, queue, cluster\)"),
        ("started", lambda self, job: None, r"expected started\(job, now\)"),
        ("for_run", lambda self: self, r"expected for_run\(problem\)"),
        ("for_run", lambda self, problem: None, "for_run returned None; expected a Policy"),
    ],
)
def test_methods_of_another_kind(name: str, function: Any, expected: str) -> None:
    with pytest.raises(PolicyError, match=expected):
        fly(with_method(name, function))


@pytest.mark.parametrize("every", ["60", "1m", 0, HUGE, float("nan"), True])
def test_rounds_of_no_length(every: Any) -> None:
    with pytest.raises(PolicyError, match="expected seconds > 0"):
        fly(with_method("every", every))
    with pytest.raises(PolicyError, match="expected seconds > 0"):
        wt.policy("mine-of-a-test", every=every)(lambda job, now: 0.0)


def test_filling_without_a_method() -> None:
    with pytest.raises(PolicyError, match=r"expected a method fill\(now, queue, cluster\)"):
        fly(with_method("fills", True, every=10.0))


@pytest.mark.parametrize(
    "decision",
    [
        lambda job: wt.Wake(HUGE),
        lambda job: wt.Start(job, rate=HUGE),
        lambda job: wt.Rerate(job, HUGE),
    ],
)
def test_numbers_beyond_floats_in_decisions(decision: Any) -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        first = next(iter(queue))
        made = decision(first)
        if isinstance(made, wt.Rerate):
            yield wt.Start(first)
        yield made

    with pytest.raises(PolicyError, match="at t=0"):
        fly(decide)


def test_keys_that_are_no_real_numbers() -> None:
    one_by_one: list[Any] = [HUGE, "x", 1j]
    for key in one_by_one:
        with pytest.raises(PolicyError, match="expected a number"):
            fly(lambda job, now, key=key: key)
    together: list[Any] = [[HUGE, HUGE], [1j, 2j], ["1", "2"]]
    together.append(np.array([0, 1], dtype="datetime64[s]"))
    for keys in together:
        with pytest.raises(PolicyError, match="key did not return numbers"):
            fly(lambda jobs, now, keys=keys: keys)
        with pytest.raises(PolicyError, match="rank did not return numbers"):
            fly(lambda jobs, keys=keys: keys)


@pytest.mark.parametrize("cost", [HUGE, lambda jobs: [HUGE] * len(jobs), lambda jobs: "x"])
@pytest.mark.parametrize("option", ["save_time", "restore_time"])
def test_costs_of_resuming_that_are_no_numbers(option: str, cost: Any) -> None:
    with pytest.raises(SpecError, match=option):
        fly("srtf", **{option: cost})


def test_a_cost_that_is_given_twice() -> None:
    with pytest.raises(SpecError, match="found '1' twice"):
        fly("srtf", save_time="1=7/1=8")


def test_a_metric_of_other_arguments() -> None:
    with pytest.raises(SpecError, match="expected a function of an outcome"):
        measured(fly("fifo"), [lambda: 1.0])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([(0, 0.25), (1, 0.25)], "each of its tasks needs 0.5 GPUs of one node, and 0.25 of node"),
        ([(0, 1.0)], "it asks for 0.5 GPUs, and is given 1 on node 0"),
        ([(7, 0.5)], "there is no node 7"),
    ],
)
def test_places_on_devices_say_what_is_wrong(where: Any, expected: str) -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        yield wt.Start(next(iter(queue)), where)

    jobs = JOBS | {"num_gpus": [0.5, 0.5]}
    with pytest.raises(PolicyError, match=expected):
        wt.simulate(jobs, "2x2", decide, sharing="devices")


@pytest.mark.parametrize("number", [1.0, np.float64(1), np.float32(1)])
def test_gpus_as_floats_of_any_kind(number: Any) -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        for job in queue.startable:
            yield wt.Start(job, [(1, number)])

    assert fly(decide).table["start_time"].to_pylist() == [0.0, 0.0]
