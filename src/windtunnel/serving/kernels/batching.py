"""The batching simulator: queues a model, and a batch whenever a group's first stage is idle."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.requests import Hosts, Requests
from windtunnel.serving.kernels.stage_clocks import Clocks


@cython.final
@cython.cclass
class Batching:
    """A simulation. A queue is a pair's: of the requests for its model in its group.

    Args:
        requests: what comes.
        hosts: who serves it.
        sizes: batch sizes, ascending, (sizes,).
        batch_first: first of a pair's stage times at each batch size, -1 where it has none,
            (pairs, sizes); the first size is always there.
        stage_time: times of all pairs' stages, s.
        fixed: added to every finish, s.

    Attributes:
        batch: requests in each request's batch, (n,).
        at: the row of ``sizes`` that was paid for, (n,).
        after, head, tail, length: the queues.
        pair_start, pair_at: a group's pairs are pair_at[pair_start[group] ..
            pair_start[group + 1]), models ascending.
        waiting, running: requests of each group.
        oldest, newest, next_batch: the batches under way in a group, by their first requests; they
            leave in the order in which they began.
    """

    requests: Requests
    hosts: Hosts
    clocks: Clocks
    sizes: cython.const[cython.longlong][::1]
    batch_first: cython.const[cython.longlong][:, ::1]
    fixed: cython.double
    batch: cython.longlong[::1]
    at: cython.longlong[::1]
    after: cython.longlong[::1]
    head: cython.longlong[::1]
    tail: cython.longlong[::1]
    length: cython.longlong[::1]
    pair_start: cython.longlong[::1]
    pair_at: cython.longlong[::1]
    waiting: cython.longlong[::1]
    running: cython.longlong[::1]
    oldest: cython.longlong[::1]
    newest: cython.longlong[::1]
    next_batch: cython.longlong[::1]

    def __init__(
        self,
        requests: Requests,
        hosts: Hosts,
        sizes: numpy.ndarray,
        batch_first: numpy.ndarray,
        stage_time: numpy.ndarray,
        fixed: cython.double,
    ) -> None:
        self.requests, self.hosts = requests, hosts
        self.sizes, self.batch_first, self.fixed = sizes, batch_first, fixed
        self.clocks = Clocks(numpy.full(hosts.clock[hosts.groups], -numpy.inf), stage_time)
        self.batch = numpy.zeros(requests.count, dtype=numpy.int64)
        self.at = numpy.zeros(requests.count, dtype=numpy.int64)
        self.after = numpy.full(requests.count, -1, dtype=numpy.int64)
        self.next_batch = numpy.full(requests.count, -1, dtype=numpy.int64)
        self.head = numpy.full(hosts.pairs, -1, dtype=numpy.int64)
        self.tail = numpy.full(hosts.pairs, -1, dtype=numpy.int64)
        self.length = numpy.zeros(hosts.pairs, dtype=numpy.int64)
        self.waiting = numpy.zeros(hosts.groups, dtype=numpy.int64)
        self.running = numpy.zeros(hosts.groups, dtype=numpy.int64)
        self.oldest = numpy.full(hosts.groups, -1, dtype=numpy.int64)
        self.newest = numpy.full(hosts.groups, -1, dtype=numpy.int64)
        group = numpy.asarray(hosts.group)
        # Pairs are in order of models.
        self.pair_at = numpy.argsort(group, kind="stable")
        self.pair_start = numpy.searchsorted(numpy.sort(group), numpy.arange(hosts.groups + 1))

    @compiled
    def run(self) -> cython.void:
        """Serve all requests."""
        arrived: cython.longlong = 0
        while True:
            idle = self.next_idle()
            if arrived < self.requests.count and (
                idle < 0 or self.requests.arrival[arrived] <= self.idle_at(idle)
            ):
                self.arrive(arrived)
                arrived += 1
            elif idle >= 0:
                self.begin_batch(idle, self.idle_at(idle))
            else:
                return

    @compiled
    def idle_at(self, group: cython.longlong) -> cython.double:
        """Return when a group's first stage is idle, s."""
        return self.clocks.free[self.hosts.clock[group]]

    @compiled
    def next_idle(self) -> cython.longlong:
        """Return the group with somebody waiting whose first stage is idle first, -1 = none."""
        found: cython.longlong = -1
        for group in range(self.hosts.groups):
            if self.waiting[group] > 0 and (found < 0 or self.idle_at(group) < self.idle_at(found)):
                found = group
        return found

    # Arrivals.

    @compiled
    def arrive(self, i: cython.longlong) -> cython.void:
        """Queue a request in the group with the fewest waiting or running; ties to the lowest."""
        now: cython.double = self.requests.arrival[i]
        model: cython.longlong = self.requests.model[i]
        best: cython.longlong = -1
        fewest: cython.longlong = self.requests.count + 1
        for pair in range(self.hosts.start[model], self.hosts.start[model + 1]):
            group = self.hosts.group[pair]
            self.end_batches(group, now)
            if self.waiting[group] + self.running[group] < fewest:
                fewest = self.waiting[group] + self.running[group]
                best = pair
        if best < 0:
            return
        group = self.hosts.group[best]
        self.requests.group[i] = group
        if self.head[best] < 0:
            self.head[best] = i
        else:
            self.after[self.tail[best]] = i
        self.tail[best] = i
        self.length[best] += 1
        self.waiting[group] += 1
        # An idle group starts now, after all arrivals of this instant are queued.
        if self.idle_at(group) < now:
            self.clocks.free[self.hosts.clock[group]] = now

    @compiled
    def end_batches(self, group: cython.longlong, now: cython.double) -> cython.void:
        """Let the batches of a group be over that are."""
        first: cython.longlong = self.oldest[group]
        while first >= 0 and self.requests.finish[first] <= now:
            self.running[group] -= self.batch[first]
            first = self.next_batch[first]
        self.oldest[group] = first

    # Batches.

    @compiled
    def begin_batch(self, group: cython.longlong, now: cython.double) -> cython.void:
        """Start a batch of the model whose head has waited longest; drop heads that are late."""
        while self.waiting[group] > 0:
            pair = self.longest_waiting(group)
            size = self.size_for(pair, now)
            if size >= 0:
                self.start(pair, size, now)
                return
            self.head[pair] = self.after[self.head[pair]]
            self.length[pair] -= 1
            self.waiting[group] -= 1

    @compiled
    def longest_waiting(self, group: cython.longlong) -> cython.longlong:
        """Return the pair of a group whose head came first."""
        found: cython.longlong = -1
        for place in range(self.pair_start[group], self.pair_start[group + 1]):
            pair = self.pair_at[place]
            if self.head[pair] >= 0 and (found < 0 or self.head[pair] < self.head[found]):
                found = pair
        return found

    @compiled
    def size_for(self, pair: cython.longlong, now: cython.double) -> cython.longlong:
        """Return the row of the largest size that a queue fills and whose head is in time.

        -1 = its head would be late even alone.
        """
        first: cython.longlong = self.head[pair]
        clock: cython.longlong = self.hosts.clock[self.hosts.group[pair]]
        stages: cython.longlong = self.hosts.clock[self.hosts.group[pair] + 1] - clock
        best: cython.longlong = -1
        for row in range(self.sizes.shape[0]):
            if row > 0 and self.sizes[row] > self.length[pair]:
                break
            if self.batch_first[pair, row] < 0:
                continue
            done = self.clocks.passed(now, clock, self.batch_first[pair, row], stages)
            if done + self.fixed - self.requests.arrival[first] <= self.requests.slo[first]:
                best = row
            elif row == 0:
                break
        return best

    @compiled
    def start(self, pair: cython.longlong, row: cython.longlong, now: cython.double) -> cython.void:
        """Start a batch of the head of a queue and those behind it."""
        group: cython.longlong = self.hosts.group[pair]
        clock: cython.longlong = self.hosts.clock[group]
        stages: cython.longlong = self.hosts.clock[group + 1] - clock
        first: cython.longlong = self.head[pair]
        i: cython.longlong = first
        taken: cython.longlong = self.sizes[row]
        done: cython.double = self.clocks.pass_on(now, clock, self.batch_first[pair, row], stages)
        for _ in range(taken):
            self.requests.start[i] = now
            self.requests.finish[i] = done + self.fixed
            self.batch[i] = taken
            self.at[i] = row
            i = self.after[i]
        self.head[pair] = i
        self.length[pair] -= taken
        self.waiting[group] -= taken
        self.running[group] += taken
        if self.oldest[group] < 0:
            self.oldest[group] = first
        else:
            self.next_batch[self.newest[group]] = first
        self.newest[group] = first


def serve_batches(
    arrival: numpy.ndarray,
    model: numpy.ndarray,
    slo: numpy.ndarray,
    host_start: numpy.ndarray,
    hosts: numpy.ndarray,
    clock_start: numpy.ndarray,
    sizes: numpy.ndarray,
    batch_first: numpy.ndarray,
    stage_time: numpy.ndarray,
    fixed: float,
) -> tuple[numpy.ndarray, ...]:
    """Serve n requests; more arguments in `windtunnel.serving.kernels.immediate.serve_at_once`.

    Args:
        sizes, batch_first: see `Batching`.

    Returns:
        group, start, finish as there; batch (n,): requests in its batch; at (n,): the row of
        ``sizes`` that was paid for.
    """
    requests: Requests = Requests(arrival, model, slo)
    simulation: Batching = Batching(
        requests, Hosts(host_start, hosts, clock_start), sizes, batch_first, stage_time, fixed
    )
    with cython.nogil:
        simulation.run()
    found = numpy.asarray(simulation.batch), numpy.asarray(simulation.at)
    return (*requests.answers(), *found)
