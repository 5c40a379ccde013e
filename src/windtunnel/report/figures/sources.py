"""What figures are drawn from: traces under harmless names, and curves of utilisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from windtunnel.report.figures.workloads import MOST, Chosen, chosen_workloads
from windtunnel.report.names import labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.traces.trace import Trace

#: Traces in one figure: as many as there are colours that everybody can tell apart.
MAX_TRACES = 8


@dataclass
class Series:
    """A trace in the figures.

    Attributes:
        label: its name in every figure.
        trace: the trace.
        answers: tables that several panels are drawn from, computed once.
    """

    label: str
    trace: Trace
    answers: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def chosen(self) -> Chosen:
        """The workloads that are drawn, and the jobs table with only those."""
        return chosen_workloads(self.trace.jobs)


@dataclass
class Sources:
    """Everything that the figures of one run are drawn from.

    Attributes:
        series: the traces, at most `MAX_TRACES`.
        curves: utilisation, power and temperature (`windtunnel.report.figures.curves_of_use`);
            None = not given.
    """

    series: Sequence[Series]
    curves: pa.Table | None = None
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls, traces: Sequence[Trace], curves: pa.Table | None = None, notes: tuple[str, ...] = ()
    ) -> Sources:
        """Return the sources of traces, each under its own name made harmless and distinct."""
        names = labels(trace.name for trace in traces)
        series = [Series(name, trace) for name, trace in zip(names, traces, strict=True)]
        return cls(series, curves, notes)

    @property
    def traces(self) -> tuple[str, ...]:
        """The labels of the traces, in order."""
        return tuple(series.label for series in self.series)

    @cached_property
    def workloads(self) -> dict[str, int]:
        """The place of each workload among the colours, those of most jobs first.

        A workload has one place in all traces; two of one trace share a place only where others
        have taken all of them.
        """
        jobs: dict[str, int] = {}
        beside: dict[str, set[str]] = {}
        for series in self.series:
            names = series.chosen.jobs_of
            for name, count in names.items():
                jobs[name] = jobs.get(name, 0) + count
                beside.setdefault(name, set()).update(names)
        places: dict[str, int] = {}
        for name in sorted(jobs, key=lambda name: (-jobs[name], name)):
            taken = {places[other] for other in beside[name] if other in places}
            free = (place for place in range(MOST) if place not in taken)
            places[name] = next(free, len(places) % MOST)
        return places
