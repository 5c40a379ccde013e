"""A trace that is several clusters' traces together: Helios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.schema import conform
from windtunnel.traces.synthetic.by_size import draw_jobs, place_jobs, size_notes
from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from windtunnel.traces.synthetic.size_facts import JoinedFacts, SizeFacts
    from windtunnel.traces.synthetic.wish import Wish


def jobs_of_parts(
    name: str, parts: dict[str, SizeFacts], facts: JoinedFacts, wish: Wish
) -> pa.Table:
    """Return the jobs of all parts in one table, ordered by submit time, then by part.

    Each part is what it is alone with the same seed. ``cluster`` is kept, and stands before the
    job's id and the virtual cluster's name (``Venus/vc01``), as where the real trace is read.

    Args:
        parts: facts of each part by name.
    """
    shares = largest_remainder([p.trace.gpu_jobs for p in parts.values()], wish.jobs).tolist()
    wishes = [replace(wish, jobs=count) for count in shares]
    drawn = {
        one: draw_jobs(part, mine)
        for (one, part), mine in zip(parts.items(), wishes, strict=True)
        if mine.jobs
    }
    span = wish.span(facts.trace, sum(jobs[0].gpu_time for jobs in drawn.values()))
    tables = []
    for (one, part), mine in zip(parts.items(), wishes, strict=True):
        if mine.jobs:
            table = place_jobs(one, part, mine, drawn.pop(one), span)
            tables.append(_named(table, one.rpartition("-")[2].capitalize()))
    joined = pa.concat_tables(tables).combine_chunks()
    order = np.argsort(joined["submit_time"].to_numpy(), kind="stable")
    return conform(joined.take(pa.array(order)), source=f"synthetic:{name}", ids_unique=True)


def _named(table: pa.Table, cluster: str) -> pa.Table:
    """Return a table with its cluster's name before ids and virtual clusters, and in a column."""
    for column in ("job_id", "vc"):
        names = pc.binary_join_element_wise(cluster, table[column], "/")
        table = table.set_column(table.schema.get_field_index(column), column, names)
    return table.append_column("cluster", pa.repeat(cluster, table.num_rows))


def joined_notes(parts: dict[str, SizeFacts], facts: JoinedFacts, wish: Wish) -> tuple[str, ...]:
    """Return what a reader must know: what holds for each part, once, and for the whole."""
    shares = largest_remainder([p.trace.gpu_jobs for p in parts.values()], wish.jobs).tolist()
    common = f"Joined from {', '.join(parts)}: what is said here holds for each of them."
    notes = [
        note
        for part, count in zip(parts.values(), shares, strict=True)
        for note in size_notes(part, replace(wish, jobs=count))
    ]
    return tuple(dict.fromkeys((notes[0], common, *notes[1:], *facts.trace.notes)))
