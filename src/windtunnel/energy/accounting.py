"""`Accounting`: what the energy of a run is accounted with, as its site says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.energy.account import Account, account, shared_end
from windtunnel.energy.cluster_power import PowerModel
from windtunnel.energy.series_files import CARBON, TARIFF, parse_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.energy.intensity import Series
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.site import Site

#: What a run's metrics have of its energy.
TOTALS: tuple[str, ...] = ("energy_j", "carbon_kg", "cost")


@dataclass(frozen=True)
class Accounting:
    """What energy is accounted with.

    Attributes:
        carbon: g CO2eq per kWh; None = not asked for.
        tariff: money per kWh; None = not asked for.
    """

    carbon: Series | None
    tariff: Series | None

    @classmethod
    def of(cls, site: Site) -> Accounting:
        """Read what the site names.

        Raises:
            SpecError, TraceError: a file is wrong.
        """
        carbon, tariff = site.carbon, site.tariff
        return cls(
            None if carbon is None else parse_series(carbon, CARBON, name="--carbon"),
            None if tariff is None else parse_series(tariff, TARIFF, name="--tariff"),
        )

    def book(self, outcome: Outcome, until: float | None = None) -> Account:
        """Return the energy of a run that was flown with a model of power; see `Account`.

        Raises:
            SpecError: the model does not describe what the cluster has.
        """
        model = PowerModel.from_mapping(outcome.settings["power"])
        return account(outcome, model, carbon=self.carbon, tariff=self.tariff, until=until)


def books_of(outcomes: Sequence[Outcome], site: Site) -> list[Account]:
    """Return the energy of runs that are compared: all of them until the last end of any.

    Args:
        outcomes: flown with a model of power.
        site: theirs.

    Raises:
        SpecError, TraceError: the model does not describe what the cluster has, or a file is wrong.
    """
    accounting, until = Accounting.of(site), shared_end(outcomes)
    return [accounting.book(outcome, until) for outcome in outcomes]
