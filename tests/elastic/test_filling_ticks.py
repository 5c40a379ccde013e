"""Who takes free GPUs between two ticks of Pollux's policies (`fill`), by hand, on both engines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from elastic_cases import MODELS, NODES, jobs_of
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.pollux.on_options import OnOptionsPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

ENGINES = ("compiled", "reference")
POLICIES = ("tiresias", "optimus", "pollux", "sia")
TICK = 60.0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("fill", "start"), [("", 120.0), ("false", 120.0), ("true", 61.0)])
def test_an_arrival_a_second_after_a_tick(name: str, fill: str, start: float, engine: str) -> None:
    jobs = {"submit_time": [0, 61], "duration": [1000, 100], "num_gpus": [1, 1]}
    policy = f"pollux:{name}" + (f":fill={fill}" if fill else "")
    run = wt.simulate(jobs, "1x2", policy, penalty=0, engine=engine)
    assert run.table["start_time"].to_pylist() == [0.0, start]
    assert run.settings["parameters"].get("fill", "") == fill


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("words", "starts"),
    [(":fill=true", [0.0, 100.0, 150.0, 250.0]), ("", [0.0, 200.0, 200.0, 400.0])],
)
def test_ticks_and_fills_wait_for_an_interval(words: str, starts: list[float], engine: str) -> None:
    """Ticks are at 0, 200, 400 s; what comes between is decided on at the next multiple of 50."""
    jobs = {"submit_time": [0, 61, 115, 205], "duration": [1000] * 4, "num_gpus": [1] * 4}
    policy = f"pollux:tiresias:interval=200{words}"
    run = wt.simulate(jobs, "1x4", policy, penalty=0, decide_every=50, engine=engine)
    assert run.table["start_time"].to_pylist() == starts


@pytest.mark.parametrize(
    ("name", "gpus"), [("tiresias", 4), ("optimus", 1), ("pollux", 1), ("sia", 1)]
)
def test_arrivals_get_the_least_that_the_policy_gives(name: str, gpus: int) -> None:
    """A job of 4 GPUs that can run on one: as asked for where sizes stay, else its smallest."""
    jobs = jobs_of((0, "flat", 1, "ga", 1000), (7, "steep", 4, "ga", 100))
    run = wt.simulate(jobs, NODES, f"pollux:{name}:fill=true", models=MODELS, penalty=5)
    (first,) = [row for row in run.segments.to_pylist() if row["row"] == 1][:1]
    assert (first["start"], sum(first["node_gpus"])) == (7.0, gpus)


class Written:
    """Gives every job what it has and writes down what it sees, or gives nobody anything."""

    def __init__(self, *, keeps: bool) -> None:
        self.keeps = keeps
        self.seen: list[tuple[float, list[tuple[int, float, float, int]]]] = []

    def __call__(
        self, active: Sequence[Any], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each job that runs: of those that wait, for the first alone."""
        del interval
        self.seen.append((now, [(len(j.nodes), j.held, j.delay, j.starts) for j in active]))
        chosen = {job.job.name: job.nodes for job in active if job.nodes and self.keeps}
        if now == 0:
            chosen["0"] = (0,) if free[0] else ()
        return chosen


def flown(keeps: bool, jobs: dict[str, Any], **more: Any) -> tuple[wt.Outcome, Written]:  # noqa: FBT001 - a case
    """Fly jobs under a decider that lets nobody start after time 0."""
    decider = Written(keeps=keeps)
    policy = OnOptionsPolicy(lambda _: decider, "written", TICK, fill="true")
    return wt.simulate(jobs, "2x1", policy, penalty=10, **more), decider


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_arrival_had_counts_at_the_next_tick(engine: str) -> None:
    """It fills at 25 s: by 60 s it held a GPU for 35 s, and its launch of 10 s is over."""
    jobs = {"submit_time": [0, 25], "duration": [1000, 1000], "num_gpus": [1, 1]}
    _, decider = flown(True, jobs, until=130, engine=engine)
    assert [now for now, _ in decider.seen] == [0.0, 60.0, 120.0]
    assert decider.seen[1][1][1] == (1, 35.0, 0.0, 1)
    assert decider.seen[2][1][1] == (1, 95.0, 0.0, 1)
    # Who was launched at a tick had its GPU from then on.
    assert [seen[0] for _, seen in decider.seen[1:]] == [(1, 60.0, 0.0, 1), (1, 120.0, 0.0, 1)]
    late = {**jobs, "submit_time": [0, 55]}
    _, decider = flown(True, late, until=130, engine=engine)
    assert decider.seen[1][1][1] == (1, 5.0, 5.0, 1)  # half of its launch is to come


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_failure_stopped_had_its_gpus_until_then(engine: str) -> None:
    """It runs from 0 to 45 s, as its node fails, and from 60 s on the other one."""
    down = {"node_failures": [{"time": 45.0, "until": 500.0, "node": 0}]}
    jobs = {"submit_time": [0], "duration": [1000], "num_gpus": [1]}
    _, decider = flown(True, jobs, until=130, disruptions=down, engine=engine)
    assert [seen[0][:2] for _, seen in decider.seen] == [(0, 0.0), (0, 45.0), (1, 105.0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_who_is_stopped_at_a_tick_does_not_fill(engine: str) -> None:
    """At 60 s both are stopped and nobody is started: only who comes then fills, and once."""
    jobs = {"submit_time": [0, 5, 6, 70, 71], "duration": [1000] * 5, "num_gpus": [1] * 5}
    run, _ = flown(False, jobs, until=119, engine=engine)
    stays = [(row["row"], row["start"], row["end"]) for row in run.segments.to_pylist()]
    assert stays == [(0, 0.0, 60.0), (1, 5.0, 60.0), (3, 70.0, None), (4, 71.0, None)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failed_nodes_job_waits_for_the_tick(engine: str) -> None:
    """Node 1 fails under an arrival that fills, at 20 s, and is up at 30 s: another has it then."""
    jobs = {"submit_time": [0, 5, 25], "duration": [1000, 1000, 10], "num_gpus": [1] * 3}
    down = {"node_failures": [{"time": 20.0, "until": 30.0, "node": 1}]}
    run = wt.simulate(
        jobs, "2x1", "pollux:tiresias:fill=true", penalty=0, disruptions=down, engine=engine
    )
    stays = [(row["row"], row["start"], row["end"]) for row in run.segments.to_pylist()]
    assert stays[:4] == [(0, 0.0, 1000.0), (1, 5.0, 20.0), (2, 30.0, 40.0), (1, 60.0, 1060.0)]


@given(
    gaps=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 500)), min_size=1, max_size=6),
    name=st.sampled_from(["tiresias", "optimus", "sia"]),
    engine=st.sampled_from(ENGINES),
)
def test_jobs_that_are_alone_wait_for_the_tick_or_not_at_all(
    gaps: list[tuple[int, int]], name: str, engine: str
) -> None:
    now, submit, duration = 0, [], []
    for gap, length in gaps:
        now += gap
        submit.append(now)
        duration.append(length)
        now += length + int(TICK)
    jobs = {"submit_time": submit, "duration": duration, "num_gpus": [2] * len(submit)}
    filled = wt.simulate(jobs, "1x2", f"pollux:{name}:fill=true", penalty=0, engine=engine)
    assert filled.table["wait"].to_pylist() == [0.0] * len(submit)
    waits = wt.simulate(jobs, "1x2", f"pollux:{name}", penalty=0, engine=engine).table["wait"]
    assert waits.to_pylist() == [math.ceil(at / TICK) * TICK - at for at in submit]
