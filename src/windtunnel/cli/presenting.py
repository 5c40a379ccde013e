"""From a result to the terminal, to JSON and to files: what commands do with what they found."""

from __future__ import annotations

import functools
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel import storage
from windtunnel.cli.group import Session
from windtunnel.cli.machine import print_json
from windtunnel.cli.opening import check_apart, check_out
from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.recorded_site import BESIDE
from windtunnel.cli.screen import bullets, facts, heading, line, progress, screen
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.console import Console

    from windtunnel.report.result import Part, Result

    Command = TypeVar("Command", bound=Callable[..., Any])

    import pyarrow as pa


#: Endings of pages, charts and tables.
PAGES: tuple[str, ...] = (".html", ".htm")
CHARTS: tuple[str, ...] = (".html", ".svg", ".png", ".pdf")
TABLES: tuple[str, ...] = (".csv", ".parquet")
LATEX: tuple[str, ...] = (".tex",)
#: Options that change what is printed, not what is found.
_SILENT = ("--json", "--debug")


def presented(
    endings: tuple[str, ...] = (),
    out_help: str = "",
    *,
    metavar: str = "FILE",
    reads: str = "trace",
    key: str = "",
) -> Callable[[Callable[..., Result]], Command]:
    """Make what returns a `Result` into what a command runs: add --out, --json and --debug.

    Args:
        endings: what the name of ``--out`` may end in; empty = there is no such option.
        out_help: what the help says of ``--out``.
        metavar: of ``--out``.
        reads: the parameter that names what is read, which must not be overwritten.
        key: of the file's name in the data; empty = ``page``, where there are only pages, or
            ``out``.
    """

    def make(function: Callable[..., Result]) -> Any:
        @functools.wraps(function)
        def run(*, as_json: bool, **asked: Any) -> None:
            check_apart({f"--{name}": asked.get(name) for name in ("record", "timeline", "out")})
            out = asked.pop("out") if endings else None
            check_out(out, endings, str(asked.get(reads) or ""))
            known = key or ("page" if endings == PAGES else "out")
            result = function(**asked)
            present(result, out, as_json=as_json, key=known)
            if result.error is not None:
                raise result.error

        return output_options(out_option(metavar, out_help)(run) if endings else run)

    return make


def command_line() -> str:
    """Return the command under way as it may be typed again."""
    session = click.get_current_context().find_object(Session)
    words = sys.argv[1:] if session is None else session.words
    return shlex.join(["windtunnel", *(word for word in words if word not in _SILENT)])


def present(
    result: Result, out: Path | None, *, as_json: bool, key: str = "out", command: str = ""
) -> None:
    """Write the file that was asked for, and print the result.

    Args:
        result: what was found; ``headline``, ``notes``, ``command`` and the file's name (``page``
            or ``out``) are added to its data.
        out: the file; None = none is wanted.
        as_json: print the data and nothing else.
        key: of the file's name in the data.
        command: what finds it again; empty = as it was typed.

    Raises:
        OSError: the file cannot be written.
    """
    command = command or command_line()
    site = click.get_current_context().meta.get(BESIDE)
    if site is not None:
        setting = ("site", f"{site}, found beside the log")
        data = result.data | {"site_file": site}
        result = replace(result, settings=[*result.settings, setting], data=data)
    if out is not None:
        _write(result, out, command)
    if as_json:
        answer: dict[str, Any] = {"headline": result.headline} if result.headline else {}
        answer |= {"notes": [*result.cautions, *result.notes], key: out and str(out)}
        print_json({**answer, **result.data, "command": command})
        return
    where = ""
    if out is not None:
        is_page = key == "page" and out.suffix.lower() in PAGES
        where = f"The {'page is' if is_page else 'result is in'} {out}"
    print_result(result, command, where)


def _write(result: Result, out: Path, command: str) -> None:
    """Write what the ending of the file's name asks for; the file appears whole or not at all."""
    from windtunnel.report.result_page import write_page

    ending = out.suffix.lower()
    if ending in TABLES and result.table is not None:
        save_table(result.table(), out)
    elif ending in LATEX:
        from windtunnel.report.latex import latex

        parts = [part for part in result.parts if part.tables and not part.page_only]
        firsts = (part.tables[0] for part in parts)
        write_page(out, "\n".join(latex(table, name or result.title) for name, table in firsts))
    elif result.text is not None:
        write_page(out, result.text())
    elif ending in PAGES:
        from windtunnel.report.result_page import result_page

        with progress("Drawing the page"):
            own = result.page
            write_page(out, result_page(result, command=command) if own is None else own(command))
    elif result.chart is not None:
        from windtunnel.report.chart.saving import write_chart

        with progress("Drawing"):
            write_chart(out, result.chart(), result.title)
    else:
        expected = " or ".join(TABLES)
        raise SpecError(f"--out {out}", f"found the ending {quote(ending)}; expected {expected}.")


def print_result(result: Result, command: str, where: str = "") -> None:
    """Print a result, how to get it again, and where its file is."""
    from windtunnel.report.terminal_table import facts_table

    console = screen()
    heading(console, result.title)
    if result.headline:
        console.print(line(result.headline, 2000))
    bullets(console, "Mind", result.cautions)
    if result.facts:
        console.print()
        console.print(facts_table(result.facts))
    for part in result.parts:
        _print_part(console, part)
    bullets(console, "Notes", result.notes)
    console.print()
    facts(console, [*result.settings, ("again with", command)])
    for sentence in (*result.wrote, *([where] if where else [])):
        console.print()
        console.print(line(sentence), soft_wrap=True)


def _print_part(console: Console, part: Part) -> None:
    from windtunnel.report.terminal_table import rich_tables

    if part.tells:
        lead = [(part.title, part.lead)] if part.lead else []
        for title, sentence in (*lead, *part.terms):
            heading(console, title)
            console.print(line(sentence, 2000))
    bullets(console, part.title, part.points)
    for caption, table in () if part.page_only else part.tables:
        if caption:
            heading(console, caption)
        for place, piece in enumerate(rich_tables(table, console.width)):
            if place or not caption:
                console.print()
            console.print(piece)


def rows_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return rows, each by the names of its columns, as a table."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows))


def save_table(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet or CSV, by the ending of its name; the same table, the same bytes.

    In CSV a list is its items with spaces between them, an unknown value is an empty cell, and a
    text that a spreadsheet would run has an apostrophe in front.

    Args:
        table: an outcome table.
        path: the file, ending in one of `TABLES`; it appears whole or not at all.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    with storage.replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            with temporary.open("wb") as raw:
                pq.write_table(table, raw, compression="zstd")
        else:
            import pyarrow.csv as pcsv

            from windtunnel.traces.spreadsheet import guarded_table

            with temporary.open("wb") as raw:
                pcsv.write_csv(guarded_table(_flat(table)), raw)


def _flat(table: pa.Table) -> pa.Table:
    """Return the table with its lists as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts: Any = table[field.name].cast(pa.list_(pa.string()))
            table = table.set_column(index, field.name, pc.binary_join(texts, " "))
    return table
