"""`Split`: a table of counts of jobs, stratum by category, without small numbers.

A cell is listed where it has at least ``min_count`` jobs. What a stratum has left over is its rest,
which is empty or has at least ``min_count`` jobs too; how the rests of all strata together fall
into categories is listed as well. So the totals of strata are exact, and so are those of every
category of at least ``min_count`` jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.twin.bins import Bins, fit_bins, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of jobs by stratum and category.

    Attributes:
        listed: jobs of the cells that are listed, 0 elsewhere, shape (strata, categories).
        rest: jobs of the strata's rests together, by category, shape (categories,).
    """

    listed: list[list[int]]
    rest: list[int]

    def fault(self, strata: list[int], categories: int) -> str:
        """Return what is wrong with the numbers, or an empty text.

        Args:
            strata: jobs of each stratum.
        """
        if len(self.listed) != len(strata):
            return f"one row for each of the {len(strata)} strata"
        if any(len(row) != categories for row in (*self.listed, self.rest)):
            return f"one number for each of the {categories} categories"
        if any(number < 0 for row in (*self.listed, self.rest) for number in row):
            return "numbers >= 0"
        left = [jobs - sum(row) for jobs, row in zip(strata, self.listed, strict=True)]
        if min(left) < 0 or sum(left) != sum(self.rest):
            return "cells and rests that add up to the strata's jobs"
        return ""

    def totals(self) -> NDArray[np.int64]:
        """Return the jobs of each category, shape (categories,)."""
        return np.asarray(np.array([*self.listed, self.rest], dtype=np.int64).sum(axis=0))


def fit_split(
    stratum: NDArray[np.int64],
    category: NDArray[np.int64],
    shape: tuple[int, int],
    min_count: int,
) -> tuple[Split, NDArray[np.int64]]:
    """Return the table of counts, and the category under which each job is counted.

    A category of fewer than ``min_count`` jobs in all is counted with another one.

    Args:
        stratum: stratum of each job; each has at least ``min_count``, shape (jobs,).
        category: category of each job, shape (jobs,).
        shape: numbers of strata and categories.
        min_count: smallest number listed.

    Returns:
        The table, and an array of shape (jobs,): the category of the cell that the job is counted
        in, -1 where it is in its stratum's rest.
    """
    flat = stratum * shape[1] + category
    cells = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
    listed = np.where(cells >= min_count, cells, 0)
    rest = cells.sum(axis=0) - listed.sum(axis=0)
    while True:
        left = cells.sum(axis=1) - listed.sum(axis=1)
        row = _first((left > 0) & (left < min_count))
        if row is not None:
            column = _smallest(listed[row])
            rest[column] += listed[row, column]
            listed[row, column] = 0
            continue
        column_ = _first((rest > 0) & (rest < min_count))
        if column_ is None:
            break
        if listed[:, column_].any():
            row_ = _smallest(listed[:, column_])
            rest[column_] += listed[row_, column_]
            listed[row_, column_] = 0
        else:
            others = rest.copy()
            others[column_] = -1
            rest[int(others.argmax())] += rest[column_]
            rest[column_] = 0
    counted_as = np.where(listed[stratum, category] > 0, category, -1)
    return Split(listed.tolist(), rest.tolist()), counted_as


def _first(mask: NDArray[np.bool_]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _smallest(counts: NDArray[np.int64]) -> int:
    """Return the place of the smallest number above 0."""
    return int(np.where(counts > 0, counts, np.iinfo(np.int64).max).argmin())


def draw_split(
    split: Split, totals: list[int], stratum: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw a category for each job, by the table's counts or in their proportion.

    Args:
        totals: jobs of each stratum in the table.
        stratum: stratum of each job, sorted, shape (jobs,).

    Returns:
        The categories, and which jobs are of their stratum's rest, shape (jobs,) each.
    """
    listed = np.array(split.listed, dtype=np.int64)
    rest = np.array(totals, dtype=np.int64) - listed.sum(axis=1)
    labels = np.append(np.arange(listed.shape[1]), -1)
    category = np.empty(len(stratum), dtype=np.int64)
    edges = np.searchsorted(stratum, np.arange(len(totals) + 1)).tolist()
    for number, part in enumerate(map(slice, edges[:-1], edges[1:])):
        counts = largest_remainder(np.append(listed[number], rest[number]), part.stop - part.start)
        drawn = np.repeat(labels, counts)
        rng.shuffle(drawn)
        category[part] = drawn
    of_rest = category < 0
    drawn = np.repeat(labels[:-1], largest_remainder(split.rest, int(of_rest.sum())))
    rng.shuffle(drawn)
    category[of_rest] = drawn
    return category, of_rest


@dataclass(frozen=True)
class Rules:
    """What everything is fitted by.

    Attributes:
        min_count: no number rests on fewer jobs.
        bins: groups in which a distribution is put.
    """

    min_count: int
    bins: int

    def distribution(self, values: NDArray[np.float64], *, spread: bool = False) -> Bins | None:
        """Return the distribution of the known values; None where they are too few.

        Args:
            values: NaN = unknown, shape (jobs,). Fewer than ``min_count`` unknown ones are counted
                as known, so that their number cannot be inferred.
        """
        known = values[np.isfinite(values)]
        found = fit_bins(known, min_count=self.min_count, bins=self.bins, spread=spread)
        if found is None or not self.hides(len(values) - len(known)):
            return found
        jobs = largest_remainder(found.jobs, len(values)).tolist()
        return Bins(jobs, found.mean, found.atoms, found.whole, found.spread)

    def hides(self, number: int) -> bool:
        """Return whether a number of jobs is too small to be published."""
        return 0 < number < self.min_count

    def total(self, values: NDArray[np.float64]) -> float:
        """Return a sum that at least ``min_count`` positive values add to, else 0."""
        if int((values > 0).sum()) < self.min_count:
            return 0.0
        return rounded(float(values.sum()))

    def published(
        self, known: NDArray[np.bool_], cell: NDArray[np.int64], cells: int
    ) -> list[bool]:
        """Return which cells' values can be published by themselves.

        The values of the others are published together. Where those would be too few, the smallest
        cell that could be published joins them.

        Args:
            known: whether the value is known, shape (jobs,).
            cell: of each job, shape (jobs,).
        """
        count = np.bincount(cell[known], minlength=cells)
        large = count >= self.min_count
        while self.hides(int(count[~large].sum())) and large.any():
            large[int(np.where(large, count, np.iinfo(np.int64).max).argmin())] = False
        return [bool(is_large) for is_large in large]
