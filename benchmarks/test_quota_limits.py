"""What quotas as limits of any policy cost: an overloaded queue with them, against one without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel import schema

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from conftest import Figures

#: A cohort of eight queues on 512 GPUs, each of which wants 77; half of them may have 48 at most.
QUOTAS: dict[str, Any] = {
    "queues": [
        {"vc": f"q{number}", "cohort": "all", "nominal_quota": 32, "borrowing_limit": 16}
        if number < 4
        else {"vc": f"q{number}", "cohort": "all", "nominal_quota": 96}
        for number in range(8)
    ]
}


@pytest.fixture(scope="module")
def overload() -> pa.Table:
    """Twenty thousand jobs, offered load 1.2."""
    rng = np.random.default_rng(0)
    num_gpus = rng.choice([1, 2, 4, 8], 20_000, p=[0.5, 0.2, 0.15, 0.15])
    duration = np.round(rng.lognormal(7, 1.2, 20_000)) + 10
    between = (num_gpus * duration).mean() / (1.2 * 512)
    columns = {
        "submit_time": np.cumsum(rng.exponential(between, 20_000)).round(),
        "duration": duration,
        "num_gpus": num_gpus.astype(float),
        "estimate": duration * rng.choice([1, 1.5, 3], 20_000),
        "vc": [f"q{number}" for number in rng.integers(0, 8, 20_000)],
    }
    return schema.as_jobs(columns)


@pytest.mark.parametrize(
    ("policy", "queueing", "target"),
    [
        ("fifo", "skip", 3.5),
        ("fifo", "easy", 3.0),
        ("fifo", "conservative", 1.0),
        ("srtf", "skip", 4.5),
        ("srtf", "easy", 3.5),
        ("srtf", "conservative", 3.0),
    ],
)
def test_quotas_as_limits(
    overload: pa.Table,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    queueing: str,
    target: float,
) -> None:
    def seconds(**given: Any) -> float:
        def fly() -> None:
            wt.simulate(overload, "64x8", policy, queueing=queueing, **given)

        return cpu_seconds(fly, rounds=3)

    times = seconds(quotas=QUOTAS) / seconds()
    figures.amount(f"20 k jobs, {policy} {queueing}, with quotas", times, "times", target)
