"""Replay of a recorded schedule: when jobs would be done if rounds lasted as a clock says.

A testbed's rounds are longer than planned when jobs are stopped: they save their state while the
others wait. Zheng et al., NSDI'23, section 8, ran six policies on 32 GPUs and recorded who ran in
each round, not when rounds began; two numbers a run, fitted to its completion times, say when.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Seconds that a round lasts longer for each job that is stopped: one number for all runs.
EACH_STOP = 0.5
#: Seconds that a round with a stop may take longer, which are tried.
_TRIED = np.linspace(0.0, 40.0, 401)


@dataclass(frozen=True)
class RoundClock:
    """How long rounds last.

    Attributes:
        length: s a round in which nobody is stopped.
        stop_time: s that a round lasts longer where anybody is.
        each_stop: s that it lasts longer for each of them, besides.
        delay: s before the first round.
        last_part: part of its last round after which a job is done, in the mean.
    """

    length: float = 120.0
    stop_time: float = 0.0
    each_stop: float = EACH_STOP
    delay: float = 0.0
    last_part: float = 0.5


class Replay:
    """A schedule to replay.

    Args:
        schedule: GPUs of each job, round by round.

    Attributes:
        last: each job's last round, by job.
        stops: jobs that go on later and lost their GPUs after a round, shape (rounds,).
    """

    def __init__(self, schedule: Sequence[Mapping[int, tuple[int, ...]]]) -> None:
        self.last = {job: at for at, placed in enumerate(schedule) for job in placed}
        self.stops = np.zeros(len(schedule), int)
        for at, (placed, following) in enumerate(pairwise(schedule)):
            self.stops[at] = sum(
                self.last[job] > at and following.get(job) != gpus for job, gpus in placed.items()
            )

    def ends(self, clock: RoundClock) -> dict[int, float]:
        """Return when each job is done, s."""
        lengths = clock.length + clock.stop_time * (self.stops > 0)
        lengths = lengths + clock.each_stop * self.stops
        starts = clock.delay + np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
        return {
            job: float(starts[at] + clock.last_part * lengths[at]) for job, at in self.last.items()
        }

    def fitted(
        self, submit: Mapping[int, float], jct: Mapping[int, float], each_stop: float = EACH_STOP
    ) -> RoundClock:
        """Return the clock with the least mean relative error of completion times.

        Two numbers are fitted to the run itself, so the error says how well rounds of such a
        clock *describe* it, not how well they predict another.

        Args:
            submit: s, by job.
            jct: completion times as recorded, s, by job.
            each_stop: s for each stopped job, which is not fitted.
        """
        jobs = sorted(job for job in jct if job in self.last)
        real = np.array([submit[job] + jct[job] for job in jobs])
        weight = 1 / np.array([jct[job] for job in jobs])
        best, least = RoundClock(), np.inf
        for stop_time in _TRIED.tolist():
            tried = RoundClock(stop_time=stop_time, each_stop=each_stop)
            ends = self.ends(tried)
            missing = real - np.array([ends[job] for job in jobs])
            delay = _weighted_median(missing, weight)
            error = float((np.abs(missing - delay) * weight).mean())
            if error < least:
                best, least = replace(tried, delay=delay), error
        return best

    def errors(
        self, clock: RoundClock, submit: Mapping[int, float], jct: Mapping[int, float]
    ) -> np.ndarray:
        """Return the relative errors of completion times, shape (jobs,)."""
        ends = self.ends(clock)
        jobs = sorted(job for job in jct if job in ends)
        return np.array([abs(ends[job] - submit[job] - jct[job]) / jct[job] for job in jobs])


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
