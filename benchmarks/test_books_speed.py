"""Speed of fair share and quotas, on the golden workload with owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.placements.whole import BestFit
from windtunnel.policies import resolve_policy
from windtunnel.sim import flying

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures
    from windtunnel.sim.problem import Problem


@pytest.mark.parametrize(
    ("policy", "queueing"),
    [
        ("fair-share", "strict"),
        ("fair-share", "skip"),
        ("multifactor", "strict"),
        ("quota", "strict"),
    ],
)
def test_books(
    with_owners: Problem,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    queueing: str,
) -> None:
    chosen = resolve_policy(policy)

    def fly() -> None:
        run = chosen.for_run(with_owners)
        flying.run(with_owners, run, BestFit(), queueing=queueing)

    seconds = cpu_seconds(fly, rounds=3)
    figures.rate(f"100 k jobs, {policy} {queueing}", 2 * len(with_owners.rows), seconds, 1e6)
