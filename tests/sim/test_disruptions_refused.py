"""Runs that failures are refused to, because they would end wrong."""

from __future__ import annotations

import pytest

import windtunnel as wt

JOBS = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}


@pytest.mark.parametrize("policy", ["fair-share", "quota", "reserving-packing"])
def test_policies_that_keep_books_are_not_disrupted(policy: str) -> None:
    """A job stopped by an outage would stand in their books for ever, its quota in use."""
    with pytest.raises(wt.SpecError, match="keeps books of who runs"):
        wt.simulate(JOBS, "2x2:A", policy, disruptions="mtbf:70s/mttr:5s/checkpoint:10s")
    assert wt.simulate(JOBS, "2x2:A", disruptions="mtbf:70s/mttr:5s").metrics()["num_waiting"] == 0
