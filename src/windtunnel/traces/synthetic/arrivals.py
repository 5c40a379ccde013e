"""When jobs are submitted: a daily and weekly profile with a swing from day to day."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.published import Published

_HOUR = 3600.0
_DAY_HOURS = 24


def submit_times(
    facts: Published, jobs: int, span: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return sorted submit times in whole seconds.

    A Poisson process, given its number of events, whose rate is constant within an hour of the
    local day: hour profile times weekday profile times a log-normal factor of the day.

    Args:
        facts: the trace's facts (profiles, epoch and zone).
        jobs: how many, >= 1.
        span: seconds from the first submission, at 0, to the last.
        rng: the stream.

    Returns:
        Seconds since the epoch, shape (jobs,): first 0, last ``span`` where there are two or more.
    """
    model = facts.model
    start = datetime.fromisoformat(facts.trace.epoch).astimezone(ZoneInfo(facts.trace.zone))
    hours = max(int(np.ceil(span / _HOUR)), 1)
    clock = np.arange(hours) + start.hour
    day = clock // _DAY_HOURS
    swing = np.exp(rng.normal(0.0, model.day_sigma, int(day[-1]) + 1))
    rate = (
        np.array(model.hours)[clock % _DAY_HOURS]
        * np.array(model.weekdays)[(day + start.weekday()) % 7]
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
