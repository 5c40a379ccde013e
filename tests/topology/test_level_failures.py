"""Domains of a level fail and come back as one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import Disruptions, FailureModel

MTBF, MTTR = 1000.0, 250.0


def stays(
    policy: str, level: str | None, seed: int, **more: Any
) -> list[list[tuple[float, float]]]:
    """Each node holds one job for ever, bound to it: its stays on it, of 4 nodes in 2 racks."""
    jobs = {
        "submit_time": [0.0] * 4,
        "duration": [1e6] * 4,
        "num_gpus": [1.0] * 4,
        "gpu_type": ["a", "b", "c", "d"],
    }
    down = Disruptions(failure_models=(FailureModel(mtbf=MTBF, mttr=MTTR, level=level),), seed=seed)
    out = wt.simulate(
        jobs, "1x1:a,1x1:b,1x1:c,1x1:d", policy, topology="rack=2", disruptions=down,
        until=20_000.0, **more,
    )  # fmt: skip
    flight = out.flight
    found: list[list[tuple[float, float]]] = [[] for _ in range(4)]
    for job, start, end in zip(
        flight.segment_job, flight.segment_start, flight.segment_end, strict=True
    ):
        found[int(job)].append((float(start), float(end)))
    return found


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_rack_fails_as_one(engine: str) -> None:
    a, b, c, d = stays("fifo", "rack", 1, queueing="skip", engine=engine)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(c, d)
    assert len(a) > 3
    assert a[0] != c[0]
    one, other, *_ = stays("fifo", None, 1, queueing="skip", engine=engine)
    assert one[0] != other[0], "nodes fail each by itself"
    one, other, *_ = stays("fifo", "node", 1, queueing="skip", engine=engine)
    assert one[0] != other[0]


def test_a_rack_is_up_as_long_as_theory_says() -> None:
    """Availability MTBF / (MTBF + MTTR), over 60 runs of 20,000 s, within 4 standard errors."""
    shares = []
    for seed in range(60):
        (first, *_) = stays("fifo", "rack", seed, queueing="skip")
        up = sum((20_000.0 if math.isnan(end) else end) - start for start, end in first)
        shares.append(up / 20_000.0)
    error = float(np.std(shares) / math.sqrt(len(shares)))
    # Up at time 0: above the long-run share by tau * (1 - exp(-t / tau)) / t * (1 - A).
    tau = 1 / (1 / MTBF + 1 / MTTR)
    expected = MTBF / (MTBF + MTTR) + MTTR / (MTBF + MTTR) * tau / 20_000.0
    assert abs(np.mean(shares) - expected) < 4 * error


def test_a_level_that_there_is_not() -> None:
    with pytest.raises(SpecError, match=r"level.*'rak'.*rack"):
        stays("fifo", "rak", 0)
    with pytest.raises(SpecError, match="pool"):
        wt.simulate(
            {"submit_time": [0], "duration": [1], "num_gpus": [1]},
            "pool:2",
            disruptions="mtbf:1h/mttr:1h/level:rack",
        )
