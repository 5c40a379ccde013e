"""Power-limit optimisers: profile just in time and choose, or know, or never change.

Choosing needs one profile a batch size (Zeus, NSDI'23, section 4). What to choose by is that of
the current Zeus library: cost, energy, time, or the lowest limit whose slowdown is tolerable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.checked import checked_choice
from windtunnel.energy.contract import PowerLimitOptimizer
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.energy.costs import Profile

#: What a limit may be chosen by.
CHOICES = ("cost", "energy", "time", "slowdown")


def choose(profile: Profile, by: str = "cost", slowdown: float = 1.1) -> int:
    """Return a power limit of a profile, W; the highest among equals.

    Args:
        profile: a batch size at all its limits.
        by: ``cost``, ``energy`` or ``time`` of an epoch, or ``slowdown``: the lowest limit whose
            epoch takes at most ``slowdown`` times what it takes at the highest.
        slowdown: the factor, at least 1.

    Raises:
        SpecError: an unknown way to choose, or a factor below 1.
    """
    epochs = list(profile.epochs.values())
    if by == "slowdown":
        if not slowdown >= 1.0:
            raise SpecError("slowdown", f"found {slowdown}; expected a factor of at least 1.")
        bearable = [e for e in epochs if e.time_s <= slowdown * epochs[0].time_s]
        return bearable[-1].power_limit
    checked_choice("power limit by", by, CHOICES)
    attribute = {"cost": "cost_j", "energy": "energy_j", "time": "time_s"}[by]
    best = min(epochs, key=lambda epoch: float(getattr(epoch, attribute)))
    return best.power_limit


class JustInTime(PowerLimitOptimizer):
    """Profile a batch size in the first epoch of its first run, then keep to the best limit.

    Args:
        by: what to choose by; see `choose`.
        slowdown: see `choose`.
    """

    name = "jit"

    def __init__(self, by: str = "cost", slowdown: float = 1.1) -> None:
        checked_choice("power limit by", by, CHOICES)
        self._by, self._slowdown = by, slowdown
        self._chosen: dict[int, int] = {}

    def predict(self, batch_size: int) -> int | None:
        """Return the limit that was chosen; None = no profile yet."""
        return self._chosen.get(batch_size)

    def observe(self, batch_size: int, profile: Profile) -> None:
        """Choose the limit, for ever."""
        self._chosen[batch_size] = choose(profile, self._by, self._slowdown)


class Known(PowerLimitOptimizer):
    """The best limit without a profile: what profiling could save at most."""

    name = "known"

    def predict(self, batch_size: int) -> int:
        """Return the limit of lowest epoch cost."""
        return self.pricing.profiles[batch_size].best().power_limit


class Largest(PowerLimitOptimizer):
    """The largest limit always: what choosing batch sizes alone gives."""

    name = "largest"

    def predict(self, batch_size: int) -> int:
        """Return the largest limit that was measured at this batch size."""
        return self.workload.sweeps[batch_size].power_limits[0]
