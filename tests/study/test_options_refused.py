"""Options that do not go together are refused in words, whatever engine would fly."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt

JOBS = {"submit_time": [0.0, 1.0], "duration": [5.0, 5.0], "num_gpus": [1.0, 1.0]}


@pytest.mark.parametrize("engine", ["auto", "compiled", "reference"])
@pytest.mark.parametrize("placement", ["fgd", "gpu_packing:gang=fill"])
@pytest.mark.parametrize("options", [{"sharing": "pooled"}, {"compat": "pai"}])
def test_placements_on_devices_on_pooled_nodes(
    engine: str, placement: str, options: dict[str, Any]
) -> None:
    with pytest.raises(wt.SpecError, match="needs devices, not pooled nodes"):
        wt.simulate(JOBS, "2x4", placement=placement, engine=engine, **options)


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "easy-perfect", "conservative"])
def test_the_pai_simulator_does_not_backfill(policy: str) -> None:
    with pytest.raises(wt.SpecError, match=f"policy '{policy}' backfills"):
        wt.simulate(JOBS, "2x4", policy, compat="pai")
    with pytest.raises(wt.SpecError, match="goes on past what does not fit"):
        wt.simulate(JOBS, "2x4", "fifo", queueing="easy", compat="pai")
