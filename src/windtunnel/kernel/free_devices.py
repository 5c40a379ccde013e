"""`FreeDevices`: free GPUs, shares of GPUs, cores and memory of nodes with devices.

A grant is a set of devices, one bit each; of a pooled node the thousandths taken.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import count_bits
from windtunnel.kernel.device_best import device_best
from windtunnel.kernel.device_cluster import DEVICE_MILLI, DeviceCluster, DeviceKinds
from windtunnel.kernel.device_gangs import (
    device_put,
    device_put_by_racks,
    device_put_filling,
    device_put_gang,
)
from windtunnel.kernel.device_grants import (
    device_change,
    device_choose,
    device_draft,
    device_footprint,
    device_tasks_of,
)
from windtunnel.kernel.device_scoring import (
    BY_ASKED,
    BY_GPU_CLUSTERING,
    BY_RANDOM,
    LAST_BY_LOAD,
    TIES_BY_DRAW,
    DeviceScoring,
)
from windtunnel.kernel.device_search import MANY_TASKS, DeviceSearch
from windtunnel.kernel.device_state import DeviceState
from windtunnel.kernel.draws import mixed
from windtunnel.kernel.free import Free
from windtunnel.kernel.free_holds import LOOK_OPEN, Holds
from windtunnel.kernel.free_on_nodes import FreeOnNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.rows import Rows


@cython.final
@cython.cclass
class FreeDevices(FreeOnNodes):
    """What is free of nodes with devices; see `windtunnel.cluster.free_devices`.

    ``total`` counts all free thousandths of GPUs, those of withheld nodes included, as there.

    Args:
        problem: jobs and cluster (`windtunnel.sim.problem.Problem`).
        placement: a scored placement (`windtunnel.placements.scored`).
        access_sets: reservations of each access set; set 0 has none.

    Attributes:
        cluster: the nodes; with ``kinds`` and ``scoring`` one for all twins.
        kinds: what each kind of job asks for.
        scoring: the placement.
        state: what is free.
        search: what searches work with.
        requests: what each kind asks of the levels of a tree.
    """

    cluster: DeviceCluster
    kinds: DeviceKinds
    scoring: DeviceScoring
    state: DeviceState
    search: DeviceSearch
    requests: list

    def __init__(self, problem: Any, placement: Any, access_sets: Any = ((),)) -> None:
        nodes = problem.devices
        self.nodes = len(nodes)
        self.cluster = DeviceCluster(nodes, problem.pooled)
        self.scoring = DeviceScoring(self.cluster, placement, nodes)
        self.raised = self.scoring.raised
        self.kinds = DeviceKinds(
            len(nodes),
            problem.demands,
            self.scoring.fills,
            self.scoring.code <= LAST_BY_LOAD,
            self.scoring.code == BY_ASKED,
        )
        self.requests = [demand.topology for demand in problem.demands]
        self.scoring.keep(self.kinds)
        self.state = DeviceState(self.cluster, self.scoring.code == BY_GPU_CLUSTERING)
        self.holds = Holds(len(nodes), access_sets)
        self.place = Pairs()
        self.search = DeviceSearch(self.state, self.scoring, self.kinds, self.place)
        self.looks = LOOK_OPEN
        self.total = self.state.free
        self.draws = self.version = self.changes = 0

    def _twin(self) -> Free:
        twin: FreeDevices = FreeDevices.__new__(FreeDevices)
        twin.nodes = self.nodes
        twin.cluster, twin.kinds, twin.scoring = self.cluster, self.kinds, self.scoring
        twin.requests, twin.raised = self.requests, self.raised
        twin.state, twin.holds = self.state.twin(), self.holds.twin()
        twin.place = Pairs()
        twin.search = DeviceSearch(twin.state, twin.scoring, twin.kinds, twin.place)
        twin.version, twin.changes = self.version, self.changes
        twin.copy_from(self)
        return twin

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        return int(self.kinds.count)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind, for this state and its twins."""
        kind = self.kinds.add(demand)
        self.requests.append(demand.topology)
        self.scoring.keep(self.kinds)
        return kind

    def free_by_node(self) -> numpy.ndarray:
        """Return the free thousandths of each node's GPUs, withheld or not, (nodes,)."""
        return numpy.asarray(self.state.total).astype(numpy.int64)

    def tables(self) -> dict[str, Any]:
        """Return what is free on each node, for tests and for policies that look at devices.

        Returns:
            ``devices`` (nodes, each), ``cores``, ``mem`` and ``tasks`` (nodes,), as copies.
        """
        devices = numpy.array(self.state.devices).reshape(self.cluster.nodes, self.cluster.each)
        return {
            "devices": devices,
            "cores": numpy.array(self.state.cores),
            "mem": numpy.array(self.state.mem),
            "tasks": numpy.array(self.state.tasks),
        }

    def become_row(self, other: FreeDevices, gone: Any) -> None:
        """Become another state as a row says it (`store`), with some jobs gone; for tests.

        Args:
            other: the state.
            gone: (kind, (node, grant) pairs) of each of those jobs.
        """
        rows: Rows = Rows(self.width() * self.cluster.nodes, 1)
        took: Pairs = Pairs()
        pairs: Pairs
        at: cython.longlong
        other.store(rows, 0)
        for kind, where in gone:
            pairs = self._checked(kind, where)
            self.footprint(kind, pairs, 0, pairs.count, took)
        for at in range(took.count):
            rows.cell[took.node[at]] += took.grant[at]
        self.load(rows, 0)

    # Searching.

    @compiled
    def _is_nothing(self, kind: cython.int) -> cython.bint:
        if self.kinds.milli[kind] != 0 or self.kinds.cores[kind] != 0:
            return False
        return self.kinds.mem[kind] == 0

    @compiled
    def _sums_allow(self, kind: cython.int) -> cython.bint:
        """Return whether sums allow a job to fit: a quick no where they do not."""
        tasks: cython.longlong = self.kinds.tasks[kind]
        if tasks > self.kinds.capacity[kind] or tasks * self.kinds.milli[kind] > self.total:
            return False
        if self.scoring.fills or self.scoring.tree is not None:
            return True
        if tasks <= self.kinds.largest[kind]:
            return True
        return self.state.idlers >= self.kinds.empties[kind]

    @compiled
    def fit(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits now, and write where into ``place``."""
        self.place.count = 0
        if self._is_nothing(kind):
            return True
        if not self._sums_allow(kind):
            return False
        self._draw()
        return FreeOnNodes.fit(self, kind)

    @compiled
    def _draw(self) -> cython.void:
        """Draw anew for the next job, of a placement to which chance matters."""
        if self.scoring.code == BY_RANDOM or self.scoring.ties == TIES_BY_DRAW:
            self.scoring.draw = mixed(self.scoring.seed + cython.cast(cython.ulonglong, self.draws))

    @compiled
    def fit_in_sight(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits the nodes that a search looks at; see `fit`."""
        which: cython.int
        tasks: cython.longlong = self.kinds.tasks[kind]
        fits: cython.bint
        self.place.count = 0
        self.search.look(self.holds, self.looks)
        if self.scoring.tree is not None:
            with cython.gil:
                fits = self._lay_out(kind)
        elif tasks <= self.kinds.largest[kind] and not self.scoring.fills:
            which = device_best(self.search, kind, tasks)
            fits = which >= 0
            if fits:
                device_put(self.search, kind, which, tasks, tasks)
        elif self.scoring.by_rack:
            fits = device_put_by_racks(self.search, kind)
        elif self.scoring.fills:
            fits = device_put_filling(self.search, kind)
        else:
            fits = device_put_gang(self.search, kind)
        if not fits:
            self.place.count = 0
        return fits

    @compiled
    def fit_again(self, kind: cython.int, where: Pairs) -> cython.bint:
        """Return whether a job fits the nodes of a place, as many tasks on each; see `fit`."""
        at: cython.longlong = 0
        placed: cython.longlong = 0
        self.place.count = 0
        self._draw()
        while at < where.count:
            node = where.node[at]
            tasks: cython.longlong = 0
            while at < where.count and where.node[at] == node:
                tasks += device_tasks_of(self.search, kind, where.grant[at])
                at += 1
            if self.search.fitting(kind, node) < tasks:
                return False
            device_choose(self.search, kind, node, tasks, placed)
            placed += tasks
        return True

    def _lay_out(self, kind: int) -> bool:
        """Place a job of a kind in the tree, on the nodes that the search looks at."""
        which: cython.int
        rest: cython.longlong = self.kinds.tasks[kind]
        fitting: Any = numpy.zeros(self.cluster.nodes, dtype=numpy.int64)
        for which in range(self.cluster.nodes):
            if self.state.is_within(which):
                fitting[which] = self.search.fitting_up_to(kind, which, MANY_TASKS)
        request = self.requests[kind]
        found: Any = self.raised.call(self.scoring.tree, (fitting, rest, request))
        if found is None:
            return False
        for node, tasks in found:
            rest = device_put(self.search, kind, node, tasks, rest)
        return True

    def grants_on(self, kind: int, node: int, tasks: int, first: int) -> list | None:
        """Return what so many tasks of a job would get on a node, None if they do not fit there.

        Args:
            kind: the job's kind.
            node: the node, in sight or not.
            tasks: how many of its tasks.
            first: how many of them are placed elsewhere already.
        """
        self._check_kind(kind)
        if not 0 <= node < self.nodes or self.search.fitting(kind, node) < tasks:
            return None
        self.place.count = 0
        self._draw()
        device_choose(self.search, kind, node, tasks, first)
        return self.place.grants().tolist()

    # For shapes (`windtunnel.kernel.free_shapes`), whose pieces are tasks of whole GPUs.

    @compiled
    def best(self, kind: cython.int) -> cython.int:
        """Return the node in sight (``state.within``) that scores best for one task, or -1."""
        self._draw()
        return device_best(self.search, kind, 1)

    # Changing.

    @compiled
    def move(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Give (1) devices, cores and memory to nodes, or take (-1) those that are free."""
        device_change(self.search, kind, pairs, begin, end, sign)
        self.total = self.state.free

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        enough: cython.bint = True
        for at in range(begin, end):
            which = pairs.node[at]
            if not device_draft(self.search, kind, which, pairs.grant[at], -1):
                enough = False
            if self.holds.count != 0 and not self.holds.is_seen(which):
                enough = False
        for at in range(begin, end):
            device_draft(self.search, kind, pairs.node[at], pairs.grant[at], 1)
        return enough

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all: its GPU type is acceptable."""
        return self.kinds.allows(kind, node)

    @compiled
    def _tasks_of(
        self, kind: cython.int, node: cython.int, grant: cython.longlong
    ) -> cython.longlong:
        """Return the tasks that a grant serves, 0 if the kind could not get it on the node."""
        is_right: cython.bint
        milli: cython.longlong = self.kinds.milli[kind]
        whole: cython.longlong = self.kinds.whole[kind]
        gpus: cython.int = self.cluster.gpus[node]
        if milli == 0 or grant <= 0:
            is_right = milli == 0 and grant == 0
        elif self.cluster.pooled:
            is_right = grant % milli == 0 and grant <= gpus * DEVICE_MILLI
        elif whole > 0:
            is_right = grant >> gpus == 0 and count_bits(grant) % whole == 0
        else:
            is_right = grant >> gpus == 0 and count_bits(grant) == 1
        return device_tasks_of(self.search, kind, grant) if is_right else 0

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice of devices is free and of the right sum."""
        placed: cython.longlong = 0
        if self._is_nothing(kind):
            return pairs.count == 0
        for at in range(pairs.count):
            if not 0 <= pairs.node[at] < self.cluster.nodes:
                return False
            if not self.kinds.allows(kind, pairs.node[at]):
                return False
            tasks = self._tasks_of(kind, pairs.node[at], pairs.grant[at])
            if tasks == 0:
                return False
            placed += tasks
        if placed != self.kinds.tasks[kind]:
            return False
        return self.is_free(kind, pairs, 0, pairs.count)

    # As a row: see `DeviceState.store`.

    @compiled
    def width(self) -> cython.int:
        """Return how many columns a node has in a row."""
        return self.state.width()

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what nobody holds as a row."""
        self.state.store(rows, row)

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says; less than nothing is nothing."""
        self.state.load(rows, row)
        self.total = self.state.free

    @compiled
    def footprint(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        into: Pairs,
    ) -> cython.void:  # fmt: skip
        """Append what a job of a kind on these pairs takes of a row."""
        first: cython.longlong = into.count
        for at in range(begin, end):
            if at > begin and pairs.node[at] != pairs.node[at - 1]:
                first = into.count
            device_footprint(self.search, kind, pairs.node[at], pairs.grant[at], into, first)

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        FreeOnNodes.copy_from(self, other)
        self.state.copy_from(cython.cast(FreeDevices, other).state)

    @compiled
    def free_units(self, node: cython.int) -> cython.longlong:
        """Return the thousandths of a node's GPUs that nobody holds, withheld or not."""
        return self.state.total[node]

    @compiled
    def granted(self, kind: cython.int, grant: cython.longlong) -> cython.longlong:
        """Return the thousandths of GPUs of a grant to a job of a kind."""
        if self.cluster.pooled:
            return grant
        return count_bits(grant) * self.kinds.unit[kind]
