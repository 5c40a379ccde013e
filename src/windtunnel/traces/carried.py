"""Further columns of a jobs table that a format of others' takes over: they must be plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.errors import SchemaError, Violation
from windtunnel.schema import BY_NAME, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_carried(jobs: pa.Table, names: Iterable[str], form: str) -> None:
    """Check that columns hold what a cell of text can: texts, numbers, yes and no.

    A table from elsewhere may call a list of anything ``partition``.

    Args:
        jobs: a jobs table (`windtunnel.schema`), whose own columns are such.
        names: the columns that are written; those that are not there are none.
        form: what is written, for the message (``SWF``).

    Raises:
        SchemaError: some hold anything else; names them.
    """
    found = [
        Violation(name, f"texts or numbers, not {jobs.schema.field(name).type}")
        for name in sorted(set(names) - set(BY_NAME))
        if name in jobs.column_names and not _is_plain(jobs.schema.field(name).type)
    ]
    if found:
        raise SchemaError(f"{source_of(jobs)} as {form}", found)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
    more = (pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(is_kind(kind) for is_kind in (*kinds, *more))
