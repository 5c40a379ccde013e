"""Replay of a recorded schedule: when jobs would be done if rounds lasted as a clock says.

A testbed's rounds are longer than planned when jobs are stopped: they save their state while the
others wait. Zheng et al., NSDI'23, section 8, ran six policies on 32 GPUs and recorded who ran in
each round, not when rounds began; two numbers a run, fitted to its completion times, say when.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from windtunnel.policies.scheduled import Stay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Job = TypeVar("Job", int, str)

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


class Replay(Generic[Job]):
    """A schedule to replay.

    Args:
        schedule: GPUs of each job, round by round.

    Attributes:
        last: each job's last round, by job.
        stops: jobs that go on later and lost their GPUs after a round, shape (rounds,).
    """

    def __init__(self, schedule: Sequence[Mapping[Job, tuple[int, ...]]]) -> None:
        self.schedule: Sequence[Mapping[Job, tuple[int, ...]]] = schedule
        self.last: dict[Job, int] = {
            job: at for at, placed in enumerate(schedule) for job in placed
        }
        self.stops = np.zeros(len(schedule), int)
        for at, (placed, following) in enumerate(pairwise(schedule)):
            self.stops[at] = sum(
                self.last[job] > at and following.get(job) != gpus for job, gpus in placed.items()
            )

    def ends(self, clock: RoundClock) -> dict[Job, float]:
        """Return when each job is done, s."""
        starts = self._starts(clock)
        part = clock.last_part
        return {
            job: float((1 - part) * starts[at] + part * starts[at + 1])
            for job, at in self.last.items()
        }

    def stays(self, clock: RoundClock) -> dict[Job, list[Stay]]:
        """Return when each job was where: rounds one after the other on the same GPUs are one."""
        starts, ends = self._starts(clock).tolist(), self.ends(clock)
        found: dict[Job, list[Stay]] = {}
        for at, placed in enumerate(self.schedule):
            for job, gpus in placed.items():
                own = found.setdefault(job, [])
                end = ends[job] if at == self.last[job] else starts[at + 1]
                if own and own[-1].end == starts[at] and own[-1].gpus == gpus:
                    own[-1] = replace(own[-1], end=end)
                else:
                    own.append(Stay(starts[at], end, gpus))
        return found

    def _starts(self, clock: RoundClock) -> np.ndarray:
        """Return when each round begins, and when the last is over, shape (rounds + 1,)."""
        lengths = clock.length + clock.stop_time * (self.stops > 0)
        lengths = lengths + clock.each_stop * self.stops
        return clock.delay + np.concatenate([[0.0], np.cumsum(lengths)])

    def fitted(
        self, submit: Mapping[Job, float], jct: Mapping[Job, float], clock: RoundClock | None = None
    ) -> RoundClock:
        """Return the clock with the least mean relative error of completion times.

        Two numbers are fitted to the run itself, so the error says how well rounds of such a
        clock *describe* it, not how well they predict another.

        Args:
            submit: s, by job.
            jct: completion times as recorded, s, by job.
            clock: of it all but ``stop_time`` and ``delay`` stays as it is.
        """
        jobs = sorted(job for job in jct if job in self.last)
        real = np.array([submit[job] + jct[job] for job in jobs])
        weight = 1 / np.array([jct[job] for job in jobs])
        best, least = clock or RoundClock(), np.inf
        given = best
        for stop_time in _TRIED.tolist():
            tried = replace(given, stop_time=stop_time, delay=0.0)
            ends = self.ends(tried)
            missing = real - np.array([ends[job] for job in jobs])
            delay = _weighted_median(missing, weight)
            error = float((np.abs(missing - delay) * weight).mean())
            if error < least:
                best, least = replace(tried, delay=delay), error
        return best

    def errors(
        self, clock: RoundClock, submit: Mapping[Job, float], jct: Mapping[Job, float]
    ) -> np.ndarray:
        """Return the relative errors of completion times, shape (jobs,)."""
        ends = self.ends(clock)
        jobs = sorted(job for job in jct if job in ends)
        return np.array([abs(ends[job] - submit[job] - jct[job]) / jct[job] for job in jobs])


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
