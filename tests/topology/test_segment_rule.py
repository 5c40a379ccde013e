"""The vendor's rule of thumb for segments, against placing blind of racks, on 5,000 nodes.

Slurm's guide to block topologies on racks of 18 nodes of 4 GPUs: segments of 16 nodes for jobs of
128 GPUs and more, of 4 for 32 to 64, of 1 below; it promises an occupancy within 1 % of what
placing blind of topology gets. Flown here on a queue that is never empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Callable

#: 278 racks of 18 nodes of 4 GPUs.
NODES, RACK = 5_004, 18
RULE = "slice=rack/16@128,slice=rack/4@32,slice=rack/1@1"
SIZES, SHARES = (4, 8, 16, 32, 64, 128, 256, 512), (0.2, 0.1, 0.1, 0.15, 0.15, 0.15, 0.1, 0.05)
JOBS = 2_400
#: From the end of the first hour to noon, s.
EARLY, LATE = 3_600.0, 43_200.0
#: Student's t for 95 % of six differences.
T = 2.571


def occupancy(seed: int, **options: Any) -> float:
    """Return the share of GPUs that jobs hold, of half a day with a full queue."""
    draw = np.random.default_rng(seed)
    jobs = {
        "submit_time": np.zeros(JOBS),
        "duration": np.ceil(draw.lognormal(9.5, 1.0, JOBS)),
        "num_gpus": draw.choice(SIZES, JOBS, p=SHARES).astype(float),
    }
    out = wt.simulate(
        jobs, f"{NODES}x4", topology=f"rack={RACK}", policy="fifo", queueing="skip",
        until=LATE, **options,
    )  # fmt: skip
    begin, end = (np.array(out.segments[name].to_pylist(), float) for name in ("start", "end"))
    gpus = np.array(out.segments["num_gpus"].to_pylist())
    held = np.nan_to_num(end, nan=LATE) - np.maximum(begin, EARLY)  # no end: it still runs
    assert (np.array(out.table["status"].to_pylist()) == "waiting").any()  # it is never empty
    return float((gpus * np.maximum(held, 0)).sum() / (NODES * 4 * (LATE - EARLY)))


@pytest.mark.slow
def test_the_rule_costs_little_occupancy(record_property: Callable[[str, object], None]) -> None:
    lost = np.array(
        [
            occupancy(seed, placement="best_fit")
            - occupancy(seed, placement="tree", topology_request=RULE)
            for seed in range(6)
        ]
    )
    half = T * lost.std(ddof=1) / len(lost) ** 0.5
    text = f"{100 * lost.mean():.3f} +- {100 * half:.3f} percentage points"
    record_property("occupancy lost", text)
    assert abs(lost.mean()) + half < 0.01, text
