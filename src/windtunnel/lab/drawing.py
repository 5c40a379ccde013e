"""What the lab shows of a setup's runs: a sentence, the numbers and the charts, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from windtunnel.errors import WindtunnelError
from windtunnel.report import charts, findings, sections
from windtunnel.report.chart.arrange import unchecked
from windtunnel.report.curves import named
from windtunnel.report.format import count, percent
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.palette import dark_pairs
from windtunnel.report.render import to_svg
from windtunnel.report.result_page import Figure
from windtunnel.report.templating import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.lab.bench import Bench
    from windtunnel.lab.setup import Setup
    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace

#: Rows of the table of numbers.
SHOWN = (
    *("avg_wait", "p90_wait", "p99_wait", "avg_jct", "p90_jct", "num_waited"),
    *("utilization", "makespan", "num_preemptions", "num_finished", "num_rejected"),
)


def heading(trace: Trace) -> str:
    """Return a page's heading, as one HTML element."""
    parts = [trace.name, f"{count(trace.jobs.num_rows)} jobs"]
    if trace.cluster is not None:
        parts.append(f"its cluster: {trace.cluster.describe()}")
    text = " \u00b7 ".join(clean(part, 200) for part in parts)
    return str(
        Markup(
            '<p><strong style="font-size:20px">windtunnel lab</strong><br><bdi>{}</bdi></p>'
        ).format(text)
    )


def flown(bench: Bench, setup: Setup) -> str:
    """Return what a page shows of a setup: its runs, or why they cannot be."""
    try:
        where = bench.cluster(setup).describe()
        whose = "given" if bench.source.cluster else "trace's own"
        own = f" (the {whose} cluster)" if bench.is_own(setup) else ""
        return shown(bench.fly(setup), f"On {where}{own}")
    except WindtunnelError as error:
        return failed(str(error))


def shown(outcomes: Mapping[str, Outcome], where: str) -> str:
    """Return what a page shows of runs, as one HTML element.

    Args:
        outcomes: policy -> outcome, one or two; differences are to the first.
        where: which cluster they flew on.
    """
    with unchecked():
        context = {
            "where": clean(where, MAX_TEXT),
            "headline": _headline(outcomes),
            "cautions": findings.cautions(outcomes),
            "names": [name for name, _ in named(outcomes)],
            "metrics": _metrics(outcomes),
            "figures": _figures(outcomes),
            "notes": _notes(outcomes),
            "palette": dark_pairs(),
        }
    return render("lab.html.j2", context)


def failed(message: str) -> str:
    """Return what a page shows where a setup cannot be flown, as one HTML element.

    Args:
        message: why; untrusted text.
    """
    text = clean(message, 4 * MAX_TEXT)
    return str(Markup('<p class="lab-failed" role="alert">{}</p>').format(text))


def _headline(outcomes: Mapping[str, Outcome]) -> str:
    if len(outcomes) > 1:
        return findings.headline(outcomes)
    ((name, outcome),) = named(outcomes)
    metrics = outcome.metrics()
    used = metrics["utilization"]
    busy = "" if used is None else f", {percent(used)} of the GPU time in use"
    return f"{name}: {count(metrics['num_finished'])} jobs finished{busy}."


def _metrics(outcomes: Mapping[str, Outcome]) -> sections.Table:
    from windtunnel.report import measures

    runs = [outcome.metrics() for outcome in outcomes.values()]
    known = [measures.BY_KEY[key] for key in SHOWN if key in measures.BY_KEY]
    return sections.measures_table(outcomes, runs, known)


def _figures(outcomes: Mapping[str, Outcome]) -> list[Figure]:
    drawn = (
        ("wait", "How long jobs wait", "Higher is better.", charts.wait_cdf),
        ("utilization", "GPUs in use over time", "Share of the cluster's GPUs.",
         charts.utilization),
        ("queue", "Jobs waiting over time", "Preempted jobs wait, too.", charts.queue),
        ("sizes", "Waits by job size", "From the median to P99; the dot is P90.",
         charts.waits_by_size),
    )  # fmt: skip
    started = any(len(outcome.flight.segment_start) for outcome in outcomes.values())
    names = ", ".join(name for name, _ in named(outcomes))
    return [
        Figure(
            title,
            caption,
            _picture(draw(outcomes), key, f"{title}: {names}") if started else None,
        )
        for key, title, caption, draw in drawn
    ]


def _picture(chart: Any, key: str, label: str) -> Markup:
    # The SVG is Vega's own serialisation: it escapes every text it writes.
    return Markup(to_svg(chart, name=f"lab-{key}", label=label))  # noqa: S704


def _notes(outcomes: Mapping[str, Outcome]) -> list[str]:
    notes = [note for outcome in outcomes.values() for note in outcome.notes]
    return [clean(note, MAX_TEXT) for note in dict.fromkeys(notes)]
