"""A log over the calendar: waits, use and queue by day and by who, as sums that add up.

What is kept is aggregated: no job can be recognised in it, and any choice of partitions,
accounts, QOS and GPU types is a sum of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.characterize.recorded import Recorded
from windtunnel.sim.metrics import NONE
from windtunnel.traces.wallclock import zone_info

if TYPE_CHECKING:
    import pyarrow as pa

#: Column of the jobs -> what people call it.
DIMENSIONS: dict[str, str] = {
    "partition": "Partition",
    "vc": "Account",
    "qos": "QOS",
    "gpu_type": "GPU type",
}
#: Values of a column that are kept apart; the others are one.
MOST_VALUES = 12
OTHERS = "(others)"
#: Days that are kept apart; of a longer log weeks are.
MOST_DAYS = 400
_DAY, _HOUR = 86400.0, 3600.0
#: Upper ends of the classes of waits, s: fourteen a decade from a second on.
WAITS = np.concatenate([[1.0], 10 ** (np.arange(1, 99) / 14)])


@dataclass(frozen=True)
class Calendar:
    """A log over the calendar.

    Attributes:
        edges: where days (or weeks) begin, s since time 0, and the end of the last, (days + 1,).
        dates: ISO dates of the days in the site's zone; ``day 0`` and so on without an epoch.
        values: dimension -> its values, `OTHERS` last, where there are others.
        groups: of each group, the place of its value in each of ``values``.
        jobs: jobs submitted on each day that started, (groups, days).
        waited: h that these waited, (groups, days).
        held: GPU-h held on each day, (groups, days).
        queued: h that jobs waited on each day, (groups, days).
        waits: jobs by class of wait (`WAITS`; the last class is open), (groups, classes).
    """

    edges: np.ndarray
    dates: list[str]
    values: dict[str, list[str]]
    groups: list[tuple[int, ...]]
    jobs: np.ndarray
    waited: np.ndarray
    held: np.ndarray
    queued: np.ndarray
    waits: np.ndarray

    @property
    def unit(self) -> str:
        """What a bin is: ``day``, or ``week`` in a long log."""
        return "day" if self.edges[-1] - self.edges[0] <= MOST_DAYS * _DAY else "week"

    @property
    def hours(self) -> np.ndarray:
        """Length of each day that the log covers, h, shape (days,)."""
        length: np.ndarray = np.diff(self.edges) / _HOUR
        return length


def calendar(jobs: pa.Table, epoch: str | None, zone: str | None) -> Calendar:
    """Return a log over the calendar.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        epoch: UTC instant of time 0, ISO 8601; None = not known.
        zone: IANA zone of the days; None = UTC.
    """
    recorded = Recorded.of(jobs)
    edges, dates = _days(*recorded.span, epoch, zone)
    values, codes = {}, []
    for name in DIMENSIONS:
        values[name], code = _coded(jobs, name, recorded)
        codes.append(code)
    groups, of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    of = of.ravel()
    count, days = len(groups), len(dates)
    wait = recorded.start - recorded.submit
    known = ~np.isnan(wait)
    day = np.clip(np.searchsorted(edges, recorded.submit[known], side="right") - 1, 0, days - 1)
    cell = of[known] * days + day

    def by_day(weights: np.ndarray | None) -> np.ndarray:
        return np.bincount(cell, weights, minlength=count * days).reshape(count, days)

    kind = np.searchsorted(WAITS, wait[known], side="left")
    classes = len(WAITS) + 1
    waits = np.bincount(of[known] * classes + kind, minlength=count * classes)
    last = recorded.span[1]
    leaves = np.where(np.isnan(recorded.start), np.fmin(recorded.end, last), recorded.start)
    return Calendar(
        edges,
        dates,
        values,
        [tuple(row) for row in groups.tolist()],
        by_day(None),
        by_day(wait[known] / _HOUR),
        _spread(recorded.start, recorded.end, recorded.gpus, of, edges),
        _spread(recorded.submit, leaves, np.ones(len(of)), of, edges),
        waits.reshape(count, classes),
    )


def _days(
    first: float, last: float, epoch: str | None, zone: str | None
) -> tuple[np.ndarray, list[str]]:
    """Return where days (weeks from Monday on) begin, within the log's span, and their dates."""
    step = 1 if last - first <= MOST_DAYS * _DAY else 7
    if epoch is None:
        count = max(1, int(np.ceil((last - first) / (step * _DAY))))
        edges = first + np.arange(count + 1) * step * _DAY
        return edges, [f"day {step * day}" for day in range(count)]
    where = zone_info(zone or "UTC")
    zero = datetime.fromisoformat(epoch).timestamp()
    date = datetime.fromtimestamp(first + zero, where).date()
    date -= timedelta(days=date.weekday() if step > 1 else 0)
    edges_at: list[float] = []
    dates: list[str] = []
    while not edges_at or edges_at[-1] < last:
        midnight = datetime(date.year, date.month, date.day, tzinfo=where).timestamp() - zero
        edges_at.append(midnight)
        dates.append(date.isoformat())
        date += timedelta(days=step)
    edges = np.array(edges_at) if len(edges_at) > 1 else np.array([edges_at[0], last + 1.0])
    edges[0], edges[-1] = max(edges[0], first), max(last, edges[0] + 1.0)
    return edges, dates[: len(edges) - 1]


def _coded(jobs: pa.Table, name: str, recorded: Recorded) -> tuple[list[str], np.ndarray]:
    """Return a column's values, those of most GPU time and waiting, and each job's."""
    if name not in jobs.column_names:
        return [NONE], np.zeros(jobs.num_rows, dtype=np.int64)
    codes, labels = recorded.names(name)
    weight = 1.0 + recorded.gpu_time + np.nan_to_num(recorded.wait)
    size = np.bincount(codes, weight, minlength=len(labels))
    order = sorted(range(len(labels)), key=lambda at: (-size[at], labels[at]))
    shown = order[: MOST_VALUES if len(order) > MOST_VALUES + 1 else len(order)]
    place = np.full(len(labels), len(shown))
    place[shown] = np.arange(len(shown))
    names = [labels[at] for at in shown]
    return [*names, OTHERS] if len(shown) < len(order) else names, place[codes]


def _spread(
    start: np.ndarray, end: np.ndarray, weight: np.ndarray, of: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """Return weight times hours of each group's spans on each day, shape (groups, days)."""
    count = int(of.max(initial=0)) + 1
    known = ~np.isnan(start) & ~np.isnan(end) & (weight > 0)
    start, end, weight, of = start[known], end[known], weight[known], of[known]
    found = np.zeros((count, len(edges) - 1))
    for day, (begin, stop) in enumerate(pairwise(edges.tolist())):
        over = np.clip(np.minimum(end, stop) - np.maximum(start, begin), 0.0, None)
        found[:, day] = np.bincount(of, over * weight / _HOUR, minlength=count)
    return found
