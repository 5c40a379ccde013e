"""A jobs table on its way into a format of others': what goes, what is refused, what is lost."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SchemaError, Violation, quote
from windtunnel.schema import BY_NAME, as_jobs, source_of
from windtunnel.traces.job_trace import by_submission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

#: Types whose values a cell of text can hold.
_PLAIN = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean),
    *(pa.types.is_floating, pa.types.is_decimal, pa.types.is_null),
)


class Outgoing:
    """The jobs of a table as a format is to have them.

    Args:
        form: the format, for messages (``SWF``).
        carried: our columns that the format holds; those that are not there are none.

    Attributes:
        jobs: the table.
    """

    def __init__(self, jobs: Any, form: str, carried: Collection[str]) -> None:
        self.jobs = as_jobs(jobs)
        self._form, self._carried = form, carried
        self._floats: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        """Return how many jobs there are."""
        return int(self.jobs.num_rows)

    def in_order(self) -> Outgoing:
        """Return the jobs in order of submission."""
        table, _, _ = by_submission(self.jobs, range(len(self)))
        return Outgoing(table, self._form, self._carried)

    def has(self, name: str) -> bool:
        """Whether a column is there, and known of any job."""
        return name in self.jobs.column_names and self.jobs[name].null_count < len(self)

    def floats(self, name: str) -> np.ndarray:
        """Return a column of numbers as float64, shape (jobs,); NaN = unknown, or not there.

        Raises:
            SchemaError: it holds none: in a table from elsewhere, or as text from a CSV file.
        """
        if name not in self._floats:
            self._floats[name] = self._numbers(name)
        return self._floats[name]

    def _numbers(self, name: str) -> np.ndarray:
        if name not in self.jobs.column_names:
            return np.full(len(self), np.nan)
        try:
            numbers = pc.cast(self.jobs[name], pa.float64())
        except pa.ArrowException as error:
            raise self._refusal([Violation(name, "numbers")]) from error
        return np.asarray(numbers.to_numpy(), dtype=np.float64)

    def cells(self, name: str) -> list[Any]:
        """Return a column as Python values; None = unknown, or not there."""
        there = name in self.jobs.column_names
        return self.jobs[name].to_pylist() if there else [None] * len(self)

    @cached_property
    def status(self) -> np.ndarray:
        """How each job ended; empty text = not known."""
        return np.array([word or "" for word in self.cells("status")], dtype=object)

    def check_plain(self) -> None:
        """Check that the columns that go hold what a cell of text can: texts, numbers, yes and no.

        A table from elsewhere may call a list of anything ``partition``.

        Raises:
            SchemaError: some hold anything else; names them.
        """
        found = []
        for name in sorted(set(self._carried) - set(BY_NAME)):
            if name in self.jobs.column_names:
                kind = own = self.jobs.schema.field(name).type
                if pa.types.is_dictionary(kind):
                    kind = kind.value_type
                if not any(is_kind(kind) for is_kind in _PLAIN):
                    found.append(Violation(name, f"texts or numbers, not {own}"))
        if found:
            raise self._refusal(found)

    def refuse(self, checks: Iterable[tuple[str, str, np.ndarray]]) -> None:
        """Refuse jobs with what the format cannot hold.

        Args:
            checks: column, what it should be, and which jobs break that, bool, shape (jobs,).

        Raises:
            SchemaError: there are any; counts them all, and shows the first of each.
        """
        found = [
            Violation(name, rule, int(bad.sum()), row + 1, self.jobs[name][row].as_py(), unit="row")
            for name, rule, bad in checks
            for row in np.flatnonzero(bad)[:1].tolist()
        ]
        if found:
            raise self._refusal(found)

    def _refusal(self, found: list[Violation]) -> SchemaError:
        return SchemaError(f"{source_of(self.jobs)} as {self._form}", found)

    def lost_columns(self) -> list[str]:
        """Return the sentence on columns that the format does not have, where there are any."""
        names = [n for n in self.jobs.column_names if n not in self._carried and self.has(n)]
        shown = ", ".join(map(quote, names))
        return [f"Columns that {self._form} does not have: {shown}."] * bool(names)


def is_fraction(values: np.ndarray) -> np.ndarray:
    """Return which numbers are finite and not whole."""
    fraction: np.ndarray = np.isfinite(values) & (values != np.rint(values))
    return fraction
