"""The figures on a trace's page: which, in what order, and which cannot be drawn and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.catalogue import FIGURES as CATALOGUE
from windtunnel.report.figures.catalogue import Figure
from windtunnel.report.figures.of_trace import measured, measured_panel
from windtunnel.report.figures.panels import by_panel
from windtunnel.report.figures.sources import Look, Sources
from windtunnel.report.format import count
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.report.description import Description
    from windtunnel.report.figures.collecting import FigureData, Part

#: Width that figures are laid out for, inch: two stand beside each other on a page.
PAPER = 4.0


@dataclass(frozen=True)
class Figured:
    """A figure of a page, with its data or without.

    Attributes:
        section: heading that it stands under.
        title: what it shows.
        needs: what a trace must tell.
        drawing: draws it; None = it cannot be drawn.
        reason: why not; empty where it can.
    """

    section: str
    title: str
    needs: str
    drawing: Drawing | None
    reason: str


_SIZE, _TIME, _END = "How large jobs are", "How long jobs run and wait", "How jobs end"
_WHEN, _WHOSE = "When jobs come", "Whose jobs they are, and which come back"
_TASKS, _NODES = "What tasks ask for and use", "The cluster"


_OWN: tuple[Figure, ...] = (
    Figure(
        "waits-by-size", "page", "Waits by size",
        "How long do GPU jobs wait, by the GPUs they ask for? Box: quartiles; whiskers: last job "
        "within 1.5 interquartile ranges.",
        "GPUs and waits", "of_trace:WAITS_BY_SIZE",
    ),
    Figure(
        "failures-by-size", "page", "Failures by size",
        "Which jobs fail, and what GPU time goes with them? Failed: failed, timed out, node "
        "failed, out of memory.",
        "statuses and GPUs", "of_trace:FAILURES_BY_SIZE",
    ),
    Figure(
        "user-concentration", "page", "Concentration on users",
        "Do a few users hold the cluster? What the users with most of it have.",
        "users", "of_trace:USER_CONCENTRATION",
    ),
    Figure(
        "gpus-over-time", "page", "The cluster over time",
        "How many GPUs do jobs hold, and how many do they wait for? Averages over each step.",
        "GPUs and times", "of_trace:GPUS_OVER_TIME",
    ),
)  # fmt: skip
_SECTIONS = {
    _SIZE: ("cdf_job_gpunum", "treemap_job_dist", "box_gpu_num", "job_share", "gang_size"),
    _TIME: (
        *("cdf_job_jobtime", "cdf_job_duration_queue", "runtime_by_gpu_type", "waits-by-size"),
        *("wait_by_half", "wait_by_request", "wait_by_gpu_type"),
    ),
    _END: ("bar_job_state", "failures-by-size"),
    _WHEN: ("jobs_over_week", "jobs_by_hour", "requests_over_week"),
    _WHOSE: ("user-concentration", "jobs_per_user", "recurrence"),
    _TASKS: ("request_usage", "overuse", "network_cpu"),
    _NODES: ("gpus-over-time", "sharing_savings", "colocation", "allocation_by_node"),
}
_KNOWN = CATALOGUE | {figure.name: figure for figure in _OWN}
#: Every figure of the page with its heading, in order.
FIGURES: tuple[tuple[str, Figure], ...] = tuple(
    (section, _KNOWN[name]) for section, names in _SECTIONS.items() for name in names
)


def page_figures(found: Description) -> list[Figured]:
    """Return every figure of a trace's page, or the reason why it cannot be drawn."""
    sources = Sources.of([found.trace])
    look = Look(PAPER, sources.traces, sources.workloads)
    (name,) = sources.traces
    figures = []
    for section, figure in FIGURES:
        data = figure.plan.collect(sources)
        drawing = None
        if data.table is not None:
            drawing = _drawing(figure, figure.plan.draw, data, look, name)
        figures.append(Figured(section, figure.title, figure.needs, drawing, _reason(data)))
    return figures


def measured_figure(found: Description) -> Drawing:
    """Return the figure of what telemetry says."""
    figure = Figure(
        "measured", "page", "Distributions",
        "How are the measurements distributed over all devices and instants?", "samples", "",
    )  # fmt: skip
    return _drawing(figure, by_panel(measured_panel), measured(found.telemetry), Look(PAPER), "")


def _drawing(
    figure: Figure, chart_of: Callable[..., Any], data: FigureData, look: Look, trace: str
) -> Drawing:
    """Return a figure to be drawn; its notes need not name the one trace of the page."""
    texts = [clean(note.removeprefix(f"{trace}: "), MAX_TEXT) for note in data.notes]
    notes = [text[:1].upper() + text[1:] for text in texts]
    counts = dict.fromkeys(f"{_counted(part, data)}." for part in data.parts)

    def draw() -> Any:
        if data.table is None:
            return None
        chart = chart_of(data.table, look)
        # The page's own paper shows through, light or dark.
        chart.config.background = "transparent"
        return chart

    caption = " ".join([figure.question, *counts, *notes])
    label = f"{figure.title}. {figure.question}"
    return Drawing(figure.name.replace("_", "-"), figure.title, caption, draw, label)


def _reason(data: FigureData) -> str:
    """Return why nothing is drawn; there is but one trace, which need not be named."""
    return "; ".join(dict.fromkeys(clean(part.why, MAX_TEXT) for part in data.parts if part.why))


def _counted(part: Part, data: FigureData) -> str:
    """Return what of a panel is drawn, in a sentence without its full stop."""
    alone = len({one.panel for one in data.parts if one.is_drawn}) == 1
    title = clean(part.title, MAX_TEXT)
    if not part.is_drawn:
        return f"{title}: not drawn, {clean(part.why, MAX_TEXT)}"
    text = "n is not reported" if part.n is None else f"n = {count(part.n)}"
    if part.left_out:
        why = f" ({clean(part.why, MAX_TEXT)})" if part.why else ""
        text += f", {count(part.left_out)} left out{why}"
    return text if alone and len(data.parts) == 1 else f"({part.panel}) {title}: {text}"
