"""What past runs took, key by key: a running mean over all of them, or a window of the last.

Each sum is added up in the order of the runs, key by key, so that what comes later, or happens to
another key, changes no digit of an earlier prediction.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS: tuple[str, ...] = ("mean", "median")


class Total:
    """The mean over all runs of a key."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one more run."""
        self.count += 1
        self.total += seconds

    def value(self) -> float:
        """Return the mean, seconds; there is at least one run."""
        return self.total / self.count


class Window:
    """A statistic over the last runs of a key.

    Args:
        last: how many.
        statistic: one of `STATISTICS`.
    """

    __slots__ = ("runs", "statistic")

    def __init__(self, last: int, statistic: str) -> None:
        self.runs: deque[float] = deque(maxlen=last)
        self.statistic = statistic

    @property
    def count(self) -> int:
        """Runs that are remembered."""
        return len(self.runs)

    def add(self, seconds: float) -> None:
        """Count one more run; the oldest is forgotten where there are too many."""
        self.runs.append(seconds)

    def value(self) -> float:
        """Return the statistic, seconds; there is at least one run."""
        return statistic_of(self.runs, self.statistic)


def statistic_of(runs: Sequence[float], statistic: str) -> float:
    """Return the mean or the median of at least one number.

    >>> statistic_of([1.0, 2.0, 9.0], "mean"), statistic_of([1.0, 2.0, 9.0, 4.0], "median")
    (4.0, 3.0)
    """
    if statistic == "mean":
        return sum(runs) / len(runs)
    ordered = sorted(runs)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def pooled(cells: Sequence[Total | Window]) -> tuple[float, int]:
    """Return the statistic over the runs of several keys together, and their number.

    Args:
        cells: all `Total`, or all `Window` of one statistic; together at least one run.
    """
    totals = [cell for cell in cells if isinstance(cell, Total)]
    windows = [cell for cell in cells if isinstance(cell, Window)]
    if totals:
        count = sum(cell.count for cell in totals)
        return sum(cell.total for cell in totals) / count, count
    runs = [seconds for cell in windows for seconds in cell.runs]
    return statistic_of(runs, windows[0].statistic), len(runs)
