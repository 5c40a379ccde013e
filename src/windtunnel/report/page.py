"""The HTML page of a comparison: one file, no script unless asked for, nothing ever loaded.

The page is a function of outcomes; the numbers come from `windtunnel.report.sections`, the
sentence on top from `windtunnel.report.findings`, the pictures from `windtunnel.report.charts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import windtunnel
from windtunnel import storage
from windtunnel.report import charts, curves, fairness, findings, occupancy, palette, sections
from windtunnel.report.curves import named
from windtunnel.report.energy_section import energy_section
from windtunnel.report.format import count, plural
from windtunnel.report.goodput_rows import goodput_tables
from windtunnel.report.level_rows import level_tables
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.render import to_svg
from windtunnel.report.templating import render
from windtunnel.sim.observe.holdings import can_fragment

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from markupsafe import Markup

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.account import Account
    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace

#: The longest command that a page repeats.
_MAX_COMMAND = 2000


@dataclass(frozen=True)
class Figure:
    """A picture with its heading and caption; ``svg`` is None where there is nothing to draw.

    In a page with a script the picture may be what that script draws.
    """

    title: str
    caption: str
    svg: Markup | None
    name: str = ""


def comparison_page(
    outcomes: Mapping[str, Outcome],
    *,
    trace: Trace | None = None,
    command: str,
    title: str,
    interactive: bool = False,
    books: Mapping[str, Account] | None = None,
) -> str:
    """Return the page that compares runs, as one self-contained HTML text.

    Args:
        outcomes: run name (usually the policy's) -> outcome, at least one; differences are to the
            first.
        trace: where the jobs come from; None where they were made in memory.
        command: what reproduces the page, printed at its end.
        title: the page's heading.
        interactive: put Vega into the page, so that the charts of who ran where can be zoomed and
            inspected; without it there is no script.
        books: run name -> its energy, the same runs; None = energy is not told of.

    Raises:
        ValueError: ``outcomes`` is empty.
    """
    if not outcomes:
        raise ValueError("a comparison page needs at least one outcome")
    first = next(iter(outcomes.values()))
    vcs = sections.vcs_table(outcomes)
    context = {
        "title": clean(title, 120),
        "subtitle": _subtitle(outcomes, trace),
        "headline": findings.headline(outcomes),
        "cautions": findings.cautions(outcomes),
        "first": named(outcomes)[0][0],
        "names": [name for name, _ in named(outcomes)],
        "trace": _trace_context(first, trace),
        "clusters": _clusters(outcomes),
        "metrics": sections.metrics_table(outcomes),
        "sizes": sections.sizes_table(outcomes),
        "vcs": vcs,
        "goodput": goodput_tables(outcomes),
        "levels": level_tables(outcomes),
        "fairness": fairness.fairness_table(outcomes),
        "starvation": fairness.starvation_table(outcomes),
        "settings": sections.settings_table(outcomes),
        "notes": _notes(outcomes),
        "figures": figures(outcomes),
        "places": _places(outcomes, live=interactive),
        "scripts": occupancy.scripts() if interactive else [],
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
        "vcs_lead": _vcs_lead(vcs),
        "marked_ratio": f"{findings.MARKED_RATIO:g}",
        "energy": energy_section(outcomes, books, _figure_of(outcomes)) if books else None,
    }
    return render("comparison.html.j2", context)


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """Write a page so that nobody ever sees half of it: a temporary file beside it, then a rename.

    Args:
        path: the file to write; its folder must exist.
        html: the page's text, written as UTF-8.

    Returns:
        The path.

    Raises:
        OSError: the folder does not exist or cannot be written to; nothing is left behind.
    """
    with storage.replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")
    return Path(path)


def figures(outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
    """Return every figure of the page by name; those without data have no picture."""
    first = next(iter(outcomes.values()))
    started = any(len(outcome.flight.segment_start) for outcome in outcomes.values())
    finished = any(outcome.metrics()["num_finished"] for outcome in outcomes.values())
    names = ", ".join(name for name, _ in named(outcomes))
    base = named(outcomes)[0][0]
    behind = f" The thin line is {base}." if len(outcomes) > 1 else ""
    drawn = {
        "wait": (
            *("How long jobs wait", "Higher is better. The dot on the left edge is the share"),
            *(" of jobs that started within a second.", started, charts.wait_cdf),
        ),
        "jct": (
            *("How long jobs take, submission to end", "Higher is better: more jobs are done"),
            *(" within that time.", finished, charts.jct_cdf),
        ),
        "utilization": (
            *("GPUs in use over time", "Share of the cluster\u2019s GPUs held by jobs."),
            *(behind, started, charts.utilization),
        ),
        "queue": (
            *("Jobs waiting over time", "Preempted jobs wait, too."),
            *(behind, started, charts.queue),
        ),
        "oldest": (
            *("The oldest waiting job", "How long the job that has waited longest"),
            *(f" for its first start has waited so far.{behind}", started, charts.oldest),
        ),
        "sizes": (
            *("Waits by job size", "A line runs from the median to P99 of the class\u2019s waits,"),
            *(" the dot is P90.", started, charts.waits_by_size),
        ),
        "shares": (
            *("Who the jobs are", "Share of all jobs, and of all the GPU time they held,"),
            *(" by the size of the job.", started, None),
        ),
    }
    made = {}
    for key, (title, caption, more, has_data, draw) in drawn.items():
        chart: Any = None
        if has_data:
            chart = draw(outcomes) if draw else charts.shares_by_size(first, len(outcomes))
        label = f"{title}: {names}" if draw else title
        made[key] = Figure(title, caption + more, _picture(chart, key, label))
    return made | _figures_of_nodes(outcomes, started=started, behind=behind)


def _figures_of_nodes(
    outcomes: Mapping[str, Outcome], *, started: bool, behind: str
) -> dict[str, Figure]:
    """Return the figures that only clusters of several types, or of nodes, have."""
    names = ", ".join(name for name, _ in named(outcomes))
    made = {}
    types = charts.by_type(outcomes) if started else None
    if types is not None:
        title = "GPUs in use by type"
        caption = "Share of the GPUs of each type held by jobs; the types with most GPUs."
        made["types"] = Figure(title, caption, _picture(types, "types", f"{title}: {names}"))
    if all(can_fragment(run) and run.metrics()["gpu_time"] > 0 for run in outcomes.values()):
        title = "Fragments over time"
        caption = (
            "Free GPUs that tasks like those of the run\u2019s own jobs could not use, on average "
            "over the GPU time they ask for, as a share of all GPUs (the measure of FGD, "
            "ATC\u201923)."
        )
        picture = _picture(charts.fragmentation(outcomes), "fragments", f"{title}: {names}")
        made["fragments"] = Figure(title, caption + behind, picture)
    return made


def _places(outcomes: Mapping[str, Outcome], *, live: bool) -> list[Figure]:
    """Return a figure a run of who ran where; none of those that know no nodes."""
    made = []
    window = curves.span(list(outcomes.values()))
    for index, (name, outcome) in enumerate(named(outcomes)):
        drawn = occupancy.occupancy(outcome, window) if window[1] > window[0] else None
        if drawn is None:
            continue
        title = f"{drawn.title}: {name}"
        key = f"places{index}"
        if live:
            picture = occupancy.live(drawn.chart, key)
        else:  # checking thousands of cells against a schema takes a second
            picture = _picture(drawn.chart.to_dict(validate=False), key, title)
        made.append(Figure(title, drawn.caption, picture))
    return made


def _figure_of(outcomes: Mapping[str, Outcome]) -> Callable[[Any, str, str, str], Figure]:
    """Return what makes a figure of runs: (chart, key, title, caption) -> figure."""
    names = ", ".join(name for name, _ in named(outcomes))

    def figure(chart: Any, key: str, title: str, caption: str) -> Figure:
        return Figure(title, caption, _picture(chart, key, f"{title}: {names}"))

    return figure


def _picture(chart: Any, key: str, label: str) -> Markup | None:
    from markupsafe import Markup

    # The SVG is Vega's own serialisation: it escapes every text it writes.
    return None if chart is None else Markup(to_svg(chart, name=key, label=label))  # noqa: S704


def _subtitle(outcomes: Mapping[str, Outcome], trace: Trace | None) -> list[str]:
    first = next(iter(outcomes.values()))
    parts = [clean(trace.name)] if trace is not None else []
    parts.append(plural(first.jobs.num_rows, "job"))
    parts.append(plural(first.cluster.num_gpus, "GPU"))
    parts.append(plural(len(outcomes), "run"))
    return parts


def _vcs_lead(vcs: sections.Table | None) -> str:
    if vcs is None or len(vcs.lines) <= sections.TOP_VCS:
        return "Most GPU time first."
    return f"The {sections.TOP_VCS} with most GPU time, and all others in one row."


def _trace_context(first: Outcome, trace: Trace | None) -> dict[str, Any]:
    from windtunnel.characterize import overview

    jobs = first.jobs if trace is None else trace.jobs
    context: dict[str, Any] = {
        "facts": sections.trace_facts(overview(jobs)),
        "origin": [],
        "dropped": [],
        "notes": [],
        "flown": first.jobs.num_rows if first.jobs.num_rows != jobs.num_rows else None,
    }
    if trace is None:
        return context
    about = trace.metadata
    origin = {
        "Name": about.name,
        "Source": about.source,
        "Licence": about.licence or "not stated by the source",
        "Time 0": about.epoch or "",
        "Time zone of the source": about.zone or "",
        "Records read": count(about.rows_read) if about.rows_read else "",
        **{f"Made with {key}": sections.setting_text(v) for key, v in about.settings.items()},
    }
    context["origin"] = [
        (clean(key), clean(value, MAX_TEXT)) for key, value in origin.items() if value != ""
    ]
    context["dropped"] = sections.dropped_facts(about.rows_read, about.dropped)
    context["notes"] = [clean(note, MAX_TEXT) for note in about.notes]
    return context


def _clusters(outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Return each distinct cluster with the runs that flew on it."""
    seen: list[tuple[ClusterSpec, list[str]]] = []  # a cluster with labels has no hash
    for name, outcome in named(outcomes):
        runs = next((runs for cluster, runs in seen if cluster == outcome.cluster), None)
        if runs is None:
            seen.append((outcome.cluster, [name]))
        else:
            runs.append(name)
    return [
        {
            "name": clean(cluster.name) if cluster.name else "",
            "text": clean(cluster.describe(), MAX_TEXT),
            "runs": runs if len(seen) > 1 else [],
            "nodes": [
                {
                    "count": count(node.count),
                    "gpus": count(node.gpus),
                    "type": clean(node.gpu_type) if node.gpu_type else "any",
                    "cpus": "not limited" if node.cpus is None else f"{node.cpus:,g}",
                    "memory": "not limited" if node.mem_gib is None else f"{node.mem_gib:,g} GiB",
                }
                for node in cluster.node_types
            ],
            "is_pool": cluster.is_pool,
        }
        for cluster, runs in seen
    ]


def _notes(outcomes: Mapping[str, Outcome]) -> list[tuple[str, str]]:
    """Return (runs, note) for every distinct note of the runs."""
    seen: dict[str, list[str]] = {}
    for name, outcome in named(outcomes):
        for note in outcome.notes:
            seen.setdefault(clean(note, MAX_TEXT), []).append(name)
    everyone = len(outcomes)
    return [
        ("All runs" if len(runs) == everyone else ", ".join(runs), note)
        for note, runs in seen.items()
    ]
