"""Pipelines of stages that work first come, first served."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class Clocks:
    """Pipelines: when each stage of each group is free, and how long a request holds it.

    Attributes:
        free: (stages of all groups,), s.
        time: times of all pairs' stages, s.
    """

    free: cython.double[::1]
    time: cython.const[cython.double][::1]

    def __init__(self, free: numpy.ndarray, time: numpy.ndarray) -> None:
        self.free = free
        self.time = time

    @compiled
    def passed(
        self,
        arrival: cython.double,
        clock: cython.longlong,
        first: cython.longlong,
        count: cython.longlong,
    ) -> cython.double:
        """Return when a request leaves the last stage; clocks stay as they are."""
        k: cython.longlong
        now: cython.double = arrival
        for k in range(count):
            if self.free[clock + k] > now:
                now = self.free[clock + k]
            now += self.time[first + k]
        return now

    @compiled
    def pass_on(
        self,
        arrival: cython.double,
        clock: cython.longlong,
        first: cython.longlong,
        count: cython.longlong,
    ) -> cython.double:
        """Let a request through the stages; return when it leaves the last."""
        k: cython.longlong
        now: cython.double = arrival
        for k in range(count):
            if self.free[clock + k] > now:
                now = self.free[clock + k]
            now += self.time[first + k]
            self.free[clock + k] = now
        return now
