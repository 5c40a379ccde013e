"""The HTML page of what prediction buys: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import windtunnel
from windtunnel.report import effect_charts, effect_findings, effect_tables, palette
from windtunnel.report.format import count, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.page import Figure
from windtunnel.report.render import to_svg
from windtunnel.report.templating import render
from windtunnel.study.effect_choice import TOLERANCE

if TYPE_CHECKING:
    from windtunnel.study.prediction_effect import PredictionEffect
    from windtunnel.traces.trace import Trace

_MAX_COMMAND = 2000
_ERRORS = (
    "Higher is better. The dotted line is at 25 %; predictors that know the truth are left out."
)
_STARVATION = (
    f"Right of the dotted line, at {TOLERANCE:g} times the wait under fifo, a dot or a stroke "
    "means that they starve."
)
_TRADEOFF = (
    "A number is an aging, the seconds of waiting that make up for a second of run time; the line "
    "joins fifo, the agings and sjf. Right of the dotted line the big jobs starve. What is beyond "
    "1.5 times fifo stands on the edge, a mean wait with its number."
)


def effect_page(found: PredictionEffect, *, trace: Trace, command: str) -> str:
    """Return the page of a study, as one self-contained HTML text.

    Args:
        found: the study.
        trace: where the jobs come from.
        command: what makes the page again, printed at its end.
    """
    context = {
        "title": f"What prediction buys: {clean(trace.name, 80)}",
        "subtitle": _subtitle(found, trace),
        "headline": effect_findings.headline(found),
        "sentences": effect_findings.sentences(found),
        "figures": figures(found),
        "predictors": effect_tables.predictors_table(found),
        "within": effect_tables.within_table(found),
        "sizes": [(load, effect_tables.sizes_table(found, load)) for load in found.loads],
        "runs": [(load, effect_tables.runs_table(found, load)) for load in found.loads],
        "big": effect_findings.big_words(found),
        "big_n": count(found.big.members.sum()),
        "model": clean(found.model),
        "tolerance": f"{TOLERANCE:g}",
        "cluster": clean(found.cluster.describe(), MAX_TEXT),
        "natural_load": f"{found.natural_load:.3g}",
        "placement": clean(found.settings["placement"]),
        "notes": [clean(note, MAX_TEXT) for note in (*found.notes, *trace.metadata.notes)],
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
    }
    return render("effect.html.j2", context)


def _subtitle(found: PredictionEffect, trace: Trace) -> list[str]:
    loads = ", ".join(f"{load:g}" for load in found.loads)
    return [
        clean(trace.name),
        f"{count(found.num_flown)} of {plural(trace.jobs.num_rows, 'job')}",
        plural(found.cluster.num_gpus, "GPU"),
        f"load {loads}",
    ]


def figures(found: PredictionEffect) -> dict[str, Figure]:
    """Return every figure of the page by name; those without data have no picture."""
    model, who = clean(found.model), effect_findings.big_words(found)
    n = count(found.big.members.sum())
    drawn: dict[str, tuple[str, str, Any]] = {
        "waits": (
            "Mean wait by size of the job",
            f"All {count(found.num_flown)} jobs that fly; n of each size is in the table below.",
            effect_charts.waits_chart(found),
        ),
        "errors": ("How far off the predictions are", _ERRORS, effect_charts.errors_chart(found)),
        "starvation": (
            "Who starves the big jobs",
            f"{who[0].upper()}{who[1:]}, n = {n}. {_STARVATION}",
            effect_charts.starvation_chart(found),
        ),
        "tradeoff": (
            "What the gain costs the big jobs",
            f"Settings of {model}, big jobs n = {n}; low and left is good. {_TRADEOFF}",
            effect_charts.tradeoff_chart(found),
        ),
    }
    return {
        name: Figure(title, caption, _picture(chart, name, title))
        for name, (title, caption, chart) in drawn.items()
    }


def _picture(chart: Any, name: str, label: str) -> Any:
    from markupsafe import Markup

    # The SVG is Vega's own serialisation: it escapes every text it writes.
    return None if chart is None else Markup(to_svg(chart, name=name, label=label))  # noqa: S704
