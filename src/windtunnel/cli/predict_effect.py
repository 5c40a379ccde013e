"""``windtunnel predict effect``: what predictions buy a queue, and what big jobs pay for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceRequest, cluster_for, open_request
from windtunnel.cli.options import Parsed, listed, option, seed_option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.screen import progress
from windtunnel.plain import fields_of

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.study.prediction_effect import PredictionEffect
    from windtunnel.traces.trace import Trace

#: `windtunnel.study.effect_settings`' defaults as words; that module is not imported here.
LOADS, MODELS, AGINGS = "0.9,1,1.1", "oracle,sjg,sju,cart", "1,3,10,30,100"


def _numbers(text: str) -> tuple[float, ...]:
    """Return numbers above 0, joined by commas; ``none`` is no number at all."""
    try:
        found = tuple(float(word) for word in ([] if text == "none" else text.split(",")))
    except ValueError:
        found = (0.0,)
    if not all(0 < number < float("inf") for number in found):
        raise ValueError(f"found {text!a}; expected numbers above 0, joined by commas: {LOADS}.")
    return found


@click.command(short_help="What do predictions buy a queue, and who pays?")
@trace_options
@option(
    "--model NAMES",
    "Predictors, separated by commas, as for `predict durations`; group and user are sjg and "
    "sju; oracle and noise know the truth.",
    dest="models",
    default=MODELS,
)
@option(
    "--loads NUMBERS",
    "Offered loads: GPU time asked for over GPU time there is while jobs are submitted; the "
    "submissions are stretched to each.",
    Parsed("numbers", _numbers),
    default=LOADS,
)
@option(
    "--aging NUMBERS",
    "Agings to try with the best predictor: seconds of waiting that make up for a second of "
    "predicted run time; none = do not.",
    Parsed("numbers", _numbers),
    dest="agings",
    default=AGINGS,
)
@option(
    "--reservations/--no-reservations",
    "Also try EASY reservations planned with the best predictor: the slowest part.",
    default=True,
)
@option("--placement NAME", "As for `simulate`.  [default: best_fit; on a pool, pool]")
@option(
    "--cluster SPEC",
    "As for `simulate`; pai/6 is a sixth of PAI's nodes.  [default: the trace's own]",
)
@seed_option("Seed of models, placement and a synthetic trace.  [default: 0]")
@presented(PAGES, "Write the study as one page with charts.", metavar="FILE.html")
def effect(*, trace: str, **asked: Any) -> Result:
    """Fly TRACE with and without predicted run times, at several loads, and say who gains.

    First come first served, shortest predicted first by each predictor, and for the best one aging
    and reservations; waits by size of the job, how far off the predictions are, and which setting
    keeps the gain without starving the big jobs. Jobs without times, or larger than the cluster,
    are left out and counted.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.cluster.parse import parse_cluster
    from windtunnel.report.effect_result import effect_result
    from windtunnel.study.effect_settings import checked_models, checked_numbers
    from windtunnel.study.prediction_effect import num_steps, prediction_effect

    spec, seed = asked.pop("cluster"), asked["seed"] or 0
    study = {name: asked.pop(name) for name in ("loads", "agings", "reservations", "placement")}
    study["models"] = listed(asked.pop("models"))
    checked_models(study["models"], seed)
    checked_numbers("--loads", study["loads"], least=1)
    checked_numbers("--aging", study["agings"], least=0)
    chosen = None if spec is None else parse_cluster(spec)
    request = TraceRequest(trace, **asked)
    opened = open_request(request)
    cluster, why = cluster_for(opened, chosen)
    steps = num_steps(
        study["loads"], study["models"], study["agings"], reservations=study["reservations"]
    )
    with progress("Flying", steps) as done:
        found = prediction_effect(opened.jobs, cluster, **study, seed=seed, on_done=done)
    answer = effect_result(found, opened)
    return replace(answer, notes=[*why, *answer.notes], data=_data(found, opened, why))


def _data(found: PredictionEffect, trace: Trace, why: tuple[str, ...]) -> dict[str, Any]:
    """Return the study as plain data.

    Keys: ``trace``, ``cluster``, ``loads``, ``natural_load``, ``num_flown``, ``num_rejected``,
    ``settings``, ``big`` (``least_gpus``, ``sizes``, ``num_jobs``), ``model`` (that the cures go
    by), ``runs``, ``sizes``, ``predictions`` (with ``error_cdf`` and ``by_size``), ``choice``
    (``policy``, ``queueing``, ``tolerance``, ``by_load``), ``headline``, ``sentences``, ``notes``.
    """
    from windtunnel.report.effect_findings import headline, sentences
    from windtunnel.study.effect_settings import TOLERANCE

    parts = (("error_cdf", found.errors.to_pylist()), ("by_size", found.within.to_pylist()))
    return {
        "trace": trace_data(trace),
        "cluster": cluster_data(found.cluster),
        **fields_of(found, "loads", "natural_load", "num_flown", "num_rejected", "settings"),
        "big": {
            "least_gpus": found.big.least,
            "sizes": list(found.big.sizes),
            "num_jobs": found.big.members.sum(),
        },
        "model": found.model,
        "runs": found.runs.to_pylist(),
        "sizes": found.sizes.to_pylist(),
        "predictions": [
            {**row, **{name: _of(row["model"], rows) for name, rows in parts}}
            for row in found.predictions.to_pylist()
        ],
        "choice": {
            "policy": found.choice.policy,
            "queueing": found.choice.queueing,
            "tolerance": TOLERANCE,
            "by_load": [
                {"load": load, "policy": label, "gain_kept": found.choice.kept.get(load)}
                for load, label in found.choice.by_load.items()
            ],
        },
        "headline": headline(found),
        "sentences": dict(sentences(found)),
        "notes": [*why, *found.notes],
    }


def _of(model: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a predictor's rows, without its name in each."""
    return [
        {key: value for key, value in row.items() if key != "model"}
        for row in rows
        if row["model"] == model
    ]
