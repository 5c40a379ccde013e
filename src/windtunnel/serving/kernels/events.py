"""The event-driven simulator: controller, group managers and stages that work through queues."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Kinds of events: at the group manager, ready for a stage, done. At the controller: never queued.
_MANAGER = cython.declare(cython.int, 0)
_STAGE = cython.declare(cython.int, 1)
_DONE = cython.declare(cython.int, 2)


@cython.final
@cython.cclass
class Events:
    """Events under way, one of a request at most, so that its index is the event's.

    Attributes:
        size: how many.
        time: when a request's event happens, s.
        order: number of the event, which decides between events of one time.
    """

    size: cython.longlong
    sequence: cython.longlong
    heap: cython.longlong[::1]
    time: cython.double[::1]
    order: cython.longlong[::1]

    def __init__(self, count: cython.longlong) -> None:
        self.size = 0
        self.sequence = 0
        self.heap = numpy.empty(count + 1, dtype=numpy.int64)
        self.time = numpy.empty(count)
        self.order = numpy.empty(count, dtype=numpy.int64)

    @compiled
    def before(self, a: cython.longlong, b: cython.longlong) -> cython.bint:
        """Return whether request a's event comes before b's."""
        return self.time[a] < self.time[b] or (
            self.time[a] == self.time[b] and self.order[a] < self.order[b]
        )

    @compiled
    def push(self, request: cython.longlong, time: cython.double) -> cython.void:
        """Add a request's event."""
        self.time[request] = time
        self.order[request] = self.sequence
        self.sequence += 1
        child: cython.longlong = self.size
        self.size += 1
        parent: cython.longlong
        while child > 0:
            parent = (child - 1) // 2
            if not self.before(request, self.heap[parent]):
                break
            self.heap[child] = self.heap[parent]
            child = parent
        self.heap[child] = request

    @compiled
    def pop(self) -> cython.longlong:
        """Take the first event out and return its request."""
        first: cython.longlong = self.heap[0]
        self.size -= 1
        moved: cython.longlong = self.heap[self.size]
        parent: cython.longlong = 0
        child: cython.longlong
        while True:
            child = 2 * parent + 1
            if child >= self.size:
                break
            if child + 1 < self.size and self.before(self.heap[child + 1], self.heap[child]):
                child += 1
            if not self.before(self.heap[child], moved):
                break
            self.heap[parent] = self.heap[child]
            parent = child
        self.heap[parent] = moved
        return first


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
    stage_time: cython.const[cython.double][::1],
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
    foreseen: cython.double[::1] = numpy.zeros(clock_start[groups])
    free: cython.double[::1] = numpy.zeros(clock_start[groups])
    pair_of: cython.longlong[::1] = numpy.empty(count, dtype=numpy.int64)
    kind: cython.int[::1] = numpy.empty(count, dtype=numpy.int32)
    stage: cython.longlong[::1] = numpy.zeros(count, dtype=numpy.int64)
    events: Events = Events(count)
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
    done: cython.double
    begin: cython.double
    end: cython.double
    with cython.nogil:
        while arrived < count or events.size > 0:
            if events.size == 0 or (
                arrived < count and at_controller[order_at[arrived]] < events.time[events.heap[0]]
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
                kind[i] = _MANAGER
                events.push(i, at_controller[i] + to_manager[i])
                continue
            i = events.pop()
            now = events.time[i]
            g = group[i]
            clock = clock_start[g]
            stages = clock_start[g + 1] - clock
            first = pair_first[pair_of[i]]
            if kind[i] == _MANAGER:
                done = now
                for k in range(stages):
                    if foreseen[clock + k] > done:
                        done = foreseen[clock + k]
                    done += stage_time[first + k]
                if done + margin - arrival[i] > slo[i]:
                    in_flight[g] -= 1
                    continue
                done = now
                for k in range(stages):
                    if foreseen[clock + k] > done:
                        done = foreseen[clock + k]
                    done += stage_time[first + k]
                    foreseen[clock + k] = done
                kind[i] = _STAGE
                events.push(i, now + to_engine[i])
            elif kind[i] == _STAGE:
                k = stage[i]
                begin = free[clock + k]
                if now > begin:
                    begin = now
                if k == 0:
                    start[i] = begin
                end = begin + stage_time[first + k]
                free[clock + k] = end
                stage[i] = k + 1
                if k + 1 == stages:
                    kind[i] = _DONE
                events.push(i, end)
            else:
                finish[i] = now
                in_flight[g] -= 1
    return chosen, started, finished
