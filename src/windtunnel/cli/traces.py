"""``windtunnel traces|fetch|convert``: what there is, how it gets here, and into which formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress, shows_progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import count
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.traces.writers import Writer


_WHERE = {
    "mirror": "here (mirror)",
    "cache": "here (cache)",
    "download": "to download",
    "generated": "generated",
}


@click.command(short_help="List known traces, formats and clusters.")
@presented()
def traces() -> Result:
    """List the traces that have a name, the formats that are read, and the published clusters."""
    from windtunnel.cluster.presets import SITES
    from windtunnel.traces.readers import READERS
    from windtunnel.traces.registry import list_traces

    known = [
        {"name": one.name, "title": one.title, "available": one.available} for one in list_traces()
    ]
    formats = [
        {"name": reader.name, "extensions": list(reader.extensions)} for reader in READERS.values()
    ]
    clusters = [
        {"name": name, "num_gpus": spec.num_gpus, "description": spec.describe()}
        for name, spec in SITES.items()
    ]
    named = [(one["name"], one["title"], _WHERE[one["available"]]) for one in known]
    read = [(str(one["name"]), " ".join(one["extensions"])) for one in formats]
    sites = [(str(one["name"]), str(one["description"])) for one in clusters]
    tables = [
        ("Traces", table_of(("name", "what it is", "where"), named, texts=2)),
        (
            "Formats of your own files (--format)",
            table_of(("name", "endings (also with .gz)"), read, texts=1),
        ),
        ("Published clusters (--cluster)", table_of(("name", "what it is"), sites, texts=1)),
    ]
    return Result(
        title="What has a name",
        parts=[Part("What has a name", tables=tables)],
        wrote=[
            "Next: windtunnel describe NAME, or windtunnel compare NAME --policies fifo,sjf,srtf"
        ],
        data={"traces": known, "formats": formats, "clusters": clusters},
    )


@click.command(short_help="Bring a published trace to this machine.")
@click.argument("name")
@presented(reads="")
def fetch(name: str) -> Result:
    """Bring the published trace NAME to this machine, checked against its SHA-256."""
    from windtunnel.traces import registry
    from windtunnel.traces.registry import published

    if name.lower().startswith("synthetic:"):
        raise SpecError(
            "trace", f"{quote(name)} is generated where it is needed; there is nothing to fetch."
        )
    entry = published(name)
    paths = registry.fetch(name, progress=shows_progress())
    files = {role: str(path) for role, path in paths.items()}
    return Result(
        title=f"{entry.name} is on this machine, whole and unaltered",
        settings=[*files.items(), ("licence", entry.licence)],
        data={"name": entry.name, "files": files, "licence": entry.licence},
    )


@click.command(short_help="Convert a trace to CSV, Parquet, SWF, sacct, Batsim, OpenDC.")
@click.argument("trace", metavar="IN")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@option(
    "--to FORMAT",
    "What to write: csv, parquet, swf, sacct (a log as of sacct -P), batsim (a jobs.csv), "
    "opendc (a folder), or a plug-in's writer.  [default: by the ending of OUT]",
)
@option(
    "--format FORMAT",
    "IN's format, where its name and content do not tell (`windtunnel traces`).",
    dest="reader",
)
@option(
    "--zone ZONE", "IANA time zone of IN's wall clock, such as Europe/Berlin (sacct, philly-raw)."
)
@presented()
def convert(
    *, trace: str, out: Path, to: str | None, reader: str | None, zone: str | None
) -> Result:
    """Read the trace IN and write its jobs to OUT, whole or not at all.

    IN is a name (`windtunnel traces`), a file, or - for standard input. OUT is a file; for OpenDC
    a folder, in which tasks.parquet and fragments.parquet are written. What was left out of IN,
    and what OUT cannot hold, is listed.
    """
    from windtunnel.traces.open import open_trace

    writer = _checked(trace, out, to)
    with progress(f"Reading {'standard input' if trace == '-' else trace}"):
        opened = open_trace(trace, format=reader, **({} if zone is None else {"zone": zone}))
    with progress(f"Writing {out}"):
        written = writer.put(opened, out)
    about = opened.metadata
    return _result(
        {
            "source": about.source,
            "out": str(out),
            "to": writer.name,
            "rows_in": about.rows_read or opened.jobs.num_rows,
            "rows_out": written.rows,
            "dropped": about.dropped,
            "not_carried": written.losses,
            "notes": about.notes,
        }
    )


def _checked(trace: str, out: Path, to: str | None) -> Writer:
    """Return the writer, after all that can be refused before the trace is read."""
    from windtunnel.traces.trace_name import TraceName
    from windtunnel.traces.writers import WRITERS, writer_for

    writer = writer_for(out) if to is None else WRITERS.resolve(to)
    wrong = out.is_file() if writer.files else out.is_dir()
    if wrong or not out.parent.is_dir():
        thing = "folder" if writer.files else "file"
        raise SpecError(
            "OUT", f"expected a {thing} in a folder that exists, found {quote(str(out))}."
        )
    if not writer.packs and out.name.lower().endswith(".gz"):
        raise SpecError("OUT", f"{writer.name} is packed already; take the .gz off its name.")
    read = Path(TraceName.parse(trace).base)
    written = [out, *(out / name for name in writer.files)]
    if read.exists() and any(path.exists() and path.samefile(read) for path in written):
        raise SpecError("OUT", "is the trace itself; expected another file.")
    return writer


def _result(data: dict[str, Any]) -> Result:
    dropped = [
        ("dropped", f"{count(number)}: {reason}")
        for reason, number in data["dropped"].items()
        if number
    ]
    return Result(
        title=f"{data['source']} as {data['to']}",
        parts=[Part(f"Not carried into {data['to']}", points=data["not_carried"])],
        notes=[clean(note, MAX_TEXT) for note in data["notes"]],
        settings=[
            ("source", data["source"]),
            ("rows in", count(data["rows_in"])),
            *dropped,
            ("rows out", count(data["rows_out"])),
            ("written to", data["out"]),
        ],
        data=data,
    )
