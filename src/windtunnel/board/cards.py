"""`Card`: a policy's values against bounds, baselines and the best there is; and its score.

The score is the geometric mean, over all scenarios, of the mean value over the mean lower bound: 1
could not be beaten by anybody. A scenario that a policy does not fly counts as `fifo` has it.
Intervals are of ratios of means, seeds drawn again in pairs (`windtunnel.study.statistics`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.study.statistics import Interval, bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.board.flights import Flights

#: What every policy is compared with; the first flies what a policy does not.
BASELINES: tuple[str, ...] = ("fifo", "easy", "las")
#: Classes: who decides by what has happened, and who knows more than a scheduler can.
ONLINE, CLAIRVOYANT = "online", "clairvoyant"
#: Resamples of an interval.
_RESAMPLES = 1999


@dataclass(frozen=True)
class Row:
    """One scenario of a card.

    Attributes:
        scenario: its name.
        value: mean of the measure over the seeds; of `fifo` where the policy does not fly it.
        bound: mean of the lower bounds.
        best: least mean of any policy on the board; None = of these seeds nobody else's is known.
        best_by: whose that is.
        changes: baseline -> the policy's mean over the baseline's, with its interval.
        reason: why the policy does not fly it; empty where it does.
    """

    scenario: str
    value: float
    bound: float
    best: float | None
    best_by: str
    changes: Mapping[str, Interval]
    reason: str

    @property
    def ratio(self) -> float:
        """The value over the bound, 1 at least."""
        return self.value / self.bound


@dataclass(frozen=True)
class Card:
    """What a policy came to on the board.

    Attributes:
        policy: its label.
        kind: `ONLINE` or `CLAIRVOYANT`.
        found: what it decided by what it could not know; empty where nothing was found.
        rows: a scenario each.
        overall: baseline -> the geometric mean of the scenarios' ratios of means.
    """

    policy: str
    kind: str
    found: str
    rows: tuple[Row, ...]
    overall: Mapping[str, Interval]

    @property
    def score(self) -> float:
        """Geometric mean of the rows' ratios, 1 at least; less is better."""
        return math.exp(math.fsum(math.log(row.ratio) for row in self.rows) / len(self.rows))

    @property
    def num_flown(self) -> int:
        """Scenarios that the policy flies itself."""
        return sum(not row.reason for row in self.rows)


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return math.fsum(values) / len(values)


def card(
    policy: str,
    kind: str,
    found: str,
    flown: Mapping[str, Flights],
    *,
    bounds: Mapping[str, Sequence[float]],
    board: Mapping[str, Mapping[str, Flights]],
) -> Card:
    """Return a policy's card.

    Args:
        policy: its label.
        kind: its class.
        found: see `Card`.
        flown: scenario -> its flights.
        bounds: scenario -> lower bound of each seed.
        board: policy -> scenario -> flights of the same seeds, the baselines among them.
    """
    rows: list[Row] = []
    pairs: dict[str, list[np.ndarray]] = {name: [] for name in BASELINES}
    for scenario, lower in bounds.items():
        flights = flown[scenario]
        values = flights.values or board[BASELINES[0]][scenario].values
        others = {name: mean(f[scenario].values) for name, f in board.items() if f[scenario].values}
        best_by = min(others, key=lambda name: (others[name], name)) if others else ""
        changes = {}
        for name in BASELINES:
            pair = np.array([values, board[name][scenario].values])
            pairs[name].append(pair)
            changes[name] = _ratio([pair])
        rows.append(
            Row(
                scenario,
                mean(values),
                mean(lower),
                others.get(best_by),
                best_by,
                changes,
                flights.reason,
            )
        )
    overall = {name: _ratio(strata) for name, strata in pairs.items()}
    return Card(policy, kind, found, tuple(rows), overall)


def _ratio(strata: Sequence[np.ndarray]) -> Interval:
    """Return the geometric mean, over strata, of ratios of means, with its interval.

    Args:
        strata: Float arrays (2, seeds): the policy's values and the baseline's.
    """

    def statistic(indices: list[np.ndarray]) -> np.ndarray:
        logs = [
            np.log(pair[0][drawn].mean(axis=1) / pair[1][drawn].mean(axis=1))
            for pair, drawn in zip(strata, indices, strict=True)
        ]
        found: np.ndarray = np.exp(np.mean(logs, axis=0))
        return found

    return bootstrap([pair.shape[1] for pair in strata], statistic, resamples=_RESAMPLES)
