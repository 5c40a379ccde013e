"""Zeus' batch-size optimiser: explore and prune, then Gaussian Thompson sampling (NSDI'23)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.energy.contract import BatchSizeOptimizer, Trial
from windtunnel.energy.pruning import ROUNDS, PruningExplorer
from windtunnel.energy.thompson import GaussianThompson
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.energy.costs import Pricing
    from windtunnel.energy.workload import Workload

_ALL_PRUNED = (
    "Early stopping pruned every batch size: the best one known is used from then on, and not "
    "stopped early. A larger beta prunes less."
)


class Zeus(BatchSizeOptimizer):
    """Two rounds of exploration with pruning, then Thompson sampling among the survivors.

    Where early stopping has pruned every batch size, the best one known is used from then on, not
    stopped early, and the result says so (the published simulator ends with an error there).

    Args:
        window: so many of an arm's latest costs count, for jobs that drift; 0 = all.
        rounds: rounds of exploration.
        prior_mean: mean of the prior of an arm's reward (minus its cost), J.
        prior_precision: its precision; 0 = flat.

    Raises:
        SpecError: a number that makes no sense.
    """

    name = "zeus"

    def __init__(
        self,
        window: int = 0,
        rounds: int = ROUNDS,
        prior_mean: float = 0.0,
        prior_precision: float = 0.0,
    ) -> None:
        for what, value, least in (("window", window, 0), ("rounds", rounds, 1)):
            if not math.isfinite(value) or value != int(value) or value < least:
                raise SpecError(
                    f"zeus: {what}", f"found {value}; expected a whole number >= {least}."
                )
        if not (prior_precision >= 0 and math.isfinite(prior_mean)):
            raise SpecError("zeus: prior", "expected a finite mean and a precision >= 0.")
        self.window, self.rounds = int(window), int(rounds)
        self._prior = {"prior_mean": prior_mean, "prior_precision": prior_precision}

    def begin(self, workload: Workload, pricing: Pricing, seed: int) -> None:
        """Start exploring at the default batch size."""
        super().begin(workload, pricing, seed)
        self.early_stop, self.notes = True, ()
        self._explorer = PruningExplorer(
            workload.batch_sizes, workload.default_batch_size, self.rounds
        )
        self._rewards: dict[int, list[float]] = {}
        self._best = (math.inf, workload.default_batch_size)
        self._bandit: GaussianThompson | None = None

    @property
    def arms(self) -> tuple[int, ...]:
        """The survivors of exploration, ascending; empty before."""
        return () if self._bandit is None else self._bandit.arms

    def predict(self) -> int | None:
        """Return the next size to explore or the bandit's draw; None while a result is awaited."""
        if not self._explorer.done:
            return None if self._explorer.awaited is not None else self._explorer.ask()
        if self._bandit is None:
            self._bandit = self._built()
        return self._bandit.draw()

    def observe(self, trial: Trial) -> None:
        """Add a cost to its arm; go on exploring if it is the awaited one's."""
        self._rewards.setdefault(trial.batch_size, []).append(-trial.cost)
        if trial.reached and trial.cost < self._best[0]:
            self._best = (trial.cost, trial.batch_size)
        if self._bandit is not None:
            if trial.batch_size in self._bandit.arms:
                self._bandit.learn(trial.batch_size, self._counted(trial.batch_size))
        elif self._explorer.awaited == trial.batch_size:
            self._explorer.tell(trial.cost, reached=trial.reached)

    def _counted(self, arm: int) -> list[float]:
        return self._rewards.get(arm, [])[-self.window :]

    def _built(self) -> GaussianThompson:
        arms = self._explorer.survivors
        if not arms:
            arms = [self._best[1]]
            self.early_stop = False
            self.notes = (_ALL_PRUNED,)
        bandit = GaussianThompson(arms, self.seed, **self._prior)
        for arm in arms:
            if rewards := self._counted(arm):
                bandit.learn(arm, rewards)
        return bandit
