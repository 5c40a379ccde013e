"""``windtunnel study run|tune``: fly a study, or search the parameters of a policy."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import COUNT, field_option, flag, option, together
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import flights
from windtunnel.errors import SpecError
from windtunnel.plain import fields_of
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windtunnel.study.grid import Results, Study

    Command = Callable[..., Any]
    from windtunnel.report.sections import Table
    from windtunnel.study.grid.search import Found, TrialResult


#: Add who flies the runs, and where the results go.
executor_options = together(
    click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path)),
    field_option("trust", "STUDY.toml may name code (package.module:name), which is then run."),
    option(
        "--on WHO",
        "processes of this machine; ray: the cluster RAY_ADDRESS names, else this "
        "machine; ray://HOST:PORT: a Ray cluster.",
        default="processes",
    ),
    option(
        "--workers N",
        "Runs flown at a time.  [default: one a core, of this machine or the cluster]",
        COUNT,
    ),
    option(
        "--out DIR",
        "Folder of results; one that is begun is gone on with.  "
        "[default: STUDY.toml's name without .toml]",
        click.Path(path_type=Path, file_okay=False),
    ),
)


@click.command(short_help="Fly a study, or what is missing of it.")
@executor_options
@flag("--retry-failed", "Fly runs again that gave an error before.")
@presented()
def run(
    *,
    file: Path,
    out: Path | None,
    on: str,
    workers: int | None,
    trust: bool,
    retry_failed: bool,
) -> Result:
    """Fly every run of STUDY.toml that the folder of results does not hold yet.

    Stop it at any moment, by whatever means: the same command goes on where it was, and the results
    are the same, byte for byte. A run that gives an error is kept with it and stops no other.
    """
    from windtunnel.study.grid import run_study

    folder = folder_of(file, out)
    with _loaded(file, "Flying", trust=trust) as (study, told):
        results = run_study(
            study, folder, on=on, workers=workers, retry_failed=retry_failed, **told
        )
    next_ = f"Look at them: windtunnel study compare {shlex.quote(str(folder))}"
    return summary(results).with_data(summary_data(results), [next_])


@contextmanager
def _loaded(file: Path, what: str, *, trust: bool) -> Iterator[tuple[Study, dict[str, Any]]]:
    """Lend the study of a file while its runs are flown, and what is called at each of them."""
    from windtunnel.plugins import names_of_file
    from windtunnel.study.grid import Study

    study = Study.load(file, trust=trust)
    with names_of_file(file, trust=trust), flights(what) as (on_start, on_done):
        yield study, {"on_start": on_start, "on_done": on_done}


def folder_of(file: Path, out: Path | None) -> Path:
    """Return where results go.

    Raises:
        SpecError: it cannot be known.
    """
    if out is not None:
        return out
    if file.suffix == ".toml":
        return file.with_suffix("")

    raise SpecError("--out", f"is needed, as {file.name} does not end in .toml.")


def summary_data(results: Results) -> dict[str, Any]:
    """Return how far a study is, as plain data.

    Keys: ``name``, ``folder``, ``num_runs`` (of the whole study), ``num_finished``, ``num_failed``
    (among those), ``failures`` (list: ``run_id``, ``trace``, ``cluster``, ``policy``, ``load``,
    ``seed``, ``error``), ``seeds``, ``versions``.
    """
    keys = ("run_id", "trace", "cluster", "policy", "load", "seed", "error")
    return {
        "name": results.name,
        "folder": str(results.folder),
        "num_runs": results.num_runs,
        "num_finished": results.table.num_rows,
        "num_failed": len(results.failures),
        "failures": [{key: row[key] for key in keys} for row in results.failures],
        "seeds": results.manifest["seeds"],
        "versions": results.manifest["versions"],
    }


def summary(results: Results) -> Result:
    """Return how far a study is, and what failed."""
    from windtunnel.errors import SpecError
    from windtunnel.report.study_rows import failure_lines, progress_line

    failed = [Part("Failed", points=failure_lines(results))]
    error = None
    if results.failures and len(results.failures) == results.table.num_rows:
        error = SpecError(str(results.folder), "every run gave an error.")
    return Result(results.name, progress_line(results), parts=failed, error=error)


@click.command(short_help="Search the parameters of a policy that make a metric best.")
@executor_options
@presented()
def tune(*, file: Path, out: Path | None, on: str, workers: int | None, trust: bool) -> Result:
    """Search the parameters that [search] of STUDY.toml describes.

    Every setting is flown under all conditions and seeds of the study. The best is the one with the
    best mean of the objective, of those whose every run keeps to the limits. The same study gives
    the same search; one that was stopped goes on where it was.
    """
    from windtunnel.report.study_rows import metric_label, metric_text, parameters_text
    from windtunnel.study.grid.search import search_study

    folder = folder_of(file, out)
    with _loaded(file, "Searching", trust=trust) as (study, told):
        found = search_study(study, folder, on=on, workers=workers, **told)
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
        **fields_of(found, "objective", "direction"),
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
