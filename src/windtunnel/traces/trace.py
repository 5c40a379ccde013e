"""`Trace`: a jobs table with what is known about where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from windtunnel import saved
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.notebook import as_html

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.companions import Relation


@dataclass(frozen=True)
class TraceMetadata:
    """What is known about a trace.

    Attributes:
        name: what to call it on a page.
        source: file, URL or generator it comes from.
        licence: the data's licence, as the source states it; empty if unknown.
        epoch: UTC instant of time 0 as ISO 8601 text; None for synthetic or relative times.
        zone: IANA zone of the source's wall clock; None where times are relative.
        rows_read: records found in the source.
        dropped: rows that did not become jobs: reason -> count. Nothing is dropped silently:
            ``rows_read == jobs.num_rows + sum(dropped.values())``.
        notes: anything a reader of results must know, one sentence each.
        settings: what the trace was made with (seed, load, scale): enough to make it again.
    """

    name: str
    source: str
    licence: str = ""
    epoch: str | None = None
    zone: str | None = None
    rows_read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def zero(self) -> float | None:
        """UTC seconds since 1970 of time 0; None where times have no dates."""
        return None if self.epoch is None else datetime.fromisoformat(self.epoch).timestamp()


@dataclass(frozen=True)
class Trace:
    """The recorded history of a cluster.

    Attributes:
        jobs: a jobs table (see `windtunnel.schema`).
        metadata: where it comes from and what was left out.
        cluster: the cluster it ran on, where known.
        nodes: the source's own node table, where it has one.
        tasks: the pods or instances of the jobs (`windtunnel.companions.TASK_COLUMNS`), where the
            source tells them; may be an Ibis table, as there can be more than memory holds.
        holdings: which job had which GPU when (`windtunnel.companions.HOLDING_COLUMNS`), where the
            source tells it.
    """

    jobs: pa.Table
    metadata: TraceMetadata
    cluster: ClusterSpec | None = None
    nodes: pa.Table | None = None
    tasks: Relation | None = None
    holdings: pa.Table | None = None

    @property
    def name(self) -> str:
        """The trace's name."""
        return self.metadata.name

    def __repr__(self) -> str:
        return f"Trace({self.name!r}, jobs={self.jobs.num_rows:,})"

    def save(self, path: str | Path) -> None:
        """Write the trace with all its tables to one file, which `load` reads back as it was.

        A file that others read is what ``windtunnel convert`` writes.

        Raises:
            OSError: the file cannot be written.
        """
        tasks = self.tasks
        if tasks is not None and not isinstance(tasks, pa.Table):
            tasks = tasks.to_pyarrow()
        saved.save(path, "trace", replace(self, tasks=tasks))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a trace that `save` wrote.

        Raises:
            TraceError: the file is something else, or another version's.
        """
        kinds = (cls, TraceMetadata, ClusterSpec, NodeType)
        found: Self = saved.load(path, "trace", {kind.__name__: kind for kind in kinds})
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the jobs table: a trace serves wherever jobs are asked for."""
        return self.jobs.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the jobs, by column."""
        for batch in self.jobs.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()

    def _repr_html_(self) -> str:
        about = self.metadata
        rows = [
            ("jobs", self.jobs.num_rows),
            ("source", about.source),
            ("time 0", about.epoch),
            ("cluster", None if self.cluster is None else self.cluster.describe()),
            *((f"left out: {reason}", count) for reason, count in about.dropped.items() if count),
        ]
        return as_html(self.name, (), rows, about.notes)

    def with_jobs(self, jobs: pa.Table) -> Trace:
        """Return the same trace with another jobs table."""
        return replace(self, jobs=jobs)
