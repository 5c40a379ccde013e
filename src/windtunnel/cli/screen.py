"""The terminal: results on stdout, progress on stderr.

Every text goes out as text, never as markup. Progress is shown where stderr is a
terminal and the user did not ask for JSON.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from windtunnel.report.names import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console
    from rich.progress import Progress


#: Columns of a table that goes into a file or a pipe.
_PIPE_WIDTH = 100


def screen() -> Console:
    """Return stdout as a rich console that reads no markup in what it prints."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(width=width, markup=False, emoji=False, highlight=False)


def heading(console: Console, text: str) -> None:
    """Print a title in bold, with an empty line before it."""
    console.print()
    console.print(line(text), style="bold")


def line(text: str, limit: int = 400) -> Any:
    """Return untrusted text as a harmless rich text."""
    from rich.text import Text

    return Text(clean(text, limit))


def bullets(console: Console, title: str, texts: Iterable[str]) -> None:
    """Print a list of sentences under a title, wrapped and indented; nothing where it is empty."""
    from rich.table import Table

    listed = list(dict.fromkeys(texts))
    if not listed:
        return
    heading(console, title)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in listed:
        grid.add_row("-", line(text))
    console.print(grid)


def facts(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; pairs without a value are left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(line(name), line(value))
    console.print(grid)


def shows_progress() -> bool:
    """Return whether anybody would see a progress bar."""
    context = click.get_current_context(silent=True)
    as_json = context is not None and context.params.get("as_json")
    return sys.stderr.isatty() and not as_json


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr while the block runs; it leaves no trace behind.

    How far a flight is counts as a part of a step.

    Args:
        title: what is being done.
        total: steps to come; None where nobody knows.

    Yields:
        A function to call with a step's name when it is done.
    """
    if not shows_progress():
        yield lambda _: None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    from windtunnel.sim.progress import telling

    columns: list[Any] = [MofNCompleteColumn()] * (total is not None and total > 1)
    with _bar(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task(line(title).plain, total=total)
        done = 0

        def step(_: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done)

        with telling(lambda share: bar.update(task, completed=done + share)):
            yield step


@contextmanager
def flights(title: str) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Show a progress bar with the time left on stderr while the block runs.

    Yields:
        ``on_start`` and ``on_done`` of `windtunnel.study.grid.run_study`.
    """
    if not shows_progress():
        yield (lambda _done, _total: None), (lambda _: None)
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    left = TextColumn("left", markup=False), TimeRemainingColumn()
    with _bar(MofNCompleteColumn(), TimeElapsedColumn(), *left) as bar:
        task = bar.add_task(title, total=None)
        yield (
            lambda done, total: bar.update(task, total=total, completed=done),
            lambda _: bar.advance(task),
        )


def _bar(*columns: Any) -> Progress:
    """Return a bar on stderr that leaves no trace behind, with what stands to its right."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    drawn = TextColumn("{task.description}", markup=False), BarColumn(bar_width=30)
    return Progress(*drawn, *columns, console=console, transient=True)
