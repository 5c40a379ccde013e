"""``windtunnel study tune``: the parameters of a policy that make a metric best."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import shows_progress
from windtunnel.cli.study_run import crew_options, flights, folder_of
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.report.sections import Table
    from windtunnel.study.grid.search import Found, TrialResult


@click.command(short_help="Search the parameters of a policy that make a metric best.")
@crew_options
@presented()
def tune(*, file: Path, out: Path | None, on: str, workers: int | None, trust: bool) -> Result:
    """Search the parameters that [search] of STUDY.toml describes.

    Every setting is flown under all conditions and seeds of the study. The best is the one with the
    best mean of the objective, of those whose every run keeps to the limits. The same study gives
    the same search; one that was stopped goes on where it was.
    """
    from windtunnel.plugins import names_of_file
    from windtunnel.report.study_rows import metric_label, metric_text, parameters_text
    from windtunnel.study.grid import Study
    from windtunnel.study.grid.search import search_study

    study = Study.from_toml(file, trust=trust)
    folder = folder_of(file, out)
    with (
        names_of_file(file, trust=trust),
        flights("Searching", show=shows_progress()) as (on_start, on_done),
    ):
        found = search_study(
            study, folder, on=on, workers=workers, on_start=on_start, on_done=on_done
        )
    label = metric_label(found.objective)
    title = f"{found.results.name}: {label}, {found.direction}d over {len(found.trials)} trials"
    headline = "No setting keeps to the limits in every run."
    if found.best is not None:
        best = metric_text(found.objective, found.best.objective)
        chosen = parameters_text(found.best.parameters)
        headline = f"Best: {chosen}, {label[0].lower()}{label[1:]} {best}."
    baseline = [
        f"{name}: {metric_text(found.objective, value)}" for name, value in found.baseline.items()
    ]
    return Result(
        title,
        headline,
        parts=[
            Part("", tables=[("", _trials(found, label))]),
            Part("To compare with", points=baseline),
        ],
        data=search_data(found),
    )


def search_data(found: Found) -> dict[str, Any]:
    """Return a search as plain data.

    Keys: ``name``, ``folder``, ``objective``, ``direction``, ``best`` (a trial, or null),
    ``trials`` (list: ``number``, ``parameters``, ``policy``, ``objective``, ``worst`` (constrained
    metric -> value), ``is_allowed``, ``error``), ``baseline`` (policy -> objective).
    """
    return {
        "name": found.results.name,
        "folder": str(found.results.folder),
        "objective": found.objective,
        "direction": found.direction,
        "best": None if found.best is None else asdict(found.best),
        "trials": [asdict(trial) for trial in found.trials],
        "baseline": found.baseline,
    }


#: Trials that the terminal shows, the best first.
_SHOWN = 10


def _trials(found: Found, label: str) -> Table:
    """Return the trials, the best first."""
    from windtunnel.report.study_rows import metric_label, metric_text, parameters_text

    sign = -1.0 if found.direction == "maximize" else 1.0
    ordered = sorted(
        found.trials,
        key=lambda t: (not t.is_allowed, t.objective is None, sign * (t.objective or 0.0)),
    )
    limits = list(found.trials[0].worst)
    rows = [
        [
            parameters_text(trial.parameters),
            _verdict(trial),
            *(metric_text(name, trial.worst[name]) for name in limits),
            metric_text(found.objective, trial.objective),
        ]
        for trial in ordered[:_SHOWN]
    ]
    headings = ["parameters", "limits", *(f"worst: {metric_label(name)}" for name in limits), label]
    return table_of(headings, rows, texts=1)


def _verdict(trial: TrialResult) -> str:
    if trial.error:
        return trial.error.splitlines()[0]
    return "kept" if trial.is_allowed else "broken"
