"""Times out of all proportion are refused before a run that would never end."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt


@pytest.mark.parametrize("policy", ["las", "tiresias", "fair-share", "multifactor"])
@pytest.mark.parametrize("huge", [{"duration": [1e308, 1.0]}, {"submit_time": [0.0, 1e300]}])
def test_more_rounds_than_anybody_can_wait_for(policy: str, huge: dict[str, Any]) -> None:
    jobs = {"submit_time": [0.0, 5.0], "duration": [9.0, 1.0], "num_gpus": [1, 1], **huge}
    with pytest.raises(
        wt.SpecError, match=f"{policy}: times of the trace reach .* too many rounds"
    ):
        wt.simulate(jobs, "pool:1", policy, allow_large=True)


def test_a_horizon_makes_them_countable() -> None:
    jobs = {"submit_time": [0.0, 5.0], "duration": [1e308, 1.0], "num_gpus": [1, 1]}
    # Rounds every minute: the second job has had nothing by the first one and takes its turn.
    assert wt.simulate(jobs, "pool:1", "las", until=600.0).table["start_time"].to_pylist() == [
        0,
        60,
    ]


def test_more_failures_than_anybody_can_wait_for() -> None:
    jobs = {"submit_time": [0.0, 1e300], "duration": [9.0, 1.0], "num_gpus": [1, 1]}
    with pytest.raises(wt.SpecError, match=r"disruptions: .* too many failures of a node"):
        wt.simulate(jobs, "1x1", disruptions="mtbf:30d/mttr:4h", allow_large=True)
