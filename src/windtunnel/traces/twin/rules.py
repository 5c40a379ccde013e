"""The rules by which everything is told: how small a group may be, and what pads a small rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.twin.bins import Bins, fit_bins, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Rules:
    """What everything is fitted by.

    Attributes:
        min_count: no number rests on fewer jobs.
        bins: groups in which a distribution is told.
    """

    min_count: int
    bins: int

    def distribution(self, values: NDArray[np.float64], *, spread: bool = False) -> Bins | None:
        """Return the distribution of the known values; None where they are too few.

        Args:
            values: NaN = unknown, shape (jobs,). Fewer than ``min_count`` unknown ones are counted
                as known, so that their number cannot be told.
        """
        known = values[np.isfinite(values)]
        found = fit_bins(known, min_count=self.min_count, bins=self.bins, spread=spread)
        if found is None or not self.hides(len(values) - len(known)):
            return found
        jobs = largest_remainder(found.jobs, len(values)).tolist()
        return Bins(jobs, found.mean, found.atoms, found.whole, found.spread)

    def hides(self, number: int) -> bool:
        """Return whether a number of jobs is too small to be told."""
        return 0 < number < self.min_count

    def total(self, values: NDArray[np.float64]) -> float:
        """Return a sum that at least ``min_count`` positive values add to, else 0."""
        if int((values > 0).sum()) < self.min_count:
            return 0.0
        return rounded(float(values.sum()))

    def told(self, known: NDArray[np.bool_], cell: NDArray[np.int64], cells: int) -> list[bool]:
        """Return which cells' values can be told by themselves.

        The values of the others are told together. Where those would be too few, the smallest cell
        that could be told joins them.

        Args:
            known: whether the value is known, shape (jobs,).
            cell: of each job, shape (jobs,).
        """
        count = np.bincount(cell[known], minlength=cells)
        told = count >= self.min_count
        while self.hides(int(count[~told].sum())) and told.any():
            told[int(np.where(told, count, np.iinfo(np.int64).max).argmin())] = False
        return [bool(is_told) for is_told in told]
