"""When do jobs arrive? By hour of the day, weekday, hour of the week and month, and bin by bin.

All in the wall clock of the trace's zone. A rate is over the time that really had the label within
the whole days that the trace covers: a day has 23 or 25 hours where the clock changes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.clock import DAY, HOUR, month_starts, wall_text
from windtunnel.characterize.grids import steps
from windtunnel.characterize.instants import Span, cells_of, labelled, span_of, timed
from windtunnel.characterize.spread import boxes
from windtunnel.checked import checked_choice

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.characterize.instants import Cells, Span
    from windtunnel.companions import Relation

#: Ways to tell times apart. Weekdays count from Monday = 0, hours of the week from Monday 0 h.
PERIODS: tuple[str, ...] = ("hour", "weekday", "hour_of_week", "month")
#: How many labels they have; months are as many as a trace has.
LABELS = {"hour": 24, "weekday": 7, "hour_of_week": 168}
#: 1970-01-01 was a Thursday.
_THURSDAY = 3


def arrivals_by(
    jobs: Relation,
    period: str = "hour",
    *,
    epoch: str | None = None,
    zone: str | None = None,
    by: str | None = None,
    where: str = "all",
    covers: tuple[float, float] | None = None,
) -> pa.Table:
    """Return how many jobs arrive in each hour of the day, weekday, hour of the week or month.

    Args:
        period: one of `PERIODS`.
        covers: first and last instant that the log covers, s since the epoch, where it goes on
            before the first or after the last job; None = those of the jobs asked about.

    Returns:
        One row a group and label, labels without a job too: the column named as ``by`` (absent
        without ``by``), the column named as ``period`` (int64; a month is text, ``2020-04``),
        ``num_jobs``, ``job_share`` (0..1 of n; null where n is 0), ``seconds`` (how long the clock
        showed that label, in the whole days from the first to the last instant of all groups),
        ``per_hour`` (jobs per hour of it), ``n`` (jobs whose submission is known),
        ``left_out`` (jobs whose submission is not), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or times lie outside the calendar.
    """
    import pyarrow as pa

    checked_choice("period", period, PERIODS)
    table = timed(jobs, where, by)
    span = span_of(table, epoch, zone, covers=covers)
    months = [] if span is None else month_starts(span.begin, span.end - 1)
    size = LABELS.get(period, len(months))
    if span is None:
        seconds = np.zeros(size)
        keyed = table.mutate(cell=table.time.cast("int64"))
    else:
        seconds = exposure(span, period, size, months)
        local = span.clock.local_of(table.time)
        keyed = table.mutate(cell=label_of(local, period, months))
    cells = cells_of(keyed, by, size, first=0)
    names: Any = pa.array(np.arange(size), pa.int64())
    if period == "month":
        names = pa.array([wall_text(start, "%Y-%m") for start in months], pa.string())
    columns: dict[str, Any] = {period: pa.chunked_array([names] * len(cells), names.type)}
    jobs_in = np.concatenate([np.zeros(0, np.int64), *(cell.num_jobs for cell in cells)])
    n = np.repeat(np.array([cell.counts["n"] for cell in cells], np.int64), size)
    hours = np.tile(seconds, len(cells)) / HOUR
    columns["num_jobs"] = pa.array(jobs_in, pa.int64())
    columns["job_share"] = _divided(jobs_in, n)
    columns["seconds"] = pa.array(np.tile(seconds, len(cells)), pa.float64())
    columns["per_hour"] = _divided(jobs_in, hours)
    return labelled(by, cells, size, columns)


def hourly_boxes(
    jobs: Relation,
    of: str = "num_jobs",
    *,
    epoch: str | None = None,
    zone: str | None = None,
    where: str = "all",
) -> pa.Table:
    """Return how arrivals in one hour of the day differ from day to day, as box plots.

    The PAI notebook's figure 3: the arrivals of each hour of the whole days that the trace covers.

    Args:
        of: ``num_jobs`` or ``num_gpus``.

    Returns:
        One row an hour of the day (none where no instant is known): ``hour``, ``whisker_low``,
        ``q1``, ``median``, ``q3``, ``whisker_high``, ``min``, ``max``, ``mean`` (arrivals in an
        hour; convention of `windtunnel.characterize.spread.box_statistics`), ``outliers_low``,
        ``outliers_high``, ``n`` (hours, one a day), ``jobs`` (in all of them), ``left_out`` (jobs
        whose instant is not known), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or times lie outside the calendar.
    """
    import ibis
    import pyarrow as pa

    checked_choice("of", of, ("num_jobs", "num_gpus"))
    table = timed(jobs, where, None)
    hours, cells = _hours(table, span_of(table, epoch, zone))
    counts = {"place": hours, "fact_0": pa.array(getattr(cells, of), pa.float64())}
    named = ibis.memtable(pa.table(counts)).mutate(label=ibis.literal(""), asked=True)
    found = boxes(named, "hour").drop_columns(["left_out", "unsized"])
    found = found.set_column(0, "hour", found["hour"].cast(pa.int64()))
    for name, column in (("jobs", "n"), ("left_out", "left_out"), ("unsized", "unsized")):
        value = cells.counts[column]
        found = found.append_column(name, pa.array([value] * found.num_rows, pa.int64()))
    return found


def label_of(local: Any, period: str, months: list[float]) -> Any:
    """Return the number of the label that the wall clock shows, as Ibis int64.

    Args:
        local: Ibis number, s since 1970 of that clock.
        period: one of `PERIODS`.
        months: as of `exposure`.
    """
    hours = (local / HOUR).floor().cast("int64")
    days = (local / DAY).floor().cast("int64")
    weekday = ((days + _THURSDAY) % 7 + 7) % 7
    hour = (hours % 24 + 24) % 24
    if period == "hour":
        return hour
    if period == "weekday":
        return weekday
    if period == "hour_of_week":
        return weekday * 24 + hour
    return steps(local, months[1:], [float(i) for i in range(len(months))]).cast("int64")


def exposure(span: Span, period: str, size: int, months: list[float]) -> np.ndarray:
    """Return how many seconds the clock showed each label, shape (size,).

    Args:
        period: one of `PERIODS`.
        months: where the months begin (`windtunnel.characterize.clock.month_starts`); of another
            period empty.
    """
    seconds = np.zeros(size)
    for first, last, shift in span.pieces():
        start, end = first + shift, last + shift
        bins = np.arange(math.floor(start / HOUR), math.ceil(end / HOUR))
        length = np.minimum((bins + 1) * HOUR, end) - np.maximum(bins * HOUR, start)
        weekday = (bins // 24 + _THURSDAY) % 7
        labels = {
            "hour": bins % 24,
            "weekday": weekday,
            "hour_of_week": weekday * 24 + bins % 24,
            "month": np.searchsorted(months, bins * HOUR, side="right") - 1,
        }[period]
        seconds += np.bincount(labels, weights=length, minlength=size)
    return seconds


def _hours(table: Any, span: Span | None) -> tuple[np.ndarray, Cells]:
    """Return the hour of the day of each hour that the clock showed, and what came in it."""
    if span is None:
        (cells,) = cells_of(table.mutate(cell=table.time.cast("int64")), None, 0, 0)
        return np.zeros(0), cells
    first = math.floor(span.begin / HOUR)
    size = math.floor(span.end / HOUR) - first
    shown = np.zeros(size, dtype=bool)
    for begin, until, shift in span.pieces():
        bins = np.arange(math.floor((begin + shift) / HOUR), math.ceil((until + shift) / HOUR))
        shown[bins - first] = True
    local = span.clock.local_of(table.time)
    (cells,) = cells_of(table.mutate(cell=(local / HOUR).floor().cast("int64")), None, size, first)
    shown_cells = replace(cells, num_jobs=cells.num_jobs[shown], num_gpus=cells.num_gpus[shown])
    return (first + np.flatnonzero(shown)) % 24.0, shown_cells


def _divided(part: np.ndarray, whole: np.ndarray) -> pa.Array:
    """Return the quotients, null where the divisor is 0."""
    import pyarrow as pa

    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(part / whole, pa.float64(), mask=whole == 0)
