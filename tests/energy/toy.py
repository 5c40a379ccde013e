"""A workload small enough to be worked out by hand.

Three batch sizes at 200 W and 100 W; at eta 0.5 with MAXPOWER 200 W an epoch costs 0.5 W T + 100 T:

    size   T at 200, 100 W   W at 200, 100 W   epoch cost        best   epochs
    8      10 s, 12 s        150 W, 100 W      1750 J, 1800 J    200    10
    16     8 s, 10 s         180 W, 100 W      1520 J, 1500 J    100    6
    32     7 s, 10 s         200 W, 100 W      1400 J, 1500 J    200    9
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.energy import BatchSizeOptimizer, Sweep, TrainingJob, Trial, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB = TrainingJob("toy", "net", "sgd", 0.9, 20, 32)
TOY = Workload(
    job=JOB,
    gpu="g",
    max_power_w=200.0,
    default_batch_size=32,
    epochs={size: np.full(2, float(n)) for size, n in ((8, 10), (16, 6), (32, 9))},
    sweeps={
        8: Sweep((200, 100), (10.0, 12.0), (150.0, 100.0)),
        16: Sweep((200, 100), (8.0, 10.0), (180.0, 100.0)),
        32: Sweep((200, 100), (7.0, 10.0), (200.0, 100.0)),
    },
)
#: The same where an epoch of batch size 8 takes a thousand times as long.
SLOW_8 = replace(
    TOY, sweeps={**TOY.sweeps, 8: Sweep((200, 100), (10_000.0, 12_000.0), (150.0, 100.0))}
)


class Script(BatchSizeOptimizer):
    """Proposes what it was given, and keeps what it hears."""

    name = "script"

    def __init__(self, proposals: Sequence[int | tuple[int, int] | None]) -> None:
        self.left = list(proposals)
        self.heard: list[Trial] = []
        SCRIPTS.append(self)

    def __deepcopy__(self, memo: object) -> Script:
        return Script(self.left)  # the simulation's own, which tests look at

    def predict(self) -> int | tuple[int, int] | None:
        return self.left.pop(0)

    def observe(self, trial: Trial) -> None:
        self.heard.append(trial)


#: Every `Script` in order of making: the last one is that of the last simulation.
SCRIPTS: list[Script] = []
