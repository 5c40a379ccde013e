"""What must hold on any instance, whatever the numbers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from gavel_instances import assert_feasible, fixed, instance, instances, normalised
from hypothesis import given
from hypothesis import strategies as st

from windtunnel import gavel

MAX_MIN = ("max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed")
LINEAR = (
    *MAX_MIN,
    "max_min_fairness_water_filling_perf",
    "max_min_fairness_water_filling_packed",
    "min_total_duration_perf",
    "min_total_duration_packed",
    "finish_time_fairness_perf",
    "max_sum_throughput_perf",
)
#: Solvers' tolerance on a comparison of two optima.
CLOSE = 1e-7


def objective(policy: str, problem: dict[str, Any], **options: Any) -> float:
    found = gavel.allocate(policy, problem, **options).objective
    assert found is not None
    return found


@pytest.mark.slow
@fixed
@given(problem=instances(pairs=True))
def test_every_policy_stays_within_gpus_and_time(problem: dict[str, Any]) -> None:
    single = all(job["scale_factor"] == 1 for job in problem["jobs"])
    costs = dict.fromkeys(problem["cluster"], 1.0)
    for policy in gavel.POLICIES:
        if policy.startswith("hierarchical") or (policy == "allox" and not single):
            continue
        if policy == "proportional":  # a normaliser: it ignores gangs
            continue
        decided = gavel.allocate(policy, problem, instance_costs=costs)
        assert_feasible(problem, decided)
        assert decided == gavel.allocate(policy, problem, instance_costs=costs)


@fixed
@given(problem=instances(gangs=False, weights=False))
def test_sharing_incentive(problem: dict[str, Any]) -> None:
    """No job of max-min fairness is worse off than with its own equal slice of the cluster."""
    alone = normalised(problem, gavel.allocate("isolated", problem))
    for policy in ("max_min_fairness_perf", "max_min_fairness_water_filling_perf"):
        fair = normalised(problem, gavel.allocate(policy, problem))
        assert (fair >= alone * (1 - CLOSE)).all()


@fixed
@given(problem=instances())
def test_max_min_is_at_least_any_other_policy_by_its_own_measure(problem: dict[str, Any]) -> None:
    best = objective("max_min_fairness_perf", problem)
    for policy in ("isolated", "max_min_fairness", "max_sum_throughput_perf", "fifo_perf"):
        assert normalised(problem, gavel.allocate(policy, problem)).min() <= best * (1 + CLOSE)
    reached = normalised(problem, gavel.allocate("max_min_fairness_perf", problem)).min()
    assert reached == pytest.approx(best, rel=1e-6, abs=1e-9)


@fixed
@given(problem=instances(pairs=True))
def test_water_filling_refines_max_min(problem: dict[str, Any]) -> None:
    for kind in ("perf", "packed"):
        filled = gavel.allocate(f"max_min_fairness_water_filling_{kind}", problem)
        plain = gavel.allocate(f"max_min_fairness_{kind}", problem)
        assert filled.objective == pytest.approx(plain.objective, rel=1e-6)
        high = np.sort(normalised(problem, filled))
        low = np.sort(normalised(problem, plain))
        assert min(filled.levels.values()) == pytest.approx(plain.objective, rel=1e-6)
        assert np.sort(list(filled.levels.values())) == pytest.approx(high, rel=1e-5)
        apart = np.flatnonzero(np.abs(high - low) > 1e-5 * np.maximum(high, low))
        assert not len(apart) or high[apart[0]] > low[apart[0]]


@pytest.mark.slow
@fixed
@given(problem=instances(gangs=False), data=st.data())
def test_lying_does_not_pay_under_the_strategy_proof_policy(
    problem: dict[str, Any], data: st.DataObject
) -> None:
    policy = "max_min_fairness_strategy_proof_perf"
    who = data.draw(st.integers(0, len(problem["jobs"]) - 1))
    truth = problem["jobs"][who]["throughputs"]
    honest = gavel.allocate(policy, problem)
    claimed = {name: speed * data.draw(st.floats(0.1, 10)) for name, speed in truth.items()}
    jobs = [job | {"throughputs": claimed} if job["id"] == who else job for job in problem["jobs"]]
    lying = gavel.allocate(policy, problem | {"jobs": jobs})
    got = sum(truth[name] * share for name, share in lying.shares[who].items())
    assert got <= honest.throughputs[who] * (1 + 1e-6)
    assert all(0 < factor <= 1 for factor in honest.discounts.values())


@fixed
@given(problem=instances(pairs=True))
def test_sharing_gpus_never_hurts_an_optimum(problem: dict[str, Any]) -> None:
    alone, packed = (objective(f"max_min_fairness_{k}", problem) for k in ("perf", "packed"))
    assert packed >= alone * (1 - CLOSE)
    alone, packed = (objective(f"min_total_duration_{k}", problem) for k in ("perf", "packed"))
    assert packed <= alone * (1 + CLOSE)
    alone, packed = (objective(f"finish_time_fairness_{k}", problem) for k in ("perf", "packed"))
    assert packed <= alone * (1 + CLOSE)


@pytest.mark.slow
@fixed
@given(problem=instances(pairs=True), copies=st.integers(2, 3))
def test_merging_equal_jobs_is_exact(problem: dict[str, Any], copies: int) -> None:
    count = len(problem["jobs"])
    jobs = [
        job | {"id": job["id"] + count * copy} for copy in range(copies) for job in problem["jobs"]
    ]
    pairs = [
        pair | {"jobs": [one + count * first, other + count * second]}
        for pair in problem["pairs"]
        for one, other in [pair["jobs"]]
        for first in range(copies)
        for second in range(copies)
    ]
    many = problem | {"jobs": jobs, "pairs": pairs}
    alike = [{**job, "id": 0, "throughputs": sorted(job["throughputs"].items())} for job in jobs]
    # Equal jobs that may share with different others are not merged, and need not get the same.
    are_copies = all(one != other for one, other in combinations(alike[:count], 2))
    for policy in LINEAR:
        merged = gavel.allocate(policy, many)
        apart = gavel.allocate(policy, many, merge=False)
        assert merged.objective == pytest.approx(apart.objective, rel=1e-6), policy
        if merged.levels:
            found, expected = list(merged.levels.values()), list(apart.levels.values())
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-8)
        first = merged.shares[0]
        for copy in range(copies if are_copies else 0):
            assert merged.shares[count * copy] == first


@fixed
@given(problem=instances(), factor=st.floats(0.01, 100))
def test_units_of_speed_do_not_matter_to_fairness(problem: dict[str, Any], factor: float) -> None:
    jobs = [
        job | {"throughputs": {name: v * factor for name, v in job["throughputs"].items()}}
        for job in problem["jobs"]
    ]
    before = gavel.allocate("max_min_fairness_water_filling_perf", problem)
    after = gavel.allocate("max_min_fairness_water_filling_perf", problem | {"jobs": jobs})
    levels = list(before.levels.values())
    assert list(after.levels.values()) == pytest.approx(levels, rel=1e-6, abs=1e-9)


@fixed
@given(problem=instances())
def test_finish_time_fairness_is_optimal(problem: dict[str, Any]) -> None:
    """A smaller rho has no feasible shares: checked as a linear program by another solver."""
    optimize = pytest.importorskip("scipy.optimize")
    decided = gavel.allocate("finish_time_fairness_perf", problem)
    seen = gavel.as_instance(problem)
    alone = gavel.allocate("isolated", problem).throughputs
    due = np.array([seen.steps_left[k] / alone[k] for k in seen.job_ids])
    reached = (seen.time_since_start + seen.steps_left / list(decided.throughputs.values())) / due
    assert reached.max() == pytest.approx(decided.objective, rel=1e-9)
    jobs, types = seen.throughputs.shape
    left = 0.9999 * reached.max() * due - seen.time_since_start
    if (left <= 0).any():
        return
    need = seen.steps_left / left
    work = np.zeros((jobs, jobs * types))
    for row in range(jobs):
        work[row, row * types : (row + 1) * types] = -seen.throughputs[row] / need[row]
    time = np.kron(np.eye(jobs), np.ones(types))
    gpus = np.kron(seen.scale_factors, np.eye(types))
    limits = np.concatenate([-np.ones(jobs), np.ones(jobs), seen.num_gpus])
    found = optimize.linprog(np.zeros(jobs * types), np.vstack([work, time, gpus]), limits)
    assert found.status == 2  # infeasible


@pytest.mark.slow
@fixed
@given(problem=instances(), seed=st.integers(0, 5))
def test_parts_never_beat_the_whole(problem: dict[str, Any], seed: int) -> None:
    parts = min(2, len(problem["jobs"]))
    for policy in ("max_min_fairness_perf", "max_sum_throughput_perf"):
        split = gavel.allocate(policy, problem, partitions=parts, seed=seed)
        assert split.objective is not None
        assert split.objective <= objective(policy, problem) * (1 + CLOSE)
        assert_feasible(problem, split)
    slower = objective("min_total_duration_perf", problem, partitions=parts, seed=seed)
    unfair = objective("finish_time_fairness_perf", problem, partitions=parts, seed=seed)
    assert unfair >= objective("finish_time_fairness_perf", problem) * (1 - CLOSE)
    assert slower >= objective("min_total_duration_perf", problem) * (1 - CLOSE)


@fixed
@given(problem=instances(pairs=True))
def test_whole_gangs_have_no_share_of_a_type_too_small(problem: dict[str, Any]) -> None:
    for policy in ("max_min_fairness_perf", "min_total_duration_packed", "max_min_fairness_packed"):
        decided = gavel.allocate(policy, problem, gangs="whole")
        for job in problem["jobs"]:
            of_job = [decided.shares[job["id"]]]
            of_job += [at for pair, at in decided.pair_shares.items() if job["id"] in pair]
            for name, gpus in problem["cluster"].items():
                if job["scale_factor"] > gpus:
                    assert all(shares[name] == 0 for shares in of_job)


def test_a_pair_of_whole_gangs_has_no_share_of_a_type_too_small() -> None:
    """Two gangs of 2 suit each other best on the one GPU of type a, on which they cannot run.

    On b each has 0.75 steps a second; its speed under proportional shares is (1 x 4 + 2 x 1) / 3.
    """
    problem = instance({"a": 1.0, "b": 2.0}, [[4, 1], [4, 1], [1, 0]], scale_factor=[2, 2, 1])
    problem["pairs"] = [{"jobs": [0, 1], "throughputs": {"a": [4, 4], "b": [0.75, 0.75]}}]
    decided = gavel.allocate("max_min_fairness_packed", problem, gangs="whole")
    assert decided.objective == pytest.approx(2 * 0.75 / 2)
    assert decided.pair_shares[0, 1] == pytest.approx({"a": 0, "b": 1})
    assert decided.shares[2] == pytest.approx({"a": 1, "b": 0})


@pytest.mark.parametrize("policy", LINEAR)
def test_shares_do_not_depend_on_the_solver(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simplex and interior point find other vertices; the further objectives leave only one."""
    rng = np.random.default_rng(4)
    kinds = rng.uniform(0.5, 8, (6, 3)).round(1)
    jobs = [
        {
            "id": number,
            "throughputs": dict(zip(("v100", "p100", "k80"), kinds[kind], strict=True)),
            "scale_factor": int(gang),
            "num_steps_remaining": int(steps),
            "time_since_start": 100.0,
        }
        for number, (kind, gang, steps) in enumerate(
            zip(
                rng.integers(0, 6, 40),
                rng.choice([1, 1, 2, 4], 40),
                rng.integers(100, 9_999, 40),
                strict=True,
            )
        )
    ]
    problem = {"cluster": {"v100": 8, "p100": 8, "k80": 8}, "jobs": jobs}
    for merge in (True, False):
        usual = gavel.allocate(policy, problem, merge=merge)
        with monkeypatch.context() as patch:
            patch.setattr("windtunnel.optimize.linear_program.INTERIOR_POINT_COLUMNS", 0)
            other = gavel.allocate(policy, problem, merge=merge)
        for job, row in usual.shares.items():
            assert other.shares[job] == pytest.approx(row, abs=1e-7)


@fixed
@given(problem=instances())
def test_one_entity_is_water_filling(problem: dict[str, Any]) -> None:
    problem["entities"] = [{"id": "all", "weight": 3.0}]
    for job in problem["jobs"]:
        job["entity"] = "all"
    between = gavel.allocate("hierarchical_water_filling_perf", problem).throughputs
    within = gavel.allocate("max_min_fairness_water_filling_perf", problem).throughputs
    assert between == pytest.approx(within, rel=1e-6, abs=1e-8)


def test_a_face_thinner_than_the_solvers_tolerance_is_no_contradiction() -> None:
    """Found by chance: the levels' own solution breaks one of their rows by 1.2e-9."""
    problem = instance(
        {"v100": 4, "p100": 4, "k80": 4},
        [[4, 0, 1], [7.5, 2, 0], [2, 1, 0], [1, 2, 0.5], [4, 0, 1], [4, 0, 0]],
        scale_factor=[4, 1, 2, 4, 1, 4],
        priority_weight=[1, 1, 1, 1, 5, 5],
        entity=["all"] * 6,
    )
    problem["entities"] = [{"id": "all", "weight": 3.0}]
    between = gavel.allocate("hierarchical_water_filling_perf", problem)
    within = gavel.allocate("max_min_fairness_water_filling_perf", problem)
    assert between.throughputs == pytest.approx(within.throughputs, rel=1e-6)
    assert_feasible(problem, between)


def test_levels_that_a_solver_reached_can_be_kept() -> None:
    """In seed 12 they could not, by a few 1e-9: levels are known to a solver's tolerance."""
    rng = np.random.default_rng(12)
    gangs = rng.choice([1, 1, 2, 4], 13)
    speeds = rng.choice([0.5, 1.0, 2.0, 4.0, 7.5], (13, 2))
    jobs = [
        {
            "id": k,
            "scale_factor": int(gangs[k]),
            "priority_weight": int(rng.choice([1, 1, 5])),
            "entity": "ab"[int(rng.integers(2))],
            "time_since_start": float(rng.integers(100)),
            "throughputs": dict(zip(("v100", "p100"), speeds[k].tolist(), strict=True)),
        }
        for k in range(13)
    ]
    pairs = [
        {
            "jobs": [a, b],
            "throughputs": {
                name: [float(speeds[k, at] * rng.uniform(0.5, 0.95)) for k in (a, b)]
                for at, name in enumerate(("v100", "p100"))
            },
        }
        for a in range(13)
        for b in range(a + 1, 13)
        if gangs[a] == gangs[b]
    ]
    entities = [{"id": "a", "weight": 3}, {"id": "b", "policy": "fifo"}]
    problem = {"cluster": {"v100": 8, "p100": 1}, "jobs": jobs, "entities": entities}
    apart = gavel.allocate("hierarchical_water_filling_perf", problem)
    packed = gavel.allocate("hierarchical_water_filling_packed", problem | {"pairs": pairs})
    assert_feasible(problem, packed)
    assert apart.objective is not None
    assert packed.objective is not None
    assert packed.objective >= apart.objective * (1 - CLOSE)


BLIND = [name for name, entry in gavel.POLICIES.items() if entry.blind and name != "fifo"]


@pytest.mark.slow
@fixed
@given(problem=instances())
def test_the_centre_is_as_good_as_a_vertex(problem: dict[str, Any]) -> None:
    for policy in BLIND:
        if policy.startswith("hierarchical") or policy == "proportional":
            continue
        vertex = gavel.allocate(policy, problem)
        centre = gavel.allocate(policy, problem, choice="centre")
        assert_feasible(problem, centre)
        assert centre.objective == vertex.objective
        if policy == "max_min_fairness":
            least = min(
                sum(centre.shares[job["id"]].values()) * job["scale_factor"] / weight
                for job in problem["jobs"]
                for weight in [job.get("priority_weight", 1.0)]
            )
            assert least == pytest.approx(vertex.objective, rel=1e-4)


def test_the_centre_spreads_time_over_types_like_their_gpus() -> None:
    problem = instance({"k80": 3, "v100": 1}, [[1, 9]] * 8)
    shares = gavel.allocate("max_min_fairness", problem, choice="centre").shares
    for row in shares.values():
        assert row["k80"] == pytest.approx(3 / 8, rel=1e-4)
        assert row["v100"] == pytest.approx(1 / 8, rel=1e-4)
