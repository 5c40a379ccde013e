"""Made-up measurements of a job that recurs, to try everything without any data.

The forms are those that measurements show: epochs rise on both sides of the best batch size, a
step has a fixed part that large batches spread, power grows with how busy the GPU is and is cut at
the limit, and below what a batch size demands an epoch takes longer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.energy.readers import IDENTITY
from windtunnel.energy.workload import TrainingJob

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The made-up job.
JOB = TrainingJob("synthetic", "model", "sgd", 0.6, 60, 512)
#: GPU -> power limits, W, as they can be set, and its speed over a V100's (modelled).
GPUS: dict[str, tuple[tuple[int, ...], float]] = {
    "v100": (tuple(range(100, 251, 25)), 1.0),
    "a40": (tuple(range(100, 301, 25)), 1.3),
    "p100": (tuple(range(125, 251, 25)), 0.5),
    "rtx6000": ((*range(100, 251, 25), 260), 0.9),
}
_BATCH_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_RUNS = 5
_SAMPLES = 50_000
#: Seconds of a step's fixed part and of a sample, on a V100.
_STEP_S, _SAMPLE_S = 0.012, 0.00018
#: A GPU that waits draws this share of its largest limit.
_IDLE = 0.16
#: Epochs at the best batch size, that size, and how the number spreads over runs.
_EPOCHS, _BEST_SIZE, _SPREAD = 14.0, 96.0, 0.06
#: Beyond this batch size runs do not converge.
_LARGEST_SIZE = 1500


def train_table(seed: int = 0) -> pa.Table:
    """Return made-up training runs in the columns of `windtunnel.energy.readers.read_train`."""
    rng = np.random.default_rng(seed)
    rows = []
    for size in _BATCH_SIZES:
        away = math.log2(size / _BEST_SIZE)
        expected = _EPOCHS * (1 + 0.09 * away**2)
        for run in range(1, _RUNS + 1):
            noisy = math.ceil(expected * rng.lognormal(0.0, _SPREAD))
            epochs = None if size > _LARGEST_SIZE else float(noisy)
            rows.append((size, run, JOB.target_metric, epochs))
    return _of_the_job(rows, ("run", "target_metric", "target_epoch"))


def power_table(gpu: str) -> pa.Table:
    """Return made-up epochs in the columns of `windtunnel.energy.readers.read_power`.

    Args:
        gpu: one of `GPUS`.
    """
    limits, speed = GPUS[gpu]
    rows = []
    for size in _BATCH_SIZES:
        working = size * _SAMPLE_S / speed
        busy = working / (working + _STEP_S)
        demand = limits[-1] * (_IDLE + (0.98 - _IDLE) * busy)
        for limit in limits:
            # Power falls with the cube of the clock above the idle draw.
            idle = limits[-1] * _IDLE
            clock = min(1.0, ((limit - idle) / (demand - idle)) ** (1 / 3))
            step = working / clock + _STEP_S
            rows.append((size, limit, step * _SAMPLES / size, min(demand, float(limit))))
    return _of_the_job(rows, ("power_limit", "time_per_epoch", "average_power"))


def _of_the_job(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pa.Table:
    """Return rows of a batch size and these columns as a table of the made-up job."""
    identity = {name: [getattr(JOB, name)] * len(rows) for name in IDENTITY}
    columns = zip(*rows, strict=True)
    return pa.table({**identity, **dict(zip(("batch_size", *names), columns, strict=True))})
