"""What is known of a job when it is submitted, and numbers for the values of its columns.

A predictor reads the columns of `SUBMISSION` and no others: when a job started and ended, how long
it ran, how it ended and what else a source tells of it were not known then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError

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
        source: what a prediction from them is said to rest on, an index into
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
        if name not in IDENTITY:
            raise SpecError.unknown(where, name, IDENTITY)
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
