"""`Requests` and `Hosts`: what the serving simulators are given, and what they answer."""

from __future__ import annotations

import cython
import numpy


@cython.final
@cython.cclass
class Requests:
    """Requests in order of arrival.

    Args:
        arrival: when each comes, (n,), s.
        model: which model it asks for, (n,).
        slo: in what time it has to be served, (n,), s.

    Attributes:
        count: n.
        group: the group chosen for each, -1 where none hosts its model, (n,).
        start, finish: NaN where it is rejected, (n,), s.
    """

    count: cython.longlong
    arrival: cython.const[cython.double][::1]
    model: cython.const[cython.longlong][::1]
    slo: cython.const[cython.double][::1]
    group: cython.longlong[::1]
    start: cython.double[::1]
    finish: cython.double[::1]

    def __init__(self, arrival: numpy.ndarray, model: numpy.ndarray, slo: numpy.ndarray) -> None:
        self.count = len(arrival)
        self.arrival, self.model, self.slo = arrival, model, slo
        self.group = numpy.full(self.count, -1, dtype=numpy.int64)
        self.start = numpy.full(self.count, numpy.nan)
        self.finish = numpy.full(self.count, numpy.nan)

    def answers(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Return ``group``, ``start`` and ``finish``."""
        return numpy.asarray(self.group), numpy.asarray(self.start), numpy.asarray(self.finish)


@cython.final
@cython.cclass
class Hosts:
    """Which groups host which model. A *pair* is a model and a group that hosts it.

    Args:
        start: a model's pairs are start[model] .. start[model + 1], (models + 1,).
        group: of each pair, ascending within a model, (pairs,).
        clock: first of a group's clocks, (groups + 1,).

    Attributes:
        models, pairs, groups: how many.
    """

    models: cython.longlong
    pairs: cython.longlong
    groups: cython.longlong
    start: cython.const[cython.longlong][::1]
    group: cython.const[cython.longlong][::1]
    clock: cython.const[cython.longlong][::1]

    def __init__(self, start: numpy.ndarray, group: numpy.ndarray, clock: numpy.ndarray) -> None:
        self.start, self.group, self.clock = start, group, clock
        self.models = len(start) - 1
        self.pairs = len(group)
        self.groups = len(clock) - 1
