"""``windtunnel describe DIR`` of Kueue's manifests: the tree of quotas, and what looks wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.report.result import Result

_ENDINGS = (".yaml", ".yml")
_BEGINNING = 2**20


def are_manifests(given: str) -> bool:
    """Return whether what is to be described is a YAML file, or a folder with some of Kueue's."""
    path = Path(given)
    if path.suffix in _ENDINGS:
        return True
    files = path.iterdir() if path.is_dir() else ()
    return any(
        file.suffix in _ENDINGS and not file.is_fifo() and _names_kueue(file) for file in files
    )


def _names_kueue(file: Path) -> bool:
    """Return whether a file speaks of Kueue's API near its beginning; traces have YAML, too."""
    try:
        with file.open("rb") as opened:
            return b"kueue.x-k8s.io" in opened.read(_BEGINNING)
    except OSError:
        return False


def manifests_result(given: str) -> Result:
    """Return what manifests say.

    Raises:
        SpecError: one is wrong.
    """
    from windtunnel.policies.kueue.description import described
    from windtunnel.policies.kueue.manifests import read_manifests
    from windtunnel.report.names import clean
    from windtunnel.report.result import Part, Result, table_of

    found = described(read_manifests(given))
    columns = ("queue or cohort", "flavor", "resource", "owns", "may use", "may borrow", "lends")
    others = _counted(found["not_read"])
    return Result(
        title=clean(given),
        headline=_counted({kind: count for kind, count in found["counts"].items() if count}),
        cautions=[clean(warning, 400) for warning in found["warnings"]],
        parts=[Part("Quotas", tables=[("", table_of(columns, _rows(found["nodes"]), texts=2))])],
        notes=[f"Not read: {others}"] if others else [],
        data=found,
    )


def _counted(kinds: dict[str, int]) -> str:
    from windtunnel.report.names import clean

    return ", ".join(f"{count:,} {clean(kind)}" for kind, count in kinds.items())


def _rows(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the tree, each name once, indented by its depth."""
    from windtunnel.report.names import clean

    last = ""
    for row in nodes:
        name = "" if row["name"] == last else "  " * row["depth"] + clean(row["name"])
        last = row["name"]
        amounts = (f"{row[key]:,}" for key in ("owns", "may_use", "may_borrow", "lends"))
        yield (name, clean(row["flavor"]), clean(row["resource"]), *amounts)
