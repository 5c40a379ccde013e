"""Mean waits of random arrivals against queueing theory, within what chance allows.

Arrivals are Poisson. Means of a long run scatter by its correlated waits: they are compared over
batches, whose means are nearly independent, and may miss by four standard errors. Seeds are fixed,
so that a run that passes passes always.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Callable

JOBS = 400_000
BATCHES = 40
#: Run times of mean 1 and their second moments.
LAWS: dict[str, tuple[Callable[[Any, int], np.ndarray], float]] = {
    "constant": (lambda _rng, n: np.ones(n), 1.0),
    "exponential": (lambda rng, n: rng.exponential(1.0, n), 2.0),
    "uniform": (lambda rng, n: rng.uniform(0.0, 2.0, n), 4.0 / 3.0),
    # Nine in ten are short (1/2), one in ten is long (11/2), each exponential.
    "two kinds": (
        lambda rng, n: rng.exponential(np.where(rng.random(n) < 0.9, 0.5, 5.5)),
        2.0 * (0.9 * 0.25 + 0.1 * 30.25),
    ),
}


def flown(
    law: str, load: float, gpus: int, policy: Any, seed: int, **settings: Any
) -> tuple[dict[str, np.ndarray], wt.Outcome]:
    rng = np.random.default_rng(seed)
    jobs = {
        "submit_time": np.cumsum(rng.exponential(1.0 / (load * gpus), JOBS)),
        "duration": LAWS[law][0](rng, JOBS),
        "num_gpus": np.ones(JOBS),
    }
    return jobs, wt.simulate(jobs, f"pool:{gpus}", policy, **settings)


def assert_mean(values: np.ndarray, expected: float) -> None:
    """Compare the mean of a series in order of arrival, its first tenth left out."""
    batches = values[len(values) // 10 :]
    batches = batches[: len(batches) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(BATCHES)
    assert abs(batches.mean() - expected) < 4 * error
    assert error < 0.1 * expected  # or the comparison would say nothing


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival waits in M/M/c; ``load`` is per server."""
    offered = servers * load
    blocking = 1.0
    for k in range(1, servers + 1):  # Erlang B, by its recursion
        blocking = offered * blocking / (k + offered * blocking)
    return blocking / (1 - load * (1 - blocking))


@pytest.mark.sample(3)
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("servers", [1, 3, 8])
def test_first_come_first_served_on_several_gpus_is_erlang_c(servers: int, load: float) -> None:
    _, out = flown("exponential", load, servers, "fifo", seed=servers)
    wait = out.table["wait"].to_numpy()
    waits = erlang_c(servers, load)
    assert_mean(wait, waits / (servers * (1 - load)))
    assert_mean((wait > 0).astype(float), waits)


@pytest.mark.sample(3)
@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize("law", list(LAWS))
def test_one_gpu_is_pollaczek_khinchine(law: str, load: float) -> None:
    _, out = flown(law, load, 1, "fifo", seed=7)
    assert_mean(out.table["wait"].to_numpy(), load * LAWS[law][1] / (2 * (1 - load)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["las:quantum=0.25", "tiresias:bounds=0.5/2:quantum=0.25"])
def test_without_memory_no_blind_order_changes_the_mean(policy: str) -> None:
    # Exponential run times: what a job has had says nothing, so all such orders are like FIFO.
    _, out = flown("exponential", 0.7, 1, policy, seed=3)
    assert_mean(out.table["jct"].to_numpy(), 1 / (1 - 0.7))


def test_shortest_remaining_first_is_schrage_and_miller() -> None:
    """M/M/1 under SRPT: mean completion by numerical integration (Operations Research, 1966)."""
    load = 0.7
    x = np.linspace(0.0, 40.0, 400_001)
    density = np.exp(-x)
    step = x[1] - x[0]

    def integral(values: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2) * step])

    below = 1 - load * integral(x * density)  # 1 - load of jobs up to x
    wait = load * (integral(x**2 * density) + x**2 * np.exp(-x)) / (2 * below**2)
    expected = float((integral((wait + integral(1 / below)) * density))[-1])
    _, out = flown("exponential", load, 1, "srtf", seed=11)
    assert_mean(out.table["jct"].to_numpy(), expected)


@pytest.mark.sample(2)
@pytest.mark.parametrize("policy", ["fifo", "sjf", "srtf", "las:quantum=0.5"])
def test_littles_law_to_rounding(policy: str) -> None:
    _, out = flown("two kinds", 0.8, 4, policy, seed=5)
    queue, table = out.queue(), out.table
    times, waiting = queue["time"].to_numpy(), queue["jobs"].to_numpy()
    area = float((np.diff(times) * waiting[:-1]).sum())
    waits = float((table["jct"].to_numpy() - table["run_time"].to_numpy()).sum())
    assert area == pytest.approx(waits, rel=1e-9)
