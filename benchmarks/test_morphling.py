"""Speed of elastic runs: Morphling's 406 jobs under each scheduler."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.study.elastic_comparison import SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures


@pytest.mark.parametrize("trace", ["morphling:base", "morphling:mt"])
@pytest.mark.parametrize("policy", SCHEDULERS)
def test_a_whole_trace(
    trace: str, policy: str, figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    if not os.environ.get("WINDTUNNEL_DATA"):
        pytest.skip("WINDTUNNEL_DATA is not set: no reference data")
    jobs = wt.open_trace(trace).jobs
    wt.simulate(jobs.slice(0, 20), "morphling", policy)  # the models' options are made once
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "morphling", policy), rounds=1)
    limit = 20.0 if policy == "morphling" else 10.0  # the paper's rules alone: queues are long
    figures.amount(f"{policy}, {trace}, 406 jobs", seconds, "CPU s", limit)
