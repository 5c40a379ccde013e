"""``windtunnel traces`` and ``windtunnel fetch``: what there is, and how it gets here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import output_options

if TYPE_CHECKING:
    from pathlib import Path

_WHERE = {
    "mirror": "here (mirror)",
    "cache": "here (cache)",
    "download": "to download",
    "generated": "generated",
}


@click.command(short_help="List known traces, formats and clusters.")
@output_options
def traces(*, as_json: bool) -> None:
    """List the traces that have a name, the formats that are read, and the published clusters."""
    # Importing the module registers the readers.
    import windtunnel.traces.open  # noqa: F401
    from windtunnel.cluster.presets import SITES
    from windtunnel.traces.readers import READERS
    from windtunnel.traces.registry import list_traces

    data: dict[str, Any] = {
        "traces": [
            {"name": known.name, "title": known.title, "available": known.available}
            for known in list_traces()
        ],
        "formats": [
            {"name": reader.name, "extensions": list(reader.extensions)}
            for reader in READERS.values()
        ],
        "clusters": [
            {"name": name, "num_gpus": spec.num_gpus, "description": spec.describe()}
            for name, spec in SITES.items()
        ],
    }
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    _print_lists(data)


def _print_lists(data: dict[str, Any]) -> None:
    from windtunnel.cli.screen import heading, line, plain_table, screen

    console = screen()
    heading(console, "Traces")
    rows = [(t["name"], t["title"], _WHERE[t["available"]]) for t in data["traces"]]
    console.print(plain_table(("name", "what it is", "where"), rows))
    heading(console, "Formats of your own files (--format)")
    rows = [(f["name"], " ".join(f["extensions"]), "") for f in data["formats"]]
    console.print(plain_table(("name", "endings (also with .gz)"), [row[:2] for row in rows]))
    heading(console, "Published clusters (--cluster)")
    rows = [(c["name"], c["description"], "") for c in data["clusters"]]
    console.print(plain_table(("name", "what it is"), [row[:2] for row in rows]))
    console.print()
    console.print(
        line("Next: windtunnel describe NAME, or windtunnel compare NAME --policies fifo,sjf,srtf")
    )


@click.command(short_help="Bring a published trace to this machine.")
@click.argument("name")
@output_options
def fetch(name: str, *, as_json: bool) -> None:
    """Bring the published trace NAME to this machine, checked against its SHA-256."""
    from windtunnel.cli.screen import shows_progress
    from windtunnel.errors import SpecError, quote
    from windtunnel.traces import registry
    from windtunnel.traces.published import published

    if name.lower().startswith("synthetic:"):
        raise SpecError(
            "trace", f"{quote(name)} is generated where it is needed; there is nothing to fetch."
        )
    entry = published(name)
    paths = registry.fetch(name, progress=shows_progress(as_json=as_json))
    if as_json:
        from windtunnel.cli.machine import print_json

        files = {role: str(path) for role, path in paths.items()}
        print_json({"name": entry.name, "files": files, "licence": entry.licence})
        return
    _print_files(entry.name, paths, entry.licence)


def _print_files(name: str, paths: dict[str, Path], licence: str) -> None:
    from windtunnel.cli.screen import facts, line, screen

    console = screen()
    console.print(line(f"{name} is on this machine, whole and unaltered:"))
    facts(console, [*((role, str(path)) for role, path in paths.items()), ("licence", licence)])
