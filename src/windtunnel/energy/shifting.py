"""When to run a job so that it emits or costs least: shifting under a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.energy.intensity import Series


#: Stretches of time: none.
_NEVER = np.empty((0, 2))


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
        pieces = cheapest_pieces(series, duration, earliest, deadline)
    else:
        pieces = cheapest_stretch(series, duration, earliest, deadline, every=every)
    return Shift(pieces, sum(series.of_energy(watts, begin, end) for begin, end in pieces))


def cheapest_stretch(
    series: Series,
    duration: float,
    earliest: float,
    deadline: float,
    *,
    every: float | None = None,
    full: np.ndarray = _NEVER,
) -> tuple[tuple[float, float], ...]:
    """Return the cheapest (start, end) before a deadline, earliest among equals; () = none fits.

    Args:
        series: what a kWh emits or costs over time.
        duration: seconds of work; it fits before the deadline.
        earliest: when it may begin, s.
        deadline: when it must be over, s.
        every: as for `shift`.
        full: stretches (start, end), s, ascending and apart, in which it cannot run; shape (k, 2).
    """
    latest = deadline - duration
    if every is None:
        changes = series.changes(earliest, deadline)
        edges = [changes, changes - duration, full[:, 1], full[:, 0] - duration]
        starts = np.unique(np.concatenate([[earliest, latest], *edges]))
        starts = starts[(starts >= earliest) & (starts <= latest)]
    else:
        starts = earliest + every * np.arange(int((latest - earliest) / every) + 1)
    if len(full):
        following = np.searchsorted(full[:, 1], starts, side="right")
        begins = np.append(full[:, 0], np.inf)[following]
        starts = starts[begins >= starts + duration - 1e-9 * np.abs(starts + duration)]
        if not len(starts):
            return ()
    amounts = series.integral(starts + duration) - series.integral(starts)
    # Differences in the last bit are no reason to wait.
    close = amounts <= amounts.min() + 1e-12 * max(1.0, float(np.abs(amounts).max()))
    start = float(starts[np.argmax(close)])
    return ((start, start + duration),)


def cheapest_pieces(
    series: Series, duration: float, earliest: float, deadline: float, full: np.ndarray = _NEVER
) -> tuple[tuple[float, float], ...]:
    """Return the cheapest stretches that add up to the duration, neighbours joined; () = none fits.

    Args:
        series: what a kWh emits or costs over time.
        duration: seconds of work; it fits before the deadline.
        earliest: when it may begin, s.
        deadline: when it must be over, s.
        full: stretches as for `cheapest_stretch`.
    """
    changes = series.changes(earliest, deadline)
    if len(full):
        inside = full[(full > earliest) & (full < deadline)]
        changes = np.unique(np.concatenate([changes, inside]))
    edges = np.concatenate([[earliest], changes, [deadline]])
    lengths = np.diff(edges)
    if len(full):
        # A stretch between two edges is full as a whole, or not at all.
        following = np.searchsorted(full[:, 1], edges[:-1], side="right")
        lengths[np.append(full[:, 0], np.inf)[following] <= edges[:-1]] = 0.0
        if lengths.sum() < duration:
            return ()
    left = duration
    chosen: list[tuple[float, float]] = []
    for index in np.argsort(series.at(edges[:-1]), kind="stable"):
        if left <= 0:
            break
        taken = min(left, float(lengths[index]))
        if not taken:
            continue
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
