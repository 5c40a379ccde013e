"""Usage that is forgotten by half every half-life, as Slurm's multifactor priority counts it.

Slurm multiplies each association's usage by 2^(-dt / half-life) at every recalculation and adds
what was used since (``PriorityDecayHalfLife``). Here both are continuous: a group that holds g GPUs
from a to b has used, at an instant t >= b,

    integral over [a, b] of g * 2^(-(t - s) / H) ds = g * H / ln 2 * (2^(-(t-b)/H) - 2^(-(t-a)/H)),

which is what Slurm's sum tends to as its period shrinks, and does not depend on when one looks.
"""

from __future__ import annotations

import math

import numpy as np


class DecayedUsage:
    """What groups have used, decaying.

    Args:
        groups: number of groups.
        half_life: seconds in which a usage falls to half; infinity = nothing is forgotten.
    """

    def __init__(self, groups: int, half_life: float) -> None:
        self.half_life = half_life
        self._usage = np.zeros(groups)
        self._gpus = np.zeros(groups)
        self._at = 0.0

    def change(self, group: int, gpus: float, now: float) -> None:
        """From ``now`` (s) on a group holds so many GPUs more (less where negative)."""
        self._advance(now)
        self._gpus[group] += gpus

    def usage(self, now: float) -> np.ndarray:
        """Return decayed GPU-seconds at ``now`` (s, no earlier than asked before), (groups,)."""
        self._advance(now)
        return self._usage

    def shares(self, now: float) -> np.ndarray:
        """Return each group's part of all usage at ``now``, shape (groups,); zeros without any."""
        usage = self.usage(now)
        total = float(usage.sum())
        part: np.ndarray = usage / total if total > 0 else np.zeros_like(usage)
        return part

    def _advance(self, now: float) -> None:
        passed, self._at = now - self._at, now
        if passed == 0:
            return
        if math.isinf(self.half_life):
            self._usage = self._usage + self._gpus * passed
            return
        rate = math.log(2) / self.half_life
        self._usage = self._usage * math.exp(-rate * passed)
        self._usage += self._gpus * (-math.expm1(-rate * passed) / rate)
