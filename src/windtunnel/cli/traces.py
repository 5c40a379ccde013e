"""``windtunnel traces`` and ``windtunnel fetch``: what there is, and how it gets here."""

from __future__ import annotations

import click

from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import shows_progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.result import Part, Result, table_of

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
    # Importing the module registers the readers.
    import windtunnel.traces.open  # noqa: F401
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
