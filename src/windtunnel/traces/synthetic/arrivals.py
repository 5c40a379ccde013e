"""When jobs are submitted: a daily and weekly profile with a swing from day to day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

import numpy as np

from windtunnel.traces.synthetic.coupling import whole_table
from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.wallclock import to_utc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.size_facts import SizeFacts, TraceFacts

_HOUR = 3600
_DAY_HOURS = 24


class Clock(Protocol):
    """When jobs are submitted: the profile of the day and of the week, and the days' swing."""

    @property
    def hours(self) -> list[float]:
        """Relative submissions an hour of the local day, 24 values."""

    @property
    def weekdays(self) -> list[float]:
        """Relative submissions a weekday, Monday first, 7 values."""

    @property
    def day_sigma(self) -> float:
        """Log-normal swing from day to day."""


def local_start(trace: TraceFacts) -> datetime:
    """Return when a trace begins, on its local clock."""
    return datetime.fromisoformat(trace.epoch).astimezone(ZoneInfo(trace.zone))


def submit_times(
    start: datetime, profile: Clock, jobs: int, span: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return sorted submit times in whole seconds.

    A Poisson process, given its number of events, whose rate is constant within an hour of the
    local day: hour profile times weekday profile times a log-normal factor of the day.

    Args:
        start: time 0 on the local clock, at a full hour.
        jobs: how many, >= 1.
        span: seconds from the first submission, at 0, to the last.

    Returns:
        Seconds since the epoch, shape (jobs,): first 0, last ``span`` where there are two or more.
    """
    hours = max(int(np.ceil(span / _HOUR)), 1)
    clock = _local_hours(start, hours)
    day = clock // _DAY_HOURS
    swing = np.exp(rng.normal(0.0, profile.day_sigma, int(day[-1]) + 1))
    rate = (
        np.array(profile.hours)[clock % _DAY_HOURS]
        * np.array(profile.weekdays)[(day + start.weekday()) % 7]
        * swing[day]
    )
    edges = np.minimum(np.arange(hours + 1) * _HOUR, span)
    mass = np.concatenate([[0.0], np.cumsum(rate * np.diff(edges))])
    if mass[-1] > 0:
        times = np.interp(np.sort(rng.random(jobs)) * mass[-1], mass, edges)
    else:
        times = np.zeros(jobs)
    seconds: NDArray[np.int64] = np.floor(times).astype(np.int64)
    seconds[0] = 0
    if jobs > 1:
        seconds[-1] = span
    return seconds


def _local_hours(start: datetime, hours: int) -> NDArray[np.int64]:
    """Return the hours of the local clock since midnight of the first day, shape (hours,).

    Where the clock is set back an hour comes twice, where it is set forward one is left out.
    """
    zone = start.tzinfo
    begin = start.astimezone(UTC)

    def offset(hour: int) -> int:
        moment = (begin + timedelta(hours=hour)).astimezone(zone).utcoffset() or timedelta()
        return int(moment.total_seconds() // _HOUR)

    clock = np.arange(hours) + start.hour
    daily = [offset(hour) for hour in range(0, hours + _DAY_HOURS, _DAY_HOURS)]
    shift = np.repeat(np.array(daily[:-1]) - daily[0], _DAY_HOURS)[:hours]
    for day in np.flatnonzero(np.diff(daily)).tolist():
        for hour in range(day * _DAY_HOURS, min((day + 1) * _DAY_HOURS, hours)):
            shift[hour] = offset(hour) - daily[0]
    return np.asarray(clock + shift)


_HOURS = 24
_WEEK = 7
_FITTING_ROUNDS = 200


def calendar_times(
    facts: SizeFacts, gpus: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return when each of the real number of jobs is submitted, s since the epoch, shape (jobs,).

    Where months are published, the jobs with one GPU and those with more of each month and those
    of each hour of the day are exactly the published ones; jobs that the months lack come on the
    day after the last. Otherwise the jobs of each weekday and of each hour are exact. Days of a
    month, or of a weekday, share its jobs by weekday and a log-normal swing.

    Args:
        gpus: GPUs of each job, shape (jobs,).
    """
    calendar = facts.calendar
    days = facts.trace.span_days
    first = local_start(facts.trace)
    dates = [first + timedelta(days=d) for d in range(days)]
    weekday = np.array([d.weekday() for d in dates])
    weight = np.exp(rng.normal(0.0, calendar.day_sigma, days))
    if calendar.months:
        classes = [np.flatnonzero(gpus <= 1), np.flatnonzero(gpus > 1)]
        month = np.array([f"{d:%Y-%m}" for d in dates])
        groups = [np.flatnonzero(month == m) for m in calendar.months]
        counts = np.array(list(calendar.months.values())).T
        weight *= np.array(calendar.weekdays)[weekday]
        hours = np.array(calendar.hours, dtype=np.int64)
    else:
        classes = [np.arange(len(gpus))]
        groups = [np.flatnonzero(weekday == d) for d in range(_WEEK)]
        counts = largest_remainder(calendar.weekdays, len(gpus))[None, :]
        hours = largest_remainder(calendar.hours, len(gpus))
    cells = _cells(counts.ravel(), hours)
    seconds = np.empty(len(gpus), dtype=np.int64)
    for k, members in enumerate(classes):
        slots = np.concatenate(
            [
                _slots(cells[k * len(groups) + i], group, weight[group], rng)
                for i, group in enumerate(groups)
            ]
        )
        missing = len(members) - len(slots)
        share = np.array(calendar.hours) / sum(calendar.hours)
        after = days * _HOURS + rng.choice(_HOURS, size=missing, p=share)
        slots = rng.permutation(np.concatenate([slots, after]))
        seconds[members] = slots * _HOUR + rng.integers(_HOUR, size=len(slots))
    return _since_epoch(facts, seconds)


def _cells(rows: NDArray[np.int64], hours: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return whole numbers with these row sums and hour sums, shape (rows, 24)."""
    table = np.outer(rows, hours) / hours.sum()
    for _ in range(_FITTING_ROUNDS):
        table *= (hours / np.maximum(table.sum(axis=0), 1e-9))[None, :]
        table *= (rows / np.maximum(table.sum(axis=1), 1e-9))[:, None]
    return whole_table(table, rows, hours)


def _slots(
    by_hour: NDArray[np.int64],
    days: NDArray[np.int64],
    weight: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the hours since the first midnight at which jobs of some days come, shape (jobs,)."""
    counts = rng.multinomial(by_hour, weight / weight.sum())  # shape (24, days)
    hour = days[None, :] * _HOURS + np.arange(_HOURS)[:, None]
    return np.repeat(hour.ravel(), counts.ravel())


def _since_epoch(facts: SizeFacts, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return seconds of the wall clock since the first midnight as seconds since the epoch."""
    start = local_start(facts.trace)
    wall = start.timestamp() + (start.utcoffset() or timedelta()).total_seconds()
    instants, _ = to_utc(seconds + wall, facts.trace.zone)
    return np.asarray(instants - start.timestamp(), dtype=np.int64)
