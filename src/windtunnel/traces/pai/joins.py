"""How the PAI tables come together, as Ibis expressions: keys, repeats, and what is left out.

The joins are those of the trace's own notebook (``analysis.ipynb``, "dfa" and "dfw"), with two
differences: a task that has no job or no instance stays, and a key that stands in several rows
never makes several rows of one: its first row counts, and the others are counted.

Every table has a column ``row``, the place of the row in its file, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.traces.pai.store import Store

#: The source's word for how something ended -> ours.
STATUS = {
    "Terminated": "completed",
    "Failed": "failed",
    "Running": "running",
    "Waiting": "pending",
}


@dataclass(frozen=True)
class Unique:
    """A table without the rows whose key an earlier row has.

    Attributes:
        table: the first row of each key, and the rows that lack it.
        repeats: table of the others: ``row``, ``first`` (the row that counts) and ``nth`` (which
            of the rows of its key it is, from 2).
        count: how many others.
    """

    table: Any
    repeats: Any
    count: int


def unique(store: Store, table: Any, name: str, *keys: str) -> Unique:
    """Return a table reduced to the first row of each key.

    Keys are grouped by their hash first, which is cheap; only rows of hashes that stand twice,
    usually none, are compared by the keys themselves.

    Args:
        store: where to keep the repeats.
        table: an Ibis table with ``row`` and the keys.
        name: a name for the table of the repeats.
        keys: columns that should be unique together; a row that lacks one is nobody's repeat.
    """
    import ibis

    known = table.filter([table[key].notnull() for key in keys])
    hashed = known.select("row", *keys, **{f"hash_{key}": _hash()(known[key]) for key in keys})
    hashes = [f"hash_{key}" for key in keys]
    twice = hashed.group_by(hashes).having(hashed.count() > 1).aggregate(count=hashed.count())
    suspects = hashed.semi_join(twice, hashes)
    alike = ibis.window(group_by=list(keys), order_by=suspects.row)
    nth = suspects.select(
        "row",
        first=suspects.row.min().over(ibis.window(group_by=list(keys))),
        nth=ibis.row_number().over(alike) + 1,
    )
    repeats = store.keep(name, nth.filter(nth.nth > 1))
    count = store.count(repeats)
    return Unique(table.anti_join(repeats, "row") if count else table, repeats, count)


@cache
def _hash() -> Any:
    """Return the database's own hash as an Ibis function; Ibis's takes a way round."""
    import ibis

    def hash_of(text: str) -> int:
        raise NotImplementedError(text)  # never called: the database has it

    return ibis.udf.scalar.builtin(hash_of, name="hash", signature=(("string",), "uint64"))


def last_of_each_worker(instances: Any) -> Any:
    """Return the one row of each worker that counts: the notebook's "dfw".

    Instances are sorted by (status, start_time, end_time), each ascending with unknown values
    last, ties in the file's order; the last row of each ``worker_name`` is kept. So a worker that
    was tried several times is counted once, and its usage with the try that went furthest in the
    alphabet (Failed, Running, Terminated, Waiting).

    Args:
        instances: an Ibis table with ``row``, ``worker_name``, ``status``, ``start_time`` and
            ``end_time``, the times as in the source (0 is not yet unknown). Rows without a
            worker are left out, as in the notebook.
    """
    import ibis

    named = instances.filter(instances.worker_name.notnull())
    order = [
        ibis.desc(named[key], nulls_first=True) for key in ("status", "start_time", "end_time")
    ]
    last_first = ibis.window(group_by="worker_name", order_by=[*order, ibis.desc("row")])
    ranked = named.mutate(rank=ibis.row_number().over(last_first))
    return ranked.filter(ranked["rank"] == 0).drop("rank")


def distinct_names(store: Store, table: Any, column: str, name: str) -> tuple[Any, int]:
    """Return names that occur once each: repeats of a name are numbered behind a mark.

    The second row of a name gets ``#2`` behind it, the third ``#3``; where such a name would
    meet one of the file's own, the mark is ``##``, and so on.

    Args:
        store: where to keep the repeats.
        table: an Ibis table with ``row`` and the column, whose values are known.
        column: the names.
        name: a name for the table of the repeats.

    Returns:
        The table of the rows that were renamed, ``row`` and ``renamed``; and how many.
    """
    import ibis

    found = unique(store, table, name, column)
    repeats = found.repeats.inner_join(table.select("row", column), "row")
    mark = "#"
    while True:
        numbered = repeats[column] + ibis.literal(mark) + repeats.nth.cast("string")
        marked = repeats.select("row", renamed=numbered)
        renamed = store.keep(f"{name}_renamed_{len(mark)}", marked)
        if not found.count or not store.count(
            renamed.semi_join(table.select(renamed=column), "renamed")
        ):
            return renamed, found.count
        mark += "#"


def instances_of_tasks(instances: Any) -> Any:
    """Return what the instances of each task say together ("dfia").

    Args:
        instances: an Ibis table with ``task`` (row of the task, null where it has none),
            ``status``, ``start_time`` and ``end_time``, times as in the source.

    Returns:
        One row a task: ``task``; ``first_start`` (earliest start > 0), ``last_end`` (latest end
        > 0), ``mean_run`` (mean of end - start over instances that have both, s) and
        ``last_status`` (the greatest word: Waiting, Terminated, Running, Failed). Times of the
        release are whole seconds, so the mean does not depend on the order of adding up.
    """
    known = instances.filter(instances.task.notnull())
    began, ended = known.start_time > 0, known.end_time > 0
    return known.group_by("task").aggregate(
        first_start=known.start_time.min(where=began),
        last_end=known.end_time.max(where=ended),
        mean_run=(known.end_time - known.start_time).mean(where=began & ended),
        last_status=known.status.max(),
    )


def status_word(word: Any) -> Any:
    """Return a status in the schema's words; another word is ``unknown``, none is null."""
    import ibis

    return ibis.cases(
        *((word == theirs, ours) for theirs, ours in STATUS.items()),
        (word.notnull(), "unknown"),
    )
