"""Speed of fair share and quotas on both engines, on the golden workload with owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.placements.best_fit import BestFit
from windtunnel.policies import resolve_policy
from windtunnel.sim import flying, reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from conftest import Figures
    from windtunnel.sim.problem import Problem


@pytest.mark.parametrize(
    ("policy", "queueing", "target", "ratio"),
    [
        ("fair-share", "strict", 1e6, 10.0),
        ("fair-share", "skip", 1e6, 10.0),
        ("multifactor", "strict", 1e6, 10.0),
        ("quota", "strict", 1e6, 10.0),
    ],
)
def test_both_engines(
    with_owners: Problem,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    queueing: str,
    target: float,
    ratio: float,
) -> None:
    chosen = resolve_policy(policy)

    def fly(engine: ModuleType) -> None:
        run = chosen.for_run(with_owners)
        engine.run(with_owners, run, BestFit(), queueing=queueing)

    fast = cpu_seconds(lambda: fly(flying), rounds=3)
    slow = cpu_seconds(lambda: fly(reference), rounds=1)
    figures.rate(
        f"compiled, 100 k jobs, {policy} {queueing}", 2 * len(with_owners.rows), fast, target
    )
    figures.amount(
        f"the same, part of the reference engine's {slow:.1f} s", fast / slow, "", 1 / ratio
    )
