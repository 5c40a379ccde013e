"""The event-driven simulator: controller, group managers and stages that work through queues."""

from __future__ import annotations

import cython
import numpy

from windtunnel.serving.kernels.event_queue import EventQueue
from windtunnel.serving.kernels.stage_clocks import Clocks


def serve_events(
    arrival: cython.const[cython.double][::1],
    model: cython.const[cython.longlong][::1],
    slo: cython.const[cython.double][::1],
    at_controller: cython.const[cython.double][::1],
    order_at: cython.const[cython.longlong][::1],
    to_manager: cython.const[cython.double][::1],
    to_engine: cython.const[cython.double][::1],
    host_start: cython.const[cython.longlong][::1],
    hosts: cython.const[cython.longlong][::1],
    pair_first: cython.const[cython.longlong][::1],
    clock_start: cython.const[cython.longlong][::1],
    stage_time: numpy.ndarray,
    margin: cython.double,
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Serve n requests; more arguments in `windtunnel.serving.kernels.immediate.serve_at_once`.

    Args:
        at_controller: when each request reaches the controller, (n,), s.
        order_at: requests in that order, (n,).
        to_manager, to_engine: delays of each request, (n,), s.
        margin: what the manager adds to a foreseen finish, s.

    Returns:
        group, start, finish as there; a served request may finish late.
    """
    count: cython.longlong = len(arrival)
    groups: cython.longlong = len(clock_start) - 1
    chosen = numpy.full(count, -1, dtype=numpy.int64)
    started = numpy.full(count, numpy.nan)
    finished = numpy.full(count, numpy.nan)
    group: cython.longlong[::1] = chosen
    start: cython.double[::1] = started
    finish: cython.double[::1] = finished
    in_flight: cython.longlong[::1] = numpy.zeros(groups, dtype=numpy.int64)
    foreseen: Clocks = Clocks(numpy.zeros(clock_start[groups]), stage_time)
    actual: Clocks = Clocks(numpy.zeros(clock_start[groups]), stage_time)
    pair_of: cython.longlong[::1] = numpy.empty(count, dtype=numpy.int64)
    # What a request is ready for: -1 the group's manager, then each stage, then the answer.
    stage: cython.longlong[::1] = numpy.full(count, -1, dtype=numpy.int64)
    # A request has one event at most, so that its index is the event's.
    events: EventQueue = EventQueue(count)
    num_events: cython.longlong = 0
    arrived: cython.longlong = 0
    i: cython.longlong
    k: cython.longlong
    m: cython.longlong
    pair: cython.longlong
    best: cython.longlong
    g: cython.longlong
    low: cython.longlong
    high: cython.longlong
    clock: cython.longlong
    stages: cython.longlong
    first: cython.longlong
    now: cython.double
    due: cython.double
    with cython.nogil:
        while arrived < count or events.size > 0:
            if events.size == 0 or (
                arrived < count and at_controller[order_at[arrived]] < events.end[events.queue[0]]
            ):
                i = order_at[arrived]
                arrived += 1
                m = model[i]
                low = host_start[m]
                high = host_start[m + 1]
                if low == high:
                    continue
                best = low
                for pair in range(low + 1, high):
                    if in_flight[hosts[pair]] < in_flight[hosts[best]]:
                        best = pair
                pair_of[i] = best
                group[i] = hosts[best]
                in_flight[hosts[best]] += 1
                events.order[i] = num_events
                num_events += 1
                events.push(i, 0.0, at_controller[i] + to_manager[i])
                continue
            i = events.queue[0]
            now = events.end[i]
            g = group[i]
            clock = clock_start[g]
            stages = clock_start[g + 1] - clock
            first = pair_first[pair_of[i]]
            k = stage[i]
            if k < 0:
                due = foreseen.passed(now, clock, first, stages)
                if due + margin - arrival[i] > slo[i]:
                    in_flight[g] -= 1
                    events.remove(i)
                    continue
                foreseen.pass_on(now, clock, first, stages)
                due = now + to_engine[i]
            elif k < stages:
                if k == 0:
                    start[i] = max(now, actual.free[clock])
                due = actual.pass_on(now, clock + k, first + k, 1)
            else:
                finish[i] = now
                in_flight[g] -= 1
                events.remove(i)
                continue
            stage[i] = k + 1
            events.order[i] = num_events
            num_events += 1
            events.put_off(i, due)
    return chosen, started, finished
