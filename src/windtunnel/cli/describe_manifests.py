"""``windtunnel describe DIR`` of Kueue's manifests: the tree of quotas, and what looks wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_ENDINGS = (".yaml", ".yml")


def are_manifests(given: str) -> bool:
    """Return whether what is to be described is a YAML file, or a folder that holds some."""
    path = Path(given)
    if path.suffix in _ENDINGS:
        return True
    return path.is_dir() and any(file.suffix in _ENDINGS for file in path.iterdir())


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
