"""A run in which no job gets on is stopped; one in which any does is not."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.sim import headway
from windtunnel.sim.contract import Preempt, Wake
from windtunnel.sim.run_rules import Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])
#: Two jobs of 10 s that need the whole node.
JOBS: dict[str, Any] = {"submit_time": [0, 0], "duration": [10, 10], "num_gpus": [4, 4]}


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headway, "BETWEEN_LOOKS", 50)


def turns(every: float) -> wt.Policy:
    """Return a policy under which each job has every second round."""

    class Turns(wt.Policy):
        name, preemptive = "turns", True

        def key(self, job: Any, now: float) -> float:
            return (job.number + now // every) % 2

    Turns.every = every
    return Turns()


def in_and_out(length: float) -> Any:
    """Return a policy that starts the first job and stops it again after so many seconds."""

    def decide(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        for job in cluster.running:
            if job.number == 0:
                yield Preempt(job)
        for job in list(queue):
            if cluster.fit(job) is not None:
                yield wt.Start(job)
        yield Wake(now + length)

    return decide


@ENGINES
def test_turns_that_resuming_fills_are_an_error(engine: str) -> None:
    """Of 2 s each, of which 2 go into resuming; what runs at first did 2 s of its work."""
    with pytest.raises(wt.PolicyError, match=r"started jobs 50 times in 50 decisions"):
        wt.simulate(JOBS, "1x4", turns(2.0), restore_time=2.0, engine=engine)


@ENGINES
def test_turns_that_leave_time_for_work_are_none(engine: str) -> None:
    """A hundredth of a second a turn: 5 s a job's turns last, some 1,000 of them."""
    run = wt.simulate(JOBS, "1x4", turns(2.0), restore_time=1.984375, engine=engine)
    assert run.flight.preemptions.tolist()[0] > 500
    assert run.table["status"].to_pylist() == ["finished", "finished"]


@ENGINES
def test_a_run_with_a_horizon_goes_on_to_it(engine: str) -> None:
    """Of 500 rounds after the first each takes the node from one of them."""
    run = wt.simulate(JOBS, "1x4", turns(2.0), restore_time=2.0, engine=engine, until=1000.0)
    assert run.flight.preemptions.tolist() == [250, 250]


@ENGINES
def test_a_job_that_is_started_and_stopped_without_end_is_an_error(engine: str) -> None:
    with pytest.raises(wt.PolicyError, match=r"none got on with its work"):
        wt.simulate(JOBS, "1x4", in_and_out(1.0), restore_time=1.0, engine=engine)


@ENGINES
def test_a_long_job_beside_it_is_waited_for(engine: str) -> None:
    """The second job gets on, and ends; only then does nobody."""
    jobs = {**JOBS, "duration": [10, 500]}
    with pytest.raises(wt.PolicyError, match="none got on") as error:
        wt.simulate(jobs, "2x4", in_and_out(1.0), restore_time=1.0, engine=engine)
    assert error.value.time is not None
    assert error.value.time > 500.0


#: Power for the node in 10 s of every 20.
ON_AND_OFF: dict[str, Any] = {
    "power": {"gpus": {"default": {"idle_w": 0, "active_w": 100}}},
    "power_cap": {"rows": [[0.0, 1000.0], [10.0, 9.0], [20.0, 1000.0], [30.0, 9.0]]},
}


@ENGINES
@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_a_cap_that_leaves_no_time_for_work_is_an_error(engine: str, policy: str) -> None:
    """The first window is all work; each of the others goes into resuming."""
    jobs = {"submit_time": [0], "duration": [25], "num_gpus": [4]}
    with pytest.raises(wt.PolicyError, match=r"none got on .* \(every, power_cap") as error:
        wt.simulate(jobs, "1x4", policy, restore_time=10.0, engine=engine, **ON_AND_OFF)
    assert error.value.time is not None
    assert error.value.time % 10 == 0


@ENGINES
def test_a_cap_that_leaves_time_for_work_is_none(engine: str) -> None:
    """10 s at first, then a quarter of a second in each window: 60 of them."""
    jobs = {"submit_time": [0], "duration": [25], "num_gpus": [4]}
    run = wt.simulate(jobs, "1x4", "fifo", restore_time=9.75, engine=engine, **ON_AND_OFF)
    assert run.flight.preemptions.tolist() == [60]
    assert run.flight.end.tolist() == [60 * 20 + 10.0]


def test_nothing_is_said_of_a_cap_where_chance_decides() -> None:
    rules = Rules("skip", disruptions=SimpleNamespace(by_chance=True))  # type: ignore[arg-type]
    assert headway.Headway(turns(2.0), rules, dict).cap_due == math.inf
