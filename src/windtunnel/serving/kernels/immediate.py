"""The immediate simulator: every request is handled completely at its arrival.

A group's state is one clock a stage. Requests of a group finish in the order in which they were
accepted, so those in flight are a linked list with its head at the oldest.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.serving.kernels.draws import Draws
from windtunnel.serving.kernels.stage_clocks import Clocks

#: Codes of the dispatch rules.
LEAST_WORK = cython.declare(cython.int, 0)
SHORTEST_QUEUE = cython.declare(cython.int, 1)
ROUND_ROBIN = cython.declare(cython.int, 2)
RANDOM = cython.declare(cython.int, 3)
TWO_CHOICES = cython.declare(cython.int, 4)
EARLIEST_FINISH = cython.declare(cython.int, 5)


def serve_at_once(
    arrival: cython.const[cython.double][::1],
    model: cython.const[cython.longlong][::1],
    slo: cython.const[cython.double][::1],
    host_start: cython.const[cython.longlong][::1],
    hosts: cython.const[cython.longlong][::1],
    pair_first: cython.const[cython.longlong][::1],
    clock_start: cython.const[cython.longlong][::1],
    stage_time: numpy.ndarray,
    fixed: cython.double,
    free: numpy.ndarray,
    dispatch: cython.int,
    seed: cython.ulonglong,
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Serve n requests.

    Args:
        arrival, model, slo: (n,).
        host_start: (models + 1,), a model's hosts are hosts[host_start[m] .. host_start[m + 1]).
        hosts: (pairs,), groups, ascending within a model.
        pair_first: (pairs,), first of the pair's stage times.
        clock_start: (groups + 1,), first of a group's clocks.
        stage_time: times of all pairs' stages, s.
        fixed: added to every finish, s.
        free: when each stage of all groups is free, changed in place, s.
        dispatch: a dispatch rule's code.
        seed: of the random rules.

    Returns:
        group (n,): the group chosen, -1 where none hosts the model; start, finish (n,): NaN where
        rejected.
    """
    count: cython.longlong = len(arrival)
    groups: cython.longlong = len(clock_start) - 1
    chosen = numpy.full(count, -1, dtype=numpy.int64)
    started = numpy.full(count, numpy.nan)
    finished = numpy.full(count, numpy.nan)
    group: cython.longlong[::1] = chosen
    start: cython.double[::1] = started
    finish: cython.double[::1] = finished
    counts_flight: cython.bint = dispatch == SHORTEST_QUEUE
    after: cython.longlong[::1] = numpy.empty(count if counts_flight else 0, dtype=numpy.int64)
    oldest: cython.longlong[::1] = numpy.full(groups, -1, dtype=numpy.int64)
    newest: cython.longlong[::1] = numpy.full(groups, -1, dtype=numpy.int64)
    in_flight: cython.longlong[::1] = numpy.zeros(groups, dtype=numpy.int64)
    turn: cython.longlong[::1] = numpy.zeros(len(host_start) - 1, dtype=numpy.int64)
    clocks: Clocks = Clocks(free, stage_time)
    draws: Draws = Draws(seed)
    never: cython.double = numpy.inf
    i: cython.longlong
    m: cython.longlong
    g: cython.longlong
    pair: cython.longlong
    best: cython.longlong
    fewest: cython.longlong
    choice: cython.longlong
    other: cython.longlong
    low: cython.longlong
    high: cython.longlong
    clock: cython.longlong
    stages: cython.longlong
    now: cython.double
    least: cython.double
    last: cython.double
    done: cython.double
    mine: cython.double
    its: cython.double
    with cython.nogil:
        for i in range(count):
            now = arrival[i]
            m = model[i]
            low = host_start[m]
            high = host_start[m + 1]
            if low == high:
                continue
            best = low
            if dispatch == LEAST_WORK:
                least = never
                for pair in range(low, high):
                    last = clocks.free[clock_start[hosts[pair] + 1] - 1]
                    if last < least:
                        least = last
                        best = pair
            elif dispatch == SHORTEST_QUEUE:
                fewest = count + 1
                for pair in range(low, high):
                    g = hosts[pair]
                    while oldest[g] >= 0 and finish[oldest[g]] <= now:
                        oldest[g] = after[oldest[g]]
                        in_flight[g] -= 1
                    if in_flight[g] < fewest:
                        fewest = in_flight[g]
                        best = pair
            elif dispatch == ROUND_ROBIN:
                best = low + turn[m]
                turn[m] = (turn[m] + 1) % (high - low)
            elif dispatch == EARLIEST_FINISH:
                least = never
                for pair in range(low, high):
                    clock = clock_start[hosts[pair]]
                    stages = clock_start[hosts[pair] + 1] - clock
                    done = clocks.passed(now, clock, pair_first[pair], stages)
                    if done < least:
                        least = done
                        best = pair
            else:
                choice = draws.below(high - low)
                best = low + choice
                if dispatch == TWO_CHOICES and high - low > 1:
                    other = draws.below(high - low - 1)
                    if other >= choice:
                        other += 1
                    mine = clocks.free[clock_start[hosts[best] + 1] - 1]
                    its = clocks.free[clock_start[hosts[low + other] + 1] - 1]
                    if its < mine or (its == mine and other < choice):
                        best = low + other
            g = hosts[best]
            group[i] = g
            clock = clock_start[g]
            stages = clock_start[g + 1] - clock
            done = clocks.passed(now, clock, pair_first[best], stages)
            if done + fixed - now > slo[i]:
                continue
            start[i] = clocks.free[clock] if clocks.free[clock] > now else now
            finish[i] = clocks.pass_on(now, clock, pair_first[best], stages) + fixed
            if counts_flight:
                after[i] = -1
                if oldest[g] < 0:
                    oldest[g] = i
                else:
                    after[newest[g]] = i
                newest[g] = i
                in_flight[g] += 1
    return chosen, started, finished
