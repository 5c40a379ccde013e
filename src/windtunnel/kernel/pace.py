"""`Pace`: how fast running jobs are by where they run and beside whom.

The twin of `windtunnel.sim.neighbours.Neighbours`, bit for bit, which checks the model of
slow-downs and makes the tables. Where a job starts or leaves, its nodes are noted alone; who is on
them is looked up once an instant, in `take_touched`.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import count_bits
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs, longer
from windtunnel.kernel.rounding import half_even
from windtunnel.kernel.uplinks import Uplinks

#: Thousandths of a core.
PACE_CORES = cython.declare(cython.int, 1000)
#: What a grant is: GPUs of a node, devices as bits, thousandths of a node's GPUs.
PACE_OF_GPUS = cython.declare(cython.int, 0)
PACE_OF_DEVICES = cython.declare(cython.int, 1)
PACE_OF_MILLI = cython.declare(cython.int, 2)
#: Whether a job is in the list of those touched: no; yes; it is there, but has left since.
PACE_NO = cython.declare(cython.int, 0)
PACE_TOUCHED = cython.declare(cython.int, 1)
PACE_LEFT = cython.declare(cython.int, 2)


@cython.final
@cython.cclass
class Pace:
    """The running jobs by node, and the rate of each.

    What a job holds on one node is a *part*; the parts on a node are a list in order of start.

    Args:
        neighbours: a `Neighbours` with the model; None = nothing slows anybody.
        problem: the `Problem`.

    Attributes:
        by_locality: whether it matters where a job is.
        by_neighbours: whether it matters who is near.
        has_options: jobs run in options, see `add_option`.
        kind_of: demand class of each job.
        asked: thousandths of cores that each job asks for.
        num_touched: how many `take_touched` found; before it, above 0 if there may be any. Whoever
            has dealt with them sets it to 0.
        touched_jobs: what it found.
    """

    by_locality: cython.bint
    by_neighbours: cython.bint
    has_options: cython.bint
    num_touched: cython.longlong
    kind_of: cython.int[::1]
    asked: cython.double[::1]
    touched_jobs: cython.int[::1]

    # The other one on each job's GPUs, whose cost is in their rates already, -1 = none; `State`
    # keeps it, where jobs share.
    mate: cython.int[::1]
    _uplinks: Uplinks
    _by_sharing: cython.bint
    _grants: cython.int
    _cpu: cython.double
    _over_racks: cython.double
    _serial: cython.longlong
    # Jobs: rate over too many nodes, rate by locality, number of the name, first part.
    _spread: cython.double[::1]
    _locality: cython.double[::1]
    _name: cython.int[::1]
    _part_of: cython.int[::1]
    _state: cython.int[::1]
    # Demand classes: fewest nodes and racks; tasks of a job, and what a grant counts of one task.
    _fewest_nodes: cython.longlong[::1]
    _fewest_racks: cython.longlong[::1]
    _tasks: cython.longlong[::1]
    _each: cython.longlong[::1]
    # Thousandths of cores of an option that is a demand class.
    _option_cores: cython.double[::1]
    # Nodes: first and last part; thousandths of cores that are held, and that there are (0 = not
    # stated); when the node, or rack, was last seen, and the part made then.
    _first: cython.int[::1]
    _last: cython.int[::1]
    _held: cython.longlong[::1]
    _limit: cython.longlong[::1]
    _speed: cython.double[::1]
    _rack: cython.int[::1]
    _seen: cython.longlong[::1]
    _made: cython.int[::1]
    _rack_seen: cython.longlong[::1]
    _is_noted: cython.int[::1]
    _noted: cython.int[::1]
    _num_noted: cython.longlong
    _num_listed: cython.longlong
    # Parts; `also` is the next part of the same job, `next` of a spare part the next spare one.
    _parts: cython.longlong
    _spare: cython.int
    _job: cython.int[::1]
    _node: cython.int[::1]
    _devices: cython.longlong[::1]
    _cores: cython.longlong[::1]
    _next: cython.int[::1]
    _before: cython.int[::1]
    _also: cython.int[::1]
    # Rate of a job with one name beside another, and the time that it costs.
    _pair_rate: cython.double[:, ::1]
    _pair_cost: cython.double[:, ::1]

    def __init__(self, neighbours: Any, problem: Any) -> None:
        jobs, nodes, kinds = len(problem.rows), len(problem.sizes), len(problem.demands)
        plain = problem.is_pool or neighbours is None
        model = None if plain else neighbours.model
        self.by_locality = model is not None and model.by_locality
        self.by_neighbours = model is not None and neighbours.neighbours_matter
        self.mate = numpy.full(jobs, -1, dtype=numpy.int32)
        self._uplinks = Uplinks(None if plain else neighbours.uplinks, jobs)
        self._by_sharing = model is not None and model.by_sharing
        self._cpu = 0.0 if model is None else model.cpu
        self._over_racks = 1.0 if model is None else model.rack
        self._grants = PACE_OF_GPUS
        if problem.devices:
            self._grants = PACE_OF_MILLI if problem.pooled else PACE_OF_DEVICES
        self.kind_of = numpy.array(problem.demand_of, dtype=numpy.int32)
        self.touched_jobs = numpy.zeros(jobs, dtype=numpy.int32)
        self._state = numpy.zeros(jobs, dtype=numpy.int32)
        self._locality = numpy.ones(jobs)
        self._spread = neighbours.spread_rates() if self.by_locality else numpy.ones(0)
        self.asked = neighbours.cpus * PACE_CORES if self.by_neighbours else numpy.zeros(0)
        self._part_of = numpy.full(jobs if self.by_neighbours else 0, -1, dtype=numpy.int32)
        names, rates = numpy.zeros(0), numpy.ones((1, 1))
        if self._by_sharing:
            names, rates = neighbours.share_rates()
        self._name = names.astype(numpy.int32)
        self._pair_rate = rates.copy()
        self._pair_cost = 1.0 / rates - 1.0
        fewest = numpy.zeros((kinds, 2), dtype=numpy.int64)
        each = numpy.ones((kinds, 2), dtype=numpy.int64)
        for kind in range(kinds if model is not None else 0):
            demand = problem.demands[kind]
            if self.by_locality:
                fewest[kind] = neighbours.fewest_places(kind)
            if problem.devices:
                each[kind] = demand.count, demand.amount if problem.pooled else demand.gpus
            else:
                each[kind] = demand.gpus, 1
        self._fewest_nodes, self._fewest_racks = fewest[:, 0].copy(), fewest[:, 1].copy()
        self._tasks, self._each = each[:, 0].copy(), each[:, 1].copy()
        self.has_options = False
        self._option_cores = numpy.zeros(0)
        racks = () if model is None else neighbours.racks
        self._rack = numpy.array(racks or [-1] * nodes, dtype=numpy.int32)
        self._rack_seen = numpy.zeros(max(racks, default=0) + 1, dtype=numpy.int64)
        limits = [0] * nodes if model is None else [limit or 0 for limit in neighbours.limits]
        self._limit = numpy.array(limits, dtype=numpy.int64)
        self._held = numpy.zeros(nodes, dtype=numpy.int64)
        self._speed = numpy.ones(nodes)
        self._seen = numpy.zeros(nodes, dtype=numpy.int64)
        self._first = numpy.full(nodes, -1, dtype=numpy.int32)
        self._last = numpy.full(nodes, -1, dtype=numpy.int32)
        self._made = numpy.zeros(nodes, dtype=numpy.int32)
        self._is_noted = numpy.zeros(nodes, dtype=numpy.int32)
        self._noted = numpy.zeros(nodes, dtype=numpy.int32)
        self._serial = self._num_noted = self._num_listed = self.num_touched = self._parts = 0
        self._spare = -1
        self._job = self._node = self._next = numpy.zeros(0, dtype=numpy.int32)
        self._before = self._also = numpy.zeros(0, dtype=numpy.int32)
        self._devices = self._cores = numpy.zeros(0, dtype=numpy.int64)

    def add_option(self, kind: int, gpus: int, cores: int, nodes: int, racks: int) -> None:
        """Let jobs run in an option.

        Args:
            kind: the number of its demand class.
            gpus: in all.
            cores: thousandths in all.
            nodes: over how many it goes at least.
            racks: the same.
        """
        self.has_options = True
        if kind >= len(self._option_cores):
            most = 2 * kind + 8
            self._option_cores = longer(self._option_cores, most)
            self._fewest_nodes = longer(self._fewest_nodes, max(most, len(self._fewest_nodes)))
            self._fewest_racks = longer(self._fewest_racks, max(most, len(self._fewest_racks)))
            self._tasks = longer(self._tasks, max(most, len(self._tasks)))
        self._option_cores[kind], self._tasks[kind] = cores, gpus
        self._fewest_nodes[kind], self._fewest_racks[kind] = nodes, racks

    @compiled
    def run_in(self, job: cython.int, kind: cython.int) -> cython.void:
        """Note in which option a job is to run that enters next."""
        self.kind_of[job] = kind
        if self.by_neighbours:
            self.asked[job] = self._option_cores[kind]

    def _grow(self) -> None:
        most = len(self._job) + len(self._job) // 2 + 256
        self._job = longer(self._job, most)
        self._node = longer(self._node, most)
        self._next = longer(self._next, most)
        self._before = longer(self._before, most)
        self._also = longer(self._also, most)
        self._devices = longer(self._devices, most)
        self._cores = longer(self._cores, most)

    @compiled
    def enter(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Note that a job has started on these pairs.

        It is touched unless its rate is 1 and nobody else's can be another for it.
        """
        if self.by_neighbours:
            self._join(job, pairs, begin, end)
        if self.by_locality:
            self._locality[job] = 1.0
            if end - begin > 1:
                self._locate(job, pairs, begin, end)
        if self._uplinks.is_there:
            self._uplinks.enter(job, pairs, begin, end)

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Note that a job has left its nodes."""
        if self._state[job] == PACE_TOUCHED:
            self._state[job] = PACE_LEFT
        if self._uplinks.is_there:
            self._uplinks.leave(job)
        if not self.by_neighbours:
            return
        part = self._part_of[job]
        while part >= 0:
            node, before, after = self._node[part], self._before[part], self._next[part]
            if before >= 0:
                self._next[before] = after
            else:
                self._first[node] = after
            if after >= 0:
                self._before[after] = before
            else:
                self._last[node] = before
            self._held[node] -= self._cores[part]
            self._note(node)
            self._next[part] = self._spare
            self._spare = part
            part = self._also[part]
        self._part_of[job] = -1

    @compiled
    def touch(self, job: cython.int) -> cython.void:
        """Note that a running job's rate may have changed for another reason."""
        if self._state[job] == PACE_NO:
            self.touched_jobs[self._num_listed] = job
            self._num_listed += 1
            self.num_touched += 1
        self._state[job] = PACE_TOUCHED

    @compiled
    def take_touched(self) -> cython.longlong:
        """Return how many running jobs' rates may have changed since the last call.

        They are the first of ``touched_jobs``, ascending, until anybody enters or is touched.
        """
        count: cython.longlong = 0
        if self._uplinks.is_stale:
            self._uplinks.fill()
            for at in range(self._uplinks.changed.count):
                self.touch(self._uplinks.changed.job[at])
        for at in range(self._num_listed):
            job = self.touched_jobs[at]
            if self._state[job] == PACE_TOUCHED:
                self.touched_jobs[count] = job
                count += 1
            else:
                self._state[job] = PACE_NO
        for at in range(self._num_noted):
            node = self._noted[at]
            self._is_noted[node] = 0
            part = self._first[node]
            while part >= 0:
                job = self._job[part]
                if self._state[job] == PACE_NO:
                    self._state[job] = PACE_TOUCHED
                    self.touched_jobs[count] = job
                    count += 1
                part = self._next[part]
        self._num_noted = self._num_listed = 0
        self._ascend(count)
        for at in range(count):
            self._state[self.touched_jobs[at]] = PACE_NO
        self.num_touched = count
        return count

    @compiled
    def rate(self, job: cython.int) -> cython.double:
        """Return the rate of a running job."""
        pace: cython.double = 1.0
        if self.by_neighbours:
            part = self._part_of[job]
            while part >= 0:
                here = self._pace(job, part)
                if here < pace:
                    pace = here
                part = self._also[part]
        if self._uplinks.is_there:
            return self._locality[job] * pace * self._uplinks.rate[job]
        return self._locality[job] * pace

    @compiled
    def _ascend(self, count: cython.longlong) -> cython.void:
        """Sort the first touched jobs (Shell's way: mostly there are few)."""
        gap: cython.longlong = 1
        while gap < count // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for at in range(gap, count):
                job = self.touched_jobs[at]
                hole: cython.longlong = at
                while hole >= gap and self.touched_jobs[hole - gap] > job:
                    self.touched_jobs[hole] = self.touched_jobs[hole - gap]
                    hole -= gap
                self.touched_jobs[hole] = job
            gap //= 3

    @compiled
    def _note(self, node: cython.int) -> cython.void:
        if not self._is_noted[node]:
            self._is_noted[node] = 1
            self._noted[self._num_noted] = node
            self._num_noted += 1
            self.num_touched += 1

    @compiled
    def _locate(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Find a job's rate by locality."""
        nodes: cython.longlong = 0
        racks: cython.longlong = 0
        kind = self.kind_of[job]
        factor: cython.double = 1.0
        self._serial += 1
        for at in range(begin, end):
            node = pairs.node[at]
            if self._seen[node] == self._serial:
                continue
            self._seen[node] = self._serial
            nodes += 1
            rack = self._rack[node]
            if rack >= 0 and self._rack_seen[rack] != self._serial:
                self._rack_seen[rack] = self._serial
                racks += 1
        if nodes > self._fewest_nodes[kind]:
            factor = self._spread[job]
        if racks > self._fewest_racks[kind]:
            factor *= self._over_racks
        self._locality[job] = factor
        if factor != 1.0:
            self.touch(job)

    @compiled
    def _join(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Put a job's parts behind those that are on its nodes."""
        kind = self.kind_of[job]
        self._serial += 1
        self._part_of[job] = -1
        for at in range(begin, end):
            node = pairs.node[at]
            if self._seen[node] != self._serial:
                self._seen[node] = self._serial
                self._made[node] = self._new_part(job, node)
            part = self._made[node]
            self._cores[part] += self._tasks_of(kind, pairs.grant[at])
            if self._grants == PACE_OF_DEVICES:
                self._devices[part] |= pairs.grant[at]
        part = self._part_of[job]
        while part >= 0:
            cores = self.asked[job] * self._cores[part] / self._tasks[kind]
            self._cores[part] = half_even(cores)
            self._held[self._node[part]] += self._cores[part]
            part = self._also[part]

    @compiled
    def _new_part(self, job: cython.int, node: cython.int) -> cython.int:
        part = self._spare
        if part >= 0:
            self._spare = self._next[part]
        else:
            part = cython.cast(cython.int, self._parts)
            if self._parts == self._job.shape[0]:
                with cython.gil:
                    self._grow()
            self._parts += 1
        before = self._last[node]
        self._job[part] = job
        self._node[part] = node
        self._devices[part] = 0
        self._cores[part] = 0
        self._next[part] = -1
        self._before[part] = before
        if before >= 0:
            self._next[before] = part
        else:
            self._first[node] = part
        self._last[node] = part
        self._also[part] = self._part_of[job]
        self._part_of[job] = part
        self._note(node)
        return part

    @compiled
    def _tasks_of(self, kind: cython.int, grant: cython.longlong) -> cython.longlong:
        """Return how many tasks (of nodes without devices: GPUs) a grant serves."""
        if self._grants == PACE_OF_GPUS:
            return grant
        if self._each[kind] == 0:
            return 1
        if self._grants == PACE_OF_MILLI:
            return grant // self._each[kind]
        return count_bits(grant) // self._each[kind]

    @compiled
    def _pace(self, job: cython.int, part: cython.int) -> cython.double:
        """Return how fast others let a job's tasks on one node be."""
        node = self._node[part]
        pace: cython.double = 1.0
        shared: cython.double = 1.0
        if self._cpu != 0.0 and self._limit[node] > 0:
            others = cython.cast(cython.double, self._held[node] - self._cores[part])
            share = others / cython.cast(cython.double, self._limit[node])
            pace -= self._cpu * (share if share < 1.0 else 1.0)
        devices = self._devices[part]
        if not self._by_sharing or devices == 0 or self._first[node] == self._last[node]:
            return pace * self._speed[node]
        met: cython.longlong = 0
        other = self._first[node]
        while other >= 0:
            if other != part and self._job[other] != self.mate[job]:
                met |= self._devices[other]
            other = self._next[other]
        devices &= met
        while devices != 0:
            device = devices & -devices
            devices ^= device
            beside = self._beside(job, part, device)
            if beside < shared:
                shared = beside
        return pace * shared * self._speed[node]

    @compiled
    def _beside(self, job: cython.int, part: cython.int, device: cython.longlong) -> cython.double:
        """Return a job's rate beside others on one device: the time that each costs adds up."""
        name = self._name[job]
        mate: cython.int = self.mate[job]
        others: cython.longlong = 0
        factor: cython.double = 1.0
        cost: cython.double = 0.0
        other = self._first[self._node[part]]
        while other >= 0:
            if other != part and self._job[other] != mate and self._devices[other] & device:
                neighbour = self._name[self._job[other]]
                factor = self._pair_rate[name, neighbour]
                cost += self._pair_cost[name, neighbour]
                others += 1
            other = self._next[other]
        return factor if others <= 1 else 1.0 / (1.0 + cost)

    def set_speed(self, node: int, speed: float) -> None:
        """Let what runs on a node go at this speed, 1 = as usual."""
        self._speed[node] = speed
        self._note(node)

    # From Python, for tests and to look into a run.

    def put(self, job: int, pairs: Pairs) -> None:
        """`enter` a job."""
        self.enter(job, pairs, 0, pairs.count)

    def drop(self, job: int) -> None:
        """`leave`."""
        self.leave(job)

    def settle(self) -> list[tuple[int, float]]:
        """Return the touched jobs, ascending, and their rates."""
        jobs = [self.touched_jobs[at] for at in range(self.take_touched())]
        self.num_touched = 0
        return [(job, self.rate(job)) for job in jobs]
