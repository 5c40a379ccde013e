"""What figures are drawn from: traces under harmless names, and curves of utilisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.population import NONE
from windtunnel.characterize.states import workload_mix
from windtunnel.report.format import count
from windtunnel.report.names import labels
from windtunnel.report.palette import SERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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

    def once(self, key: str, make: Callable[[], pa.Table]) -> pa.Table:
        """Return a table that several panels are drawn from, made at the first call."""
        if key not in self.answers:
            self.answers[key] = make()
        return self.answers[key]

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
            for name, number in names.items():
                jobs[name] = jobs.get(name, 0) + number
                beside.setdefault(name, set()).update(names)
        places: dict[str, int] = {}
        for name in sorted(jobs, key=lambda name: (-jobs[name], name)):
            taken = {places[other] for other in beside[name] if other in places}
            free = (place for place in range(MOST) if place not in taken)
            places[name] = next(free, len(places) % MOST)
        return places


#: Pixels of an inch.
DPI = 96.0
#: Width on paper, inch: a column of a two-column page, and the page.
WIDTHS: dict[str, float] = {"column": 3.35, "page": 7.0}
#: Gap between panels, and right of the last one for half a tick's label, px.
GAP = 16.0
EDGE = 7.0
#: Width of a panel's y axis: title, labels and ticks, px.
AXIS = 48.0
#: Dash patterns, so that curves are distinguished without colour.
DASHES: tuple[tuple[float, ...], ...] = (
    (1, 0),
    (6, 2),
    (2, 2),
    (8, 2, 2, 2),
    (4, 1),
    (1, 2),
    (10, 3),
    (6, 2, 1, 2, 1, 2),
)
#: Colours of kinds of work, as places in `SERIES`: black comes last, as names stand on them.
_KINDS = (*range(1, len(SERIES)), 0)


@dataclass(frozen=True)
class Look:
    """How the figures of one run look.

    Attributes:
        paper: width of a figure, inch.
        traces: labels of the traces, in order: each keeps its colour and dash.
        workloads: name -> place among the colours: each workload keeps its own.
    """

    paper: float = WIDTHS["column"]
    traces: tuple[str, ...] = ()
    workloads: Mapping[str, int] = field(default_factory=dict)

    @property
    def width(self) -> float:
        """Width of a whole figure, px."""
        return self.paper * DPI

    @property
    def columns(self) -> int:
        """Panels beside each other, where a figure has several."""
        return 1 if self.paper < WIDTHS["page"] - 1 else 2

    def panel_width(self, columns: int, axis: float = AXIS) -> float:
        """Return the width of the plotting area of a panel, px.

        Args:
            columns: panels beside each other.
            axis: width of its y axis, px.
        """
        return (self.width - EDGE) / columns - axis - (GAP if columns > 1 else 2.0)

    def place(self, label: str, others: Sequence[str]) -> int:
        """Return the place of a label among the traces, the workloads, else among ``others``."""
        if label in self.traces:
            return self.traces.index(label)
        if label in self.workloads:
            return self.workloads[label]
        return list(others).index(label) if label in others else 0

    def strokes(self, labels: Sequence[str]) -> tuple[list[str], list[list[float]]]:
        """Return the colour and the dash of each label's curve."""
        places = [self.place(label, labels) for label in labels]
        colours = [self.colour(label, labels) for label in labels]
        return colours, [list(DASHES[i % len(DASHES)]) for i in places]

    def colour(self, label: str, others: Sequence[str] = ()) -> str:
        """Return the colour of a trace, a workload, or of one among ``others``."""
        place = self.place(label, others) % len(SERIES)
        is_kind = label not in self.traces and label in self.workloads
        return SERIES[_KINDS[place] if is_kind else place][0]


#: Kinds of work in one figure.
MOST = 8
#: A kind below both shares is not drawn: of the GPU jobs, and of their GPU time, percent.
FEW_JOBS = 0.1
FEW_GPU_TIME = 1.0


@dataclass(frozen=True)
class Chosen:
    """The workloads of a trace that are drawn.

    Attributes:
        jobs: the jobs table with ``workload`` as it is drawn: harmless names, the smaller kinds
            under one, null where a job's kind is not drawn.
        jobs_of: GPU jobs of each name, most first.
        notes: what is not drawn, or drawn as one.
    """

    jobs: pa.Table
    jobs_of: dict[str, int]
    notes: tuple[str, ...]


def chosen_workloads(jobs: pa.Table) -> Chosen:
    """Return the workloads of a jobs table that are drawn.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
    """
    mix = [row for row in workload_mix(jobs).to_pylist() if row["listed"]]
    rare = [row for row in mix if _is_rare(row)]
    kept = [row for row in mix if row not in rare]
    shown, pooled = (kept, []) if len(kept) <= MOST else (kept[: MOST - 1], kept[MOST - 1 :])
    # A kind of that name is not the jobs without a kind.
    harmless = labels([NONE, *(row["workload"] for row in shown)])[1:]
    names = {row["workload"]: name for row, name in zip(shown, harmless, strict=True)}
    others = f"{len(pooled)} other kinds"
    names |= {row["workload"]: others for row in pooled}
    encoded = pc.dictionary_encode(jobs["workload"]).combine_chunks()
    words = pa.array([names.get(word) for word in encoded.dictionary.to_pylist()], pa.string())
    replaced = words.take(encoded.indices)
    at = jobs.column_names.index("workload")
    jobs_of = {names[row["workload"]]: row["num_jobs"] for row in shown}
    if pooled:
        jobs_of[others] = sum(row["num_jobs"] for row in pooled)
    notes = [
        f"the {count(row['num_jobs'])} jobs of workload {name} are not drawn: fewer than "
        f"{FEW_JOBS:g} % of the GPU jobs, less than {FEW_GPU_TIME:g} % of the GPU time."
        for row, name in zip(rare, labels(r["workload"] for r in rare), strict=True)
    ]
    if pooled:
        notes.append(f"the {len(pooled)} smaller of {len(kept)} workloads are drawn as one.")
    return Chosen(jobs.set_column(at, "workload", replaced), jobs_of, tuple(notes))


def _is_rare(row: dict[str, Any]) -> bool:
    of_time = row["gpu_time_percent"]
    return bool(row["job_percent"] is None or row["job_percent"] < FEW_JOBS) and (
        of_time is None or of_time < FEW_GPU_TIME
    )
