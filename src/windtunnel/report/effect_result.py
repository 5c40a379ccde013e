"""What prediction buys, told to people: the study's tables and pictures as one result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report import effect_charts, effect_findings, effect_tables
from windtunnel.report.format import count, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing, Part, Result
from windtunnel.study.effect_choice import TOLERANCE

if TYPE_CHECKING:
    from windtunnel.study.prediction_effect import PredictionEffect
    from windtunnel.traces.trace import Trace

_ERRORS = (
    "Higher is better. The dotted line is at 25 %; predictors that know the truth are left out."
)
_STARVATION = (
    f"Right of the dotted line, at {TOLERANCE:g} times the wait under fifo, a dot or a stroke "
    "means that they starve."
)
_KEY = (
    "The big jobs starve: the P99 or the longest of their waits is above "
    f"{TOLERANCE:g} times that under fifo at the same load. \u201cOf the gain\u201d: what is saved "
    "over what shortest first by the same predictor saves."
)
_TRADEOFF = (
    "A number is an aging, the seconds of waiting that make up for a second of run time; the line "
    "joins fifo, the agings and sjf. Right of the dotted line the big jobs starve. What is beyond "
    "1.5 times fifo stands on the edge, a mean wait with its number."
)


def effect_result(found: PredictionEffect, trace: Trace) -> Result:
    """Return a study as a result.

    Args:
        found: the study.
        trace: where the jobs come from.
    """
    waits, errors, starvation, tradeoff = _drawings(found)
    big, n = effect_findings.big_words(found), count(found.big.members.sum())
    sizes = [
        (
            f"Load {load:g}: waits and completion times by size",
            effect_tables.sizes_table(found, load),
        )
        for load in found.loads
    ]
    within = ("Predictions within 25 % of the truth, by size", effect_tables.within_table(found))
    predictors = effect_tables.predictors_table(found)
    runs = [
        (f"Load {load:g}: every setting", effect_tables.runs_table(found, load))
        for load in found.loads
    ]
    parts = [
        Part("In sentences", terms=effect_findings.sentences(found), tells=True),
        Part(
            "Error beside effect",
            "Relative errors of the predictions, over the jobs that fly, and what shortest "
            "predicted first saves of the mean wait under fifo at each load.",
            [("Predictors: error and effect", predictors)],
        ),
        Part(
            "Who waits, and whose run times are known",
            "",
            [*sizes, within],
            [waits, errors],
            page_only=True,
        ),
        Part(
            "Gain and starvation",
            f"The big jobs are {big} (n = {n}). Aging and reservations go by {clean(found.model)}, "
            "the predictor that saves most of those that do not know the truth.",
            runs,
            [tradeoff, starvation],
            key=_KEY,
        ),
    ]
    loads = ", ".join(f"{load:g}" for load in found.loads)
    return Result(
        f"What prediction buys: {clean(trace.name, 80)}",
        effect_findings.headline(found),
        parts=parts,
        notes=[
            _how(found),
            *(clean(note, MAX_TEXT) for note in (*found.notes, *trace.metadata.notes)),
        ],
        subtitle=[
            clean(trace.name),
            f"{count(found.num_flown)} of {plural(trace.jobs.num_rows, 'job')}",
            plural(found.cluster.num_gpus, "GPU"),
            f"load {loads}",
        ],
    )


def _how(found: PredictionEffect) -> str:
    return (
        f"{clean(found.cluster.describe(), MAX_TEXT)}. As recorded, the jobs offer this cluster a "
        f"load of {found.natural_load:.3g}: GPU time asked for over GPU time there is while jobs "
        "are submitted. For another load all submissions are stretched about the first. Placement "
        f"{found.settings['placement']}; fifo, shortest first and aging go on past a job that does "
        "not fit."
    )


def _drawings(found: PredictionEffect) -> list[Drawing]:
    """Return the pictures; those without data are not drawn."""
    model, who = clean(found.model), effect_findings.big_words(found)
    n = count(found.big.members.sum())
    drawn: dict[str, tuple[str, str, Any]] = {
        "waits": (
            "Mean wait by size of the job",
            f"All {count(found.num_flown)} jobs that fly; n of each size is in the table below.",
            effect_charts.waits_chart,
        ),
        "errors": ("How far off the predictions are", _ERRORS, effect_charts.errors_chart),
        "starvation": (
            "Who starves the big jobs",
            f"{who[0].upper()}{who[1:]}, n = {n}. {_STARVATION}",
            effect_charts.starvation_chart,
        ),
        "tradeoff": (
            "What the gain costs the big jobs",
            f"Settings of {model}, big jobs n = {n}; low and left is good. {_TRADEOFF}",
            effect_charts.tradeoff_chart,
        ),
    }
    return [
        Drawing(name, title, caption, partial(draw, found))
        for name, (title, caption, draw) in drawn.items()
    ]
