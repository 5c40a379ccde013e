"""Instances at the edge: a right answer, or an error that names the job."""

from __future__ import annotations

from typing import Any

import pytest
from gavel_instances import instance

import windtunnel as wt
from windtunnel import gavel
from windtunnel.errors import InfeasibleError, SpecError

STEPS = {"num_steps_remaining": [100, 100], "time_since_start": [10, 20]}
NEED_A_PLACE = sorted(
    set(gavel.POLICIES)
    - {"isolated", "proportional", "gandiva"}
    - {name for name in gavel.POLICIES if "max_sum" in name or name == "total_throughput"}
)
HIERARCHY = {"entities": [{"id": "a"}]}


def odd(speeds: list[list[float]], cluster: dict[str, float], **more: Any) -> dict[str, Any]:
    problem = instance(cluster, speeds, **(STEPS | more), entity=["a", "a"])
    return problem | HIERARCHY


@pytest.mark.parametrize("policy", NEED_A_PLACE)
def test_a_job_that_runs_nowhere_is_named(policy: str) -> None:
    problem = odd([[1, 1], [0, 0]], {"v100": 2, "k80": 2})
    with pytest.raises(InfeasibleError, match="job 1 has throughput 0 on every GPU type"):
        gavel.allocate(policy, problem)


@pytest.mark.parametrize("policy", NEED_A_PLACE)
def test_a_gang_that_fits_nowhere_is_named(policy: str) -> None:
    problem = odd([[1, 1], [1, 0]], {"v100": 2, "k80": 8}, scale_factor=[1, 4])
    error = SpecError if policy == "allox" else InfeasibleError
    message = "another gang" if policy == "allox" else "job 1: its gang of 4 fits on no GPU type"
    if policy == "allox":
        problem["jobs"][1]["throughputs"]["k80"] = 1
    with pytest.raises(error, match=message):
        gavel.allocate(policy, problem)


@pytest.mark.parametrize("policy", sorted(gavel.POLICIES))
def test_one_job_has_all_it_can_use(policy: str) -> None:
    problem = instance({"v100": 1, "k80": 1}, [[4, 1]], num_steps_remaining=[100], entity=["a"])
    decided = gavel.allocate(policy, problem | HIERARCHY)
    row = decided.shares[0]
    assert sum(row.values()) == pytest.approx(1, abs=1e-8)
    closed = policy in {"isolated", "proportional", "gandiva"}
    blind = gavel.POLICIES[policy].blind
    if not closed and not blind and "cost" not in policy:
        assert row == pytest.approx({"v100": 1, "k80": 0}, abs=1e-7)


@pytest.mark.parametrize("policy", sorted(gavel.POLICIES))
def test_no_gpu_of_a_type(policy: str) -> None:
    problem = odd([[4, 1], [2, 2]], {"v100": 0, "k80": 1})
    decided = gavel.allocate(policy, problem)
    assert all(row["v100"] == 0 for row in decided.shares.values())
    if policy == "max_min_fairness_perf":
        assert decided.objective == pytest.approx(0.5)
    if policy == "min_total_duration_perf":
        assert decided.objective == pytest.approx(100 / 1 + 100 / 2)


def test_zero_speed_on_a_type_gives_no_share_there() -> None:
    problem = odd([[1, 0], [1, 0]], {"v100": 1, "k80": 5})
    for policy in ("max_min_fairness", "max_min_fairness_perf", "min_total_duration"):
        decided = gavel.allocate(policy, problem)
        assert decided.shares[0] == pytest.approx({"v100": 0.5, "k80": 0})
        assert decided.shares[1] == pytest.approx({"v100": 0.5, "k80": 0})


def test_a_job_of_zero_speed_takes_nothing_from_total_throughput() -> None:
    decided = gavel.allocate("total_throughput", odd([[5, 1], [0, 0]], {"v100": 1, "k80": 1}))
    assert decided.objective == pytest.approx(5)
    assert decided.throughputs[1] == 0


def test_jobs_that_are_done_need_nothing() -> None:
    problem = odd([[1], [1]], {"v100": 1}, num_steps_remaining=[0, 100])
    assert gavel.allocate("makespan", problem).objective == pytest.approx(100)
    # Job 0 has no steps left; job 1 has waited 20 s: (20 + 100) / (100 / 0.5).
    found = gavel.allocate("finish_time_fairness_perf", problem).objective
    assert found == pytest.approx(0.6)
    nothing = odd([[1], [1]], {"v100": 1}, num_steps_remaining=[0, 0])
    assert gavel.allocate("makespan", nothing).objective == 0
    assert gavel.allocate("finish_time_fairness_perf", nothing).objective == 0


def test_no_jobs() -> None:
    for policy in gavel.POLICIES:
        decided = gavel.allocate(policy, {"cluster": {"v100": 1}, "jobs": []})
        assert (decided.objective, decided.shares) == (None, {})


COST_SLO = "max_sum_throughput_normalized_by_cost_perf_SLOs"


def test_an_slo_out_of_reach_names_the_job() -> None:
    problem = odd([[4, 1], [4, 1]], {"v100": 1, "k80": 1})
    with pytest.raises(InfeasibleError, match=r"job 1 needs 5 steps/s .* reaches at most 4"):
        gavel.allocate(COST_SLO, problem, slo_seconds_left={1: 20})


def test_slos_that_cannot_be_met_together_name_the_jobs() -> None:
    problem = odd([[4, 1], [4, 1]], {"v100": 1, "k80": 1})
    slos = {0: 30, 1: 30}  # 3.33 steps/s each; both types together give 5
    with pytest.raises(InfeasibleError, match="SLO of job 0, 1 cannot hold together"):
        gavel.allocate(COST_SLO, problem, slo_seconds_left=slos)
    dropped = gavel.allocate(COST_SLO, problem, slo_seconds_left=slos, on_infeasible_slo="drop")
    assert dropped.notes[0].startswith("All SLOs were dropped: ")
    free = gavel.allocate("max_sum_throughput_normalized_by_cost_perf", problem)
    assert dropped.objective == pytest.approx(free.objective)


def test_slos_bind_and_past_deadlines_do_not() -> None:
    problem = odd([[4, 1], [1, 1]], {"v100": 1, "k80": 0})
    costs = {"v100": 2.0, "k80": 1.0}
    free = gavel.allocate(COST_SLO, problem, instance_costs=costs)
    assert free.objective == pytest.approx(2)  # job 0 has the V100: 4 / 2
    past = gavel.allocate(COST_SLO, problem, instance_costs=costs, slo_seconds_left={1: -5})
    assert past.shares == free.shares
    bound = gavel.allocate(COST_SLO, problem, instance_costs=costs, slo_seconds_left={1: 200})
    assert bound.throughputs[1] == pytest.approx(0.5)
    assert bound.objective == pytest.approx((4 * 0.5 + 0.5) / 2)


def test_lecture_objectives() -> None:
    """Total throughput, the quickest job, the makespan, each worked by hand."""
    problem = instance({"v100": 1, "k80": 1}, [[4, 1], [3, 2]], num_steps_remaining=[100, 30])
    total = gavel.allocate("total_throughput", problem)
    assert total.objective == pytest.approx(4 + 2)
    quick = gavel.allocate("quickest_job", problem)
    assert quick.objective == pytest.approx(30 / 3)
    assert quick.shares == {0: {"v100": 0, "k80": 0}, 1: {"v100": 1, "k80": 0}}
    # Job 0 on the V100 all the time: 25 s; job 1 needs 15 s of the K80 meanwhile.
    assert gavel.allocate("makespan", problem).objective == pytest.approx(25)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": None}, "instance.cluster"),
        ({"cluster": {"v100": -1}}, "instance.cluster.v100: expected a number >= 0"),
        ({"jobs": [{"id": 0}]}, "instance.jobs\\[0\\].throughputs"),
        ({"jobs": [{"throughputs": {}}]}, "instance.jobs\\[0\\]: expected a mapping with an 'id'"),
        ({"jobs": [{"id": 4, "throughputs": {}}] * 2}, "id 4 appears twice"),
        ({"jobs": [{"id": 0, "throughputs": {"v100": float("nan")}}]}, "finite number"),
        ({"pairs": [{"jobs": [0, 7], "throughputs": {}}]}, "there is no job 7"),
        ({"entities": [{"id": "a", "policy": "fairnes"}]}, "Did you mean 'fairness'"),
        ({"cluster": {1: 2}}, "instance.cluster: expected GPU types by name"),
        ({"cluster": {}}, "instance.cluster: expected GPU types by name"),
        ({"jobs": [{"id": float("nan"), "throughputs": {}}]}, "expected a mapping with an 'id'"),
        ({"jobs": [{"id": 0, "throughputs": {}, "scale_facter": 4}]}, "mean 'scale_factor'"),
        ({"clustr": {}}, "instance.clustr: unknown name. Did you mean 'cluster'"),
        ({"pairs": 3}, "instance.pairs: expected a list, not 3"),
        ({"pairs": [{"jobs": [[0], 1], "throughputs": {}}]}, r"there is no job \[0\]"),
        ({"pairs": [{"jobs": [0, 1], "throughputs": {}}] * 2}, "0 and 1 are a pair already"),
        ({"pairs": [{"jobs": [0, 1], "throughputs": {"v100": [3]}}]}, "speeds of both jobs"),
        ({"pairs": [{"jobs": [0, 1], "throughputs": {"v100": 3}}]}, "speeds of both jobs"),
        ({"entities": 3}, "instance.entities: expected a list, not 3"),
        ({"entities": [{"id": [1]}]}, r"instance.entities\[0\]: expected a mapping with an 'id'"),
        ({"entities": [{"id": "a"}, {"id": "a"}]}, "the id 'a' appears twice"),
        ({"jobs": [{"id": 0, "throughputs": {}, "entity": [1]}]}, r"entity: no entity \[1\]"),
    ],
)
def test_wrong_instances_say_where(change: dict[str, Any], message: str) -> None:
    problem = odd([[1], [1]], {"v100": 1}) | change
    with pytest.raises(SpecError, match=message):
        gavel.allocate("isolated", problem)


def test_wrong_options_say_which() -> None:
    problem = odd([[1], [1]], {"v100": 1})
    with pytest.raises(SpecError, match="Did you mean 'max_min_fairness_perf'"):
        gavel.allocate("max_min_fairnes_perf", problem)
    for option in (
        {"partitions": 3}, {"partitions": 0}, {"gangs": "w"}, {"alpha": 0.0}, {"alpha": "x"},
        {"seed": None}, {"previous": "x"}, {"instance_costs": [1]}, {"slo_seconds_left": [1]},
    ):  # fmt: skip
        with pytest.raises(SpecError, match=f"^{next(iter(option))}: "):
            gavel.allocate("max_min_fairness_perf", problem, **option)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="cannot be split"):
        gavel.allocate("fifo", problem, partitions=2)
    with pytest.raises(SpecError, match="job 0 has none"):
        gavel.allocate("makespan", instance({"v100": 1}, [[1]]))
    with pytest.raises(SpecError, match="a100"):
        gavel.allocate(COST_SLO, instance({"a100": 1}, [[1]]))


def test_public_name() -> None:
    assert wt.gavel.allocate is gavel.allocate


def test_needs_far_below_a_solvers_tolerance_are_met() -> None:
    steps = [1, 10**12]
    problem = instance(
        {"v100": 1}, [[1], [1]], num_steps_remaining=steps, time_since_start=[1e7, 0]
    )
    decided = gavel.allocate("makespan", problem)
    assert decided.objective == pytest.approx(10**12 + 1, rel=1e-9)
    for job, speed in decided.throughputs.items():
        assert steps[job] / speed <= decided.objective * (1 + 1e-7)
    decided = gavel.allocate("finish_time_fairness_perf", problem)
    # Job 0 has waited 10^7 s for what takes 2 s of its own half: it has the GPU all but always.
    assert decided.objective == pytest.approx((1e7 + 1) / 2, rel=1e-6)
    assert decided.throughputs[1] > 0
    rho = steps[1] / decided.throughputs[1] / (steps[1] / 0.5)
    assert rho <= decided.objective * (1 + 1e-6)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_speeds_of_any_size(factor: float) -> None:
    """A solver's tolerances are absolute; answers must not depend on the unit of speeds."""
    speeds = [[4.0, 1.0, 0.7], [3.0, 2.0, 2.9], [0.6, 0.5, 0.4], [2.2, 2.1, 0.1]]
    cluster = {"v100": 1, "p100": 1, "k80": 1}
    fine = [[speed * factor for speed in row] for row in speeds]
    costs = {"v100": 3.0, "p100": 2.0, "k80": 1.0}
    for policy in (
        "max_sum_throughput_perf",
        "max_sum_throughput_normalized_by_cost_perf",
        COST_SLO,
    ):
        steps = [100.0] * 4
        usual = gavel.allocate(
            policy,
            instance(cluster, speeds, num_steps_remaining=steps),
            instance_costs=costs,
            slo_seconds_left={2: 500},
        )
        scaled = gavel.allocate(
            policy,
            instance(cluster, fine, num_steps_remaining=[n * factor for n in steps]),
            instance_costs=costs,
            slo_seconds_left={2: 500},
        )
        assert usual.objective is not None
        assert scaled.objective == pytest.approx(usual.objective * factor, rel=1e-9)
        for job, row in usual.shares.items():
            assert scaled.shares[job] == pytest.approx(row, abs=1e-7)


@pytest.mark.parametrize("left", [1e-6, 1e-9, 1e-13])
def test_jobs_that_are_all_but_done_have_a_finish_time_fairness(left: float) -> None:
    """What is left takes less than the digits of their ages tell; the older one has the larger rho.

    On the one GPU the isolated time of what is left is as nothing beside a minute.
    """
    problem = instance(
        {"v100": 1},
        [[4], [4]],
        num_steps_remaining=[left] * 2,
        time_since_start=[70.0, 1e6],
        isolated_time=[60.0] * 2,
    )
    decided = gavel.allocate("finish_time_fairness_perf", problem)
    assert decided.objective == pytest.approx(1e6 / 60, rel=1e-6)
    assert decided.shares[1]["v100"] > 0


@pytest.mark.parametrize("policy", ["max_min_fairness_perf", "max_min_fairness_water_filling_perf"])
@pytest.mark.parametrize("weights", [(1e9, 1e9), (1e-9, 1e-9), (1.0, 1e9), (1e-6, 3e6)])
def test_weights_of_any_size(policy: str, weights: tuple[float, float]) -> None:
    """One GPU, two jobs: both reach 1 / (sum of weights), whatever the weights."""
    problem = instance({"v100": 1}, [[2], [2]], priority_weight=list(weights))
    decided = gavel.allocate(policy, problem)
    assert decided.objective == pytest.approx(1 / sum(weights), rel=1e-6)
    for job, weight in enumerate(weights):
        assert decided.throughputs[job] / 2 / weight >= 1 / sum(weights) * (1 - 1e-6)


def test_a_common_factor_of_weights_changes_no_share() -> None:
    speeds = [[4, 1], [3, 2], [1, 1], [5, 1]]
    cluster = {"v100": 1, "k80": 2}
    usual = gavel.allocate("max_min_fairness_perf", instance(cluster, speeds))
    huge = gavel.allocate(
        "max_min_fairness_perf", instance(cluster, speeds, priority_weight=[1e9] * 4)
    )
    for job, row in usual.shares.items():
        assert huge.shares[job] == pytest.approx(row, abs=1e-7)
