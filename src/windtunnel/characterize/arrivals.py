"""When do jobs arrive? By hour of the day, weekday, hour of the week and month, and bin by bin.

All in the wall clock of the trace's zone. A rate is over the time that really had the label within
the whole days that the trace covers: a day has 23 or 25 hours where the clock changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.boxes import boxes
from windtunnel.characterize.clock import DAY, HOUR, month_starts, wall_text
from windtunnel.characterize.grids import steps
from windtunnel.characterize.instants import (
    MAX_CELLS,
    Span,
    cells_of,
    labelled,
    span_of,
    timed,
)
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: Ways to tell times apart. Weekdays count from Monday = 0, hours of the week from Monday 0 h.
PERIODS: tuple[str, ...] = ("hour", "weekday", "hour_of_week", "month")
_LABELS = {"hour": 24, "weekday": 7, "hour_of_week": 168}
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
    time: str = "submit_time",
    covers: tuple[float, float] | None = None,
) -> pa.Table:
    """Return how many jobs arrive in each hour of the day, weekday, hour of the week or month.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        period: one of `PERIODS`.
        epoch: UTC instant of time 0 (`TraceMetadata.epoch`); None = a Monday's midnight.
        zone: IANA zone of the wall clock (`TraceMetadata.zone`); None = UTC.
        by: a property (`windtunnel.characterize.groups`): one series a group.
        where: ``gpu``, ``cpu`` or ``all`` jobs.
        time: which instant counts, `windtunnel.characterize.instants.TIMES`.
        covers: first and last instant that the log covers, s since the epoch, where it goes on
            before the first or after the last job; None = those of the jobs asked about.

    Returns:
        One row a group and label, labels without a job too: the column named as ``by`` (absent
        without ``by``), the column named as ``period`` (int64; a month is text, ``2020-04``),
        ``num_jobs``, ``job_share`` (0..1 of n; null where n is 0), ``seconds`` (how long the clock
        showed that label, in the whole days from the first to the last instant of all groups),
        ``per_hour`` (jobs per hour of it), ``n`` (jobs whose instant is known), ``left_out``
        (jobs whose instant is not), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or times lie outside the calendar.
    """
    import pyarrow as pa

    if period not in PERIODS:
        raise SpecError.unknown("period", period, PERIODS)
    table = timed(jobs, time, where, by)
    span = span_of(table, epoch, zone, covers=covers)
    months = [] if span is None else month_starts(span.begin, span.end - 1)
    size = _LABELS.get(period, len(months))
    if span is None:
        seconds = np.zeros(size)
        keyed = table.mutate(cell=table.time.cast("int64"))
    else:
        seconds = exposure(span, period, size, months)
        local = span.clock.local_of(table.time)
        keyed = table.mutate(cell=_label(local, period, months))
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


def arrival_series(
    jobs: Relation,
    step: float = HOUR,
    *,
    epoch: str | None = None,
    zone: str | None = None,
    by: str | None = None,
    where: str = "all",
    time: str = "submit_time",
    covers: tuple[float, float] | None = None,
) -> pa.Table:
    """Return how many jobs, and how many GPUs, arrive in each bin of the wall clock.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        step: length of a bin, s: 600, 3600, 86400 ... Bins begin at multiples of it of the wall
            clock.
        epoch: UTC instant of time 0; None = a Monday's midnight.
        zone: IANA zone of the wall clock; None = UTC.
        by: a property: one series a group.
        where: ``gpu``, ``cpu`` or ``all`` jobs.
        time: which instant counts, `windtunnel.characterize.instants.TIMES`.
        covers: first and last instant that the log covers, s since the epoch, where it goes on
            before the first or after the last job; None = those of the jobs asked about.

    Returns:
        One row a group and bin, bins without a job too, from the first to the last instant of all
        groups: the column named as ``by`` (absent without ``by``), ``time`` (where the bin begins,
        s since the epoch), ``local`` (the same on the wall clock, timestamp without a zone),
        ``seconds`` (how long the bin was: not ``step`` where the clock changes), ``num_jobs``,
        ``num_gpus`` (theirs, those of unknown size not added), ``n``, ``left_out`` (jobs whose
        instant is not known), ``unsized``. No row where no instant is known.

    Raises:
        SpecError: an argument names nothing known, ``step`` is no length, or there would be more
            bins than a figure can have.
    """
    table = timed(jobs, time, where, by)
    width = _checked_step(step)
    return _series(table, width, span_of(table, epoch, zone, step=width, covers=covers), by)


def hourly_boxes(
    jobs: Relation,
    of: str = "num_jobs",
    *,
    epoch: str | None = None,
    zone: str | None = None,
    where: str = "all",
    time: str = "submit_time",
    covers: tuple[float, float] | None = None,
) -> pa.Table:
    """Return how arrivals in one hour of the day differ from day to day, as box plots.

    The PAI notebook's figure 3: the arrivals of each hour of the whole days that the trace covers.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        of: ``num_jobs`` or ``num_gpus``.
        epoch: UTC instant of time 0; None = a Monday's midnight.
        zone: IANA zone of the wall clock; None = UTC.
        where: ``gpu``, ``cpu`` or ``all`` jobs.
        time: which instant counts, `windtunnel.characterize.instants.TIMES`.
        covers: first and last instant that the log covers, s since the epoch, where it goes on
            before the first or after the last job; None = those of the jobs asked about.

    Returns:
        One row an hour of the day (none where no instant is known): ``hour``, ``whisker_low``,
        ``q1``, ``median``, ``q3``, ``whisker_high``, ``min``, ``max``, ``mean`` (arrivals in an
        hour; convention of `windtunnel.characterize.boxes.box_statistics`), ``outliers_low``,
        ``outliers_high``, ``n`` (hours, one a day), ``jobs`` (in all of them), ``left_out`` (jobs
        whose instant is not known), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or times lie outside the calendar.
    """
    import ibis
    import pyarrow as pa

    if of not in ("num_jobs", "num_gpus"):
        raise SpecError.unknown("of", of, ("num_jobs", "num_gpus"))
    table = timed(jobs, time, where, None)
    series = _series(table, HOUR, span_of(table, epoch, zone, covers=covers), None)
    hours = series["local"].cast(pa.int64()).to_numpy() // HOUR % 24
    counts = {"place": hours.astype(np.float64), "fact_0": series[of].cast(pa.float64())}
    named = ibis.memtable(pa.table(counts)).mutate(label=ibis.literal(""), asked=True)
    found = boxes(named, "hour").drop_columns(["left_out", "unsized"])
    found = found.set_column(0, "hour", found["hour"].cast(pa.int64()))
    for name, column in (("jobs", "n"), ("left_out", "left_out"), ("unsized", "unsized")):
        value = series[column][0].as_py() if series.num_rows else 0
        found = found.append_column(name, pa.array([value] * found.num_rows, pa.int64()))
    return found


def _label(local: Any, period: str, months: list[float]) -> Any:
    """Return the number of the label that the wall clock shows, as Ibis int64."""
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
        span: what is covered.
        period: one of `PERIODS`.
        size: how many labels there are.
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


def _checked_step(step: float) -> float:
    number = isinstance(step, int | float) and not isinstance(step, bool)
    if not number or not math.isfinite(step) or step <= 0:
        raise SpecError("step", f"expected a number of seconds above 0, not {quote(step)}.")
    return float(step)


def _series(table: Any, step: float, span: Span | None, by: str | None) -> pa.Table:
    """Return the series of a population with ``time``; see `arrival_series`."""
    import pyarrow as pa

    if span is None:
        first, size, keyed = 0, 0, table.mutate(cell=table.time.cast("int64"))
        seconds = starts = np.zeros(0)
    else:
        first = math.floor(span.begin / step)
        size = math.floor(span.end / step) - first
        if size > MAX_CELLS:
            raise SpecError("step", f"{size:,} bins of {step:.15g} s are too many.")
        seconds = np.zeros(size)
        starts = np.full(size, np.inf)
        for begin, until, shift in span.pieces():
            start, end = begin + shift, until + shift
            bins = np.arange(math.floor(start / step), math.ceil(end / step))
            begins = np.maximum(bins * step, start)
            seconds[bins - first] += np.minimum((bins + 1) * step, end) - begins
            starts[bins - first] = np.minimum(starts[bins - first], begins - shift)
        local = span.clock.local_of(table.time)
        keyed = table.mutate(cell=(local / step).floor().cast("int64"))
    cells = cells_of(keyed, by, size, first)
    shown = np.flatnonzero(seconds > 0)
    walls = pa.array(((first + shown) * step).astype(np.int64), pa.int64())
    times = len(cells)
    columns = {
        "time": pa.array(np.tile(starts[shown], times), pa.float64()),
        "local": pa.chunked_array([walls.cast(pa.timestamp("s"))] * times, pa.timestamp("s")),
        "seconds": pa.array(np.tile(seconds[shown], times), pa.float64()),
        "num_jobs": pa.array(
            np.concatenate([np.zeros(0, np.int64), *(c.num_jobs[shown] for c in cells)]), pa.int64()
        ),
        "num_gpus": pa.array(
            np.concatenate([np.zeros(0), *(c.num_gpus[shown] for c in cells)]), pa.float64()
        ),
    }
    return labelled(by, cells, len(shown), columns)


def _divided(part: np.ndarray, whole: np.ndarray) -> pa.Array:
    """Return the quotients, null where the divisor is 0."""
    import pyarrow as pa

    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(part / whole, pa.float64(), mask=whole == 0)
