"""`Checkpoints`: when a job saves its work."""

from __future__ import annotations

import math
from typing import NamedTuple


class Checkpoints(NamedTuple):
    """When work is saved: after every ``interval`` of work, which takes ``cost`` seconds."""

    interval: float = math.inf
    cost: float = 0.0

    def within(self, work: float) -> int:
        """Return how many are written during so much work."""
        return max(0, math.ceil(work / self.interval) - 1)

    def time_within(self, work: float) -> float:
        """Return the seconds that those take."""
        return self.within(work) * self.cost
