"""Gaussian Thompson sampling over batch sizes (Zeus, NSDI'23, section 4).

An arm's reward is minus the cost of a run, r ~ N(theta, 1/lambda_r) with lambda_r known; the prior
of theta is N(mu0, 1/lambda0), lambda0 = 0 being flat. After n rewards the posterior is

    lambda_n = lambda0 + n lambda_r        mu_n = (lambda0 mu0 + lambda_r sum r) / lambda_n

lambda_r is estimated anew from the arm's own rewards at each of them, 1/var(r) with divisor n. Of
the arms, the one whose draw from its posterior is largest is pulled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

#: An arm with fewer rewards is pulled before any posterior is drawn from.
MIN_REWARDS = 2


class GaussianThompson:
    """A bandit over batch sizes.

    Args:
        arms: ascending.
        seed: of the draws.
        prior_mean: mu0.
        prior_precision: lambda0; 0 = flat.
    """

    def __init__(
        self,
        arms: Sequence[int],
        seed: int,
        *,
        prior_mean: float = 0.0,
        prior_precision: float = 0.0,
    ) -> None:
        self.arms = tuple(arms)
        self._array = np.array(self.arms)
        self._rng = np.random.default_rng(seed)
        self._prior = (prior_mean, prior_precision)
        # Posterior mean and standard deviation, and rewards, of each arm.
        self._posterior = dict.fromkeys(self.arms, (prior_mean, math.inf, 0))

    def learn(self, arm: int, rewards: Sequence[float]) -> None:
        """Fit an arm's posterior anew, from all its rewards that count."""
        mean, deviation = posterior(rewards, *self._prior)
        self._posterior[arm] = (mean, deviation, len(rewards))

    def draw(self) -> int:
        """Return the arm to pull.

        The order of draws is that of the published simulator: a permutation of the arms, then a
        normal number an arm, ascending.
        """
        for arm in self._permutation():
            if self._posterior[arm][2] < MIN_REWARDS:
                return arm
        best, largest = self.arms[0], -math.inf
        for arm in self.arms:
            mean, deviation, _ = self._posterior[arm]
            value = self._rng.normal(mean, deviation)
            if value > largest:
                best, largest = arm, value
        return best

    def _permutation(self) -> list[int]:
        chosen: list[int] = self._rng.choice(self._array, len(self._array), replace=False).tolist()
        return chosen


def posterior(
    rewards: Sequence[float], prior_mean: float = 0.0, prior_precision: float = 0.0
) -> tuple[float, float]:
    """Return mean and standard deviation of an arm's posterior.

    Args:
        rewards: at least one.
        prior_mean: mu0.
        prior_precision: lambda0; 0 = flat.

    Returns:
        mu_n and lambda_n ** -0.5; rewards without variance have infinite precision.

    >>> posterior([-2.0, -4.0])  # variance 1, so N(-3, 1/2)
    (-3.0, 0.7071067811865476)
    >>> posterior([-2.0, -4.0], prior_mean=0.0, prior_precision=2.0)  # as sure as the two rewards
    (-1.5, 0.5)
    >>> posterior([-5.0, -5.0])
    (-5.0, 0.0)
    """
    values = np.array(rewards)
    variance = float(values.var())
    if variance == 0.0:
        return float(values.mean()), 0.0
    precision = 1.0 / variance
    total = prior_precision + len(values) * precision
    mean = (prior_precision * prior_mean + precision * float(values.sum())) / total
    return mean, math.sqrt(1.0 / total)
