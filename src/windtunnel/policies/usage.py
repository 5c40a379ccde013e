"""Usage that is forgotten by half every half-life, as Slurm's multifactor priority counts it.

Slurm multiplies each association's usage by 2^(-dt / half-life) at every recalculation and adds
what was used since (``PriorityDecayHalfLife``). Here both are continuous: a group that holds g GPUs
from a to b has used, at an instant t >= b,

    integral over [a, b] of g * 2^(-(t - s) / H) ds = g * H / ln 2 * (2^(-(t-b)/H) - 2^(-(t-a)/H)),

which is what Slurm's sum tends to as its period shrinks, and does not depend on when one looks.
GPUs are counted in whole millionths, so that what is held adds up exactly.
"""

from __future__ import annotations

import math

import numpy as np

from windtunnel.sim.usage_order import decay_rate

#: Parts of a GPU that usage is counted in.
PARTS = 1_000_000


class DecayedUsage:
    """What groups have used, decaying.

    Args:
        groups: number of groups.
        half_life: seconds in which a usage falls to half; infinity = nothing is forgotten.
    """

    def __init__(self, groups: int, half_life: float) -> None:
        self.groups = groups
        self._rate = decay_rate(half_life)
        # One entry a group, and a last one for all of them together.
        self._used = [0.0] * (groups + 1)
        self._held = [0.0] * (groups + 1)
        self._since = [0.0] * (groups + 1)

    def change(self, group: int, gpus: float, now: float) -> None:
        """From ``now`` (s) on a group holds so many GPUs more (less where negative)."""
        self.change_parts(group, float(round(gpus * PARTS)), now)

    def change_parts(self, group: int, parts: float, now: float) -> None:
        """From ``now`` (s) on a group holds so many millionths of GPUs more."""
        for number in (group, self.groups):
            self._used[number] = self._at(number, now)
            self._since[number] = now
            self._held[number] += parts

    def part(self, group: int, now: float) -> float:
        """Return a group's part of all usage at ``now`` (s); 0 without any."""
        total = self._at(self.groups, now)
        return self._at(group, now) / total if total > 0 else 0.0

    def usage(self, now: float) -> np.ndarray:
        """Return decayed GPU-seconds at ``now`` (s), shape (groups,)."""
        return np.array([self._at(group, now) for group in range(self.groups)]) / PARTS

    def shares(self, now: float) -> np.ndarray:
        """Return each group's part of all usage at ``now``, shape (groups,); zeros without any."""
        return np.array([self.part(group, now) for group in range(self.groups)])

    def _at(self, number: int, now: float) -> float:
        used, held = self._used[number], self._held[number]
        passed, rate = now - self._since[number], self._rate
        if passed == 0 or (used == 0 and held == 0):
            return used
        if rate == 0:
            return used + held * passed
        return used * math.exp(-rate * passed) + held * (-math.expm1(-rate * passed) / rate)
