"""Curves over time of a run: exact step functions from its segments.

A step table has one row an instant at which the value changes; the value holds until the next row.
`resample` averages such a curve over equal bins, exactly, for drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.flight import Interruptions
    from windtunnel.sim.flown import Flown

#: Changes of the queue that are made at once: those of ten million jobs fill 640 MB.
_MOST_CHANGES = 1_000_000


def steps(times: np.ndarray, *deltas: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the step functions that ``deltas`` at ``times`` add up to.

    Args:
        times: Float array of shape (m,), s, any order.
        deltas: Float arrays of shape (m,): change of each curve at each time.

    Returns:
        Distinct times in ascending order, shape (k,), then each curve's value from that time on,
        shape (k,).
    """
    if len(times) == 0:
        return (np.empty(0), *(np.empty(0) for _ in deltas))
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    return (ordered[last], *(np.cumsum(delta[order])[last] for delta in deltas))


def held_over_time(
    outcome: Flown, stay: np.ndarray, gpus: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what is held from when to when: jobs that share GPUs hold equal parts of them.

    Args:
        outcome: the run.
        stay: Int array (e,), the stay of each entry.
        gpus: Float array (e,), the GPUs that the stay is on.

    Returns:
        Entry, start and end (s; NaN where it goes on at the horizon) and GPUs, shapes (p,).
    """
    flight = outcome.flight
    start, end = flight.segment_start[stay], flight.segment_end[stay]
    if flight.portions is None or not len(flight.portions):
        return np.arange(len(stay)), start, end, gpus
    of, since, until, part = flight.portions.T
    first = np.searchsorted(of, stay)
    counts = np.searchsorted(of, stay, side="right") - first
    entry = np.repeat(np.arange(len(stay)), counts)
    within = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = first[entry] + within
    return entry, since[at], until[at], gpus[entry] * part[at]


def utilization(outcome: Flown) -> pa.Table:
    """Return GPUs in use over time: columns ``time`` (s), ``gpus``, ``utilization`` (0..1).

    Where GPUs go down, ``utilization`` is of those that are up at the time (0 where none is).
    Fractional requests are summed exactly in millionths of a GPU, so that an idle cluster is 0.
    """
    flight = outcome.flight
    stays = np.arange(len(flight.segment_job))
    _, start, end, gpus = held_over_time(outcome, stays, outcome.segment_gpus)
    gpus = np.round(gpus * 1e6)
    ended = ~np.isnan(end)
    time, used = steps(np.concatenate([start, end[ended]]), np.concatenate([gpus, -gpus[ended]]))
    used = used / 1e6
    if flight.interruptions is not None:
        # Jobs that still run hold their GPUs until the horizon, whatever goes up or down meanwhile.
        last = time.max(initial=0.0) if ended.all() else float(outcome.settings["until"])
        return _of_those_up(time, used, flight.interruptions, last)
    return pa.table({"time": time, "gpus": used, "utilization": used / outcome.cluster.num_gpus})


def _of_those_up(time: np.ndarray, used: np.ndarray, found: Interruptions, last: float) -> pa.Table:
    """Return the table of `utilization` with a row, too, wherever the GPUs up change until last."""
    if len(time) == 0:
        return pa.table({"time": time, "gpus": used, "utilization": used})
    inside = (found.up_time > time[0]) & (found.up_time < last)
    times = np.union1d(time, found.up_time[inside])
    gpus = used[np.searchsorted(time, times, side="right") - 1]
    up = found.up_gpus[np.searchsorted(found.up_time, times, side="right") - 1]
    share = np.divide(gpus, up, out=np.zeros_like(gpus), where=up > 0)
    return pa.table({"time": times, "gpus": gpus, "utilization": share})


def queue(outcome: Flown) -> pa.Table:
    """Return what waits over time: columns ``time`` (s), ``jobs``, ``gpus`` (asked for by them).

    A preempted job waits again until its next stay on GPUs.
    """
    who, times, sign = queue_changes(outcome)
    gpus = np.round(outcome.num_gpus[who] * 1e6)
    time, jobs, waiting = steps(times, sign, sign * gpus)
    return pa.table({"time": time, "jobs": jobs, "gpus": waiting / 1e6})


def queue_changes(outcome: Flown) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each change of the queue: the job's row, when (s), and +1 or -1; shapes (m,)."""
    parts = [*queue_parts(outcome)]
    return (
        np.concatenate([who for who, _, _ in parts]),
        np.concatenate([when for _, when, _ in parts]),
        np.concatenate([np.full(len(who), sign) for who, _, sign in parts]),
    )


def queue_parts(outcome: Flown) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield the changes of the queue, some at a time: the jobs' rows, when (s), and +1 or -1."""
    flight = outcome.flight
    # Waiting = submitted and not on GPUs; a stay's end counts as waiting again unless it is final.
    for job, when, sign in (
        (None, np.where(outcome.submitted, outcome.submit_time, np.nan), 1.0),
        (flight.segment_job, flight.segment_start, -1.0),
        (flight.segment_job, flight.segment_end, 1.0),
        (None, flight.end, -1.0),
    ):
        for first in range(0, max(len(when), 1), _MOST_CHANGES):
            part = slice(first, first + _MOST_CHANGES)
            known = np.flatnonzero(~np.isnan(when[part]))
            yield known + first if job is None else job[part][known], when[part][known], sign


def resample(
    time: np.ndarray, values: np.ndarray, *, start: float, stop: float, bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return exact averages of a step function over equal bins.

    Args:
        time: Float array of shape (k,), ascending, s.
        values: Float array of shape (k,): value from ``time[i]`` to ``time[i + 1]``; 0 before.
        start: left end of the first bin, s.
        stop: right end of the last bin, s.
        bins: number of bins.

    Returns:
        Left edges of the bins and the averages, both of shape (bins,); empty if the span is empty.
    """
    if stop <= start or bins < 1 or len(time) == 0:
        return np.empty(0), np.empty(0)
    edges = np.linspace(start, stop, bins + 1)
    knots = np.append(time, max(stop, time[-1]))
    area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * values)])
    # The integral is piecewise linear between knots, so interpolating it is exact.
    integral = np.interp(edges, knots, area)
    return edges[:-1], np.diff(integral) / np.diff(edges)
