"""When something happened to jobs: their instants on the wall clock, counted in cells.

A cell is a label of the clock (an hour of the day, a month) or a bin of a series. Cells are counted
for whole steps of the clock, from the one of the first instant to the one of the last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.clock import DAY, clock
from windtunnel.characterize.population import group_label, group_order, population
from windtunnel.characterize.relation import rows
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.characterize.clock import Clock
    from windtunnel.companions import Relation

#: More cells than this are no figure.
MAX_CELLS = 20_000_000


@dataclass(frozen=True)
class Span:
    """What a trace covers on its wall clock: ``begin`` to ``end``, s since 1970 of that clock."""

    clock: Clock
    begin: float
    end: float

    def pieces(self) -> list[tuple[float, float, float]]:
        """Return `windtunnel.characterize.clock.Clock.pieces` of it."""
        return self.clock.pieces(self.clock.time_of(self.begin), self.clock.time_of(self.end))


@dataclass(frozen=True)
class Cells:
    """The counts of one group, ``num_jobs`` and ``num_gpus`` of shape (cells,)."""

    label: str
    num_jobs: np.ndarray
    num_gpus: np.ndarray
    counts: dict[str, int]


def timed(jobs: Relation, where: str, by: str | None) -> Any:
    """Return the jobs asked about, their submission as ``time`` and their GPUs as ``fact_0``."""
    import ibis

    table = population(jobs, ("num_gpus",), where=where, by=by, columns=("submit_time",))
    return table.mutate(time=ibis.ifelse(table.asked, table.submit_time, ibis.null("float64")))


def span_of(
    table: Any,
    epoch: str | None,
    zone: str | None,
    *,
    step: float = DAY,
    covers: tuple[float, float] | None = None,
) -> Span | None:
    """Return what the instants cover, in whole steps of the wall clock; None without instants.

    Args:
        epoch: UTC instant of time 0 as ISO 8601 text; None = a Monday's midnight.
        zone: IANA zone; None = UTC.
        step: length of a step, s.
        covers: instants that are to be covered too, s since the epoch.

    Raises:
        SpecError: the epoch or the zone is none, or the times lie outside the calendar.
    """
    (row,) = rows(table.aggregate(first=table.time.min(), last=table.time.max()))
    known = [t for t in (row["first"], row["last"], *(covers or ())) if t is not None]
    if not known:
        return None
    first, last = min(known), max(known)
    margin = 2 * max(DAY, step)
    wall = clock(epoch, zone, first - margin, last + margin)
    changes = [
        (time, time + wall.zero + before)
        for time, before in zip(wall.changes, wall.offsets[:-1], strict=True)
        if first < time <= last
    ]
    # Where the clock is set back it has shown later times than at the last instant.
    begins = [wall.local(time) for time in (first, last, *(time for time, _ in changes))]
    ends = [
        *((math.floor(wall.local(time) / step) + 1) * step for time in (first, last)),
        *(math.ceil(local / step) * step for _, local in changes),
    ]
    return Span(wall, math.floor(min(begins) / step) * step, max(ends))


def cells_of(keyed: Any, by: str | None, size: int, first: int) -> list[Cells]:
    """Return the counts of each group in its cells.

    Args:
        keyed: what `timed` returned, with the number of each instant's cell as ``cell``.
        by: the property that the groups are of; None = one group.
        first: number of the first.

    Raises:
        SpecError: groups times cells are too many.
    """
    known = keyed.time.notnull()
    sums = keyed.group_by(["place", "label", "cell"]).aggregate(
        n=known.sum().fill_null(0),
        num_gpus=keyed.fact_0.sum(where=known).fill_null(0.0),
        left_out=(keyed.asked & ~known).sum().fill_null(0),
        unsized=(~keyed.asked).sum().fill_null(0),
    )
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for row in sorted(rows(sums), key=group_order):
        groups.setdefault((row["place"], row["label"]), []).append(row)
    if by is None and not groups:
        groups[0.0, ""] = []
    if len(groups) * size > MAX_CELLS:
        raise SpecError("by", f"{len(groups):,} groups in {size:,} bins are too many.")
    found = []
    for (place, label), members in groups.items():
        num_jobs, num_gpus = np.zeros(size, dtype=np.int64), np.zeros(size)
        for row in members:
            if row["cell"] is not None:
                num_jobs[row["cell"] - first] += row["n"]
                num_gpus[row["cell"] - first] += row["num_gpus"]
        counts = {k: sum(row[k] for row in members) for k in ("n", "left_out", "unsized")}
        found.append(Cells(group_label(by, place, label), num_jobs, num_gpus, counts))
    return found


def labelled(by: str | None, cells: list[Cells], size: int, columns: dict[str, Any]) -> pa.Table:
    """Return the columns with the groups' labels before them and their counts behind."""
    import pyarrow as pa

    labels = [cell.label for cell in cells for _ in range(size)]
    first = {} if by is None else {by: pa.array(labels, pa.string())}
    counts = {
        name: pa.array([cell.counts[name] for cell in cells for _ in range(size)], pa.int64())
        for name in ("n", "left_out", "unsized")
    }
    return pa.table({**first, **columns, **counts})
