"""`Comparison`: several runs of the same jobs on the same cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from windtunnel import saved
from windtunnel.notebook import as_html
from windtunnel.sim.outcome import SAVED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome


@dataclass(frozen=True)
class Comparison:
    """Several runs of the same jobs on the same cluster.

    Attributes:
        outcomes: label (the policy's name) -> outcome, in the order asked for; the first is what
            the others are compared with.
    """

    outcomes: dict[str, Outcome]

    @property
    def table(self) -> pa.Table:
        """One row a policy: ``policy``, then the metrics of `Outcome.metrics`."""
        rows = [{"policy": label, **o.metrics()} for label, o in self.outcomes.items()]
        return pa.Table.from_pylist(rows)

    def __getitem__(self, label: str) -> Outcome:
        return self.outcomes[label]

    def save(self, path: str | Path) -> None:
        """Write the comparison to one file, which `load` reads back as it was.

        Raises:
            OSError: the file cannot be written.
        """
        saved.save(path, "comparison", self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a comparison that `save` wrote.

        Raises:
            TraceError: the file is something else, or another version's.
        """
        found: Self = saved.load(path, "comparison", {**SAVED, cls.__name__: cls})
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of `table`."""
        yield from self.table.to_pylist()

    def _repr_html_(self) -> str:
        names = ("avg_wait", "p90_wait", "max_wait", "avg_jct", "utilization", "num_preemptions")
        rows = [(row["policy"], *(row[name] for name in names)) for row in self]
        cluster = next(iter(self.outcomes.values())).cluster.describe()
        return as_html(f"{len(rows)} policies on {cluster}", ("policy", *names), rows)
