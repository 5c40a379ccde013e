"""``windtunnel figures``: what traces look like, as figures for a paper, with their data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel.checked import checked_choice
from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import BAD_ROWS, FILE, READING, listed, one_of, option, together
from windtunnel.cli.presenting import command_line, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError
from windtunnel.report.format import count
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.figures.catalogue import Collected
    from windtunnel.report.figures.sources import Sources
    from windtunnel.traces.trace import Trace

    Command = TypeVar("Command", bound=Callable[..., Any])


#: Add TRACE, once or more often, and what says how to read them.
#: ``--format`` is what pictures are written as, as everywhere in drawing; a file's own format is
#: ``--reader`` here.
reading_options = together(
    click.argument("traces", nargs=-1, required=True, metavar="TRACE..."),
    option(
        "--reader FORMAT",
        "The files' format, where name and content do not tell (`windtunnel traces`).",
    ),
    option("--zone ZONE", "IANA time zone of the files' wall clock."),
    option(
        "--bad-rows raise|drop",
        "Rows that break a rule: refuse the file, or leave them out and count them.  "
        "[default: raise]",
        one_of(*BAD_ROWS),
    ),
)


@click.command(short_help="Draw what traces look like, as figures for a paper.")
@reading_options
@option(
    "--set acme|pai|all",
    "Figures of AcmeTrace's analysis, of the PAI analysis, or both.  [default: all]",
    dest="set_",
)
@option("--only NAMES", "Only these figures, separated by commas.")
@option(
    "--utilization PATH",
    "AcmeTrace's percentile files (an .npz, a pickle, or the folder of pickles): utilisation, "
    "temperature and power.",
    FILE,
)
@option(
    "--telemetry [NAME=]PATH",
    "Telemetry that the same figures are drawn from, under a name; may be repeated.",
    multiple=True,
)
@option(
    "--format FORMATS",
    "svg, pdf, png, html, separated by commas; html has Vega inside and loads nothing.",
    dest="formats",
    default="svg",
)
@option(
    "--width column|page",
    "Width on paper: of a column (3.35 in) or of the page (7 in).",
    dest="paper",
    default="column",
)
@option(
    "--out DIR",
    "Folder for the figures, their data as CSV and index.html; made where it is missing.",
    FILE,
    required=True,
)
@presented()
def figures(*, traces: tuple[str, ...], **asked: Any) -> Result:
    """Draw what one or several TRACEs look like.

    Every figure comes with its data as CSV, and index.html shows them all. A figure that a trace
    cannot support is drawn for the others; what is left out is noted. --reader, --zone and
    --bad-rows hold for the traces that are read.
    """
    from windtunnel.report.figures.catalogue import chosen_figures, collect, look_of
    from windtunnel.report.figures.writing import check_folder, checked_formats, write_figures

    only = _words(asked["only"] or "", "--only" if asked["only"] is not None else "")
    chosen = chosen_figures(asked["set_"], only)
    formats = checked_formats(_words(asked["formats"], "--format"))
    _check_width(asked["paper"])
    requests = _requests(traces, asked)
    out = asked["out"]
    check_folder(out)
    sources = _sources(requests, asked)
    with progress("Counting", len(chosen)) as done:
        found = collect(sources, chosen, done)
    with progress("Drawing", len(chosen)) as done:
        files = write_figures(
            found,
            look_of(sources, asked["paper"]),
            out,
            formats=formats,
            title=f"Figures of {', '.join(sources.traces)}",
            command=command_line(),
            notes=sources.notes,
            on_done=done,
        )
    return _result(sources, found, out, files)


def _words(text: str, option: str) -> list[str]:
    """Return words separated by commas."""
    words = listed(text)
    if option and not words:
        raise SpecError(option, "expected at least one name.")
    return words


def _check_width(paper: str) -> None:
    from windtunnel.report.figures.sources import WIDTHS

    checked_choice("--width", paper, WIDTHS)


def _requests(specs: Sequence[str], asked: dict[str, Any]) -> list[TraceRequest]:
    """Return the traces as asked for, each with the options that hold for its kind."""
    from windtunnel.report.figures.sources import MAX_TRACES

    if not 1 <= len(specs) <= MAX_TRACES:
        raise SpecError("TRACE", f"expected 1 to {MAX_TRACES} traces, found {len(specs)}.")
    if list(specs).count("-") > 1:
        raise SpecError("TRACE", "standard input (-) can be read once only.")
    read = {name: asked[name] for name in READING}
    named = [TraceRequest(spec) for spec in specs]
    requests = [one if one.is_synthetic else replace(one, **read) for one in named]
    given = [name for name, value in read.items() if value is not None]
    if given and all(request.is_synthetic for request in requests):
        option = f"--{given[0].replace('_', '-')}"
        raise SpecError(option, "no trace is read; only such traces take it.")
    return requests


def _sources(requests: Sequence[TraceRequest], asked: dict[str, Any]) -> Sources:
    """Open everything that the figures are drawn from.

    Raises:
        WindtunnelError: a trace or a file cannot be read.
    """
    from windtunnel.report.figures.curves_of_use import (
        joined_curves,
        measured_curves,
        published_curves,
    )
    from windtunnel.report.figures.sources import Sources

    curves: list[Any] = []
    notes: list[str] = []
    if asked["utilization"] is not None:
        curves.append(published_curves(asked["utilization"]))
    traces: list[Trace] = [open_request(request) for request in requests]
    for text in asked["telemetry"]:
        name, path = _named(text)
        with progress(f"Reading {path}"):
            measured, curve_notes = measured_curves(path, name)
        curves.append(measured)
        notes += curve_notes
    for opened in traces:
        notes += [
            f"{opened.name}: {number:,} of {opened.metadata.rows_read:,} records left out: {why}"
            for why, number in opened.metadata.dropped.items()
            if number
        ]
    return Sources.of(traces, joined_curves(curves), tuple(notes))


def _named(text: str) -> tuple[str | None, str]:
    """Return (name, path) of a ``--telemetry``; a path that exists as it stands has no name."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return None, text
    return name, path


def _result(
    sources: Sources, found: Sequence[Collected], out: Path, files: Sequence[str]
) -> Result:
    """Return who is in which figure, and what could not be drawn.

    Keys of its data: ``traces`` (list), ``figures`` (see
    `windtunnel.report.figures.catalogue.report`), ``folder``, ``files``.
    """
    from windtunnel.report.figures.catalogue import report

    columns = ("figure", "panel", "series", "n", "left out", "note")
    undrawn = [one for one in found if one.data.table is None]
    notes = [f"{one.figure.name}: {note}" for one in found for note in one.data.notes]
    table = table_of(columns, _rows(found), texts=len(columns) - 1)
    labelled = [{"label": one.label, **trace_data(one.trace)} for one in sources.series]
    return Result(
        title="Figures",
        parts=[
            Part("Figures", tables=[("", table)] if table.lines else []),
            Part(
                "Cannot be drawn",
                points=[f"{one.figure.name}: {one.data.reason}" for one in undrawn],
            ),
        ],
        notes=[clean(note, MAX_TEXT) for note in (*sources.notes, *notes)],
        wrote=[f"{len(found) - len(undrawn)} figures are in {out}; look at {out / 'index.html'}"],
        data={
            "traces": labelled,
            "figures": report(found),
            "notes": sources.notes,
            "folder": str(out),
            "files": files,
        },
    )


def _rows(found: Sequence[Collected]) -> list[tuple[str, ...]]:
    """Return who is in which panel; a figure's name stands in its first row."""
    return [
        (
            one.figure.name if i == 0 else "",
            part.panel or "-",
            part.trace,
            "not reported" if part.n is None else count(part.n),
            count(part.left_out),
            part.why,
        )
        for one in found
        if one.data.table is not None
        for i, part in enumerate(one.data.parts)
    ]
