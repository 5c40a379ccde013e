"""Numbers that a regression can learn from: what was known of a job at its own submission.

A name becomes statistics of the runs with that name that had ended by then: the mean of their
target, drawn towards the mean of all, the last run's, and how many there were (target statistics of
the past only: Prokhorenkova et al., CatBoost, NeurIPS 2018, section 3.2, with the trace's own order
of time). They are noted once, when a job is first seen, and are the same whether the job is
predicted or, later, learnt from: no job sees its own target, nor one that was not known yet.

Hour and weekday of the submission are given only where the jobs to learn from cover two days, or
two weeks. The last jobs that ended were submitted within a few days, but for those that ran for
long: on a weekday outside of these days there are none but the long ones, and a tree would take the
weekday for a sign of length.

Where the tree is to see identities instead (`Ranks`), a name becomes its place among all names in
the order of their mean target, by which a tree can part them in every way that can be best
(Breiman et al., CART, 1984, section 4.2.2).

What is known of a job when it is submitted, and numbers for the values of its columns.

A predictor reads the columns of `SUBMISSION` and no others: when a job started and ended, how long
it ran, how it ended and what else a source tells of it were not known then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Columns of a jobs table that are known at submission.
SUBMISSION: tuple[str, ...] = (
    *("submit_time", "estimate", "num_gpus", "num_tasks", "num_cpus", "mem_gib", "gpu_type"),
    *("user", "vc", "workload", "template", "priority"),
)
#: Those whose values are names or sizes that jobs may have in common.
IDENTITY: tuple[str, ...] = (
    *("user", "vc", "workload", "template", "gpu_type"),
    *("num_gpus", "num_tasks", "num_cpus"),
)


@dataclass(frozen=True)
class Level:
    """Jobs that count as runs of the same thing: those with equal values in ``columns``.

    Attributes:
        columns: columns of `IDENTITY`; none = all jobs.
        source: what a prediction from them rests on, an index into
            `windtunnel.predictors.convention.SOURCES`.
        last: the most recent runs that count; None = all.
    """

    columns: tuple[str, ...]
    source: int
    last: int | None = None


def identity_columns(where: str, text: str) -> tuple[str, ...]:
    """Return the columns that ``text`` names, joined by +.

    Raises:
        SpecError: one is not of `IDENTITY`, or comes twice.

    >>> identity_columns("by", "user+template")
    ('user', 'template')
    """
    names = tuple(str(text).split("+"))
    for name in names:
        checked_choice(where, name, IDENTITY)
    if len(set(names)) < len(names):
        raise SpecError(where, f"found a column twice in {text!r}; name each once.")
    return names


def numbers(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a numeric column as float64, null as NaN, shape (rows,)."""
    return np.asarray(jobs[name].cast(pa.float64()).to_numpy(), dtype=np.float64)


class Keys:
    """Numbers for the combinations of values that rows have, kept from table to table.

    Args:
        columns: a tuple of columns a level.
    """

    def __init__(self, columns: Sequence[tuple[str, ...]]) -> None:
        self.columns = tuple(columns)
        self._known: list[dict[tuple[Any, ...], int]] = [{} for _ in self.columns]

    def of(self, jobs: pa.Table) -> np.ndarray:
        """Return each row's number at each level.

        Returns:
            int64, shape (levels, rows): from 0, in order of appearance; -1 where a value is
            unknown (an unknown GPU type is any type: a value like others).
        """
        found = np.empty((len(self.columns), jobs.num_rows), dtype=np.int64)
        used = dict.fromkeys(name for columns in self.columns for name in columns)
        encoded = {name: _encoded(jobs, name) for name in used}
        for level, columns in enumerate(self.columns):
            found[level] = self._numbered(level, [encoded[name] for name in columns], len(jobs))
        return found

    def number(self, level: int, values: tuple[Any, ...]) -> int:
        """Return the number of a combination of values, -1 where no row had it."""
        return self._known[level].get(values, -1)

    def _numbered(
        self, level: int, columns: Sequence[tuple[np.ndarray, list[Any]]], count: int
    ) -> np.ndarray:
        """Return the numbers of one level; combinations that are new get the next ones."""
        joint = np.zeros(count, dtype=np.int64)
        valid = np.ones(count, dtype=bool)
        for codes, values in columns:
            valid &= codes >= 0
            # Made dense at each step, so that the product cannot overflow.
            joint = np.unique(joint * (len(values) + 1) + codes + 1, return_inverse=True)[1]
        _, first, dense = np.unique(joint, return_index=True, return_inverse=True)
        known = self._known[level]
        number = np.empty(len(first), dtype=np.int64)
        for place in np.argsort(first, kind="stable").tolist():
            row = first[place]
            if not valid[row]:
                number[place] = -1
                continue
            values_there = tuple(values[codes[row]] for codes, values in columns)
            number[place] = known.setdefault(values_there, len(known))
        return number[dense] if count else joint


def _encoded(jobs: pa.Table, name: str) -> tuple[np.ndarray, list[Any]]:
    """Return a column as codes (-1 = unknown) into a list of its values."""
    column = jobs[name]
    if name == "gpu_type":
        column = column.fill_null("")  # no type is called that; it stands for any
    parts = column.combine_chunks().dictionary_encode()
    if isinstance(parts, pa.ChunkedArray):
        parts = parts.combine_chunks()
    codes = parts.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, parts.dictionary.to_pylist()


#: Runs with the mean of all, added to those of a name.
SMOOTHING = 1.0
_DAY, _WEEK = 86400.0, 7 * 86400.0
_CYCLES = (_DAY, _WEEK)
#: Cycles that the middle nine tenths of the jobs to learn from cover, for their phase to be given.
_COVERED = 2
_MIDDLE = (0.05, 0.95)
_NUMBERS = ("num_gpus", "num_tasks", "num_cpus", "mem_gib", "estimate", "priority")
#: Names whose past runs give a job's features, the finest first.
_NAMES: tuple[tuple[str, ...], ...] = (
    *(("template",), ("user", "num_gpus"), ("user",), ("vc",), ("workload",), ("gpu_type",)),
)
_PER_NAME = 3


class View:
    """A jobs table as a regression sees it, as time goes by.

    Args:
        numbers: float64, shape (rows, numeric features), NaN = unknown.
    """

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers

    def see(self, row: int) -> None:
        """Note what is known of a job now; only the first time counts."""

    def observe(self, row: int, target: float) -> None:
        """Learn that a job has ended."""


class Statistics:
    """Names as statistics of past runs, and every number that is known; see the module's text.

    What names mean is kept from table to table.
    """

    def __init__(self) -> None:
        self.keys = Keys(_NAMES)
        #: Name's number -> [sum of targets, runs, last target], a level each.
        self.runs: list[dict[int, list[float]]] = [{} for _ in _NAMES]
        self.total = 0.0
        self.count = 0
        self._cycles: list[float] = []

    def view(self, jobs: pa.Table) -> _StatisticsView:
        """Return a jobs table, nothing of it seen."""
        return _StatisticsView(self, jobs)

    def learn(self, view: _StatisticsView, rows: np.ndarray, target: np.ndarray) -> np.ndarray:  # noqa: ARG002 - the targets came with the runs
        """Return the features of jobs to learn from."""
        submit = view.submit[rows]
        first, last = quantiles(submit[~np.isnan(submit)], _MIDDLE)
        self._cycles = [cycle for cycle in _CYCLES if last - first >= _COVERED * cycle]
        return self.features(view, rows)

    def features(self, view: _StatisticsView, rows: np.ndarray) -> np.ndarray:
        """Return the features of jobs to predict; phases, 0..1, are of the trace's own clock."""
        submit = view.submit[rows]
        phases = [(submit % cycle) / cycle for cycle in self._cycles]
        return np.column_stack([view.numbers[rows], view.seen[rows], *phases])


class _StatisticsView(View):
    """A jobs table whose names are statistics.

    Attributes:
        submit: float64 s, shape (rows,), NaN = unknown.
        seen: float64, shape (rows, statistics): what was noted; NaN = nothing.
    """

    def __init__(self, encoding: Statistics, jobs: pa.Table) -> None:
        super().__init__(np.column_stack([numbers(jobs, name) for name in _NUMBERS]))
        self._encoding = encoding
        self._keys = list(zip(*encoding.keys.of(jobs).tolist(), strict=True))
        self._noted = bytearray(jobs.num_rows)
        self.submit = numbers(jobs, "submit_time")
        self.seen = np.full((jobs.num_rows, _PER_NAME * len(_NAMES)), np.nan)

    def see(self, row: int) -> None:
        """Note the statistics of the job's names as they are now."""
        encoding = self._encoding
        if self._noted[row]:
            return
        self._noted[row] = True
        if encoding.count == 0:
            return
        prior = encoding.total / encoding.count
        found: list[float] = []
        for key, runs in zip(self._keys[row], encoding.runs, strict=True):
            cell = runs.get(key)
            if cell is None:
                found += (prior, math.nan, 0.0)
            else:
                total, count, last = cell
                mean = (total + SMOOTHING * prior) / (count + SMOOTHING)
                found += (mean, last, math.log1p(count))
        self.seen[row] = found

    def observe(self, row: int, target: float) -> None:
        """Count the job among the runs of its names; an unknown name is one of its own."""
        encoding = self._encoding
        encoding.total += target
        encoding.count += 1
        for key, runs in zip(self._keys[row], encoding.runs, strict=True):
            cell = runs.get(key)
            if cell is None:
                runs[key] = [target, 1, target]
            else:
                cell[0] += target
                cell[1] += 1
                cell[2] = target


class Ranks:
    """Identities as places in the order of their mean target; numbers stay numbers.

    Args:
        columns: columns of `windtunnel.predictors.features.IDENTITY`.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._numbers = tuple(name for name in columns if name in _NUMBERS)
        self._keys = Keys([(name,) for name in columns if name not in _NUMBERS])

    def view(self, jobs: pa.Table) -> _RanksView:
        """Return a jobs table."""
        columns = [numbers(jobs, name) for name in self._numbers]
        table = np.column_stack(columns) if columns else np.empty((jobs.num_rows, 0))
        return _RanksView(table, self._keys.of(jobs))

    def learn(self, view: _RanksView, rows: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Learn the order of the names from jobs and return their features."""
        self._prior = float(target.mean())
        self._ranks = [_ranks(keys[rows], target) for keys in view.keys]
        return self.features(view, rows)

    def features(self, view: _RanksView, rows: np.ndarray) -> np.ndarray:
        """Return the features of jobs; a name that is new stands where the mean of all does."""
        places = [
            _placed(keys[rows], ranks, means, self._prior)
            for keys, (ranks, means) in zip(view.keys, self._ranks, strict=True)
        ]
        return np.column_stack([view.numbers[rows], *places])


class _RanksView(View):
    """A jobs table whose names are identities, which do not change with time.

    Args:
        numbers: as for every view.
        keys: int64, shape (names, rows), from `Keys.of`; -1 = unknown, an identity of its own.
    """

    def __init__(self, numbers: np.ndarray, keys: np.ndarray) -> None:
        super().__init__(numbers)
        self.keys = keys


def _ranks(keys: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each name's place (NaN = not learnt), by number + 1; and the means in order."""
    total = np.bincount(keys + 1, target)
    count = np.bincount(keys + 1)
    there, first = np.unique(keys + 1, return_index=True)
    means = total[there] / count[there]
    order = np.lexsort((first, means))  # equal means in the order of the names' first rows
    ranks = np.full(len(count), np.nan)
    ranks[there[order]] = np.arange(len(there))
    return ranks, means[order]


def _placed(keys: np.ndarray, ranks: np.ndarray, means: np.ndarray, prior: float) -> np.ndarray:
    """Return the places of names; new ones between those below and above the mean of all."""
    padded = np.append(ranks, np.nan)
    places = padded[np.minimum(keys + 1, len(ranks))]
    return np.where(np.isnan(places), np.searchsorted(means, prior) - 0.5, places)
