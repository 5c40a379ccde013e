"""The immediate simulator: every request is handled completely at its arrival.

A group's state is one clock a stage. Requests of a group finish in the order in which they were
accepted, so those in flight are a linked list with its head at the oldest.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.draws import Draws
from windtunnel.serving.kernels.requests import Hosts, Requests
from windtunnel.serving.kernels.stage_clocks import Clocks

#: Codes of the dispatch rules.
LEAST_WORK = cython.declare(cython.int, 0)
SHORTEST_QUEUE = cython.declare(cython.int, 1)
ROUND_ROBIN = cython.declare(cython.int, 2)
RANDOM = cython.declare(cython.int, 3)
TWO_CHOICES = cython.declare(cython.int, 4)
EARLIEST_FINISH = cython.declare(cython.int, 5)


@cython.final
@cython.cclass
class Immediate:
    """A simulation.

    Args:
        requests: what comes.
        hosts: who serves it.
        clocks: of the groups' stages.
        pair_first: first of each pair's stage times, (pairs,).
        fixed: added to every finish, s.
        dispatch: a dispatch rule's code.
        seed: of the random rules.
    """

    requests: Requests
    hosts: Hosts
    clocks: Clocks
    draws: Draws
    pair_first: cython.const[cython.longlong][::1]
    fixed: cython.double
    dispatch: cython.int
    #: Of the shortest queue: who is in flight in each group, and of round robin: whose turn it is.
    after: cython.longlong[::1]
    oldest: cython.longlong[::1]
    newest: cython.longlong[::1]
    in_flight: cython.longlong[::1]
    turn: cython.longlong[::1]

    def __init__(
        self,
        requests: Requests,
        hosts: Hosts,
        clocks: Clocks,
        pair_first: numpy.ndarray,
        fixed: cython.double,
        dispatch: cython.int,
        seed: cython.ulonglong,
    ) -> None:
        self.requests, self.hosts, self.clocks = requests, hosts, clocks
        self.pair_first, self.fixed, self.dispatch = pair_first, fixed, dispatch
        self.draws = Draws(seed)
        count = requests.count if dispatch == SHORTEST_QUEUE else 0
        self.after = numpy.full(count, -1, dtype=numpy.int64)
        self.oldest = numpy.full(hosts.groups, -1, dtype=numpy.int64)
        self.newest = numpy.full(hosts.groups, -1, dtype=numpy.int64)
        self.in_flight = numpy.zeros(hosts.groups, dtype=numpy.int64)
        self.turn = numpy.zeros(hosts.models, dtype=numpy.int64)

    @compiled
    def run(self) -> cython.void:
        """Serve all requests."""
        i: cython.longlong
        for i in range(self.requests.count):
            model = self.requests.model[i]
            if self.hosts.start[model] < self.hosts.start[model + 1]:
                self.serve(i, self.pair_for(model, self.requests.arrival[i]))

    @compiled
    def serve(self, i: cython.longlong, pair: cython.longlong) -> cython.void:
        """Let a group serve a request, if it can in time."""
        now: cython.double = self.requests.arrival[i]
        group: cython.longlong = self.hosts.group[pair]
        clock: cython.longlong = self.hosts.clock[group]
        stages: cython.longlong = self.hosts.clock[group + 1] - clock
        first: cython.longlong = self.pair_first[pair]
        self.requests.group[i] = group
        done: cython.double = self.clocks.passed(now, clock, first, stages)
        if done + self.fixed - now > self.requests.slo[i]:
            return
        free: cython.double = self.clocks.free[clock]
        self.requests.start[i] = free if free > now else now
        done = self.clocks.pass_on(now, clock, first, stages)
        self.requests.finish[i] = done + self.fixed
        if self.dispatch == SHORTEST_QUEUE:
            self.count_in(i, group)

    # Who is to serve it.

    @compiled
    def pair_for(self, model: cython.longlong, now: cython.double) -> cython.longlong:
        """Return the pair that a request is dispatched to; ties go to the lowest group."""
        low: cython.longlong = self.hosts.start[model]
        high: cython.longlong = self.hosts.start[model + 1]
        if self.dispatch == LEAST_WORK:
            return self.least_work(low, high)
        if self.dispatch == SHORTEST_QUEUE:
            return self.shortest_queue(low, high, now)
        if self.dispatch == ROUND_ROBIN:
            turn = self.turn[model]
            self.turn[model] = (turn + 1) % (high - low)
            return low + turn
        if self.dispatch == EARLIEST_FINISH:
            return self.earliest_finish(low, high, now)
        return self.random(low, high)

    @compiled
    def work_until(self, pair: cython.longlong) -> cython.double:
        """Return until when a pair's group has work, s."""
        return self.clocks.free[self.hosts.clock[self.hosts.group[pair] + 1] - 1]

    @compiled
    def least_work(self, low: cython.longlong, high: cython.longlong) -> cython.longlong:
        """Return the pair whose group has work for the shortest time."""
        best: cython.longlong = low
        least: cython.double = self.work_until(low)
        for pair in range(low + 1, high):
            last = self.work_until(pair)
            if last < least:
                least = last
                best = pair
        return best

    @compiled
    def shortest_queue(
        self, low: cython.longlong, high: cython.longlong, now: cython.double
    ) -> cython.longlong:
        """Return the pair whose group has the fewest requests in flight."""
        best: cython.longlong = low
        fewest: cython.longlong = self.requests.count + 1
        for pair in range(low, high):
            group = self.hosts.group[pair]
            self.count_out(group, now)
            if self.in_flight[group] < fewest:
                fewest = self.in_flight[group]
                best = pair
        return best

    @compiled
    def earliest_finish(
        self, low: cython.longlong, high: cython.longlong, now: cython.double
    ) -> cython.longlong:
        """Return the pair whose group would be done with the request first."""
        best: cython.longlong = low
        least: cython.double = self.finish_of(low, now)
        for pair in range(low + 1, high):
            finish = self.finish_of(pair, now)
            if finish < least:
                least = finish
                best = pair
        return best

    @compiled
    def finish_of(self, pair: cython.longlong, now: cython.double) -> cython.double:
        """Return when a pair's group would be done with a request that comes now, s."""
        clock: cython.longlong = self.hosts.clock[self.hosts.group[pair]]
        stages: cython.longlong = self.hosts.clock[self.hosts.group[pair] + 1] - clock
        return self.clocks.passed(now, clock, self.pair_first[pair], stages)

    @compiled
    def random(self, low: cython.longlong, high: cython.longlong) -> cython.longlong:
        """Return a random pair, or of two that whose group has less work."""
        choice: cython.longlong = self.draws.below(high - low)
        if self.dispatch != TWO_CHOICES or high - low < 2:
            return low + choice
        other: cython.longlong = self.draws.below(high - low - 1)
        if other >= choice:
            other += 1
        mine: cython.double = self.work_until(low + choice)
        its: cython.double = self.work_until(low + other)
        if its < mine or (its == mine and other < choice):
            return low + other
        return low + choice

    # Who is in flight.

    @compiled
    def count_in(self, i: cython.longlong, group: cython.longlong) -> cython.void:
        """Note that a request is in flight."""
        if self.oldest[group] < 0:
            self.oldest[group] = i
        else:
            self.after[self.newest[group]] = i
        self.newest[group] = i
        self.in_flight[group] += 1

    @compiled
    def count_out(self, group: cython.longlong, now: cython.double) -> cython.void:
        """Note who of a group is not any more."""
        i: cython.longlong = self.oldest[group]
        while i >= 0 and self.requests.finish[i] <= now:
            i = self.after[i]
            self.in_flight[group] -= 1
        self.oldest[group] = i


def serve_at_once(
    arrival: numpy.ndarray,
    model: numpy.ndarray,
    slo: numpy.ndarray,
    host_start: numpy.ndarray,
    hosts: numpy.ndarray,
    pair_first: numpy.ndarray,
    clock_start: numpy.ndarray,
    stage_time: numpy.ndarray,
    fixed: float,
    free: numpy.ndarray,
    dispatch: int,
    seed: int,
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Serve n requests.

    Args:
        arrival, model, slo: see `Requests`.
        host_start, hosts, clock_start: see `Hosts`.
        pair_first: (pairs,), first of the pair's stage times.
        stage_time: times of all pairs' stages, s.
        fixed: added to every finish, s.
        free: when each stage of all groups is free, changed in place, s.
        dispatch: a dispatch rule's code.
        seed: of the random rules.

    Returns:
        group (n,): the group chosen, -1 where none hosts the model; start, finish (n,): NaN where
        rejected.
    """
    requests: Requests = Requests(arrival, model, slo)
    simulation: Immediate = Immediate(
        requests, Hosts(host_start, hosts, clock_start), Clocks(free, stage_time), pair_first,
        fixed, dispatch, seed,
    )  # fmt: skip
    with cython.nogil:
        simulation.run()
    return requests.answers()
