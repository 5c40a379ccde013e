"""The figures on a trace's page: which, in what order, and which cannot be drawn and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.report import describe_charts
from windtunnel.report.figures.catalogue import FIGURES as CATALOGUE
from windtunnel.report.figures.look import Look
from windtunnel.report.figures.sources import Sources
from windtunnel.report.format import count
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.report.description import Description
    from windtunnel.report.figures.collecting import FigureData, Part

#: Width that figures are laid out for, inch: two stand beside each other on a page.
PAPER = 4.0


@dataclass(frozen=True)
class PageFigure:
    """A figure that a page may show.

    Attributes:
        name: unique on the page; letters, digits and hyphens.
        section: heading that it stands under.
        title: what it shows.
        question: what it answers; its caption.
        needs: what a trace must tell.
        data: sources -> its table.
        chart: table -> Altair chart.
    """

    name: str
    section: str
    title: str
    question: str
    needs: str
    data: Callable[[Sources], FigureData]
    chart: Callable[[pa.Table, Look], Any]


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


def _from_catalogue(section: str, *names: str) -> tuple[PageFigure, ...]:
    return tuple(
        PageFigure(
            name.replace("_", "-"),
            section,
            CATALOGUE[name].title,
            CATALOGUE[name].question,
            CATALOGUE[name].needs,
            CATALOGUE[name].collect,
            CATALOGUE[name].draw,
        )
        for name in names
    )


#: Every figure of the page, in order; those of one section follow each other.
FIGURES: tuple[PageFigure, ...] = (
    *_from_catalogue(_SIZE, "cdf_job_gpunum", "treemap_job_dist", "box_gpu_num", "job_share"),
    *_from_catalogue(_SIZE, "gang_size"),
    *_from_catalogue(_TIME, "cdf_job_jobtime", "cdf_job_duration_queue", "runtime_by_gpu_type"),
    PageFigure(
        "waits-by-size", _TIME, "Waits by size",
        "How long do GPU jobs wait, by the GPUs they ask for? Box: quartiles; whiskers: last job "
        "within 1.5 interquartile ranges.",
        "GPUs and waits", describe_charts.waits_by_size, describe_charts.draw_waits_by_size,
    ),
    *_from_catalogue(_TIME, "wait_by_half", "wait_by_request", "wait_by_gpu_type"),
    *_from_catalogue(_END, "bar_job_state"),
    PageFigure(
        "failures-by-size", _END, "Failures by size",
        "Which jobs fail, and what GPU time goes with them? Failed: failed, timed out, node "
        "failed, out of memory.",
        "statuses and GPUs",
        describe_charts.failures_by_size, describe_charts.draw_failures_by_size,
    ),
    *_from_catalogue(_WHEN, "jobs_over_week", "jobs_by_hour", "requests_over_week"),
    PageFigure(
        "user-concentration", _WHOSE, "Concentration on users",
        "Do a few users hold the cluster? What the users with most of it have.",
        "users", describe_charts.user_concentration, describe_charts.draw_user_concentration,
    ),
    *_from_catalogue(_WHOSE, "jobs_per_user", "recurrence"),
    *_from_catalogue(_TASKS, "request_usage", "overuse", "network_cpu"),
    PageFigure(
        "gpus-over-time", _NODES, "The cluster over time",
        "How many GPUs do jobs hold, and how many do they wait for? Averages over each step.",
        "GPUs and times", describe_charts.gpus_over_time, describe_charts.draw_gpus_over_time,
    ),
    *_from_catalogue(_NODES, "sharing_savings", "colocation", "allocation_by_node"),
)  # fmt: skip


def page_figures(found: Description) -> list[Figured]:
    """Return every figure of a trace's page, or the reason why it cannot be drawn."""
    sources = Sources.of([found.trace])
    look = Look(PAPER, sources.traces, sources.workloads)
    (name,) = sources.traces
    figures = []
    for figure in FIGURES:
        data = figure.data(sources)
        drawing = None if data.table is None else _drawing(figure, data, look, name)
        figures.append(Figured(figure.section, figure.title, figure.needs, drawing, _reason(data)))
    return figures


def measured_figure(found: Description) -> Drawing:
    """Return the figure of what telemetry says."""
    data = describe_charts.measured(found.telemetry)
    figure = PageFigure(
        "measured", "Telemetry", "Distributions",
        "How are the measurements distributed over all devices and instants?",
        "samples", lambda _: data, describe_charts.draw_measured,
    )  # fmt: skip
    return _drawing(figure, data, Look(PAPER), "")


def _drawing(figure: PageFigure, data: FigureData, look: Look, trace: str) -> Drawing:
    """Return a figure to be drawn; its notes need not name the one trace of the page."""
    texts = [clean(note.removeprefix(f"{trace}: "), MAX_TEXT) for note in data.notes]
    notes = [text[:1].upper() + text[1:] for text in texts]
    counts = dict.fromkeys(f"{_counted(part, data)}." for part in data.parts)

    def draw() -> Any:
        if data.table is None:
            return None
        chart = figure.chart(data.table, look)
        # The page's own paper shows through, light or dark.
        chart.config.background = "transparent"
        return chart

    caption = " ".join([figure.question, *counts, *notes])
    label = f"{figure.title}. {figure.question}"
    return Drawing(figure.name, figure.title, caption, draw, label)


def _reason(data: FigureData) -> str:
    """Return why nothing is drawn; there is but one trace, which need not be named."""
    return "; ".join(dict.fromkeys(clean(part.why, MAX_TEXT) for part in data.parts if part.why))


def _counted(part: Part, data: FigureData) -> str:
    """Return what of a panel is drawn, in a sentence without its full stop."""
    alone = len({one.panel for one in data.parts if one.is_drawn}) == 1
    title = clean(part.title, MAX_TEXT)
    if not part.is_drawn:
        return f"{title}: not drawn, {clean(part.why, MAX_TEXT)}"
    told = "n is not told" if part.n is None else f"n = {count(part.n)}"
    if part.left_out:
        why = f" ({clean(part.why, MAX_TEXT)})" if part.why else ""
        told += f", {count(part.left_out)} left out{why}"
    return told if alone and len(data.parts) == 1 else f"({part.panel}) {title}: {told}"
