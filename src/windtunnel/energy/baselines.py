"""What Zeus is compared with: never changing, trying everything, and knowing the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.energy.contract import BatchSizeOptimizer, Trial
from windtunnel.energy.optimum import optimum

if TYPE_CHECKING:
    from windtunnel.energy.costs import Pricing
    from windtunnel.energy.workload import Workload


class Default(BatchSizeOptimizer):
    """The default batch size at the largest power limit, in every recurrence."""

    name = "default"
    early_stop = False

    def predict(self) -> tuple[int, int]:
        """Return the default configuration."""
        size = self.workload.default_batch_size
        return size, self.workload.sweeps[size].power_limits[0]


class Oracle(BatchSizeOptimizer):
    """The configuration of lowest expected cost, in every recurrence: a bound, not a method."""

    name = "oracle"
    early_stop = False

    def begin(self, workload: Workload, pricing: Pricing, seed: int) -> None:
        """Look the optimum up.

        Raises:
            InfeasibleError: no batch size always reaches the target.
        """
        super().begin(workload, pricing, seed)
        best = optimum(workload, pricing.objective.eta)
        self._choice = best.batch_size, best.power_limit

    def predict(self) -> tuple[int, int]:
        """Return the optimum."""
        return self._choice


class Grid(BatchSizeOptimizer):
    """Every configuration once, then the one that cost least; batch sizes that fail are dropped.

    The order is the default size, smaller ones descending, larger ones ascending, each with its
    power limits descending; runs are not stopped early. A failed run takes its batch size out, and
    the same recurrence goes on with the next configuration.
    """

    name = "grid"
    early_stop = False

    def begin(self, workload: Workload, pricing: Pricing, seed: int) -> None:
        """List the configurations."""
        super().begin(workload, pricing, seed)
        start = workload.default_batch_size
        order = [b for b in reversed(workload.batch_sizes) if b <= start]
        order += [b for b in workload.batch_sizes if b > start]
        self._left = [(b, p) for b in order for p in workload.sweeps[b].power_limits]
        self._cost: dict[tuple[int, int], float] = {}
        self._fallback = self._left[0]

    def predict(self) -> tuple[int, int]:
        """Return the next configuration, or the one that cost least."""
        if self._left:
            return self._left.pop(0)
        if not self._cost:
            return self._fallback
        return min(self._cost, key=lambda choice: self._cost[choice])

    def observe(self, trial: Trial) -> None:
        """Note a cost, or drop a batch size."""
        key = (trial.batch_size, trial.power_limit)
        if trial.reached:
            self._cost.setdefault(key, trial.cost)
            return
        self._left = [choice for choice in self._left if choice[0] != trial.batch_size]
        self._cost = {c: cost for c, cost in self._cost.items() if c[0] != trial.batch_size}
