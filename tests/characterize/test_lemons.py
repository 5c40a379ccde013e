"""Lemon nodes that were planted are found, and few others; outages are kept apart."""

from __future__ import annotations

import numpy as np
import pytest

from windtunnel.characterize.lemons import Attempts, find_lemons
from windtunnel.sim.disruptions.presets import DAY, RSC_RATE


def log(
    random: np.random.Generator, *, nodes: int, days: int, factor: np.ndarray, outages: int = 0
) -> Attempts:
    """Return a log of attempts of a day or until a failure, on 1 to 8 nodes (most on 1) drawn anew.

    Args:
        random: generator.
        nodes: number of them.
        days: how long.
        factor: how many times as often as at RSC's rate each node fails, shape (nodes,).
        outages: times at which 40 of the nodes fail within a minute.
    """
    parts = []
    struck = {int(day): random.choice(nodes, 40, replace=False)
              for day in random.choice(days, outages, replace=False)}  # fmt: skip
    count = 0
    for day in range(days):
        order = random.permutation(nodes)
        sizes = random.choice([1, 1, 1, 2, 4, 8], nodes)
        sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), nodes)) + 1]
        attempt = np.repeat(np.arange(len(sizes)), sizes)[:nodes]
        fails = random.exponential(1 / (RSC_RATE * factor[order]))
        if day in struck:
            fails[np.isin(order, struck[day])] = 0.5 + random.uniform(0, 60 / DAY)
        first = np.full(len(sizes), np.inf)
        np.minimum.at(first, attempt, fails)
        run = np.minimum(first, 1.0) * DAY
        parts.append((order, attempt + count, run, day * DAY + run, first < 1.0))
        count += len(sizes)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Attempts(*columns, names=[f"n{node}" for node in range(nodes)])


def planted(random: np.random.Generator, nodes: int, share: float) -> tuple[np.ndarray, set[str]]:
    """Return each node's factor, 5 to 20 of the lemons, and the lemons' names."""
    which = random.choice(nodes, int(nodes * share), replace=False)
    factor = np.ones(nodes)
    factor[which] = random.uniform(5, 20, len(which))
    return factor, {f"n{node}" for node in which}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_lemons_are_found_and_hardly_any_other(seed: int) -> None:
    """1 % of 2,000 nodes, 600 days: 95 % found, at most 1 in 1,000 wrong."""
    random = np.random.default_rng(seed)
    factor, lemons = planted(random, 2_000, 0.01)
    found = {
        one.node for one in find_lemons(log(random, nodes=2_000, days=600, factor=factor)).lemons
    }
    assert len(found & lemons) >= 0.95 * len(lemons)
    assert len(found - lemons) <= 2


def test_outages_are_no_lemons() -> None:
    random = np.random.default_rng(7)
    given = log(random, nodes=400, days=300, factor=np.ones(400), outages=12)
    found = find_lemons(given)
    assert len(found.outages) == 12
    assert found.lemons == []
    assert found.rate * DAY == pytest.approx(RSC_RATE, rel=0.1)


def test_lemons_are_found_among_outages() -> None:
    random = np.random.default_rng(8)
    factor = np.ones(400)
    factor[[3, 50]] = 15.0
    found = find_lemons(log(random, nodes=400, days=300, factor=factor, outages=8))
    assert {one.node for one in found.lemons} == {"n3", "n50"}
    assert all(10 < one.ratio < 20 for one in found.lemons)
    assert found.lemons[0].p < found.lemons[1].p
    # By chance each would have as many: the rate is that of the other nodes for both.
    per_day = [one.expected for one in found.lemons]
    assert per_day[0] == pytest.approx(per_day[1], rel=0.2)
    assert len(found.outages) == 8


def test_a_log_without_failures_has_neither() -> None:
    none = np.empty(0, dtype=np.int64)
    empty = np.empty(0)
    found = find_lemons(Attempts(none, none, empty, empty, empty.astype(bool), []))
    assert (found.lemons, found.outages, found.rate) == ([], [], 0.0)
