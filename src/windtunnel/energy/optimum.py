"""The analytic optimum: what the measurements alone say, before any simulation.

A batch size is feasible if every run of it reached the target within the allowed epochs; expected
time and energy use the mean number of epochs (Zeus, NSDI'23, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.energy.costs import Pricing
from windtunnel.errors import InfeasibleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.energy.workload import Workload


@dataclass(frozen=True)
class Configuration:
    """A batch size and a power limit, with what a job is expected to need there.

    Attributes:
        batch_size: samples a step.
        power_limit: W.
        feasible: whether every run reached the target in time.
        mean_epochs: to the target; NaN where a run never got there.
        tta_s: expected time to the target, s.
        eta_j: expected energy to the target, J.
        cost_j: expected cost, J.
    """

    batch_size: int
    power_limit: int
    feasible: bool
    mean_epochs: float
    tta_s: float
    eta_j: float
    cost_j: float

    @property
    def label(self) -> str:
        """``128@100``."""
        return f"{self.batch_size}@{self.power_limit}"


@dataclass(frozen=True)
class Potential:
    """How much energy the knobs could save, as shares of the default's.

    Attributes:
        batch_size: choosing the batch size alone, at the largest limit.
        power_limit: choosing the limit alone, at the default batch size.
        both: choosing both.
    """

    batch_size: float
    power_limit: float
    both: float


def configurations(workload: Workload, eta: float) -> list[Configuration]:
    """Return every measured configuration, batch sizes ascending, limits descending.

    Raises:
        SpecError: eta is not between 0 and 1.
    """
    feasible = set(workload.feasible_batch_sizes)
    found = []
    for size, profile in Pricing(workload, eta).profiles.items():
        epochs = workload.mean_epochs(size)
        found += [
            Configuration(
                size,
                limit,
                size in feasible,
                epochs,
                epochs * epoch.time_s,
                epochs * epoch.energy_j,
                epochs * epoch.cost_j,
            )
            for limit, epoch in profile.epochs.items()
        ]
    return found


def ranked(workload: Workload, eta: float) -> list[Configuration]:
    """Return the feasible configurations, cheapest first; among equals the higher limit.

    Raises:
        InfeasibleError: there is none.
        SpecError: eta is not between 0 and 1.
    """
    feasible = [found for found in configurations(workload, eta) if found.feasible]
    if not feasible:
        raise InfeasibleError(
            f"optimum of {workload.name}",
            f"no batch size reached {workload.job.target_metric:g} within "
            f"{workload.job.max_epochs} epochs in every run",
        )
    return sorted(feasible, key=lambda found: found.cost_j)


def optimum(workload: Workload, eta: float) -> Configuration:
    """Return the feasible configuration of lowest expected cost; see `ranked`."""
    return ranked(workload, eta)[0]


def default_configuration(workload: Workload, eta: float) -> Configuration:
    """Return the default batch size at its largest power limit, feasible or not."""
    size = workload.default_batch_size
    limit = workload.sweeps[size].power_limits[0]
    return next(
        found
        for found in configurations(workload, eta)
        if (found.batch_size, found.power_limit) == (size, limit)
    )


def pareto_front(found: Sequence[Configuration]) -> list[Configuration]:
    """Return the configurations that no other beats in both time and energy, time ascending.

    One that another equals in one and beats in the other is beaten; equals in both stay.

    Args:
        found: configurations; those that are not feasible are left out.
    """
    front: list[Configuration] = []
    for one in sorted((f for f in found if f.feasible), key=lambda f: (f.tta_s, f.eta_j)):
        same = bool(front) and (one.tta_s, one.eta_j) == (front[-1].tta_s, front[-1].eta_j)
        if not front or one.eta_j < front[-1].eta_j or same:
            front.append(one)
    return front


def energy_potential(workload: Workload) -> Potential | None:
    """Return how much energy each knob could save alone, and both.

    Returns:
        Shares of the default's expected energy; None where the default is not feasible.

    Raises:
        InfeasibleError: no batch size is feasible.
    """
    found = ranked(workload, 1.0)
    default = default_configuration(workload, 1.0)
    if not default.feasible:
        return None
    largest = [f for f in found if f.power_limit == workload.sweeps[f.batch_size].power_limits[0]]
    same_size = [f for f in found if f.batch_size == default.batch_size]
    return Potential(*(1 - f[0].eta_j / default.eta_j for f in (largest, same_size, found)))
