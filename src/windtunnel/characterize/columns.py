"""Which columns of a table hold anything?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.characterize.relation import column_names, relation, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.companions import Relation


def known_columns(table: Relation, names: Iterable[str]) -> set[str]:
    """Return those of ``names`` that the table has with at least one value that is not null."""
    has = set(column_names(table))
    asked = [name for name in dict.fromkeys(names) if name in has]
    if not asked:
        return set()
    held = relation(table, asked)
    (counts,) = rows(held.aggregate(**{name: held[name].count() for name in asked}))
    return {name for name in asked if counts[name]}
