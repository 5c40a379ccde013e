"""Published rates and closed forms of reliability, and flights beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import Checkpointing, Disruptions, FailureModel, parse_disruptions
from windtunnel.sim.disruptions import closed_forms as theory
from windtunnel.sim.disruptions.presets import DAY, LLAMA_JOB_FAILURES, LLAMA_NODE_CAUSES, RSC_RATE

HOUR = 3_600.0


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.80), (131_072, 0.225), (1_024, 28.8)])
def test_mttf_of_a_job_at_the_rate_of_rsc(gpus: int, hours: float) -> None:
    """The last one was measured as 7.9 h: `SERIES_FROM` says from where the model holds."""
    found = theory.job_mttf(gpus, DAY / RSC_RATE) / HOUR
    assert found == pytest.approx(hours, rel=0.01)
    assert theory.SERIES_FROM > 1_024


def test_llama_3_was_interrupted_419_times() -> None:
    assert sum(LLAMA_NODE_CAUSES.values()) + LLAMA_JOB_FAILURES == 419


def test_llama_3_flies_with_419_interruptions_and_more_than_90_percent() -> None:
    """16,384 GPUs for 54 days; a checkpoint each 10 min costs 10 s, a restart 5 min."""
    down = parse_disruptions("llama3/checkpoint:10m/cost:10/restart:5m")
    jobs = {"submit_time": [0.0], "duration": [60 * DAY], "num_gpus": [16_384.0]}
    until = 54 * DAY
    out = wt.simulate(jobs, "2064x8", disruptions=down, until=until, seed=1)
    metrics = out.metrics()
    assert abs(metrics["num_failures"] - 419) < 2 * math.sqrt(419)
    assert metrics["ettr"] > 0.9
    mttf = until / 419
    found = theory.goodput(600, 10, mttf, restart=300)
    assert metrics["ettr"] == pytest.approx(found, rel=0.01)
    causes = {row["cause"]: row["num_stops"] for row in out.losses_by_cause().to_pylist()}
    faulty = LLAMA_NODE_CAUSES["faulty GPU"]
    assert abs(causes["faulty GPU"] - faulty) < 3 * math.sqrt(faulty)
    assert causes["job"] > 0


def test_rsc_flies_at_its_rate() -> None:
    """2,048 nodes fail 13.3 times a day."""
    jobs = {"submit_time": [0.0, 0.0], "duration": [1.0, 30 * DAY], "num_gpus": [1.0, 16_384.0]}
    down = parse_disruptions("rsc/mttr:1h/checkpoint:30m")
    out = wt.simulate(jobs, "2060x8", disruptions=down, until=30 * DAY, seed=3)
    mean = 30 * 2_048 * RSC_RATE
    assert abs(out.metrics()["num_failures"] - mean) < 3 * math.sqrt(mean)
    assert out.metrics()["mttf_low"] < 1.80 * HOUR < out.metrics()["mttf_high"]


def best(share: object) -> float:
    """Return the interval of a cost of 60 s and an MTTF of 6 h that is best, by brute force."""
    grid = np.geomspace(60, 6 * HOUR, 4_000)
    return float(max(grid, key=share))  # type: ignore[operator]


def test_intervals_are_within_a_percent_of_the_best_goodput() -> None:
    cost, mttf, restart = 60.0, 6 * HOUR, 300.0

    def share(interval: float) -> float:
        return theory.goodput(interval, cost, mttf, restart=restart)

    top = share(best(share))
    cycle = theory.availability_optimal(cost, mttf, restart)
    for interval in (theory.young(cost, mttf), theory.daly(cost, mttf), cycle - cost):
        assert share(interval) > 0.99 * top
    assert theory.daly(cost, mttf) == pytest.approx(best(share), rel=0.01)


def test_the_availability_optimal_cycle_minimises_its_own_cost() -> None:
    """Of a cycle Tc: Ts / Tc to save, and Tc / 2 of work and Tr lost each Tf + Tr + Tc / 2."""
    cost, mttf, recovery = 60.0, 6 * HOUR, 300.0
    cycles = np.geomspace(100, 10 * HOUR, 20_000)
    share = (1 - cost / cycles) * mttf / (mttf + recovery + cycles / 2)
    found = float(cycles[share.argmax()])
    assert theory.availability_optimal(cost, mttf, recovery) == pytest.approx(found, rel=0.01)


def test_the_flown_goodput_is_that_of_renewal_theory() -> None:
    mttf, cost, restart, repair = 4 * HOUR, 60.0, 300.0, 600.0
    down = Disruptions(
        failure_models=[FailureModel(mtbf=mttf, mttr=repair, repair="fixed")],
        checkpoint=Checkpointing(interval=1_200, cost=cost, restart_cost=restart),
    )
    jobs = {"submit_time": [0.0], "duration": [4_000 * DAY], "num_gpus": [8.0]}
    out = wt.simulate(jobs, "1x8", disruptions=down, until=2_000 * DAY, seed=1)
    found = theory.goodput(1_200, cost, mttf, restart=restart, repair=repair)
    assert out.metrics()["ettr"] == pytest.approx(found, rel=0.01)


@pytest.mark.sample(1)
@pytest.mark.parametrize("crews", [1, 2, None])
def test_repair_by_crews_is_the_machine_repair_queue(crews: int | None) -> None:
    nodes, mtbf, mttr, span = 12, 1_000.0, 60.0, 1_000_000.0
    down = Disruptions(
        failure_models=[FailureModel(mtbf=mtbf, mttr=mttr)], repair_crews=crews, seed=5
    )
    jobs = {"submit_time": [0.0, 0.0], "duration": [1.0, span], "num_gpus": [1.0, 0.0]}
    found = wt.simulate(jobs, f"{nodes}x1", disruptions=down).flight.interruptions
    assert found is not None
    times = np.diff(np.append(np.clip(found.up_time, 0.0, span), span))
    states = theory.machines_down(nodes, nodes if crews is None else crews, mtbf, mttr)
    mean = sum(number * share for number, share in enumerate(states))
    assert (times * found.up_gpus).sum() / span == pytest.approx(nodes - mean, rel=0.01)


def test_spares_keep_the_job_up() -> None:
    spares = theory.spares_for(100, 2, 30 * DAY, 4 * HOUR, 0.999)
    down = theory.machines_down(100 + spares, 2, 30 * DAY, 4 * HOUR)
    assert sum(down[: spares + 1]) >= 0.999
    less = theory.machines_down(99 + spares, 2, 30 * DAY, 4 * HOUR)
    assert sum(less[:spares]) < 0.999


def test_lemons_fail_so_many_times_as_often() -> None:
    model = FailureModel(mtbf=10_000, mttr=1, lemons=0.5, lemon_factor=10)
    jobs = {"submit_time": [0.0] * 20, "duration": [100_000.0] * 20, "num_gpus": [1.0] * 20}
    down = Disruptions(failure_models=[model], checkpoint=Checkpointing(interval=60))
    failures = wt.simulate(jobs, "20x1", disruptions=down, seed=1).table["num_failures"]
    assert failures.to_numpy().sum() > 20 * 10 * 3


@pytest.mark.parametrize(
    "word", ["llama4", "llama3/mtbf:3d", "rsc/crews:few", "rsc/crews:0", "rsc/mttr:1h/mttr:2h"]
)
def test_unknown_words_are_refused(word: str) -> None:
    with pytest.raises(SpecError):
        parse_disruptions(word)
