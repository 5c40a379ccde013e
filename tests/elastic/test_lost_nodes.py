"""Elastic policies and nodes that are down, drained or reserved: nobody waits beside free GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from elastic_cases import MODELS
from elastic_cases import jobs_of as elastic_jobs

import windtunnel as wt
from windtunnel.sim.disruptions import Disruptions, Maintenance, NodeFailure, Reservation

ENGINES = ("compiled", "reference")
engines = pytest.mark.parametrize("engine", ENGINES)


def jobs_of(*rows: tuple[float, int, int, str]) -> dict[str, list[Any]]:
    """Jobs as (submit_time, num_gpus, steps, user)."""
    submit, gpus, steps, users = map(list, zip(*rows, strict=True))
    count = len(rows)
    return {
        "submit_time": submit,
        "num_gpus": gpus,
        "steps": steps,
        "user": users,
        "template": ["bert"] * count,
        "plan": ["zero-dp"] * count,
        "duration": [100.0] * count,
    }


def stays(outcome: wt.Outcome) -> list[tuple[int, float, list[int], list[int]]]:
    """(row, start, nodes, GPUs there) of each stay."""
    names = ("row", "start", "nodes", "node_gpus")
    columns = (outcome.segments[name].to_pylist() for name in names)
    return list(zip(*columns, strict=True))


@engines
@pytest.mark.parametrize("policy", ["equal-share", "pollux:optimus", "morphling"])
def test_a_job_runs_on_the_nodes_that_are_up(engine: str, policy: str) -> None:
    # Of two nodes one is down from before the job comes until long after it could be done.
    down = Disruptions(node_failures=[NodeFailure(time=0, until=1e6, node=1)])
    jobs = jobs_of((120, 4, 5_000, "a"))
    outcome = wt.simulate(jobs, "2x4", policy, disruptions=down, engine=engine)
    assert stays(outcome)[0] == (0, 120, [0], [4])
    assert outcome.table["end_time"].to_pylist()[0] < 1e4


@engines
def test_under_tiresias_a_job_has_what_it_asked_for_or_waits(engine: str) -> None:
    """One GPU is free on each node, and the third job's two have to be on one: the fourth gets one.

    The first two need 1 + 20 x 4 = 81 s, so that the third starts at the tick at 120.
    """
    rows = [("steep", 3, "zero-dp"), ("steep", 3, "zero-dp"), ("flat", 2, "ga"), ("flat", 1, "ga")]
    jobs = elastic_jobs(*[(0, *row, 20, 0, None) for row in rows])
    out = wt.simulate(jobs, "2x4", "pollux:tiresias", models=MODELS, penalty=1, engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 120, 0]
    assert [(row, sum(gpus)) for row, _, _, gpus in stays(out)] == [(0, 3), (1, 3), (3, 1), (2, 2)]


@engines
def test_a_running_job_goes_down_to_its_share_though_nothing_else_happens(engine: str) -> None:
    # The first takes all 8 GPUs; the second's half is due an hour after that launch.
    jobs = jobs_of((0, 4, 100_000, "a"), (10, 4, 100_000, "a"))
    outcome = wt.simulate(jobs, "2x4", "equal-share", engine=engine)
    assert stays(outcome)[:2] == [(0, 0, [0, 1], [4, 4]), (0, 3_600, [0], [4])]
    assert outcome.table["start_time"].to_pylist() == [0, 3_600]


@engines
def test_a_share_is_one_of_the_nodes_that_jobs_may_start_on(engine: str) -> None:
    # At 3,600 node 1 is drained: its GPUs are nobody's share, so that all three run on node 0.
    drained = Disruptions(maintenance=[Maintenance(start=1_000, end=1e6, nodes=(1,))])
    jobs = jobs_of((0, 4, 100_000, "a"), (10, 4, 100_000, "a"), (20, 4, 100_000, "a"))
    outcome = wt.simulate(jobs, "2x4", "equal-share", disruptions=drained, engine=engine)
    assert stays(outcome)[1:4] == [(0, 3_600, [0], [1]), (1, 3_600, [0], [1]), (2, 3_600, [0], [1])]


@engines
@pytest.mark.parametrize("policy", ["pollux:tiresias", "pollux:optimus", "pollux:sia"])
def test_a_reserved_node_is_there_for_its_jobs(engine: str, policy: str) -> None:
    kept = Disruptions(reservations=[Reservation(start=50, end=1e6, nodes=(1,), users=("b",))])
    jobs = jobs_of((100, 4, 5_000, "a"), (200, 4, 5_000, "b"))
    outcome = wt.simulate(jobs, "2x4", policy, disruptions=kept, engine=engine)
    assert outcome.table["start_time"].to_pylist() == [120, 240]


@engines
def test_nobody_is_stopped_on_a_drained_node_for_a_job_that_does_not_start(engine: str) -> None:
    # Tiresias has jobs of 57,600 GPU-seconds, 14,400 s here, stand behind new ones. It would stop
    # the second job for the third, which cannot start in its place: node 1 is drained.
    drained = Disruptions(maintenance=[Maintenance(start=14_500, end=1e6, nodes=(1,))])
    long = 80_000
    jobs = jobs_of((0, 4, long, "a"), (30, 4, long, "a"), (15_000, 4, 5_000, "a"))
    outcome = wt.simulate(jobs, "2x4", "pollux:tiresias", disruptions=drained, engine=engine)
    assert outcome.table["num_preemptions"].to_pylist() == [0, 0, 0]
    assert [stay[:3] for stay in stays(outcome)[:2]] == [(0, 0, [0]), (1, 60, [1])]
