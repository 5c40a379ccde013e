"""When jobs are submitted: a daily and weekly profile with a swing from day to day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.size_facts import TraceFacts

_HOUR = 3600.0
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
