"""First come first served, AlloX and Gandiva: worked by hand, and against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from gavel_instances import fixed, instance, instances
from hypothesis import given

from windtunnel import gavel
from windtunnel.errors import SpecError

SIX = {"v100": 2, "p100": 4, "k80": 8}


def whole(decided: gavel.Allocation) -> dict[Any, str]:
    """Return the type that each running job has all of."""
    return {
        job: name
        for job, row in decided.shares.items()
        for name, share in row.items()
        if share == 1
    }


def test_fifo_perf_takes_the_fastest_type_that_fits_and_blocks_at_the_head() -> None:
    problem = instance(
        {"k80": 4, "p100": 2, "v100": 1},
        [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 9, 9], [9, 1, 1]],
        scale_factor=[1, 2, 4, 1, 1],
    )
    # 0 takes the V100, 1 both P100s, 2 all K80s; 3 fits nowhere and blocks 4.
    assert whole(gavel.allocate("fifo_perf", problem)) == {0: "v100", 1: "p100", 2: "k80"}


def test_fifo_perf_gives_ties_to_the_first_name() -> None:
    problem = instance({"v100": 1, "a100": 1}, [[2, 2]])
    assert whole(gavel.allocate("fifo_perf", problem)) == {0: "a100"}


def test_fifo_perf_passes_over_a_job_without_a_speed_where_it_fits() -> None:
    # 0 takes the V100; 1 is not measured on K80s and takes none of them; 2 does.
    problem = instance({"k80": 2, "v100": 1}, [[1, 3], [0, 3], [1, 3]])
    assert whole(gavel.allocate("fifo_perf", problem)) == {0: "v100", 2: "k80"}


def test_fifo_never_gives_more_gpus_than_there_are() -> None:
    """The published code gives all six jobs of this example, 13 GPUs, the two V100s."""
    problem = instance(SIX, [[3, 2, 1]] * 6, scale_factor=[1, 4, 4, 1, 1, 2])
    chosen = set()
    for seed in range(20):
        decided = whole(gavel.allocate("fifo", problem, seed=seed))
        for name, gpus in SIX.items():
            gangs = [(1, 4, 4, 1, 1, 2)[job] for job, kind in decided.items() if kind == name]
            assert sum(gangs) <= gpus
        assert set(decided) == set(range(len(decided)))  # a prefix of the queue runs
        chosen.add(tuple(sorted(decided.items())))
    assert len(chosen) > 1  # the types are drawn
    again = [gavel.allocate("fifo", problem, seed=3) for _ in range(2)]
    assert again[0] == again[1]


def test_fifo_leaves_running_jobs_where_they_are() -> None:
    problem = instance(SIX, [[3, 2, 1]] * 4)
    first = gavel.allocate("fifo", problem, seed=1)
    later = problem | {"jobs": problem["jobs"][1:]}
    for seed in range(10):
        then = whole(gavel.allocate("fifo", later, seed=seed, previous=first))
        assert then == {job: kind for job, kind in whole(first).items() if job}


def test_fifo_packed_joins_the_partner_with_the_largest_gain() -> None:
    problem = instance({"v100": 2}, [[4], [4], [2], [2]])
    pair = {"jobs": [0, 2], "throughputs": {"v100": [3.0, 1.6]}}  # 0.75 + 0.8 = 1.55
    best = {"jobs": [2, 1], "throughputs": {"v100": [1.8, 3.0]}}  # 0.9 + 0.75 = 1.65
    weak = {"jobs": [3, 0], "throughputs": {"v100": [1.0, 4.0]}}  # 0.5 + 1 = 1.5: not above
    problem["pairs"] = [pair, best, weak]
    decided = gavel.allocate("fifo_packed", problem)
    assert whole(decided) == {0: "v100"}
    assert decided.pair_shares == {(2, 1): {"v100": 1.0}}
    assert decided.throughputs == pytest.approx({0: 4, 1: 3.0, 2: 1.8, 3: 0})


def test_allox_by_hand() -> None:
    """One GPU of each type: the long job goes where it is fast, the short ones queue up."""
    problem = instance(
        {"k80": 1, "v100": 1}, [[1, 2], [1, 2], [1, 10]], num_steps_remaining=[10, 20, 100]
    )
    decided = gavel.allocate("allox", problem)
    # V100: 0 (5 s), then 2 (15 s); K80: 1 (20 s): 40 s. No other assignment is better.
    assert decided.objective == pytest.approx(40)
    assert whole(decided) == {0: "v100", 1: "k80"}


def least_sum(problem: dict[str, Any]) -> float:
    """Try every assignment of jobs to GPUs, each GPU shortest first."""
    gpus = [name for name, count in problem["cluster"].items() for _ in range(int(count))]
    best = float("inf")
    for places in itertools.product(range(len(gpus)), repeat=len(problem["jobs"])):
        total = 0.0
        for gpu, name in enumerate(gpus):
            times = []
            for job, place in zip(problem["jobs"], places, strict=True):
                if place == gpu:
                    speed = job["throughputs"][name]
                    steps = job["num_steps_remaining"]
                    times.append(steps / speed if speed else float("inf"))
            total += sum(itertools.accumulate(sorted(times)))
        best = min(best, total)
    return best + sum(job["time_since_start"] for job in problem["jobs"])


@fixed
@given(problem=instances(gangs=False))
def test_allox_has_the_smallest_sum_of_completion_times(problem: dict[str, Any]) -> None:
    small = problem | {
        "jobs": problem["jobs"][:4],
        "cluster": {name: min(n, 2) for name, n in problem["cluster"].items()},
    }
    decided = gavel.allocate("allox", small)
    assert decided.objective == pytest.approx(least_sum(small), rel=1e-9)
    running = whole(decided)
    for name, gpus in small["cluster"].items():
        assert list(running.values()).count(name) <= gpus


def test_allox_keeps_running_jobs_and_refuses_gangs() -> None:
    problem = instance({"k80": 1, "v100": 1}, [[1, 2]] * 3, num_steps_remaining=[10, 20, 5])
    first = gavel.allocate("allox", problem)
    faster = problem | {"jobs": [*problem["jobs"], problem["jobs"][0] | {"id": 9}]}
    then = whole(gavel.allocate("allox", faster, previous=first))
    assert whole(first).items() <= then.items()
    with pytest.raises(SpecError, match="job 0 has another gang"):
        gavel.allocate(
            "allox", instance({"v100": 4}, [[1]], scale_factor=[2], num_steps_remaining=[1])
        )


def test_gandiva_is_isolated_while_there_are_gpus_enough() -> None:
    problem = instance(SIX, [[3, 2, 1]] * 6, scale_factor=[1, 4, 4, 1, 1, 2])
    found = gavel.allocate("gandiva", problem)
    assert found.shares == gavel.allocate("isolated", problem).shares


def test_gandiva_splits_the_gpus_among_pairs() -> None:
    problem = instance({"v100": 2}, [[4]] * 4)
    good = {"v100": [3.0, 3.0]}
    problem["pairs"] = [
        {"jobs": [one, other], "throughputs": good} for one, other in ((0, 1), (0, 2), (1, 2))
    ]
    decided = gavel.allocate("gandiva", problem, seed=4)
    # One pair, two jobs alone: three rows share two GPUs; job 3 has no partner.
    assert len(decided.pair_shares) == 1
    for row in (*decided.pair_shares.values(), decided.shares[3]):
        assert row == pytest.approx({"v100": 2 / 3})
    pair = next(iter(decided.pair_shares))
    for seed in range(6):
        kept = gavel.allocate("gandiva", problem, seed=seed, previous=decided)
        assert pair in kept.pair_shares


def test_allox_lets_a_job_wait_for_the_only_type_it_runs_on() -> None:
    """Job 0 keeps the V100; job 1 runs nowhere else, job 2 goes on."""
    before = gavel.allocate("allox", instance({"v100": 1, "k80": 1}, [[4, 0]], **steps(1)))
    problem = instance({"v100": 1, "k80": 1}, [[4, 0], [4, 0], [4, 1]], **steps(3))
    decided = gavel.allocate("allox", problem, previous=before)
    assert whole(decided) == {0: "v100", 2: "k80"}
    assert decided.objective == 100


def test_allox_alpha_is_of_the_waiting_jobs_and_rounded_down() -> None:
    """As published: with half of five, job 2 of three would be the shortest, and is not seen."""
    speeds = [[1.0], [1.0], [100.0], [1.0], [1.0]]
    problem = instance({"v100": 1}, speeds, **steps(5), time_since_start=[50, 40, 30, 20, 10])
    assert whole(gavel.allocate("allox", problem)) == {2: "v100"}
    assert whole(gavel.allocate("allox", problem, alpha=0.6)) == {2: "v100"}
    assert whole(gavel.allocate("allox", problem, alpha=0.5)) in ({0: "v100"}, {1: "v100"})


def steps(count: int) -> dict[str, list[int]]:
    """Return 100 steps for each of some jobs."""
    return {"num_steps_remaining": [100] * count}
