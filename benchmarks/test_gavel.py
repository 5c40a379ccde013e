"""Speed of Gavel's policies: merged, unmerged, packed, in parts (POP), in rounds, beside cvxpy."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel import gavel
from windtunnel.study.gavel_sweep import SweepOptions, rate_sweep
from windtunnel.throughput import gavel_speeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures

TYPES = ("k80", "p100", "v100")


def workload(count: int, *, alike: bool = True, pairs: bool = False) -> gavel.Instance:
    """Return jobs of Gavel's types on a quarter as many GPUs of each type.

    Without ``alike`` every job's speeds differ a little, so that none can be merged; pairs, of
    jobs of one GPU, slow each other down by drawn factors that depend on the job types alone.
    """
    rng = random.Random(0)  # noqa: S311 - a benchmark's draws
    table = gavel_speeds()
    kinds = [kind for kind in table.job_types if not pairs or kind[1] == 1]
    jobs: list[dict[str, Any]] = []
    for number in range(count):
        model, gang = rng.choice(kinds)
        factor = 1.0 if alike else rng.uniform(0.999, 1.001)
        speeds = {name: table.alone[name][model, gang] * factor for name in TYPES}
        steps = rng.randint(10_000, 10_000_000)
        jobs.append({"id": number, "job_type": model, "scale_factor": gang, "throughputs": speeds})
        jobs[-1] |= {"num_steps_remaining": steps, "time_since_start": rng.uniform(0, 1e5)}
    source: dict[str, Any] = {"cluster": dict.fromkeys(TYPES, count / 4), "jobs": jobs}
    if pairs:
        models = sorted({job["job_type"] for job in jobs})
        slow = {a: {b: rng.uniform(0.2, 0.9) for b in models} for a in models}
        for one, other in zip(models, models, strict=True):
            slow[one][other] = 0.55
        source["pairs"] = [
            {
                "jobs": [one["id"], other["id"]],
                "throughputs": {
                    name: [
                        one["throughputs"][name] * slow[one["job_type"]][other["job_type"]],
                        other["throughputs"][name] * slow[other["job_type"]][one["job_type"]],
                    ]
                    for name in TYPES
                },
            }
            for one in jobs
            for other in jobs[one["id"] + 1 :]
        ]
    return gavel.as_instance(source)


@pytest.mark.parametrize(
    ("policy", "count", "merge", "target"),
    [
        ("max_min_fairness_perf", 2048, True, 0.02),
        ("max_min_fairness_perf", 2048, False, 1.0),
        ("max_min_fairness_water_filling_perf", 2048, True, 0.1),
        ("max_sum_throughput_perf", 2048, True, 0.02),
        ("min_total_duration_perf", 2048, True, 1.0),
        ("finish_time_fairness_perf", 2048, True, 1.0),
    ],
)
def test_linear_policies(
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    count: int,
    merge: bool,  # noqa: FBT001 - a parametrised value
    target: float,
) -> None:
    instance = workload(count, alike=merge)
    gavel.allocate(policy, workload(64))  # load the solver
    seconds = cpu_seconds(lambda: gavel.allocate(policy, instance, merge=merge), rounds=3)
    kind = "merged" if merge else "all different"
    figures.amount(f"{policy}, {count} jobs, {kind}", seconds, "CPU s", target)


@pytest.mark.parametrize(("merge", "target"), [(True, 0.5), (False, 10.0)])
def test_packed(
    figures: Figures,
    cpu_seconds: Callable[..., float],
    merge: bool,  # noqa: FBT001 - a parametrised value
    target: float,
) -> None:
    instance = workload(256, pairs=True)
    policy = "max_min_fairness_packed"
    seconds = cpu_seconds(lambda: gavel.allocate(policy, instance, merge=merge), rounds=1)
    kind = "by job types" if merge else "job by job"
    figures.amount(f"{policy}, 256 jobs, {kind}", seconds, "CPU s", target)


@pytest.mark.parametrize("parts", [4, 8, 16])
def test_loss_in_parts(figures: Figures, parts: int) -> None:
    instance = workload(2048)
    policy = "max_min_fairness_perf"
    exact = gavel.allocate(policy, instance).objective
    split = gavel.allocate(policy, instance, partitions=parts).objective
    assert exact is not None
    assert split is not None
    figures.amount(f"{policy}, 2048 jobs, POP-{parts}: loss", 1 - split / exact, "of 1", 0.03)


def rho_of_stream(policy: str, compat: str | None) -> float:
    """Run 5,000 jobs at 4 jobs an hour on the published cluster; return their mean rho."""
    options = SweepOptions(compat=compat)
    (row,) = rate_sweep([policy], [4.0], [0], options).to_pylist()
    assert row["num_measured"] == 1000
    return float(row["avg_rho"])


@pytest.mark.parametrize("compat", ["gavel", None])
def test_stream_of_5000_jobs(
    figures: Figures, cpu_seconds: Callable[..., float], compat: str | None
) -> None:
    gavel.allocate("max_min_fairness_perf", workload(64))  # load the solver
    seconds = cpu_seconds(lambda: rho_of_stream("max_min_fairness_perf", compat), rounds=1)
    mechanism = "published rounds" if compat else "rounds by deficits"
    figures.amount(f"5,000 jobs at 4 jobs/h, max-min, {mechanism}", seconds, "CPU s", 20.0)


def cvxpy_max_min(instance: gavel.Instance) -> float:
    """Return the optimum of max-min fairness, written as the published code writes it."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy (extra 'bench') is not installed")
    pytest.importorskip("clarabel", reason="Clarabel (extra 'bench') is not installed")
    shares = cp.Variable(instance.throughputs.shape)
    equal = instance.throughputs @ instance.num_gpus / instance.num_gpus.sum()
    factors = instance.scale_factors / (instance.weights * equal)
    speeds = cp.multiply(factors, cp.sum(cp.multiply(instance.throughputs, shares), axis=1))
    limits = [
        shares >= 0,
        instance.scale_factors @ shares <= instance.num_gpus,
        cp.sum(shares, axis=1) <= 1,
    ]
    problem = cp.Problem(cp.Maximize(cp.min(speeds)), limits)
    return float(problem.solve(solver="CLARABEL"))


@pytest.mark.parametrize("count", [128, 512, 2048])
def test_against_cvxpy(figures: Figures, cpu_seconds: Callable[..., float], count: int) -> None:
    instance = workload(count)
    policy = "max_min_fairness_perf"
    theirs = cvxpy_max_min(workload(64))  # load both, or skip
    assert gavel.allocate(policy, workload(64)).objective == pytest.approx(theirs, rel=1e-5)
    ours = gavel.allocate(policy, instance).objective
    assert ours == pytest.approx(cvxpy_max_min(instance), rel=1e-5)
    quick = cpu_seconds(lambda: gavel.allocate(policy, instance), rounds=3)
    slow = cpu_seconds(lambda: cvxpy_max_min(instance), rounds=3)
    figures.amount(f"max-min, {count} jobs: ours over cvxpy's with Clarabel", quick / slow, "", 0.5)
