"""The cost of a run: energy and time to the target on one scale (Zeus, NSDI'23, section 2).

    C = eta * ETA + (1 - eta) * MAXPOWER * TTA        eta in [0, 1]; joules

TTA is the time to the target and ETA the energy to it. At eta 0 only time counts, at eta 1 only
energy. As epochs depend on the batch size b alone, C(b, p) = epochs(b) * EpochCost(b, p) with
EpochCost = [eta W + (1 - eta) MAXPOWER] T (equation 7): the best power limit of a batch size does
not depend on how many epochs it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.checked import checked_number

if TYPE_CHECKING:
    from windtunnel.energy.quirks import Sweep
    from windtunnel.energy.workload import Workload


@dataclass(frozen=True)
class Objective:
    """What is to be small.

    Attributes:
        eta: weight of energy, 0 to 1.
        max_power_w: power that a second is worth, W.
    """

    eta: float
    max_power_w: float

    def __post_init__(self) -> None:
        checked_number("eta", self.eta, "a number from 0 to 1", least=0.0, most=1.0)

    def cost(self, energy_j: float, time_s: float) -> float:
        """Return the cost of some energy and time, J."""
        return self.eta * energy_j + (1.0 - self.eta) * self.max_power_w * time_s


@dataclass(frozen=True)
class Epoch:
    """One epoch at a batch size and a power limit.

    Attributes:
        power_limit: W.
        time_s: seconds.
        energy_j: joules.
        cost_j: its cost, J.
    """

    power_limit: int
    time_s: float
    energy_j: float
    cost_j: float


@dataclass(frozen=True)
class Profile:
    """One batch size's epochs at all its power limits.

    An epoch that profiles is cut in equal shares, one a limit: it takes the mean time and energy.

    Attributes:
        epochs: power limit -> epoch, highest limit first.
        mean_time_s: of an epoch that profiles, s.
        mean_energy_j: of an epoch that profiles, J.
    """

    epochs: dict[int, Epoch]
    mean_time_s: float
    mean_energy_j: float

    @classmethod
    def of(cls, sweep: Sweep, objective: Objective) -> Profile:
        """Return what a sweep costs under an objective."""
        epochs = {}
        for limit, time_s, power_w in zip(
            sweep.power_limits, sweep.epoch_time, sweep.power_w, strict=True
        ):
            energy_j = time_s * power_w
            # The same arithmetic as for a whole run: thresholds are multiples of epochs' costs, and
            # how many epochs fit must not hang on which of two formulas rounded how.
            cost_j = objective.cost(energy_j, time_s)
            epochs[limit] = Epoch(limit, time_s, energy_j, cost_j)
        n = len(epochs)
        return cls(
            epochs,
            sum(epoch.time_s for epoch in epochs.values()) / n,
            sum(epoch.energy_j for epoch in epochs.values()) / n,
        )

    def best(self) -> Epoch:
        """Return the epoch of lowest cost; the highest limit among equals."""
        return min(self.epochs.values(), key=lambda epoch: epoch.cost_j)


class Pricing:
    """A workload under an objective: every epoch's cost.

    Args:
        workload: what is trained, and where.
        eta: weight of energy, 0 to 1.

    Attributes:
        objective: what is to be small.
        profiles: batch size, ascending -> its epochs by limit.

    Raises:
        SpecError: eta is not between 0 and 1.
    """

    def __init__(self, workload: Workload, eta: float) -> None:
        self.objective = Objective(eta, workload.max_power_w)
        self.profiles = {
            size: Profile.of(sweep, self.objective) for size, sweep in workload.sweeps.items()
        }
