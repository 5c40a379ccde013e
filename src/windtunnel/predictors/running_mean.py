"""Predictors that learn at each completion: the runs of the finest key that has any decide.

A `RunningMean` predictor has a list of levels, from the finest to all jobs. A prediction is the
mean or median over the runs of the first level at which the job's key has enough of them; each
level says what a prediction from it rests on. `Recall` is its memory for one jobs table.

What past runs took, key by key: a running mean over all of them, or a window of the last.

Each sum is added up in the order of the runs, key by key, so that what comes later, or happens to
another key, changes no digit of an earlier prediction.

The closest of known names, as QSSF looks them up, fast enough for a trace.

Hu et al., SC'21 (Helios), QSSF: a job whose name is new is compared with all names of the history;
the two closest with a similarity ratio of at least 0.6 stand in for it. The ratio is that of
`difflib.SequenceMatcher` (Ratcliff and Obershelp), and the answer that of
`difflib.get_close_matches`; an upper bound of the ratio from counts of characters, for all names
at once, leaves few to be compared.
"""

from __future__ import annotations

import heapq
from collections import deque
from difflib import SequenceMatcher
from statistics import median
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.predictors.convention import NONE, SIMILAR, TEMPLATE, Predicted, Predictor, paired
from windtunnel.predictors.features import Keys
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.predictors.features import Level

CUTOFF = 0.6
CLOSEST = 2
#: Names are compared up to here: comparing takes time with the square of the length.
MAX_NAME = 256
_BUCKETS = 64


class Names:
    """Names in the order in which they became known."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._known: set[str] = set()
        self._counts = np.zeros((64, _BUCKETS), dtype=np.int16)
        self._lengths = np.zeros(64, dtype=np.int64)
        #: Name -> how many of the known names it was compared with, and its closest of them.
        self._found: dict[str, tuple[int, list[tuple[float, str]]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, name: str) -> None:
        """Make a name known."""
        if name in self._known:
            return
        place = len(self._names)
        if place == len(self._lengths):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        self._known.add(name)
        self._names.append(name)
        self._counts[place] = _characters(name)
        self._lengths[place] = min(len(name), MAX_NAME)

    def close_to(self, name: str) -> tuple[str, ...]:
        """Return the closest known names, closest first; of equally close ones the last by name."""
        start, best = self._found.get(name, (0, []))
        if start < len(self._names):
            best = self._compared(name, start, best)
            self._found[name] = (len(self._names), best)
        return tuple(other for _, other in best)

    def _compared(
        self, name: str, start: int, best: list[tuple[float, str]]
    ) -> list[tuple[float, str]]:
        """Return the closest of ``best`` and the names known since ``start``."""
        stop = len(self._names)
        own, length = _characters(name), min(len(name), MAX_NAME)
        common = np.minimum(self._counts[start:stop], own).sum(axis=1, dtype=np.int16)
        total = self._lengths[start:stop] + length
        # Two empty names are equal.
        bound = np.where(total == 0, 1.0, 2.0 * common / np.maximum(total, 1))
        matcher = SequenceMatcher()
        matcher.set_seq2(name[:MAX_NAME])
        near = np.flatnonzero(bound >= CUTOFF)
        for place in near[np.argsort(-bound[near], kind="stable")].tolist():
            full = len(best) == CLOSEST
            if full and bound[place] < best[-1][0]:
                break
            other = self._names[start + place]
            matcher.set_seq1(other[:MAX_NAME])
            found = (matcher.ratio(), other)
            if found[0] >= CUTOFF and not (full and found < best[-1]):
                best = heapq.nlargest(CLOSEST, [*best, found])
        return best


def _characters(name: str) -> np.ndarray:
    """Return how often each character is in a name, characters sharing buckets, shape (64,)."""
    letters = np.frombuffer(name[:MAX_NAME].encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.bincount(letters % _BUCKETS, minlength=_BUCKETS).astype(np.int16)


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
    return median(runs)


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


class Memory:
    """The runs that a predictor has seen.

    Args:
        levels: from the finest to the coarsest.
        statistic: one of `windtunnel.predictors.running_mean.STATISTICS`.
        min_runs: runs that a key needs to be asked.
        similar: ask the templates with the closest names about a new one.
    """

    def __init__(
        self, levels: Sequence[Level], statistic: str, *, min_runs: int = 1, similar: bool = False
    ) -> None:
        self.levels = tuple(levels)
        self.statistic = statistic
        self.min_runs = min_runs
        self.keys = Keys([level.columns for level in levels])
        self.names = Names() if similar else None
        self.cells: list[dict[int, Total | Window]] = [{} for _ in levels]

    def new_cell(self, level: int) -> Total | Window:
        """Return an empty cell for a key of a level."""
        last = self.levels[level].last
        return Total() if last is None else Window(last, self.statistic)


class Recall:
    """A memory, asked and taught by rows of one jobs table.

    Args:
        memory: where runs are remembered.
        jobs: a jobs table; only columns known at submission are read.
    """

    def __init__(self, memory: Memory, jobs: pa.Table) -> None:
        self._memory = memory
        self._keys: list[list[int]] = memory.keys.of(jobs).tolist()
        self._sources = [level.source for level in memory.levels]
        self._templates = None if memory.names is None else jobs["template"].to_pylist()
        used = dict.fromkeys(name for level in memory.levels for name in level.columns)
        self._values = (
            {} if memory.names is None else {name: jobs[name].to_pylist() for name in used}
        )

    def observe(self, row: int, seconds: float) -> None:
        """Remember that the job in ``row`` ran for ``seconds``."""
        memory = self._memory
        for level, cells in enumerate(memory.cells):
            key = self._keys[level][row]
            if key < 0:
                continue
            cell = cells.get(key)
            if cell is None:
                cell = cells[key] = memory.new_cell(level)
            cell.add(seconds)
        if memory.names is not None and self._templates is not None:
            template = self._templates[row]
            if template is not None:
                memory.names.add(template)

    def predict(self, row: int) -> tuple[float, int, int]:
        """Return (seconds, source, runs) for the job in ``row``; (NaN, none, 0) without runs."""
        memory = self._memory
        similar = memory.names is not None
        for level, cells in enumerate(memory.cells):
            source = self._sources[level]
            if similar and source != TEMPLATE:
                similar = False
                found = self._from_similar(row)
                if found is not None:
                    return found
            cell = cells.get(self._keys[level][row])
            if cell is not None and cell.count >= memory.min_runs:
                return cell.value(), source, cell.count
        return np.nan, NONE, 0

    def _from_similar(self, row: int) -> tuple[float, int, int] | None:
        """Return a prediction from the templates with the closest names, for a new name."""
        memory = self._memory
        if memory.names is None or self._templates is None:
            return None
        template = self._templates[row]
        if template is None or template in memory.names:
            return None
        names = memory.names.close_to(template)
        for level, cells in enumerate(memory.cells):
            if not names or self._sources[level] != TEMPLATE:
                break
            columns = memory.levels[level].columns
            keys = [memory.keys.number(level, self._values_with(row, columns, n)) for n in names]
            there = [cells[key] for key in keys if key in cells]
            if sum(cell.count for cell in there) >= memory.min_runs:
                seconds, runs = pooled(there)
                return seconds, SIMILAR, runs
        return None

    def _values_with(self, row: int, columns: tuple[str, ...], template: str) -> tuple[Any, ...]:
        """Return the row's values with another template; a null GPU type is any type."""
        found = [template if n == "template" else self._values[n][row] for n in columns]
        return tuple(
            "" if value is None and name == "gpu_type" else value
            for name, value in zip(columns, found, strict=True)
        )


class RunningMean(Predictor):
    """A predictor that learns at each completion. Subclasses say at which levels."""

    def memory(self) -> Memory:
        """Return an empty memory with the predictor's levels."""
        raise NotImplementedError

    def fit(self, jobs: Any, durations: Any) -> Self:
        """Remember runs, in row order, and forget those of earlier fits; see `Predictor.fit`."""
        table, seconds = paired(jobs, durations)
        self.memory_ = self.memory()
        recall = Recall(self.memory_, table)
        for row in np.flatnonzero(~np.isnan(seconds)).tolist():
            recall.observe(row, float(seconds[row]))
        return self

    def explain(self, jobs: Any) -> Predicted:
        """Return predictions from the runs that were fitted; see `Predictor.explain`."""
        if not hasattr(self, "memory_"):
            raise SpecError(f"predictor {self.name}", "has learnt nothing yet; call fit first.")
        table = as_jobs(jobs)
        return recalled(Recall(self.memory_, table), range(table.num_rows))


def recalled(recall: Recall, rows: Sequence[int]) -> Predicted:
    """Return what a memory says about rows, in their order."""
    found = Predicted.nothing(len(rows))
    for place, row in enumerate(rows):
        found.seconds[place], found.source[place], found.runs[place] = recall.predict(row)
    return found
