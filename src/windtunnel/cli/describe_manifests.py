"""``windtunnel describe DIR`` of Kueue's manifests: the tree of quotas, and what looks wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_ENDINGS = (".yaml", ".yml")
_BEGINNING = 2**20


def are_manifests(given: str) -> bool:
    """Return whether what is to be described is a YAML file, or a folder with some of Kueue's."""
    path = Path(given)
    if path.suffix in _ENDINGS:
        return True
    files = path.iterdir() if path.is_dir() else ()
    return any(file.suffix in _ENDINGS and _names_kueue(file) for file in files)


def _names_kueue(file: Path) -> bool:
    """Return whether a file speaks of Kueue's API near its beginning; traces have YAML, too."""
    try:
        with file.open("rb") as opened:
            return b"kueue.x-k8s.io" in opened.read(_BEGINNING)
    except OSError:
        return False


def describe_manifests(given: str, *, as_json: bool) -> None:
    """Print what manifests say.

    Raises:
        SpecError: one is wrong.
    """
    from windtunnel.policies.kueue.description import described
    from windtunnel.policies.kueue.manifests import read_manifests

    found = described(read_manifests(given))
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({**found, "command": f"windtunnel describe {given}"})
        return
    counts = ", ".join(f"{count:,} {kind}" for kind, count in found["counts"].items() if count)
    click.echo(f"{given}: {counts}")
    click.echo()
    for line in _lines(found["nodes"]):
        click.echo(line)
    for warning in found["warnings"]:
        click.echo(f"Warning: {warning}")
    if found["not_read"]:
        others = ", ".join(f"{count:,} {kind}" for kind, count in found["not_read"].items())
        click.echo(f"Not read: {others}")


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows of the tree as lines of a table."""
    head = ("queue or cohort", "flavor", "resource", "owns", "may use", "may borrow", "lends")
    numbers = ("owns", "may_use", "may_borrow", "lends")
    table: list[tuple[str, ...]] = [head]
    last = ""
    for row in rows:
        name = "" if row["name"] == last else "  " * row["depth"] + _plain(row["name"])
        last = row["name"]
        amounts = tuple(f"{row[key]:,}" for key in numbers)
        table.append((name, _plain(row["flavor"]), _plain(row["resource"]), *amounts))
    widths = [max(len(line[at]) for line in table) for at in range(len(head))]
    texts = 3  # the first columns are words, the others numbers
    return [
        "  ".join(
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]


def _plain(text: str) -> str:
    """Return a name from a file as it may be shown on a terminal."""
    return ascii(text)[1:-1]
