"""What a kilowatt-hour emits or costs over time: a step series, repeated, with exact integrals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Joules in a kilowatt-hour.
J_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Series:
    """A step function of time per kWh, repeated before its first and after its last row.

    Attributes:
        time: Float array (k,), s since the trace's epoch, strictly ascending.
        values: Float array (k,), per kWh from ``time[i]`` until the next row; the last row holds
            as long as the one before it. One row alone holds for ever.
        name: what it is called in messages.
    """

    time: np.ndarray
    values: np.ndarray
    name: str = "series"
    _area: np.ndarray = field(init=False, repr=False, compare=False)
    _edges: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the rows.

        Raises:
            SpecError: no row, rows of different number, a number that is not finite, or times that
                do not ascend.
        """
        time = np.array(self.time, dtype=np.float64)
        values = np.array(self.values, dtype=np.float64)
        if time.ndim != 1 or len(time) == 0 or time.shape != values.shape:
            raise SpecError(self.name, "expected a time and a value for each of one or more rows")
        if not (np.isfinite(time).all() and np.isfinite(values).all()):
            raise SpecError(self.name, "expected finite numbers")
        if (np.diff(time) <= 0).any():
            raise SpecError(self.name, "expected ascending times, each once")
        last = time[-1] - time[-2] if len(time) > 1 else 1.0
        edges = np.append(time, time[-1] + last)
        area = np.concatenate([[0.0], np.cumsum(np.diff(edges) * values)])
        for name, array in (("time", time), ("values", values), ("_edges", edges), ("_area", area)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def constant(cls, value: float, name: str = "series") -> Series:
        """Return the series that is ``value`` per kWh at all times."""
        return cls(np.zeros(1), np.array([value]), name)

    @property
    def period(self) -> float:
        """Seconds after which it repeats; infinite where it is constant."""
        return float(self._edges[-1] - self._edges[0]) if len(self.time) > 1 else math.inf

    def at(self, when: np.ndarray | float) -> np.ndarray:
        """Return the value per kWh at each time, same shape."""
        _, within = self._folded(when)
        index = np.searchsorted(self.time, within, side="right") - 1
        return np.asarray(self.values[np.maximum(index, 0)])

    def integral(self, when: np.ndarray | float) -> np.ndarray:
        """Return the integral from the first row to each time, same shape; value x s.

        The function is piecewise linear between rows, so interpolating it is exact.
        """
        rounds, within = self._folded(when)
        if len(self.time) == 1:
            return np.asarray((within - self.time[0]) * self.values[0])
        return np.asarray(rounds * self._area[-1] + np.interp(within, self._edges, self._area))

    def of_energy(self, watts: float, start: float, end: float) -> float:
        """Return what drawing ``watts`` from ``start`` to ``end`` (s) emits or costs."""
        return float(watts * (self.integral(end) - self.integral(start)) / J_PER_KWH)

    def changes(self, start: float, end: float) -> np.ndarray:
        """Return the times strictly between ``start`` and ``end`` at which a row begins."""
        if len(self.time) == 1:
            return np.empty(0)
        first, last = (int(self._folded(t)[0]) for t in (start, end))
        rounds = np.arange(first, last + 1) * self.period
        times = (rounds[:, None] + self.time[None, :]).ravel()
        inside: np.ndarray = times[(times > start) & (times < end)]
        return inside

    def rows_from(self, start: float) -> Iterator[tuple[float, float]]:
        """Yield (time, value): what holds at ``start`` (s), then each change after it, for ever."""
        if len(self.time) == 1:
            yield start, float(self.values[0])
            return
        rounds = int(self._folded(start)[0])
        index = max(int(np.searchsorted(self._starts(rounds), start, side="right")) - 1, 0)
        yield start, float(self.values[index])
        while True:
            starts = self._starts(rounds)
            for at in range(int(np.searchsorted(starts, start, side="right")), len(starts)):
                yield float(starts[at]), float(self.values[at])
            rounds += 1

    def _starts(self, rounds: int) -> np.ndarray:
        starts: np.ndarray = self.time + rounds * self.period
        return starts

    def covers(self, start: float, end: float) -> bool:
        """Return whether the rows reach from ``start`` to ``end`` without repeating."""
        inside = self._edges[0] <= start and end <= self._edges[-1]
        return len(self.time) == 1 or bool(inside)

    def _folded(self, when: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Return the round that each time falls in, and the time within the first round."""
        times = np.asarray(when, dtype=np.float64)
        if len(self.time) == 1:
            return np.zeros_like(times), times
        rounds = np.floor((times - self._edges[0]) / self.period)
        return rounds, times - rounds * self.period
