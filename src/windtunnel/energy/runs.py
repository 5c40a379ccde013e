"""One training run: a path drawn from the recorded ones, and what it costs until it ends.

A path fixes the number of epochs and nothing else. A run uses at most ``max_epochs`` epochs and at
most as many as the threshold allows for; the first epoch of a run that profiles costs the mean over
the power limits, but counts as any other against the threshold (Zeus, NSDI'23, section 4).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from windtunnel.energy.costs import Pricing
    from windtunnel.energy.workload import Workload

#: The cost that an optimiser hears of a run that may not start, as a multiple of the threshold.
REFUSED_COST = 100.0


class Run(NamedTuple):
    """What a run did.

    Attributes:
        batch_size: samples a step.
        power_limit: W.
        epochs: that it ran; 0 = the threshold did not allow for one.
        energy_j: J.
        time_s: s.
        cost_j: J.
        reached: whether it reached the target.
        profiled: whether its first epoch profiled the power limits.
    """

    batch_size: int
    power_limit: int
    epochs: int
    energy_j: float
    time_s: float
    cost_j: float
    reached: bool
    profiled: bool

    @property
    def started(self) -> bool:
        """Whether it ran at all."""
        return self.epochs > 0


class Runner:
    """Draws paths and runs them.

    Args:
        workload: what is trained.
        pricing: what its epochs cost.
        seed: of the paths.
    """

    def __init__(self, workload: Workload, pricing: Pricing, seed: int) -> None:
        self._pricing = pricing
        self._rng = np.random.default_rng(seed)
        self._paths = {size: epochs.tolist() for size, epochs in workload.epochs.items()}
        self._max_epochs = workload.job.max_epochs

    def run(self, batch_size: int, power_limit: int, threshold: float, *, profiles: bool) -> Run:
        """Run once; a path is drawn even where the run may not start.

        Args:
            batch_size: one of the workload's.
            power_limit: one that was measured at this batch size, W.
            threshold: cost at which it is stopped, J; infinite = never.
            profiles: whether its first epoch profiles the power limits.
        """
        paths = self._paths[batch_size]
        path = paths[int(self._rng.choice(len(paths), size=1, replace=False)[0])]
        profile = self._pricing.profiles[batch_size]
        epoch = profile.epochs[power_limit]
        allowed = self._max_epochs
        if threshold < math.inf:
            allowed = min(int(threshold // epoch.cost_j), allowed)
        if allowed == 0:
            return Run(batch_size, power_limit, 0, 0.0, 0.0, 0.0, reached=False, profiled=False)
        reached = path <= allowed  # never for NaN
        epochs = int(path) if reached else allowed
        time_s, energy_j = epochs * epoch.time_s, epochs * epoch.energy_j
        if profiles:
            time_s = profile.mean_time_s + (epochs - 1) * epoch.time_s
            energy_j = profile.mean_energy_j + (epochs - 1) * epoch.energy_j
        cost = self._pricing.objective.cost(energy_j, time_s)
        return Run(batch_size, power_limit, epochs, energy_j, time_s, cost, reached, profiles)
