"""The page of a comparison: its parts, made of outcomes.

The numbers come from `windtunnel.report.sections`, the sentence on top from
`windtunnel.report.findings`, the pictures from `windtunnel.report.charts`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.characterize import overview
from windtunnel.report import charts, curves, fairness, findings, occupancy, sections
from windtunnel.report.curves import named
from windtunnel.report.description import dropped_words, trace_facts
from windtunnel.report.energy_section import energy_part
from windtunnel.report.format import count, plural
from windtunnel.report.goodput_rows import goodput_tables
from windtunnel.report.level_rows import level_tables
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing, Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.sim.observe.holdings import can_fragment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.account import Account
    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace


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
        books: run name -> its energy, the same runs; None = without energy.

    Raises:
        ValueError: ``outcomes`` is empty.
    """
    if not outcomes:
        raise ValueError("a comparison page needs at least one outcome")
    goodput, levels = goodput_tables(outcomes), level_tables(outcomes)
    drawn = figures(outcomes)
    parts = [
        _numbers(outcomes),
        *_waits(outcomes, drawn),
        *([Part("What failures cost", _GOODPUT, goodput)] if goodput else []),
        *([Part("Where in the topology", _LEVELS, levels)] if levels else []),
        _fairness(outcomes),
        Part("The cluster over time", drawings=[drawn[key] for key in _OVER_TIME if key in drawn]),
        *_places(outcomes, live=interactive),
        *([energy_part(outcomes, books)] if books else []),
        _trace_part(next(iter(outcomes.values())), trace),
        *_clusters(outcomes),
        Part("Settings of every run", tables=[("", sections.settings_table(outcomes))]),
    ]
    result = Result(
        clean(title, 120),
        findings.headline(outcomes),
        parts=parts,
        cautions=findings.cautions(outcomes),
        notes=_notes(outcomes),
        subtitle=_subtitle(outcomes, trace),
    )
    scripts = occupancy.scripts() if interactive else []
    return result_page(result, command=command, scripts=scripts)


_GOODPUT = (
    "Goodput is the share of the GPU time held that made progress. The effective training time "
    "ratio (ETTR) is productive time over all time from submission to end, waits included; the "
    "mean time to failure (MTTF) is time on GPUs over failures. Intervals are 95 %."
)
_LEVELS = (
    "Over how many domains of each level jobs went on average, and the fewest that could have held "
    "them; the spread is one over the other. Refused by the levels: jobs that waited although "
    "their pods would have fitted without what they asked of the levels. GPUs in no slice were "
    "free, on average, where no whole slice fitted."
)


def _numbers(outcomes: Mapping[str, Outcome]) -> Part:
    lead = (
        f"Differences are to {_first(outcomes)}. Hold the pointer over a number for its exact "
        "value, over a name for its definition."
    )
    table = sections.metrics_table(outcomes)
    return Part("The runs in numbers", lead if len(outcomes) > 1 else "", [("", table)])


def _waits(outcomes: Mapping[str, Outcome], drawn: Mapping[str, Drawing]) -> list[Part]:
    """Return the parts on waits: curves, by size of the job, by virtual cluster."""
    first = _first(outcomes)
    sizes, vcs = sections.sizes_table(outcomes), sections.vcs_table(outcomes)
    key = (
        f"{_marked(first)} GPU hours are what {first}\u2019s jobs held."
        if sizes.has_marks
        else f"No job size waits {_RATIO} times as long as under {first} (and a minute longer); it "
        f"would be highlighted. GPU hours are what {first}\u2019s jobs held."
    )
    if vcs is None:
        lead = "The jobs name no virtual cluster."
    elif len(vcs.lines) <= sections.TOP_VCS:
        lead = "Most GPU time first."
    else:
        lead = f"The {sections.TOP_VCS} with most GPU time, and all others in one row."
    return [
        Part("How long jobs wait and take", drawings=[drawn["wait"], drawn["jct"]]),
        Part(
            "Who waits: by job size",
            tables=[("Waits by job size", sizes)] if sizes.lines else [],
            drawings=[drawn["sizes"], drawn["shares"]],
            key=key if sizes.lines and len(outcomes) > 1 else "",
        ),
        Part("Who waits: by virtual cluster", lead, [] if vcs is None else [("", vcs)]),
    ]


def _fairness(outcomes: Mapping[str, Outcome]) -> Part:
    shares, longest = fairness.fairness_table(outcomes), fairness.starvation_table(outcomes)
    tables, terms = [], []
    if shares is not None:
        tables.append(("Finish-time fairness", shares))
        meaning = (
            "a job\u2019s completion time over what an equal part of the cluster for itself would "
            "have taken; over 1, it lost by sharing"
        )
        terms.append(("\u03c1", meaning))
    if longest.lines:
        tables.append(("The longest waits, by job size", longest))
        terms += [
            ("longest", "jobs that still wait at the end count with what they have waited so far"),
            (
                "overtaken by",
                "the most jobs that were submitted after one job and started before it",
            ),
        ]
    key = _marked(_first(outcomes)) if longest.has_marks else ""
    return Part("Is it fair, does anybody starve?", tables=tables, terms=terms, key=key)


_EDGE = "The dot on the left edge is the share of jobs that started within a second."
_LONGEST = "How long the job that has waited longest for its first start has waited so far."
_OVER_TIME = ("utilization", "queue", "oldest", "types", "fragments")
_RATIO = f"{findings.MARKED_RATIO:g}"


def _marked(first: str) -> str:
    return f"At least {_RATIO} times as long as under {first}, and a minute longer."


def _first(outcomes: Mapping[str, Outcome]) -> str:
    return named(outcomes)[0][0]


def figures(outcomes: Mapping[str, Outcome]) -> dict[str, Drawing]:
    """Return the pictures of the page by name; those without data are empty."""
    first = next(iter(outcomes.values()))
    started = any(len(outcome.flight.segment_start) for outcome in outcomes.values())
    finished = any(outcome.metrics()["num_finished"] for outcome in outcomes.values())
    base = _first(outcomes)
    behind = f" The thin line is {base}." if len(outcomes) > 1 else ""
    drawn = (
        ("wait", "How long jobs wait", started, charts.wait_cdf,
         f"Higher is better. {_EDGE}"),
        ("jct", "How long jobs take, submission to end", finished, charts.jct_cdf,
         "Higher is better: more jobs are done within that time."),
        ("utilization", "GPUs in use over time", started, charts.utilization,
         f"Share of the cluster\u2019s GPUs held by jobs.{behind}"),
        ("queue", "Jobs waiting over time", started, charts.queue,
         f"Preempted jobs wait, too.{behind}"),
        ("oldest", "The oldest waiting job", started, charts.oldest,
         f"{_LONGEST}{behind}"),
        ("sizes", "Waits by job size", started, charts.waits_by_size,
         "A line runs from the median to P99 of the class\u2019s waits, the dot is P90."),
    )  # fmt: skip
    made = {}
    for key, title, has_data, draw, caption in drawn:
        chart = partial(draw, outcomes) if has_data else _nothing
        made[key] = Drawing(key, title, caption, chart, labelled(title, outcomes))
    made["shares"] = Drawing(
        "shares",
        "Who the jobs are",
        "Share of all jobs, and of all the GPU time they held, by the size of the job.",
        partial(charts.shares_by_size, first, len(outcomes)) if started else _nothing,
    )
    return made | _figures_of_nodes(outcomes, started=started, behind=behind)


def _nothing() -> None:
    return None


def labelled(title: str, outcomes: Mapping[str, Outcome]) -> str:
    """Return what screen readers hear of a picture of runs."""
    return f"{title}: {', '.join(name for name, _ in named(outcomes))}"


def _figures_of_nodes(
    outcomes: Mapping[str, Outcome], *, started: bool, behind: str
) -> dict[str, Drawing]:
    """Return the pictures that only clusters of several types, or of nodes, have."""
    made = {}
    types = charts.by_type(outcomes) if started else None
    if types is not None:
        title = "GPUs in use by type"
        caption = "Share of the GPUs of each type held by jobs; the types with most GPUs."
        label = labelled(title, outcomes)
        made["types"] = Drawing("types", title, caption, lambda: types, label)
    if all(can_fragment(run) and run.metrics()["gpu_time"] > 0 for run in outcomes.values()):
        title = "Fragments over time"
        caption = (
            "Free GPUs that tasks like those of the run\u2019s own jobs could not use, on average "
            "over the GPU time they ask for, as a share of all GPUs (the measure of FGD, "
            f"ATC\u201923).{behind}"
        )
        draw, label = partial(charts.fragmentation, outcomes), labelled(title, outcomes)
        made["fragments"] = Drawing("fragments", title, caption, draw, label)
    return made


def _places(outcomes: Mapping[str, Outcome], *, live: bool) -> list[Part]:
    """Return the part on who ran where, a picture a run; none of those that know no nodes."""
    made = []
    window = curves.span(list(outcomes.values()))
    for index, (name, outcome) in enumerate(named(outcomes)):
        drawn = occupancy.occupancy(outcome, window) if window[1] > window[0] else None
        if drawn is not None:
            made.append(drawn.drawing(f"places{index}", f"{drawn.title}: {name}", live=live))
    lead = occupancy.HOW_TO_ZOOM if live else ""
    return [Part("Who ran where", lead, drawings=made)] if made else []


def _subtitle(outcomes: Mapping[str, Outcome], trace: Trace | None) -> list[str]:
    first = next(iter(outcomes.values()))
    parts = [clean(trace.name)] if trace is not None else []
    parts.append(plural(first.jobs.num_rows, "job"))
    parts.append(plural(first.cluster.num_gpus, "GPU"))
    parts.append(plural(len(outcomes), "run"))
    return parts


def _trace_part(first: Outcome, trace: Trace | None) -> Part:
    jobs = first.jobs if trace is None else trace.jobs
    flown = first.jobs.num_rows
    facts = trace_facts(overview(jobs))
    lead = "" if flown == jobs.num_rows else f"The runs flew {count(flown)} of these jobs."
    if trace is None:
        return Part("The trace", lead, facts=facts)
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
    terms = [(clean(key), clean(value, MAX_TEXT)) for key, value in origin.items() if value != ""]
    dropped = dropped_words(about.rows_read, about.dropped)
    terms += [(f"No job here: {reason}", number) for reason, number in dropped]
    points = [clean(note, MAX_TEXT) for note in about.notes]
    return Part("The trace", lead, facts=facts, terms=terms, points=points)


def _clusters(outcomes: Mapping[str, Outcome]) -> list[Part]:
    """Return a part for each distinct cluster, with the runs that flew on it."""
    seen: list[tuple[ClusterSpec, list[str]]] = []  # a cluster with labels has no hash
    for name, outcome in named(outcomes):
        runs = next((runs for cluster, runs in seen if cluster == outcome.cluster), None)
        if runs is None:
            seen.append((outcome.cluster, [name]))
        else:
            runs.append(name)
    parts = []
    for cluster, runs in seen:
        title = "The cluster" if len(seen) == 1 else f"The cluster of {', '.join(runs)}"
        name = f" ({clean(cluster.name)})" if cluster.name else ""
        table = table_of(_NODE, [_node_row(node, cluster) for node in cluster.node_types])
        lead = f"{clean(cluster.describe(), MAX_TEXT)}{name}."
        parts.append(Part(title, lead, [("Nodes of the cluster", table)]))
    return parts


_NODE = ("GPU type", "Nodes", "GPUs a node", "CPU cores a node", "Memory a node")


def _node_row(node: Any, cluster: ClusterSpec) -> list[str]:
    return [
        clean(node.gpu_type) if node.gpu_type else "any",
        "one pool" if cluster.is_pool else count(node.count),
        count(node.gpus),
        "not limited" if node.cpus is None else f"{node.cpus:,g}",
        "not limited" if node.mem_gib is None else f"{node.mem_gib:,g} GiB",
    ]


def _notes(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Return every distinct note of the runs, behind the names of those that have it."""
    seen: dict[str, list[str]] = {}
    for name, outcome in named(outcomes):
        for note in outcome.notes:
            seen.setdefault(clean(note, MAX_TEXT), []).append(name)
    everyone = len(outcomes)
    return [
        f"{'All runs' if len(runs) == everyone else ', '.join(runs)}: {note}"
        for note, runs in seen.items()
    ]
