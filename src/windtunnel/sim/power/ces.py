"""CES: how many nodes stay awake (Helios, Hu et al., SC'21, "Cluster Energy Saving").

At each step the rule sees how many nodes were in use and how many a forecast says will be. It wakes
more than are needed, at once, and lets nodes sleep only where use falls and will go on falling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Steps at the beginning in which the rule keeps a buffer and does nothing else.
FIRST_STEPS = 6


@dataclass(frozen=True)
class CesRule:
    """The rule's numbers, in steps and nodes.

    Attributes:
        history: steps looked back.
        future: steps looked ahead.
        his: least fall against the mean of the history, nodes.
        fut: least fall against the mean forecast, nodes.
        de: least nodes to put to sleep at once.
        buffer: nodes awake beyond those in use.
        keep: steps after waking in which no node falls asleep.
    """

    history: int = 6
    future: int = 18
    his: float = 1.0
    fut: float = 1.0
    de: int = 1
    buffer: int = 5
    keep: int = 12


#: The rule as published for the clusters of Helios.
PUBLISHED: dict[str, CesRule] = {
    "venus": CesRule(history=3, his=0.5, de=2),
    "earth": CesRule(de=5),
    "saturn": CesRule(),
    "uranus": CesRule(history=3, buffer=7),
}


class Ces:
    """The rule over time.

    Args:
        rule: its numbers.
        total: nodes of the cluster.

    Attributes:
        active: nodes awake after the last step.
    """

    def __init__(self, rule: CesRule, total: int) -> None:
        self.rule = rule
        self.total = total
        self.active = total
        self.steps = 0
        self._used: list[int] = []
        self._keep_until = 0

    def woken(self, active: int) -> None:
        """Note that nodes were woken between two steps, because jobs needed them."""
        self.active = active
        self._keep_until = self.steps + self.rule.keep

    def step(self, used: int, predicted: Sequence[float] | np.ndarray) -> int:
        """Return how many nodes are awake from this step on.

        Args:
            used: nodes in use in this step.
            predicted: nodes expected in use in the next steps, at least one.
        """
        rule, at = self.rule, self.steps
        self.steps += 1
        self._used.append(used)
        target = min(used + rule.buffer, self.total)
        if at < FIRST_STEPS:
            self.active = target
        elif self.active < used:
            self.active = target
            self._keep_until = at + rule.keep
        elif at >= self._keep_until and self._falls(used, np.asarray(predicted, dtype=float)):
            drop = self.active - min(self.active, target)
            if drop >= rule.de:
                self.active -= drop
        self.active = min(max(self.active, used), self.total)
        return self.active

    def _falls(self, used: int, predicted: np.ndarray) -> bool:
        """Return whether use has fallen, and will go on falling."""
        rule = self.rule
        fallen = float(np.mean(self._used[-rule.history :])) - used >= rule.his
        near = float(predicted[: rule.future].mean())
        far = float(predicted[: 2 * rule.future].mean())
        return fallen and used - near >= rule.fut and near >= far


@dataclass(frozen=True)
class Sleeping:
    """The rule on a recorded series.

    Attributes:
        used: Int array (t,), nodes in use.
        active: Int array (t,), nodes awake; used <= active <= total.
        total: nodes of the cluster.
        wakes: nodes woken in all.
        changes: steps at which the number awake changed.
    """

    used: np.ndarray
    active: np.ndarray
    total: int
    wakes: int
    changes: int

    @property
    def mean_asleep(self) -> float:
        """Nodes asleep on average."""
        return float(self.total - self.active.mean())

    @property
    def used_of_all(self) -> float:
        """Share of all nodes in use, on average."""
        return float(self.used.mean() / self.total)

    @property
    def used_of_active(self) -> float:
        """Share of the nodes awake in use: over all steps together."""
        return float(self.used.sum() / self.active.sum()) if self.active.sum() else 0.0


def smape(predicted: np.ndarray, used: np.ndarray) -> float:
    """Return how far off a forecast is, in per cent: the mean of 200 |p - y| / (|p| + |y|).

    Steps at which both are 0 are right.

    Args:
        predicted: Float array (t,).
        used: Float array (t,), what came of it.

    >>> smape(np.array([10.0, 0.0]), np.array([30.0, 0.0]))
    50.0
    """
    off = 200 * np.abs(predicted - used)
    size = np.abs(predicted) + np.abs(used)
    return float(np.divide(off, size, out=np.zeros(len(off)), where=size > 0).mean())


def sleeping(
    used: Sequence[int] | np.ndarray,
    total: int,
    predicted: np.ndarray,
    rule: CesRule = PUBLISHED["saturn"],
) -> Sleeping:
    """Return what the rule would have done on a recorded series.

    Args:
        used: nodes in use, one a step, shape (t,).
        total: nodes of the cluster.
        predicted: nodes expected in use one step later, as was known then, shape (t,): entry i + k
            is taken as the forecast for step i + k at step i.
        rule: its numbers.

    Raises:
        ValueError: the series are empty, of different lengths, or above ``total``.
    """
    series = np.asarray(used, dtype=np.int64)
    forecast = np.asarray(predicted, dtype=np.float64)
    if len(series) == 0 or series.shape != forecast.shape or int(series.max()) > total:
        message = "expected two series of one length, at least a step, within the total"
        raise ValueError(message)
    state = Ces(rule, total)
    active = np.empty(len(series), dtype=np.int64)
    for at, now in enumerate(series.tolist()):
        ahead = forecast[at + 1 : at + 1 + 2 * rule.future]
        active[at] = state.step(now, ahead if len(ahead) else forecast[-1:])
    moved = np.diff(active, prepend=total)
    return Sleeping(
        used=series,
        active=active,
        total=total,
        wakes=int(moved[moved > 0].sum()),
        changes=int((moved != 0).sum()),
    )
