"""GPU types are compared without regard to case: a log's ``a100`` is the cluster's ``A100``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from windtunnel.errors import SpecError, quote, unused_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_Entry = TypeVar("_Entry")
#: Between the types of a job that runs on any of several.
_OR = "|"


def spelling(known: Iterable[str], aliases: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return how types are spelt: small letters, or an alias in small letters -> the spelling."""
    found = {name.lower(): name for name in known}
    for other, name in (aliases or {}).items():
        found.setdefault(other.lower(), found.get(name.lower(), name))
    return found


def spelt(name: str, known: Mapping[str, str]) -> str:
    """Return a type, or several joined by ``|``, as `spelling` has it; unknown ones as they are.

    >>> spelt("a100|h100", spelling(["A100"]))
    'A100|h100'
    """
    return _OR.join(known.get(part.strip().lower(), part) for part in name.split(_OR))


def with_types_of(
    jobs: pa.Table, types: Iterable[str], aliases: Mapping[str, str] | None = None
) -> pa.Table:
    """Return a jobs table whose GPU types are spelt as a cluster's.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        types: the cluster's.
        aliases: other names of them.
    """
    known = spelling(types, aliases)
    column = jobs["gpu_type"]
    if not known or column.null_count == len(column):
        return jobs
    codes = column.combine_chunks().dictionary_encode()
    names = codes.dictionary.to_pylist()
    fresh = [None if name is None else spelt(name, known) for name in names]
    if fresh == names:
        return jobs
    column = pa.array(fresh, column.type).take(codes.indices)
    at = jobs.column_names.index("gpu_type")
    return jobs.set_column(at, jobs.schema.field(at), column)


def unused_aliases(jobs: pa.Table, types: Iterable[str], aliases: Mapping[str, str]) -> list[str]:
    """Return what to note of other names of GPU types that no job has: one sentence, or none.

    Args:
        jobs: a jobs table, its types spelt as the jobs have them.
        types: the cluster's.
        aliases: other names of them.
    """
    found = {None if text is None else str(text) for text in jobs["gpu_type"].unique().to_pylist()}
    parts = {part.strip() for text in found if text for part in text.split(_OR)}
    used = {part.lower() for part in parts}
    own = {name.lower() for name in types}
    idle = [name for name in aliases if name.lower() not in used | own]
    return unused_names("The cluster's aliases name", "GPU type", idle, parts, where="the trace")


def named_as(
    path: str,
    entries: Mapping[str, _Entry],
    types: Sequence[str],
    aliases: Mapping[str, str] | None = None,
) -> dict[str, _Entry]:
    """Return a file's entries by GPU type, each under the cluster's spelling of its type.

    Args:
        path: where they stand.
        entries: a type, or another name of it -> its entry.
        types: those that there are; empty = none are distinguished, and nothing is checked.
        aliases: other names of them.

    Raises:
        SpecError: a type does not occur (the nearest is suggested), or has two entries.

    >>> named_as("prices.gpus", {"a100-sxm4": 2.5}, ["A100"], {"A100-SXM4": "A100"})
    {'A100': 2.5}
    """
    if not types:
        return dict(entries)
    known = spelling(types, aliases)
    found: dict[str, _Entry] = {}
    for name, entry in entries.items():
        gpu_type = known.get(name.lower())
        if gpu_type is None:
            raise SpecError.unknown(f"{path}.{name}", name, {*types, *(aliases or {})})
        if gpu_type in found:
            message = f"a second entry of the GPU type {quote(gpu_type)}; expected one."
            raise SpecError(f"{path}.{name}", message)
        found[gpu_type] = entry
    return found
