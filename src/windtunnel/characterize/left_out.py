"""Which rows can a question not use, and why? The first reason that holds is the one that counts.

Every answer of this room names the rows that are not in it, so that rows in = rows used + rows
told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.relation import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

LeftOut = dict[str, int]


def split_off(table: Any, reasons: Mapping[str, Any]) -> tuple[Any, int, LeftOut]:
    """Return the usable rows of a table, their number, and the numbers of all the others.

    Args:
        table: an Ibis table.
        reasons: reason -> Ibis boolean column that is true where a row is unusable for it. A row
            counts for the first of its reasons; a null condition counts as false.

    Returns:
        The table without those rows (same columns); how many it has; reason -> rows, reasons of
        no row omitted, in the order given.
    """
    import ibis

    first = ibis.literal(len(reasons))
    for place, condition in reversed(list(enumerate(reasons.values()))):
        first = ibis.cases((condition.fill_null(False), place), else_=first)
    keyed = table.mutate(_reason=first)
    counts = {
        row["_reason"]: row["n"] for row in rows(keyed.group_by("_reason").agg(n=keyed.count()))
    }
    left_out = {reason: counts[place] for place, reason in enumerate(reasons) if place in counts}
    kept = keyed.filter(keyed["_reason"] == len(reasons)).drop("_reason")
    return kept, counts.get(len(reasons), 0), left_out


def why(left_out: LeftOut) -> str:
    """Return the reasons as one text, for a column of a table; empty where there are none.

    >>> why({"no start_time": 3000, "no node": 1})
    'no start_time: 3,000; no node: 1'
    """
    return "; ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
