"""The round mechanisms on cases worked by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from round_works import always, fly_in_rounds, stays_of, work_of

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies.gavel.ideal import fly_ideal
from windtunnel.policies.gavel.published import fly_as_published
from windtunnel.policies.gavel.work import ALONE, Decision, Rules

if TYPE_CHECKING:
    from pathlib import Path


def ends(log: object) -> list[float]:
    return [float(value) for value in log.end]  # type: ignore[attr-defined]


def test_two_jobs_take_turns_and_resume() -> None:
    work = work_of([[1.0], [1.0]], [720.0, 720.0], nodes=[[1]])
    log = fly_in_rounds(work, always([[0.5], [0.5]]), Rules())
    assert ends(log) == [1080.0, 1440.0]
    assert log.gpu_time.tolist() == [720.0, 720.0]
    flight = log.outcome.flight
    assert flight.preemptions.tolist() == [1, 1]
    assert flight.run_time.tolist() == [720.0, 720.0]


def test_resuming_costs_seconds_on_the_gpus() -> None:
    work = work_of([[1.0], [1.0]], [720.0, 720.0], nodes=[[1]])
    log = fly_in_rounds(work, always([[0.5], [0.5]]), Rules(), restore_time=10.0)
    # 360 s of steps each, then 350 s each after resuming, then the last 10 s each after another.
    assert ends(log) == [1460.0, 1480.0]
    assert log.gpu_time.sum() == 1480.0


def test_a_gpu_that_comes_free_is_taken_at_once() -> None:
    work = work_of([[1.0], [1.0]], [100.0, 1000.0], nodes=[[1]])
    assert ends(fly_in_rounds(work, always([[1.0], [0.0]]), Rules())) == [100.0, 1100.0]


def test_an_arrival_waits_for_the_round_or_takes_an_idle_gpu_at_once() -> None:
    work = work_of([[1.0], [1.0]], [500.0, 50.0], nodes=[[2]], submit=[0.0, 123.0])
    shares = always([[1.0], [1.0]])
    assert ends(fly_in_rounds(work, shares, Rules())) == [500.0, 410.0]
    assert ends(fly_in_rounds(work, shares, Rules(fill="all"))) == [500.0, 173.0]


def test_idle_gpus_go_where_a_waiting_job_is_fastest_unless_speeds_are_not_known() -> None:
    work = work_of([[2.0, 1.0]], [300.0], nodes=[[1], [4]])
    nothing = always([[0.0, 0.0]])
    assert ends(fly_in_rounds(work, nothing, Rules())) == [150.0]
    assert ends(fly_in_rounds(work, nothing, Rules(blind=True))) == [300.0]


def test_in_turn_nobody_without_a_share_runs() -> None:
    work = work_of([[1.0], [1.0]], [100.0, 1000.0], nodes=[[2]])

    def first(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del now, left
        members = np.column_stack([active, np.full(len(active), ALONE)])
        return Decision(members, np.eye(len(active), 1))

    log = fly_in_rounds(work, first, Rules(in_turn=True))
    assert ends(log) == [100.0, 1100.0]  # as the first is done nothing runs: a round begins
    assert ends(fly_in_rounds(work, first, Rules())) == [100.0, 1000.0]


def test_a_spread_gang_runs_at_its_own_speed() -> None:
    spread = [[0.5], [0.5], [0.5]]
    work = work_of(
        [[1.0]] * 3, [100.0] * 3, nodes=[[2, 3]], gangs=[2, 2, 4], spread=spread,
        submit=[0.0, 0.0, 1000.0],
    )  # fmt: skip
    log = fly_in_rounds(work, always([[1.0]] * 3), Rules())
    assert ends(log) == [100.0, 100.0, 1200.0]
    spots = [(stay.nodes, stay.gpus) for stay in stays_of(log)]
    assert spots == [((0,), (2,)), ((1,), (2,)), ((0, 1), (2, 2))]


def test_what_cannot_start_leaves_its_gpus_to_the_next() -> None:
    """The gang would be spread, and cannot run so while a job of one GPU holds a node."""
    work = work_of(
        [[1.0]] * 3, [1000.0, 100.0, 100.0], nodes=[[2, 2]], gangs=[3, 1, 1],
        spread=[[0.0]] * 3,
    )  # fmt: skip
    with pytest.raises(PolicyError, match="starts none of 1 waiting"):  # it never can
        fly_in_rounds(work, always([[1.0], [0.1], [0.1]]), Rules())
    log = fly_in_rounds(work, always([[1.0], [0.1], [0.1]]), Rules(until=720.0))
    assert log.end[1:].tolist() == [100.0, 100.0]  # though the gang lacks more
    assert log.outcome.table["status"].to_pylist()[0] == "waiting"


def test_a_failure_undoes_work_and_the_job_goes_on() -> None:
    work = work_of([[1.0], [1.0]], [500.0, 500.0], nodes=[[1, 1]])
    down = {"node_failures": [{"time": 100.0, "until": 200.0, "node": 0}]}
    log = fly_in_rounds(work, always([[1.0], [1.0]]), Rules(), disruptions=down)
    assert ends(log) == [860.0, 500.0]  # it begins anew, at the next round
    assert log.type_time.tolist() == [[600.0], [500.0]]
    at_once = fly_in_rounds(work, always([[1.0], [1.0]]), Rules(fill="all"), disruptions=down)
    assert ends(at_once) == [700.0, 500.0]  # as soon as its GPU is up, at 200 s
    lost = log.outcome.flight.interruptions
    assert lost is not None
    assert lost.lost_time.tolist() == [100.0, 0.0]


def test_jobs_hold_their_types_to_the_horizon() -> None:
    work = work_of([[1.0]], [1e6], nodes=[[1]])
    log = fly_in_rounds(work, always([[1.0]]), Rules(until=500.0))
    log.policy.close(500.0)
    assert log.type_time.tolist() == [[500.0]]


def test_partners_slow_each_other_and_the_last_goes_on_alone() -> None:
    pairs = np.full((2, 2, 1, 2), 0.8)
    work = work_of([[1.0], [1.0]], [80.0, 160.0], nodes=[[1]], pairs=pairs)

    def together(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del now, left
        return Decision(np.array([[0, 1]]), np.ones((1, 1)))

    log = fly_in_rounds(work, together, Rules())
    assert ends(log) == [100.0, 180.0]
    assert log.gpu_time.tolist() == [50.0, 130.0]
    published = fly_as_published(work, together, Rules(packed=True))
    assert ends(published) == [200.0, 200.0]  # a pair is over when both are


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("third", [1.0, 0.5])
def test_what_sharing_costs_a_pair_is_in_its_speeds(third: float, engine: str) -> None:
    """Also where a third job, on another GPU, asks for half of one: then GPUs are told apart."""
    pairs = np.zeros((3, 3, 1, 2))
    pairs[0, 1] = pairs[1, 0] = 0.5
    work = work_of([[1.0]] * 3, [100.0, 300.0, 50.0], nodes=[[2]], gangs=[1, 1, third], pairs=pairs)

    def together(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del now, left
        members = [(0, 1)] if 0 in active else [(1, ALONE)]
        members += [(2, ALONE)] if 2 in active else []
        return Decision(np.array(members), np.ones((len(members), 1)))

    model = wt.Slowdown(share=0.5)
    log = fly_in_rounds(work, together, Rules(length=1000.0), slowdown=model, engine=engine)
    assert ends(log) == [200.0, 400.0, 50.0]


def test_ideal_runs_at_the_speed_of_the_shares() -> None:
    work = work_of([[1.0, 3.0], [1.0, 3.0]], [720.0, 1440.0], nodes=[[1], [1]])
    log = fly_ideal(work, always([[0.5, 0.5], [0.5, 0.5]]), Rules())
    assert ends(log) == [360.0, 720.0]
    assert log.gpu_time.tolist() == [360.0, 720.0]
    assert log.type_time.tolist() == [[180.0, 180.0], [360.0, 360.0]]


def test_published_new_jobs_hold_gpus_idle_until_the_next_decision() -> None:
    work = work_of([[1.0]] * 3, [4000.0, 4000.0, 360.0], nodes=[[3]], submit=[0.0, 400.0, 800.0])
    log = fly_as_published(work, always([[1.0]] * 3), Rules())
    # Decisions at 0, at 720 (the last was at exactly 0) and at 2880, the first boundary 1920 s on.
    assert [log._start[log._since[job]] for job in range(3)] == [0.0, 720.0, 2880.0]
    assert log.end[2] == 3240.0
    assert log.solves >= 3
    # Ours decides at every boundary, here at 1080.
    assert fly_in_rounds(work, always([[1.0]] * 3), Rules()).end[2] == 1440.0


def test_published_jobs_do_whole_steps_and_rounds_end_with_the_last_of_them() -> None:
    speed = 0.0303  # 10.9 steps a round: 10 are done
    work = work_of([[speed], [1.0]], [20.0, 360.0], nodes=[[2]])
    log = fly_as_published(work, always([[1.0], [1.0]]), Rules())
    assert ends(log) == pytest.approx([360 + 10 / speed, 360.0])
    alone = work_of([[speed]], [20.0], nodes=[[2]])
    # Alone its round ends early, and the next begins at once.
    assert ends(fly_as_published(alone, always([[1.0]]), Rules())) == pytest.approx([20 / speed])


def test_published_utilisation_counts_an_idle_gap_as_busy() -> None:
    work = work_of([[1.0], [1.0]], [100.0, 100.0], nodes=[[1]], submit=[0.0, 5000.0])
    log = fly_as_published(work, always([[1.0], [1.0]]), Rules())
    assert ends(log) == [100.0, 5100.0]
    assert log.gpu_time.tolist() == [100.0, 5000.0]
    late = work_of([[1.0]], [100.0], nodes=[[1]], submit=[7.0])
    assert fly_as_published(late, always([[1.0]]), Rules()).gpu_time.tolist() == [100.0]
    assert fly_in_rounds(work, always([[1.0], [1.0]]), Rules()).gpu_time.sum() == 200.0


def test_published_priority_is_share_over_received_part() -> None:
    work = work_of([[1.0], [1.0]], [3600.0, 3600.0], nodes=[[1]])
    log = fly_as_published(work, always([[0.75], [0.25]]), Rules(until=3600.0))
    # f starts at 180 each; the one with the larger share/f runs: 0 0 0 1 0 0 0 1 0 0 (by hand).
    runs = [0] * 2
    received = np.array([180.0, 180.0])
    share = np.array([0.75, 0.25])
    for _ in range(10):
        who = int(np.argmax(share / received))
        received[who] += 360
        runs[who] += 1
    assert log.gpu_time.tolist() == [360.0 * count for count in runs]


@pytest.mark.parametrize("fly", [fly_as_published, fly_in_rounds, fly_ideal])
def test_shares_that_let_nobody_run_are_refused(fly: object) -> None:
    work = work_of([[1.0, 0.0]], [10.0], nodes=[[1], [1]])
    with pytest.raises(PolicyError, match="j0"):
        fly(work, always([[0.0, 1.0]]), Rules(in_turn=True))  # type: ignore[operator]


def test_published_rounds_must_hold_a_step() -> None:
    work = work_of([[0.001]], [10.0], nodes=[[1]])
    with pytest.raises(SpecError, match="j0"):
        fly_as_published(work, always([[1.0]]), Rules())


@pytest.mark.parametrize("fly", [fly_as_published, fly_in_rounds, fly_ideal])
def test_a_horizon_cuts_the_run(fly: object) -> None:
    work = work_of([[1.0]] * 3, [100.0, 1e6, 10.0], nodes=[[2]], submit=[0.0, 0.0, 9000.0])
    log = fly(work, always([[1.0]] * 3), Rules(until=7200.0))  # type: ignore[operator]
    flight = (
        log.outcome.flight
        if fly is fly_in_rounds
        else log.flight(np.arange(3), 3, 7200.0, with_nodes=False)
    )
    assert flight.status.tolist() == [0, 1, 3]  # finished, running, not submitted
    assert np.isnan(flight.end[1:]).all()
    assert flight.run_time.tolist() == [100.0, 7200.0, 0.0]


@pytest.mark.parametrize("fly", [fly_as_published, fly_in_rounds, fly_ideal])
def test_a_run_can_end_with_some_jobs(fly: object) -> None:
    work = work_of([[1.0]] * 3, [100.0, 50.0, 1e6], nodes=[[3]], submit=[0.0, 0.0, 0.0])
    log = fly(work, always([[1.0]] * 3), Rules(stop_after=np.array([0, 1])))  # type: ignore[operator]
    assert log.end[:2].tolist() == [100.0, 50.0]
    assert np.isnan(log.end[2])


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("fill", ["false", "all"])
@pytest.mark.parametrize("policy", ["fifo", "fifo_perf", "fifo_packed"])
def test_in_turn_a_gang_goes_where_it_has_a_place(policy: str, fill: str, engine: str) -> None:
    # Two jobs lie on two nodes: of type A two GPUs are free, one on each. The gang of two on one
    # node takes B at the first round, 360, and who came behind it waits for B.
    jobs = {
        "submit_time": [0, 0, 1, 2],
        "duration": [5_000, 5_000, 1_000, 100],
        "num_gpus": [1, 1, 2, 1],
        "gpu_type": ["A", "A", None, "B"],
    }
    name = f"gavel:{policy}:fill={fill}"
    outcome = wt.simulate(jobs, "2x2:A,1x2:B", name, placement="spread", engine=engine)
    assert outcome.table["nodes"].to_pylist() == [[0], [1], [2], [2]]
    starts = outcome.table["start_time"].to_pylist()
    assert starts == [0, 0, 360, 1_360 if fill == "all" else 1_440]
    # It stays there at the rounds in between, though A has two GPUs free.
    assert outcome.table["num_preemptions"].to_pylist() == [0, 0, 0, 0]


def test_pairs_wait_for_no_type_that_is_too_small(tmp_path: Path) -> None:
    """Two gangs of 2 on a pair's speeds: they run together on type b from the first round on.

    A pair's share of the one GPU of type a would be nobody's, and each would run alone instead.
    """
    speeds = {
        "a": {"m": {"null": 4.0, "('m', 2)": [4.0, 4.0]}, "z": {"null": 1.0}},
        "b": {"m": {"null": 1.0, "('m', 2)": [0.75, 0.75]}, "z": {"null": 0.0}},
    }
    table = {kind: {"('m', 2)": rows["m"], "('z', 1)": rows["z"]} for kind, rows in speeds.items()}
    (tmp_path / "table.json").write_text(json.dumps(table))
    jobs = {
        "submit_time": [0, 0, 0],
        "duration": [15, 15, 100],
        "total_steps": [60.0, 60.0, 100.0],
        "num_gpus": [2, 2, 1],
        "template": ["m", "m", "z"],
    }
    policy = "gavel:max_min_fairness_packed:round=10"
    out = wt.simulate(jobs, "a:1,b:2", policy, throughputs=str(tmp_path / "table.json"))
    assert out.table["end_time"].to_pylist() == [80, 80, 100]


def test_the_last_digits_of_equal_shares_are_no_order() -> None:
    """Half of the time on each of two types: the first job begins on the first."""
    work = work_of([[1.0, 1.0], [1.0, 1.0]], [1000.0, 1000.0], nodes=[[1], [1]])
    almost = 0.49999999999999994
    log = fly_in_rounds(work, always([[almost, 0.5], [almost, 0.5]]), Rules())
    assert [(stay.job, stay.kind) for stay in log.stays()[:2]] == [(0, 0), (1, 1)]
