"""`plan_reliability`: the flown optimum beside theory and beside full grids."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel import schema
from windtunnel.cluster import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import Checkpointing, Disruptions, FailureModel
from windtunnel.study.reliability import Choice, Plan, Wind, _gang, plan_reliability, with_interval
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    from windtunnel.site.conditions import Conditions

HOUR, DAY = 3_600.0, 86_400.0


def gang(nodes: int, work: float) -> Any:
    """Return a job of so many nodes of 8 GPUs."""
    return schema.as_jobs({"submit_time": [0.0], "duration": [work], "num_gpus": [8.0 * nodes]})


def site(nodes: int, disruptions: Any, seed: int = 0) -> Conditions:
    """Return the conditions of as many nodes as the job needs."""
    return resolved(conditions_of(f"{nodes}x8", disruptions=disruptions, seed=seed))


def found_site(plan: Plan, disruptions: str) -> Conditions:
    """Return the conditions of the best choice's first flight."""
    down = f"{disruptions.rpartition('/')[0]}/checkpoint:{plan.best.interval!r}"
    return site(64 + plan.best.spares, down)


def random_site(seed: int) -> tuple[Any, Conditions]:
    """Return a job and a site, with costs and rates over two orders of magnitude."""
    draw = random.Random(seed)  # noqa: S311
    nodes = draw.randrange(2, 48)
    mttf = draw.uniform(3, 30) * HOUR
    model = FailureModel(
        mtbf=mttf * nodes,
        mttr=draw.uniform(0.5, 12) * HOUR,
        repair=draw.choice(["fixed", "exponential"]),
    )
    down = Disruptions(
        failure_models=(model,),
        checkpoint=Checkpointing(
            cost=draw.uniform(10, 300), restart_cost=draw.uniform(0, 900), interval=HOUR
        ),
        repair_crews=draw.choice([None, None, 4]),
    )
    return gang(nodes, draw.uniform(40, 80) * mttf), site(nodes, down, seed)


def missed(seed: int, repeats: int) -> tuple[float, float]:
    """Return how far the plan is below the best of a full grid: its goodput, its whole work."""
    jobs, conditions = random_site(seed)
    found = plan_reliability(jobs, conditions, repeats=repeats)
    wind = Wind(jobs, conditions, repeats, (), flights=found.flights)
    daly = found.intervals["Daly"]
    grid = [
        wind.fly(Choice(daly * 2 ** (step / 2), spares, 0))
        for step in range(-4, 5)
        for spares in range(max(0, found.best.spares - 2), found.best.spares + 3)
    ]
    best = found.flights[found.best]
    tops = [max(getattr(f, name).mean() for f in grid) for name in ("goodput", "owned")]
    return 1 - best.goodput.mean() / tops[0], 1 - best.owned.mean() / tops[1]


def test_a_job_as_large_as_the_cluster_is_planned_whatever_its_length() -> None:
    lengths = random.Random(5)  # noqa: S311
    down = Disruptions(
        failure_models=(FailureModel(mtbf=1e7, mttr=HOUR),),
        checkpoint=Checkpointing(cost=60.0, interval=HOUR),
    )
    for _ in range(40):
        assert _gang(gang(15, lengths.uniform(1e5, 1e6)), site(15, down)).nodes == 15


def test_the_plan_is_within_2_percent_of_the_best_of_a_full_grid() -> None:
    assert max(missed(1, 4)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_plan_is_within_2_percent_of_the_best_of_a_full_grid(seed: int) -> None:
    assert max(missed(seed, 8)) < 0.02


@pytest.mark.slow
def test_the_fewest_spares_reach_the_goal() -> None:
    down = "mtbf:30d/mttr:8h/cost:2m/restart:5m/checkpoint:50m"
    for goal in (("ettr", 0.9), ("deadline", 33 * DAY)):
        found = plan_reliability(gang(64, 30 * DAY), site(64, down), goal=goal, repeats=5)
        assert found.spares == 3
        assert abs(found.best.spares - found.spares) <= 1
        assert found.now == Choice(3_000, 0, 0)
        mean, low, high = with_interval(found.flights[found.best].ettr)
        assert low < mean < high
        out = fly(gang(64, 30 * DAY), found_site(found, down))
        assert found.flights[found.best].ettr[0] == pytest.approx(out.metrics()["ettr"])
        assert found.flights[found.best].goodput[0] == pytest.approx(out.metrics()["goodput"])
        assert mean >= (0.9 if goal[0] == "ettr" else 30 / 33)
    with pytest.raises(SpecError, match="not even 64 spare nodes"):
        plan_reliability(gang(64, 30 * DAY), site(64, down), goal=("deadline", 31 * DAY), repeats=2)


def test_bad_nodes_are_drained_where_there_are_spares() -> None:
    models = (
        FailureModel(mtbf="60d", mttr="2h"),
        FailureModel(mtbf="3h", mttr="10m", nodes=(3,)),
    )
    down = Disruptions(failure_models=models, checkpoint=Checkpointing(cost=60, restart_cost=600))
    found = plan_reliability(gang(12, 10 * DAY), site(16, down), repeats=3)
    assert found.drainable == (3,)
    assert found.best.drained == 1
    kept = found.best._replace(drained=0)
    assert found.flights[found.best].owned.mean() > found.flights[kept].owned.mean()


def test_jobs_that_hold_nothing_have_no_plan() -> None:
    down = resolved(conditions_of("8x8", disruptions="rsc/cost:60"))
    for jobs in (gang(8, 0.0), gang(0, DAY)):
        with pytest.raises(SpecError, match="none holds a GPU"):
            plan_reliability(jobs, down)


@pytest.mark.parametrize("nodes", [9, 10**30])
def test_a_job_larger_than_the_cluster_has_no_plan(nodes: int) -> None:
    with pytest.raises(SpecError, match="the cluster has 64"):
        plan_reliability(
            gang(nodes, DAY), resolved(conditions_of("8x8", disruptions="rsc/cost:60"))
        )


@pytest.mark.parametrize(
    "goal",
    [
        {"repeats": 0},
        {"goal": ("etr", 0.9)},
        {"goal": ("ettr", 90.0)},
        {"goal": ("deadline", 0.0)},
    ],
)
def test_goals_that_are_none_are_refused(goal: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"expected|Known"):
        plan_reliability(gang(8, DAY), site(8, "rsc/cost:60"), **goal)


def test_a_search_out_of_all_proportion_is_refused_with_its_flights() -> None:
    flown = list[Choice]()
    with pytest.raises(SpecError, match=r"about 240 flights .*--allow-large"):
        plan_reliability(gang(16_384, 10 * DAY), site(16_384, "rsc/cost:60"), on_done=flown.append)
    assert not flown
    plan = plan_reliability(gang(8, DAY), site(8, "rsc/cost:60"), repeats=2, on_done=flown.append)
    assert len(flown) == 2 * len(plan.flights)


def test_an_interval_of_a_share_is_within_0_to_1() -> None:
    assert with_interval(np.array([0.8, 1.0]))[1:] == (0.0, 1.0)


def test_theory_counts_what_stops_the_job() -> None:
    racks = FailureModel(mtbf=30 * DAY, mttr=HOUR, level="rack")
    slow = FailureModel(mtbf=DAY, mttr=HOUR, speed=0.5)
    down = Disruptions(failure_models=(racks, slow), checkpoint=Checkpointing(cost=60.0))
    cluster = ClusterSpec.uniform(nodes=16, gpus_per_node=8, nodes_per_rack=4)
    given = resolved(conditions_of(cluster, disruptions=down))
    # 6 nodes are in two racks, each of which fails as one; slow nodes stop nobody.
    plan = plan_reliability(gang(6, DAY), given, repeats=1)
    assert plan.gang.mttf == pytest.approx(15 * DAY)
    alone = Disruptions(failure_models=(slow,), checkpoint=Checkpointing(cost=60.0))
    given = resolved(conditions_of(cluster, disruptions=alone))
    with pytest.raises(SpecError, match="nothing fails at random"):
        plan_reliability(gang(6, DAY), given)


@pytest.mark.parametrize(
    ("cluster", "down", "message"),
    [
        ("pool:64", "rsc/cost:60", "a pool has no nodes"),
        ("8x8", None, "nothing fails at random"),
        ("8x8", "rsc/mttr:1h", "a checkpoint costs nothing"),
    ],
)
def test_what_has_no_plan_is_refused(cluster: str, down: str | None, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        plan_reliability(gang(8, DAY), resolved(conditions_of(cluster, disruptions=down)))
