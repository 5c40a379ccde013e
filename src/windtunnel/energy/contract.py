"""What chooses batch sizes and power limits: two small contracts, and a function instead of either.

A batch-size optimiser is asked before every run and hears of every run that ended::

    class Mine(BatchSizeOptimizer):
        def predict(self):
            return self.workload.default_batch_size

A function ``(workload, trials) -> batch size`` does as well; ``trials`` are the runs that ended, in
order. A power-limit optimiser is asked which limit to use at a batch size; it may ask for a profile
first by returning None, which costs the first epoch of that run (Zeus, NSDI'23, section 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.energy.costs import Pricing, Profile
    from windtunnel.energy.workload import Workload


class Trial(NamedTuple):
    """A run that ended, as optimisers see it.

    Attributes:
        batch_size: samples a step.
        power_limit: W.
        cost: J; of a run that was stopped, what it had cost by then; of one that the threshold did
            not let start, `windtunnel.energy.runs.REFUSED_COST` times the threshold.
        reached: whether it reached the target.
        started: False where the threshold did not allow for one epoch.
    """

    batch_size: int
    power_limit: int
    cost: float
    reached: bool
    started: bool = True


class BatchSizeOptimizer:
    """Chooses the batch size of each run; subclass it and write `predict`.

    Attributes:
        name: what users type.
        early_stop: whether runs are stopped at the threshold; may change during a simulation.
        workload: what is trained; set by `begin`.
        pricing: what its epochs cost; set by `begin`.
        seed: of everything random; set by `begin`.
        notes: what a reader of the results must know.
    """

    name: str = ""
    early_stop: bool = True
    notes: tuple[str, ...] = ()
    workload: Workload
    pricing: Pricing
    seed: int

    def begin(self, workload: Workload, pricing: Pricing, seed: int) -> None:
        """Get ready for a simulation; called once, before anything else."""
        self.workload, self.pricing, self.seed = workload, pricing, seed

    def predict(self) -> int | tuple[int, int] | None:
        """Return what to run next.

        Returns:
            A batch size, or a pair of batch size and power limit, which then is not the power-limit
            optimiser's to choose; None = a result must come first (only where runs overlap).
        """
        raise NotImplementedError

    def observe(self, trial: Trial) -> None:
        """Learn from a run that ended."""


class PowerLimitOptimizer:
    """Chooses the power limit of a batch size; subclass it and write `predict`.

    Attributes:
        name: what users type.
        workload: what is trained; set by `begin`.
        pricing: what its epochs cost; set by `begin`.
    """

    name: str = ""
    workload: Workload
    pricing: Pricing

    def begin(self, workload: Workload, pricing: Pricing) -> None:
        """Get ready for a simulation; called once, before anything else."""
        self.workload, self.pricing = workload, pricing

    def predict(self, batch_size: int) -> int | None:
        """Return the power limit to use, W; None = profile this batch size first."""
        raise NotImplementedError

    def observe(self, batch_size: int, profile: Profile) -> None:
        """Learn from the profile that was asked for."""


class FunctionOptimizer(BatchSizeOptimizer):
    """A function of the workload and the runs that ended, as a batch-size optimiser.

    Args:
        function: ``(workload, trials) -> batch size`` or pair of batch size and power limit.
    """

    def __init__(
        self, function: Callable[[Workload, Sequence[Trial]], int | tuple[int, int]]
    ) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.trials: list[Trial] = []

    def predict(self) -> int | tuple[int, int]:
        """Return what the function returns."""
        return self.function(self.workload, self.trials)

    def observe(self, trial: Trial) -> None:
        """Add a run to those that ended."""
        self.trials.append(trial)
