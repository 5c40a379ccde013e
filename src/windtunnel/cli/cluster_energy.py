"""``--power``, ``--carbon`` and ``--tariff``: the energy of a run of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.cli.screen import facts

if TYPE_CHECKING:
    from rich.console import Console

    from windtunnel.energy import Account, PowerModel, Series
    from windtunnel.sim.outcome import Outcome

#: From here on, digits behind the point say nothing.
_LARGE = 1000


@dataclass(frozen=True)
class EnergyWish:
    """What was asked for, read before the run.

    Attributes:
        model: what the cluster draws; None = energy is not asked for.
        carbon: g CO2eq per kWh.
        tariff: money per kWh.
        words: words of a command line that ask for it again.
    """

    model: PowerModel | None
    carbon: Series | None
    tariff: Series | None
    words: list[str]

    @classmethod
    def of(cls, power: str | None, carbon: str | None, tariff: str | None) -> EnergyWish:
        """Read what the options name.

        Raises:
            SpecError, TraceError: a file is wrong, or a series comes without ``--power``.
        """
        if power is None:
            if carbon is None and tariff is None:
                return cls(None, None, None, [])
            from windtunnel.errors import SpecError

            option = "--tariff" if carbon is None else "--carbon"
            raise SpecError(option, "needs a model of power; add --power FILE.toml.")
        from windtunnel.energy import PowerModel, parse_series

        given = (("--power", power), ("--carbon", carbon), ("--tariff", tariff))
        return cls(
            PowerModel.from_toml(power),
            None if carbon is None else parse_series(carbon, least=0.0, name="--carbon"),
            None if tariff is None else parse_series(tariff, name="--tariff"),
            [word for name, value in given if value is not None for word in (name, value)],
        )

    def account(self, outcome: Outcome) -> Account | None:
        """Return the run's energy; None where it was not asked for.

        Raises:
            SpecError: the model does not describe what the cluster has.
        """
        if self.model is None:
            return None
        from windtunnel.energy import account

        return account(outcome, self.model, carbon=self.carbon, tariff=self.tariff)


def energy_data(book: Account) -> dict[str, Any]:
    """Return a run's energy as plain data.

    Keys: ``energy_j``, ``carbon_kg`` and ``cost`` of everything, PUE included; ``energy``: these
    and their parts (`Account.summary`), ``by_user`` and ``by_vc`` (lists of rows), ``model``.
    """
    numbers = book.summary()
    return {
        **{name: numbers[name] for name in ("energy_j", "carbon_kg", "cost")},
        "energy": {
            **numbers,
            "by_user": book.by("user").to_pylist(),
            "by_vc": book.by("vc").to_pylist(),
            "model": book.model.to_mapping(),
        },
    }


def print_energy(console: Console, book: Account) -> None:
    """Print where the energy went, and what it emitted and cost."""
    from windtunnel.energy.intensity import J_PER_KWH

    numbers = book.summary()
    whole = numbers["energy_j"] or 0.0

    def part(name: str) -> str:
        joules = numbers[name] or 0.0
        share = f" ({joules / whole:.1%})" if whole else ""
        return f"{_figure(joules / J_PER_KWH)} kWh{share}"

    rows = [
        ("energy", f"{_figure(whole / J_PER_KWH)} kWh"),
        ("of jobs' GPUs", part("jobs_j")),
        ("of idle GPUs", part("idle_j")),
        ("of hosts", part("host_j")),
        (f"overhead, PUE {book.model.pue:g}", part("overhead_j")),
    ]
    if numbers["mean_power_w"] is not None and numbers["peak_power_w"] is not None:
        mean, peak = numbers["mean_power_w"] / 1000, numbers["peak_power_w"] / 1000
        rows.append(("power", f"{_figure(mean)} kW in the mean, {_figure(peak)} kW at most"))
    if numbers["carbon_kg"] is not None:
        rows.append(("carbon", f"{_figure(numbers['carbon_kg'])} kg CO2eq"))
    if numbers["cost"] is not None:
        rows.append(("cost", f"{_figure(numbers['cost'])} (in the tariff's money)"))
    console.print()
    facts(console, rows)


def _figure(value: float) -> str:
    """Return a number with four digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.4g}"
