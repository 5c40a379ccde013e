"""The immediate simulator: every request is handled completely at its arrival.

A group's state is one clock a stage. Requests of a group finish in the order in which they were
accepted, so those in flight are a linked list with its head at the oldest.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.serving.kernels.draws import draw_below

#: Codes of the dispatch rules.
LEAST_WORK, SHORTEST_QUEUE, ROUND_ROBIN, RANDOM, TWO_CHOICES, EARLIEST_FINISH = range(6)


@njit(cache=True, nogil=True, inline="always")
def passed(arrival, clocks, clock, stage_time, first, count):
    """Return when a request leaves the last stage; clocks stay as they are."""
    now = arrival
    for k in range(count):
        free = clocks[clock + k]
        if free > now:
            now = free
        now += stage_time[first + k]
    return now


@njit(cache=True, nogil=True)
def serve(
    arrival, model, slo, host_start, hosts, pair_first, clock_start, stage_time, fixed, clocks,
    dispatch, seed,
):  # fmt: skip
    """Serve n requests.

    Args:
        arrival, model, slo: (n,).
        host_start: (models + 1,), a model's hosts are hosts[host_start[m] .. host_start[m + 1]).
        hosts: (pairs,), groups, ascending within a model.
        pair_first: (pairs,), first of the pair's stage times.
        clock_start: (groups + 1,), first of a group's clocks.
        stage_time: times of all pairs' stages, s.
        fixed: added to every finish, s.
        clocks: (stages of all groups,), changed in place.
        dispatch: a dispatch rule's code.
        seed: of the random rules.

    Returns:
        group (n,): the group chosen, -1 where none hosts the model; start, finish (n,): NaN where
        rejected.
    """
    count = len(arrival)
    group = np.full(count, -1, dtype=np.int64)
    start = np.full(count, np.nan)
    finish = np.full(count, np.nan)
    groups = len(clock_start) - 1
    counts_flight = dispatch == SHORTEST_QUEUE
    after = np.empty(count if counts_flight else 0, dtype=np.int64)
    oldest = np.full(groups, -1, dtype=np.int64)
    newest = np.full(groups, -1, dtype=np.int64)
    in_flight = np.zeros(groups, dtype=np.int64)
    turn = np.zeros(len(host_start) - 1, dtype=np.int64)
    state = np.uint64(seed)
    for i in range(count):
        now = arrival[i]
        m = model[i]
        low = host_start[m]
        high = host_start[m + 1]
        if low == high:
            continue
        best = low
        if dispatch == LEAST_WORK:
            least = np.inf
            for pair in range(low, high):
                last = clocks[clock_start[hosts[pair] + 1] - 1]
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
            least = np.inf
            for pair in range(low, high):
                clock = clock_start[hosts[pair]]
                stages = clock_start[hosts[pair] + 1] - clock
                done = passed(now, clocks, clock, stage_time, pair_first[pair], stages)
                if done < least:
                    least = done
                    best = pair
        else:
            state, choice = draw_below(state, high - low)
            best = low + choice
            if dispatch == TWO_CHOICES and high - low > 1:
                state, other = draw_below(state, high - low - 1)
                if other >= choice:
                    other += 1
                mine = clocks[clock_start[hosts[best] + 1] - 1]
                its = clocks[clock_start[hosts[low + other] + 1] - 1]
                if its < mine or (its == mine and other < choice):
                    best = low + other
        g = hosts[best]
        group[i] = g
        clock = clock_start[g]
        stages = clock_start[g + 1] - clock
        first = pair_first[best]
        done = passed(now, clocks, clock, stage_time, first, stages)
        if done + fixed - now > slo[i]:
            continue
        begin = clocks[clock]
        start[i] = max(now, begin)
        finish[i] = done + fixed
        t = now
        for k in range(stages):
            free = clocks[clock + k]
            if free > t:
                t = free
            t += stage_time[first + k]
            clocks[clock + k] = t
        if counts_flight:
            after[i] = -1
            if oldest[g] < 0:
                oldest[g] = i
            else:
                after[newest[g]] = i
            newest[g] = i
            in_flight[g] += 1
    return group, start, finish
