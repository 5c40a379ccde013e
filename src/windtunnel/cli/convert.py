"""``windtunnel convert``: a trace into another format, with what did not come along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf, output_options

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

_FORMATS = ("csv", "parquet", "swf", "sacct", "batsim", "opendc")
#: Formats that the ending of a file's name tells.
_BY_ENDING = ("csv", "parquet", "swf", "sacct")
#: Formats whose times are seconds since some moment.
_WITHOUT_EPOCH = ("csv", "parquet", "batsim")
#: A trace's other tables, and what they are.
_TABLES = {
    "tasks": "the tasks of the jobs",
    "nodes": "the nodes",
    "holdings": "which job held which GPU when",
}


@click.command(short_help="Convert a trace to CSV, Parquet, SWF, sacct, Batsim, OpenDC.")
@click.argument("trace", metavar="IN")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--to",
    type=OneOf(*_FORMATS),
    metavar="csv|parquet|swf|sacct|batsim|opendc",
    help="What to write: sacct is a log as of sacct -P, batsim a jobs.csv, opendc a folder.  "
    "[default: by the ending of OUT]",
)
@click.option(
    "--format",
    "reader",
    metavar="FORMAT",
    help="IN's format, where its name and content do not tell (`windtunnel traces`).",
)
@click.option(
    "--zone",
    metavar="ZONE",
    help="IANA time zone of IN's wall clock, such as Europe/Berlin (sacct, philly-raw).",
)
@output_options
def convert(
    *,
    trace: str,
    out: Path,
    to: str | None,
    reader: str | None,
    zone: str | None,
    as_json: bool,
) -> None:
    """Read the trace IN and write its jobs to OUT, whole or not at all.

    IN is a name (`windtunnel traces`), a file, or - for standard input. OUT is a file; for OpenDC
    a folder, in which tasks.parquet and fragments.parquet are written. What was left out of IN,
    and what OUT cannot hold, is told.
    """
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.traces.open import open_trace

    kind = _checked(trace, out, to)
    show = shows_progress(as_json=as_json)
    source = "standard input" if trace == "-" else trace
    with progress(f"Reading {source}", show=show):
        opened = open_trace(trace, format=reader, **({} if zone is None else {"zone": zone}))
    with progress(f"Writing {out}", show=show):
        rows, losses = _write(opened, out, kind)
    about = opened.metadata
    data = {
        "source": about.source,
        "out": str(out),
        "to": kind,
        "rows_in": about.rows_read or opened.jobs.num_rows,
        "rows_out": rows,
        "dropped": about.dropped,
        "not_carried": (*losses, *_beside(opened, kind)),
        "notes": about.notes,
    }
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    _print(data)


def _checked(trace: str, out: Path, to: str | None) -> str:
    """Return what to write, after all that can be refused before the trace is read.

    Raises:
        SpecError: an unknown ending, a folder, or the trace itself.
    """
    from windtunnel.errors import SpecError, quote

    ending = out.name.lower().removesuffix(".gz").rpartition(".")[2]
    kind = to or ending
    if to is None and kind not in _BY_ENDING:
        raise SpecError(
            "OUT",
            f"cannot tell the format of {quote(out.name)}; expected an ending .csv, .csv.gz, "
            ".parquet, .swf, .swf.gz, .sacct or .sacct.gz, or --to.",
        )
    wrong = out.is_file() if kind == "opendc" else out.is_dir()
    if wrong or not out.parent.is_dir():
        thing = "folder" if kind == "opendc" else "file"
        raise SpecError(
            "OUT", f"expected a {thing} in a folder that exists, found {quote(str(out))}."
        )
    if kind == "parquet" and out.name.lower().endswith(".gz"):
        raise SpecError("OUT", "Parquet is packed already; take the .gz off its name.")
    written = (out, out / "tasks.parquet", out / "fragments.parquet")
    if Path(trace).exists() and any(path.exists() and path.samefile(trace) for path in written):
        raise SpecError("OUT", "is the trace itself; expected another file.")
    return kind


def _write(trace: Trace, out: Path, kind: str) -> tuple[int, tuple[str, ...]]:
    """Write the jobs; return how many were written, and what the format does not hold."""
    from windtunnel.traces.native import write_csv, write_parquet

    jobs, rows = trace.jobs, trace.jobs.num_rows
    if kind == "swf":
        from windtunnel.traces.swf_writer import swf_losses, write_swf

        write_swf(jobs, out, metadata=trace.metadata, cluster=trace.cluster)
        return rows, swf_losses(jobs)
    if kind == "sacct":
        from windtunnel.traces.sacct_writer import sacct_losses, write_sacct

        write_sacct(jobs, out, metadata=trace.metadata)
        return rows, sacct_losses(jobs)
    if kind == "batsim":
        from windtunnel.traces.batsim_writer import batsim_losses, write_batsim

        write_batsim(jobs, out)
        return rows, batsim_losses(jobs)
    if kind == "opendc":
        from windtunnel.traces.opendc_writer import opendc_losses, write_opendc

        written = write_opendc(jobs, out, metadata=trace.metadata)
        return written, opendc_losses(jobs, metadata=trace.metadata)
    (write_csv if kind == "csv" else write_parquet)(jobs, out)
    return rows, ()


def _beside(trace: Trace, kind: str) -> tuple[str, ...]:
    """Return what a trace has beside its jobs that the format does not hold."""
    losses = []
    epoch, zone = trace.metadata.epoch, trace.metadata.zone
    if epoch is not None and kind in _WITHOUT_EPOCH:
        where = f" in {zone}" if zone else ""
        losses.append(f"Time 0 is {epoch}{where}: only the seconds since then are written.")
    tables = [what for name, what in _TABLES.items() if getattr(trace, name) is not None]
    if kind == "batsim" and "allocated_resources" in trace.jobs.column_names:
        tables = [what for what in tables if what != _TABLES["holdings"]]
    if tables:
        losses.append(f"Tables beside the jobs: {', '.join(tables)}.")
    return tuple(losses)


def _print(data: dict[str, Any]) -> None:
    from windtunnel.cli.screen import bullets, facts, screen
    from windtunnel.report.format import count

    console = screen()
    dropped = [
        ("dropped", f"{count(number)}: {reason}")
        for reason, number in data["dropped"].items()
        if number
    ]
    facts(
        console,
        [
            ("source", data["source"]),
            ("rows in", count(data["rows_in"])),
            *dropped,
            ("rows out", count(data["rows_out"])),
            ("written to", data["out"]),
        ],
    )
    bullets(console, f"Not carried into {data['to']}", data["not_carried"])
    bullets(console, "Notes", data["notes"])
