"""What backfilling promises: nobody who was promised a start gets it later."""

from __future__ import annotations

import random
from typing import Any

import pytest
from flight_cases import Jobs, draws, job_lists
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.sim.reference.easy import Easy
from windtunnel.testing import assert_outcomes_equal

POOLS = st.integers(2, 8).map(wt.ClusterSpec.pool)
NODES = st.builds(wt.ClusterSpec.uniform, st.integers(1, 4), st.integers(1, 5))


def asking_enough(jobs: Jobs, factor: float) -> Jobs:
    """The same jobs, none of which runs longer than it asked for."""
    return {**jobs, "estimate": [factor * run for run in jobs["duration"]]}


@pytest.fixture
def promises(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Every (head, shadow time) in the order in which EASY made them."""
    made: list[tuple[int, float]] = []
    reserve = Easy.reserve

    def recorded(self: Any, head: int) -> Any:
        shadow, free, spare = reserve(self, head)
        made.append((int(self.state.problem.rows[head]), shadow))
        return shadow, free, spare

    monkeypatch.setattr(Easy, "reserve", recorded)
    return made


def test_easy_never_delays_the_head(promises: list[tuple[int, float]]) -> None:
    seen = 0

    @settings(max_examples=200)
    @given(job_lists(typed=False), st.one_of(POOLS, NODES), st.sampled_from((1.0, 1.5, 3.0)))
    def check(jobs: Jobs, cluster: wt.ClusterSpec, factor: float) -> None:
        nonlocal seen
        promises.clear()
        jobs = asking_enough(jobs, factor)
        out = wt.simulate(jobs, cluster, "easy", engine="reference", oversize="reject")
        starts = out.table["start_time"].to_pylist()
        last: dict[int, float] = {}
        for head, shadow in promises:
            assert shadow <= last.get(head, shadow)
            last[head] = shadow
            assert starts[head] <= shadow
        seen += len(promises)

    check()
    assert seen > 100


@settings(max_examples=200)
@given(job_lists(typed=False), POOLS)
def test_conservative_with_exact_estimates_delays_nobody(jobs: Jobs, cluster: Any) -> None:
    jobs = asking_enough(jobs, 1.0)
    runs = [
        wt.simulate(jobs, cluster, policy, oversize="reject").table["start_time"].to_pylist()
        for policy in ("fifo", "conservative")
    ]
    for fifo, conservative in zip(*runs, strict=True):
        assert (conservative is None) == (fifo is None)
        assert conservative is None or conservative <= fifo


@pytest.mark.engines
@pytest.mark.parametrize("sizes", [(1, 1, 2, 4, 8), (1, 2, 3, 4, 6, 8), (1, 2, 4)], ids=str)
@pytest.mark.parametrize("seed", range(max(2, draws(12))))
def test_plans_are_compressed_alike_when_many_jobs_end_early(seed: int, sizes: Any) -> None:
    """Of many jobs that all wait, most move again and again, those over whole nodes, too."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    run = [float(pick.choice((1, 7, 30, 31, 90, 240))) for _ in range(70)]
    jobs = {
        "submit_time": [0.0] * len(run),
        "duration": run,
        "estimate": [pick.uniform(1.0, 5.0) * length for length in run],
        "num_gpus": [pick.choice(sizes) for _ in run],
    }
    assert_outcomes_equal(
        *(
            wt.simulate(jobs, "5x4", queueing="conservative", engine=engine)
            for engine in ("compiled", "reference")
        )
    )


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("epoch", [0.0, 1_000.0, 12_345.0, 1e6])
def test_who_waits_for_an_overdue_job_is_not_overtaken_by_a_rounding(
    engine: str, epoch: float
) -> None:
    """Worked by hand.

    At 8 the second job is expected to be gone, and the third to run until 29, when the fourth was
    promised to start. The second runs on: the third, as if it started at 8, still ends by 29.
    """
    jobs = {
        "submit_time": [epoch + time for time in (1, 1, 6, 7)],
        "duration": [2, 10, 7, 10],
        "estimate": [2, 5, 21, 10],
        "num_gpus": [2, 1, 2, 1],
    }
    out = wt.simulate(jobs, "pool:2", "conservative", engine=engine)
    starts = out.table["start_time"].to_pylist()
    assert [start - epoch for start in starts] == [1, 3, 13, 20]


@settings(max_examples=100)
@given(job_lists(typed=False), POOLS, st.sampled_from((1_000.0, 12_345.0, 2.0**30)))
def test_promises_do_not_depend_on_when_the_clock_began(
    jobs: Jobs, cluster: Any, epoch: float
) -> None:
    whole = {
        **jobs,
        **{name: [round(t) for t in jobs[name]] for name in ("submit_time", "duration")},
    }
    whole["estimate"] = [max(1, run // 2) for run in whole["duration"]]
    later = {**whole, "submit_time": [epoch + time for time in whole["submit_time"]]}
    first, second = (
        wt.simulate(rows, cluster, "conservative", oversize="reject")
        .table["start_time"]
        .to_pylist()
        for rows in (whole, later)
    )
    assert [None if s is None else s - epoch for s in second] == first


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tick", [0.1, 0.3, 0.7])
def test_engines_promise_alike_in_fractions_of_a_second(seed: int, tick: float) -> None:
    """Jobs of less than a second, on whose ends others wait, and instants that a rounding parts."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    number = 14
    run = [tick * pick.choice((1, 2, 4, 7, 10, 20)) for _ in range(number)]
    jobs = {
        "submit_time": sorted(tick * pick.randrange(20) for _ in run),
        "duration": run,
        "estimate": [length * pick.choice((0.5, 1, 1, 2, 3)) for length in run],
        "num_gpus": [pick.choice((0.4, 0.5, 0.6, 1, 2, 3, 4)) for _ in run],
    }
    start = tick * pick.randrange(5, 25)
    holds = {"maintenance": [{"nodes": [0], "start": start, "end": start + 9 * tick}]}
    assert_outcomes_equal(
        *(
            wt.simulate(
                jobs, "2x4", queueing="conservative", disruptions=holds, engine=engine,
                slowdown={"share": 0.5},
            )
            for engine in ("compiled", "reference")
        )
    )  # fmt: skip


def test_backfilling_without_estimates_is_refused_with_what_to_do() -> None:
    jobs = {"submit_time": [0, 0], "duration": [1, 1], "num_gpus": [1, 1], "estimate": [1, None]}
    with pytest.raises(wt.SchemaError, match="estimates='perfect'") as caught:
        wt.simulate(jobs, "pool:1", "easy")
    assert caught.value.violations[0].count == 1
    assert wt.simulate(jobs, "pool:1", "easy", estimates="perfect").metrics()["num_finished"] == 2


def test_jobs_that_outrun_their_estimates_are_noted() -> None:
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [1], "estimate": [3]}
    assert any("longer than they asked" in n for n in wt.simulate(jobs, "pool:1", "easy").notes)


@pytest.mark.parametrize("rule", ["easy", "easy_sjbf", "conservative"])
def test_the_quota_walk_keeps_no_promises(rule: str) -> None:
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [1], "estimate": [3]}
    with pytest.raises(wt.SpecError, match="quota walk"):
        wt.simulate(jobs, "pool:1", "srtf", queueing=rule, preemption="quota_walk")
    assert wt.simulate(jobs, "pool:1", "srtf", queueing=rule).metrics()["num_finished"] == 1
