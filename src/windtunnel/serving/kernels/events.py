"""The event-driven simulator: controller, group managers and stages that work through queues."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.event_queue import EventQueue
from windtunnel.serving.kernels.requests import Hosts, Requests
from windtunnel.serving.kernels.stage_clocks import Clocks

#: What a request is ready for: the group's manager, then each stage, then the answer.
AT_MANAGER = cython.declare(cython.longlong, -1)


@cython.final
@cython.cclass
class EventDriven:
    """A simulation.

    Args:
        requests: what comes.
        hosts: who serves it.
        pair_first: first of each pair's stage times, (pairs,).
        stage_time: times of all pairs' stages, s.
        to_manager, to_engine: delays of each request, (n,), s.
        margin: what the manager adds to a foreseen finish, s.
    """

    requests: Requests
    hosts: Hosts
    pair_first: cython.const[cython.longlong][::1]
    to_manager: cython.const[cython.double][::1]
    to_engine: cython.const[cython.double][::1]
    margin: cython.double
    #: The clocks that managers keep, and those of the stages.
    foreseen: Clocks
    actual: Clocks
    in_flight: cython.longlong[::1]
    pair_of: cython.longlong[::1]
    stage: cython.longlong[::1]
    #: A request has one event at most, so that its index is the event's.
    events: EventQueue
    num_events: cython.longlong

    def __init__(
        self,
        requests: Requests,
        hosts: Hosts,
        pair_first: numpy.ndarray,
        stage_time: numpy.ndarray,
        to_manager: numpy.ndarray,
        to_engine: numpy.ndarray,
        margin: cython.double,
    ) -> None:
        self.requests, self.hosts, self.pair_first = requests, hosts, pair_first
        self.to_manager, self.to_engine, self.margin = to_manager, to_engine, margin
        clocks = hosts.clock[hosts.groups]
        self.foreseen = Clocks(numpy.zeros(clocks), stage_time)
        self.actual = Clocks(numpy.zeros(clocks), stage_time)
        self.in_flight = numpy.zeros(hosts.groups, dtype=numpy.int64)
        self.pair_of = numpy.empty(requests.count, dtype=numpy.int64)
        self.stage = numpy.full(requests.count, AT_MANAGER, dtype=numpy.int64)
        self.events = EventQueue(requests.count)
        self.num_events = 0

    @compiled
    def run(
        self,
        at_controller: cython.const[cython.double][::1],
        order_at: cython.const[cython.longlong][::1],
    ) -> cython.void:
        """Serve all requests.

        Args:
            at_controller: when each reaches the controller, (n,), s.
            order_at: requests in that order, (n,).
        """
        arrived: cython.longlong = 0
        while arrived < self.requests.count or self.events.size > 0:
            if self.events.size == 0 or (
                arrived < self.requests.count
                and at_controller[order_at[arrived]] < self.events.end[self.events.queue[0]]
            ):
                self.dispatch(order_at[arrived], at_controller[order_at[arrived]])
                arrived += 1
            else:
                self.go_on(self.events.queue[0])

    @compiled
    def dispatch(self, i: cython.longlong, now: cython.double) -> cython.void:
        """Send a request to the group with the fewest in flight; ties go to the lowest."""
        low: cython.longlong = self.hosts.start[self.requests.model[i]]
        high: cython.longlong = self.hosts.start[self.requests.model[i] + 1]
        best: cython.longlong = low
        if low == high:
            return
        for pair in range(low + 1, high):
            if self.in_flight[self.hosts.group[pair]] < self.in_flight[self.hosts.group[best]]:
                best = pair
        self.pair_of[i] = best
        self.requests.group[i] = self.hosts.group[best]
        self.in_flight[self.hosts.group[best]] += 1
        self.number(i)
        self.events.push(i, 0.0, now + self.to_manager[i])

    @compiled
    def number(self, i: cython.longlong) -> cython.void:
        """Give a request's next event its number: ties go by these."""
        self.events.order[i] = self.num_events
        self.num_events += 1

    @compiled
    def go_on(self, i: cython.longlong) -> cython.void:
        """Let a request whose event is next go on."""
        now: cython.double = self.events.end[i]
        due: cython.double
        group: cython.longlong = self.requests.group[i]
        clock: cython.longlong = self.hosts.clock[group]
        stages: cython.longlong = self.hosts.clock[group + 1] - clock
        first: cython.longlong = self.pair_first[self.pair_of[i]]
        stage: cython.longlong = self.stage[i]
        if stage == AT_MANAGER:
            due = self.foreseen.passed(now, clock, first, stages)
            if due + self.margin - self.requests.arrival[i] > self.requests.slo[i]:
                self.leave(i)
                return
            self.foreseen.pass_on(now, clock, first, stages)
            due = now + self.to_engine[i]
        elif stage < stages:
            if stage == 0:
                self.requests.start[i] = max(now, self.actual.free[clock])
            due = self.actual.pass_on(now, clock + stage, first + stage, 1)
        else:
            self.requests.finish[i] = now
            self.leave(i)
            return
        self.stage[i] = stage + 1
        self.number(i)
        self.events.put_off(i, due)

    @compiled
    def leave(self, i: cython.longlong) -> cython.void:
        """Let a request be over: served, or refused."""
        self.in_flight[self.requests.group[i]] -= 1
        self.events.remove(i)


def serve_events(
    arrival: numpy.ndarray,
    model: numpy.ndarray,
    slo: numpy.ndarray,
    at_controller: cython.const[cython.double][::1],
    order_at: cython.const[cython.longlong][::1],
    to_manager: numpy.ndarray,
    to_engine: numpy.ndarray,
    host_start: numpy.ndarray,
    hosts: numpy.ndarray,
    pair_first: numpy.ndarray,
    clock_start: numpy.ndarray,
    stage_time: numpy.ndarray,
    margin: float,
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Serve n requests; arguments in `windtunnel.serving.kernels.immediate.serve_at_once`.

    The others are those of `EventDriven` and its `run`.

    Returns:
        group, start, finish as there; a served request may finish late.
    """
    requests: Requests = Requests(arrival, model, slo)
    simulation: EventDriven = EventDriven(
        requests, Hosts(host_start, hosts, clock_start), pair_first, stage_time, to_manager,
        to_engine, margin,
    )  # fmt: skip
    with cython.nogil:
        simulation.run(at_controller, order_at)
    return requests.answers()
