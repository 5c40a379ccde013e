"""``windtunnel study run``: fly a study, or what is missing of it."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import COUNT, flag, option, together
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import shows_progress
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windtunnel.study.grid import Results

    Command = Callable[..., Any]


#: Add who flies the runs, and where the results go.
crew_options = together(
    click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path)),
    flag("--trust", "STUDY.toml may name code (package.module:name), which is then run."),
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
@crew_options
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
    from windtunnel.plugins import names_of_file
    from windtunnel.study.grid import Study, run_study

    study = Study.from_toml(file, trust=trust)
    folder = folder_of(file, out)
    with (
        names_of_file(file, trust=trust),
        flights("Flying", show=shows_progress()) as (on_start, on_done),
    ):
        results = run_study(
            study,
            folder,
            on=on,
            workers=workers,
            retry_failed=retry_failed,
            on_start=on_start,
            on_done=on_done,
        )
    next_ = f"Look at them: windtunnel study compare {shlex.quote(str(folder))}"
    return summary(results).with_data(summary_data(results), [next_])


def folder_of(file: Path, out: Path | None) -> Path:
    """Return where results go.

    Raises:
        SpecError: it cannot be told.
    """
    if out is not None:
        return out
    if file.suffix == ".toml":
        return file.with_suffix("")

    raise SpecError("--out", f"is needed, as {file.name} does not end in .toml.")


@contextmanager
def flights(
    title: str, *, show: bool
) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Show a progress bar with the time left on stderr while the block runs.

    Args:
        title: what is being done.
        show: whether to show it at all.

    Yields:
        ``on_start`` and ``on_done`` of `windtunnel.study.grid.run_study`.
    """
    if not show:
        yield (lambda _done, _total: None), (lambda _: None)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield (
            lambda done, total: bar.update(task, total=total, completed=done),
            lambda _: bar.advance(task),
        )


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
