"""Draw submit times from what is known of arrivals: slots by day and hour, then batches in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.twin.arrivals import DAY, HOUR, Runs
from windtunnel.traces.twin.matching import match_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.twin.arrivals import Arrivals

#: From this length on a twin lasts whole days: the rate is off by 4 % at most.
_WHOLE_DAYS = 14


def draw_slots(
    arrivals: Arrivals,
    jobs: int,
    stretch: float,
    rng: np.random.Generator,
    *,
    by_day: Runs | None = None,
) -> NDArray[np.float64]:
    """Draw sorted submit times by day and by hour of the week; batches come later.

    The numbers by day are those of the source (or in proportion, rounded systematically); within
    a day the times follow the hours' profile independently of each other.

    Args:
        jobs: how many, >= 1.
        stretch: length of the twin over that of the source.
        by_day: jobs by day; None = evenly.

    Returns:
        Seconds since `windtunnel.traces.twin.arrivals.EPOCH`, sorted, shape (jobs,).
    """
    hourly = arrivals.week.spread().reshape(7, 24)
    source_days = arrivals.num_days
    by_day = by_day or Runs([source_days], [1])
    seen = np.bincount((arrivals.first_weekday + np.arange(source_days)) % 7, minlength=7)
    weight = hourly.sum(axis=1) / np.maximum(seen, 1)
    days, squeeze = _days(arrivals, stretch)
    weekday = (arrivals.first_weekday + np.arange(days)) % 7
    at = np.minimum(
        ((np.arange(days) + 0.5) * source_days / days).astype(np.int64), source_days - 1
    )
    level = _levels(arrivals.first_weekday, by_day, weight)
    rate = level[at] * weight[weekday]
    if not rate.sum() > 0:
        rate = np.ones(days)
    # Systematic sampling: each day gets its share rounded up or down.
    marks = (np.arange(jobs) + rng.random()) / jobs * rate.sum()
    day = np.minimum(np.searchsorted(np.cumsum(rate), marks, side="right"), days - 1)
    profile = np.where(weight[:, None] > 0, hourly, 1.0)
    cumulative = np.cumsum(profile / profile.sum(axis=1, keepdims=True), axis=1)
    u = rng.random(jobs)
    hour = (u[:, None] >= cumulative[weekday[day]][:, :-1]).sum(axis=1)
    times = (day * 24 + hour + rng.random(jobs)) * HOUR
    return np.sort(arrivals.first_weekday * DAY + times * squeeze)


def _days(arrivals: Arrivals, stretch: float) -> tuple[int, float]:
    """Return how many days a twin lasts, and what to shorten or lengthen its days by.

    A day stays a day wherever whole days come near enough to the wanted length; in a short twin the
    number of submissions a second is kept, and not the hour of the day.
    """
    wanted = arrivals.num_days * stretch
    days = max(round(wanted), 1)
    return days, 1.0 if days >= _WHOLE_DAYS else wanted / days


def _levels(first_weekday: int, by_day: Runs, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each source day's jobs over what its weekday leads to expect, shape (days,)."""
    levels: list[float] = []
    for slots, jobs in zip(by_day.slots, by_day.jobs, strict=True):
        weekday = (first_weekday + len(levels) + np.arange(slots)) % 7
        expected = float(weight[weekday].sum())
        levels += [jobs / expected if expected > 0 else 0.0] * slots
    return np.array(levels)


def batch_starts(
    slots: NDArray[np.float64], size: NDArray[np.int64], gap: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return when batches begin: in random order each takes a run of slots and lies within it.

    A batch that lasts longer than its slots begins with them.

    Args:
        slots: sorted times, one a job.
        size: jobs of each batch; their sum is that of the slots, shape (batches,).
        gap: mean time between two jobs of a batch, s.
    """
    place = rng.permutation(len(size))  # place of each batch in time
    ordered = np.empty(len(size), dtype=np.int64)
    ordered[place] = size
    first = (np.cumsum(ordered) - ordered)[place]
    slack = np.maximum(slots[first + size - 1] - slots[first] - (size - 1) * gap, 0.0)
    start = slots[first] + rng.random(len(size)) * slack
    # At a slot: not in the night between two of them.
    return np.asarray(slots[np.searchsorted(slots, start, side="right") - 1])


def match_load(
    arrivals: Arrivals,
    start: NDArray[np.float64],
    group: NDArray[np.int64],
    gpu_time: NDArray[np.float64],
    *,
    stretch: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Exchange batches' starts within groups until GPU time lies in time as the source's does.

    Args:
        start: when each batch begins, shape (batches,).
        group: batches alike in kind and size, shape (batches,).
        gpu_time: GPU seconds of each batch, shape (batches,).
        stretch: length of the twin over that of the source; the runs of days stretch with it.

    Returns:
        The same starts in another order, shape (batches,).
    """
    if arrivals.load is None:
        return start
    days, squeeze = _days(arrivals, stretch)
    length = days * squeeze * DAY
    edges = np.cumsum(arrivals.load.slots) / sum(arrivals.load.slots) * length
    label = np.searchsorted(edges[:-1], start - arrivals.first_weekday * DAY, side="right")
    target = np.array(arrivals.load.gpu_time)
    wanted = match_shares(label, group, gpu_time, target, rng)
    noise = rng.random(len(start))
    start, noise_of = start.copy(), rng.random(len(start))
    start[np.lexsort((noise, wanted, group))] = start[np.lexsort((noise_of, label, group))]
    return start


def spread_batches(
    start: NDArray[np.float64],
    code: NDArray[np.int64],
    *,
    gap: float,
    whole: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return each job's submit time: its batch's start, and exponential gaps after it.

    Args:
        start: when each batch begins, shape (batches,).
        code: batch of each job, shape (jobs,); each batch has one.
        gap: mean time between two jobs of a batch, s.
        whole: on whole seconds.
    """
    size = np.bincount(code, minlength=len(start))
    total = np.cumsum(rng.exponential(1.0, len(code)) * gap)
    heads = np.cumsum(size) - size
    order = np.argsort(code, kind="stable")
    times = np.empty(len(code))
    times[order] = start[code[order]] + total - np.repeat(total[heads], size)
    return np.floor(times) if whole else times
