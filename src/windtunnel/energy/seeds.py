"""Many seeds: what an optimiser saves, what it costs to learn, and when that has paid back.

Regret after n recurrences is (cost of all runs, failed ones included, - n optimal expected costs)
/ optimal expected cost: how many optimal jobs the learning has cost so far (Zeus, NSDI'23, section
6).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.energy.catalogue import resolve_optimizer
from windtunnel.energy.optimum import Configuration, default_configuration, optimum
from windtunnel.energy.recurring import Recurrences, simulate_recurrences
from windtunnel.errors import InfeasibleError, SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.energy.groups import GroupResult
    from windtunnel.energy.workload import Workload

#: What everything is compared with.
BASELINE = "default"
#: Recurrences at the end over which settled savings are taken.
LAST = 5
#: Quantiles of a band over seeds.
BAND = (0.1, 0.5, 0.9)
MEASURES = ("energy_j", "time_s", "cost_j")


def notes_of_all(
    results: Sequence[Recurrences | GroupResult], gave_up: Mapping[Any, str], what: str
) -> list[str]:
    """Return the notes of several simulations, each with how many have it, and who gave up.

    Args:
        results: of the simulations that went through.
        gave_up: why others could not go on.
        what: they are of, in the plural.
    """
    counts = Counter(note for result in results for note in result.notes)
    notes = [f"{note} ({number} of {len(results)} {what})" for note, number in counts.items()]
    if gave_up:
        reason = next(iter(gave_up.values()))
        notes.append(f"{len(gave_up)} {what} gave up and are left out: {reason}.")
    return notes


@dataclass(frozen=True)
class Replications:
    """One optimiser's recurrences under several seeds.

    Attributes:
        optimizer: its name.
        results: of the seeds that went through, in order.
        gave_up: seed -> why its simulation could not go on.
    """

    optimizer: str
    results: tuple[Recurrences, ...]
    gave_up: dict[int, str]

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that went through."""
        return tuple(int(result.settings["seed"]) for result in self.results)

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """`MEASURES` -> float64, shape (seeds, recurrences), failed tries included."""
        return {
            measure: np.array([result.by_recurrence(measure) for result in self.results])
            for measure in MEASURES
        }

    @property
    def settled(self) -> tuple[tuple[int, int], ...]:
        """Batch size and power limit of each seed's last run."""
        last = (result.runs[-1][1] for result in self.results)
        return tuple((run.batch_size, run.power_limit) for run in last)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, and for how many seeds."""
        return tuple(notes_of_all(self.results, self.gave_up, "seeds"))

    def rows_of(self, seeds: Sequence[int]) -> np.ndarray:
        """Return the places of some of its seeds."""
        place = {seed: row for row, seed in enumerate(self.seeds)}
        return np.array([place[seed] for seed in seeds], int)


@dataclass(frozen=True)
class EnergyStudy:
    """Several optimisers on one workload, each under the same seeds.

    Attributes:
        workload: what is trained, and where.
        settings: ``eta``, ``beta``, ``recurrences``, ``seeds``, ``power_limits``.
        best: the analytic optimum.
        default: the default configuration's expectation.
        replications: optimiser -> its runs; `BASELINE` is always among them.
    """

    workload: Workload
    settings: dict[str, Any]
    best: Configuration
    default: Configuration
    replications: dict[str, Replications]

    def regret(self, optimizer: str) -> np.ndarray:
        """Return the regret after each recurrence, in optimal jobs, shape (seeds, recurrences)."""
        costs = self.replications[optimizer].values["cost_j"] / self.best.cost_j
        return np.cumsum(costs - 1.0, axis=1)

    def savings(self, optimizer: str, measure: str = "energy_j", last: int = LAST) -> np.ndarray:
        """Return what each seed's last recurrences save, as a share of the default's mean.

        Args:
            optimizer: one of the study's.
            measure: one of `MEASURES`.
            last: so many recurrences at the end.

        Returns:
            1 - mean of its last recurrences / mean of all of the default's, shape (seeds,), of the
            seeds that both went through.
        """
        mine, base = self._paired(optimizer, measure)
        share: np.ndarray = mine[:, -last:].mean(axis=1) / base.mean(axis=1)
        return 1.0 - share

    def total_savings(self, optimizer: str, measure: str = "energy_j") -> np.ndarray:
        """Return what each seed saves over all recurrences, learning included, as a share."""
        mine, base = self._paired(optimizer, measure)
        share: np.ndarray = mine.sum(axis=1) / base.sum(axis=1)
        return 1.0 - share

    def payback(self, optimizer: str) -> np.ndarray:
        """Return after how many recurrences learning has paid back for good, seed by seed.

        Returns:
            float64, shape (seeds,): the first recurrence from which on all it has cost stays at or
            below what the default has cost under the same seed; infinite = not within the study.
        """
        mine, base = self._paired(optimizer, "cost_j")
        ahead = np.cumsum(mine, axis=1) <= np.cumsum(base, axis=1)
        behind_last = ahead.shape[1] - np.argmin(ahead[:, ::-1], axis=1)
        first = np.where(ahead.all(axis=1), 1, behind_last + 1).astype(float)
        first[~ahead[:, -1]] = np.inf
        return first

    def paid_back_within(self, optimizer: str, recurrences: int) -> float:
        """Return the share of seeds whose learning has paid back within some recurrences.

        Raises:
            SpecError: the study has fewer recurrences.
        """
        if not 1 <= recurrences <= self.settings["recurrences"]:
            raise SpecError(
                "within",
                f"found {recurrences}; the study has {self.settings['recurrences']} recurrences.",
            )
        first = self.payback(optimizer)
        return float(np.mean(first <= recurrences)) if len(first) else float("nan")

    def _paired(self, optimizer: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
        mine, base = self.replications[optimizer], self.replications[BASELINE]
        both = [seed for seed in mine.seeds if seed in set(base.seeds)]
        return (
            mine.values[measure][mine.rows_of(both)],
            base.values[measure][base.rows_of(both)],
        )


def study(
    workload: Workload,
    optimizers: Sequence[Any] = ("zeus", "grid", "oracle"),
    *,
    seeds: Sequence[int] = tuple(range(1, 21)),
    recurrences: int | None = None,
    eta: float = 0.5,
    beta: float = 2.0,
    power_limits: Any = "jit",
    on_done: Callable[[str], None] = lambda _: None,
) -> EnergyStudy:
    """Simulate optimisers under the same seeds, and the default beside them.

    Args:
        workload: what is trained, and where.
        optimizers: see `windtunnel.energy.recurring.simulate_recurrences`.
        seeds: at least one, each once.
        recurrences: how many; None = the paper's number, 2 |B| |P|.
        eta: weight of energy against time, 0 to 1.
        beta: factor of early stopping; infinite = never.
        power_limits: chooses power limits where an optimiser leaves them open.
        on_done: called with an optimiser's name after each seed.

    Raises:
        SpecError: an unknown name, one twice, or a number out of range.
        PolicyError: an optimiser proposes what was not measured.
        InfeasibleError: no batch size always reaches the target, or some optimiser gave up under
            every seed.
    """
    chosen = list(dict.fromkeys(seeds))
    if not chosen or len(chosen) < len(seeds):
        raise SpecError("seeds", "expected at least one, each once.")
    named: dict[str, Any] = {}
    for given in (BASELINE, *(one for one in optimizers if one != BASELINE)):
        name = resolve_optimizer(given).name
        if name in named:
            raise SpecError("optimizers", f"found {quote(name)} twice; name each once.")
        named[name] = given
    options = {
        "recurrences": workload.paper_recurrences if recurrences is None else recurrences,
        "eta": eta,
        "beta": beta,
        "power_limits": power_limits,
    }
    best, default = optimum(workload, eta), default_configuration(workload, eta)
    replications = {
        name: _replicate(workload, (name, given), chosen, options, on_done)
        for name, given in named.items()
    }
    return EnergyStudy(workload, {**options, "seeds": chosen}, best, default, replications)


def _replicate(
    workload: Workload,
    named: tuple[str, Any],
    seeds: Sequence[int],
    options: dict[str, Any],
    on_done: Callable[[str], None],
) -> Replications:
    name, optimizer = named
    results, gave_up = [], {}
    for seed in seeds:
        try:
            results.append(simulate_recurrences(workload, optimizer, seed=seed, **options))
        except InfeasibleError as error:
            gave_up[seed] = error.status
        on_done(name)
    if not results:
        raise InfeasibleError(
            f"{workload.name}, {name}", f"under every seed: {next(iter(gave_up.values()))}"
        )
    return Replications(name, tuple(results), gave_up)


def band(values: np.ndarray) -> dict[str, float]:
    """Return mean and `BAND` of values over seeds: ``mean``, ``p10``, ``p50``, ``p90``.

    Infinite values count as largest: a quantile that falls among them is infinite. Of no values,
    everything is NaN.

    >>> band(np.array([1.0, 2.0, 3.0]))["p50"]
    2.0
    """
    if len(values) == 0:
        return dict.fromkeys(("mean", "p10", "p50", "p90"), float("nan"))
    low, middle, high = (float(np.quantile(values, share, method="inverted_cdf")) for share in BAND)
    return {"mean": float(np.mean(values)), "p10": low, "p50": middle, "p90": high}
