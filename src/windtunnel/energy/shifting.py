"""When to run a job so that it emits or costs least: shifting under a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.energy.intensity import J_PER_KWH
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.energy.intensity import Series


@dataclass(frozen=True)
class Shift:
    """When a job runs.

    Attributes:
        pieces: (start, end) of each stretch it runs, s, ascending; one unless interruptible.
        amount: what it emits or costs then, in the series' unit (g, money).
    """

    pieces: tuple[tuple[float, float], ...]
    amount: float

    @property
    def start(self) -> float:
        """When it begins, s."""
        return self.pieces[0][0]


def shift(
    series: Series,
    *,
    watts: float,
    duration: float,
    deadline: float,
    earliest: float = 0.0,
    every: float | None = None,
    interruptible: bool = False,
) -> Shift:
    """Return the cheapest time to run a job; the earliest among equals.

    Args:
        series: what a kWh emits or costs over time.
        watts: the job's draw, W.
        duration: seconds of work.
        deadline: when it must be over, s.
        earliest: when it may begin, s.
        every: it may begin only at ``earliest`` and every so many seconds after; None = any time
            (exact: a best start has an end of the job on a change of the series, or is the first
            or last possible). No effect on an interruptible job.
        interruptible: it may be stopped and go on at any time, at no cost.

    Raises:
        SpecError: the job does not fit before the deadline, or a number is out of range.
    """
    if not (duration > 0 and watts >= 0):
        raise SpecError("shift", "expected a duration > 0 and watts of at least 0")
    if every is not None and not every > 0:
        raise SpecError("shift", f"found every={every}; expected seconds > 0")
    latest = deadline - duration
    if not earliest <= latest:
        what = f"{duration:g} s of work between {earliest:g} and {deadline:g} s"
        raise SpecError("shift", f"{what} cannot be done; expected a later deadline")
    if interruptible:
        pieces = _cheapest(series, duration, earliest, deadline)
        amount = sum(series.of_energy(watts, start, end) for start, end in pieces)
        return Shift(pieces, amount)
    if every is None:
        changes = series.changes(earliest, deadline)
        starts = np.unique(np.concatenate([[earliest, latest], changes, changes - duration]))
        starts = starts[(starts >= earliest) & (starts <= latest)]
    else:
        starts = earliest + every * np.arange(int((latest - earliest) / every) + 1)
    amounts = watts * (series.integral(starts + duration) - series.integral(starts)) / J_PER_KWH
    # Differences in the last bit are no reason to wait.
    close = amounts <= amounts.min() + 1e-12 * max(1.0, float(np.abs(amounts).max()))
    start = float(starts[np.argmax(close)])
    return Shift(((start, start + duration),), series.of_energy(watts, start, start + duration))


def _cheapest(
    series: Series, duration: float, earliest: float, deadline: float
) -> tuple[tuple[float, float], ...]:
    """Return the cheapest stretches that add up to the duration, neighbours joined."""
    edges = np.concatenate([[earliest], series.changes(earliest, deadline), [deadline]])
    lengths = np.diff(edges)
    left = duration
    chosen: list[tuple[float, float]] = []
    for index in np.argsort(series.at(edges[:-1]), kind="stable"):
        if left <= 0:
            break
        taken = min(left, float(lengths[index]))
        begin = float(edges[index])
        end = float(edges[index + 1]) if taken == lengths[index] else begin + taken
        chosen.append((begin, end))
        left -= taken
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(chosen):
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return tuple(joined)
