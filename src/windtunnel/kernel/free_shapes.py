"""`FreeShapes`: free GPUs and cores of nodes, for elastic jobs whose options are shapes."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import bit_at, lowest_bit, without_lowest
from windtunnel.kernel.free import Free
from windtunnel.kernel.free_holds import LOOK_BOTH, LOOK_OPEN, LOOK_SHOWN
from windtunnel.kernel.free_nodes import FreeNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.rows import Rows
from windtunnel.kernel.shape_kinds import ShapeKinds

#: Free cores of a node on which they are not constrained.
SHAPES_UNLIMITED = cython.declare(cython.longlong, 1 << 60)


@cython.final
@cython.cclass
class FreeShapes(Free):
    """What is free of each node; see `windtunnel.sim.elastic.nodes`.

    A shape is placed piece by piece, largest first, each on the node with the fewest free GPUs that
    suffice, then the lowest index; no two pieces share a node, and each piece gets its part of the
    gang's cores. The first kinds are the problem's demands, plain numbers of GPUs without cores.

    Args:
        problem: jobs and cluster, with nodes and whole GPUs.
        placement: where plain numbers of GPUs go: ``best_fit`` or ``spread``.
        access_sets: reservations of each access set; set 0 has none.
        cores: thousandths of cores of each node, None = not constrained.

    Attributes:
        gpus: free GPUs, and what is withheld.
        kinds: shapes.
        free_cores: free thousandths of cores of each node, (nodes,).
        constrained: whether they are counted.
    """

    gpus: FreeNodes
    kinds: ShapeKinds
    nodes: cython.int
    free_cores: cython.longlong[::1]
    constrained: cython.schar[::1]

    def __init__(
        self, problem: Any, placement: Any, access_sets: Any = ((),), cores: Any = None
    ) -> None:
        self.gpus = FreeNodes(problem, placement, access_sets)
        self.nodes = self.gpus.nodes
        self.kinds = ShapeKinds(self.gpus.top, self.gpus.num_kinds())
        limits = [None] * self.nodes if cores is None else list(cores)
        self.free_cores = numpy.array(
            [SHAPES_UNLIMITED if limit is None else limit for limit in limits], dtype=numpy.int64
        )
        self.constrained = numpy.array([limit is not None for limit in limits], dtype=numpy.int8)
        self.place = self.gpus.place
        self._count()

    def twin(self) -> Free:
        """Return an equal state of the same cluster."""
        twin: FreeShapes = FreeShapes.__new__(FreeShapes)
        twin.gpus = cython.cast(FreeNodes, self.gpus.twin())
        twin.nodes, twin.kinds = self.nodes, self.kinds
        twin.free_cores = numpy.array(self.free_cores)
        twin.constrained = self.constrained
        twin.place = twin.gpus.place
        twin._count()
        return twin

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        return int(self.kinds.count)

    def num_nodes(self) -> int:
        """Return how many nodes there are."""
        return int(self.nodes)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind that asks for a plain number of GPUs."""
        return self.kinds.add(self.gpus.add_kind(demand), (), 0, -1)

    def add_shape(self, shape: Any, num_cpus: Any, allowed: Any = -1) -> int:
        """Return the number of a new kind, for this state and its twins.

        Args:
            shape: GPUs on each node, largest first.
            num_cpus: CPU cores of the whole gang, spread over the nodes as its GPUs are.
            allowed: bitset of the nodes that it may use; -1 = all.
        """
        return self.kinds.add(-1, shape, num_cpus, self.gpus.kinds.sets.place(allowed))

    def free_by_node(self) -> numpy.ndarray:
        """Return the free GPUs of each node, 0 where it is hidden, Int64 array (nodes,)."""
        return self.gpus.free_by_node()

    def held(self) -> list:
        """Return what is withheld, the oldest first: (node, group it is held for) pairs."""
        return self.gpus.holds.listed()

    def cores_by_node(self) -> numpy.ndarray:
        """Return the free thousandths of cores of each node, 2**60 where not constrained."""
        return numpy.array(self.free_cores)

    @compiled
    def _count(self) -> cython.void:
        """Note what the GPUs' own state counts."""
        self.total = self.gpus.total
        self.version = self.gpus.version
        self.changes = self.gpus.changes
        self.draws = self.gpus.draws

    @compiled
    def _cores(self, kind: cython.int, gpus: cython.longlong) -> cython.longlong:
        """Return the thousandths of cores that a kind has beside so many of its GPUs."""
        return self.kinds.cores[kind * (self.kinds.top + 1) + gpus]

    # Searching.

    @compiled
    def fit(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits now, and write where into ``place``."""
        if self.kinds.plain_of[kind] >= 0:
            return self.gpus.fit(self.kinds.plain_of[kind])
        if self.gpus.looks != LOOK_OPEN:
            # What the job's reservations have goes first.
            self.gpus.looks = LOOK_SHOWN
            if self._fit(kind):
                self.gpus.looks = LOOK_BOTH
                return True
            self.gpus.looks = LOOK_BOTH
        return self._fit(kind)

    @compiled
    def _fit(self, kind: cython.int) -> cython.bint:
        at: cython.longlong
        piece: cython.int
        node: cython.int
        fits: cython.bint = True
        self.place.count = 0
        for piece in range(self.kinds.begin[kind], self.kinds.begin[kind + 1]):
            node = self._pick(kind, self.kinds.piece[piece])
            if node < 0:
                fits = False
                break
            self.place.add(node, self.kinds.piece[piece])
            self.gpus.chosen[node >> 6] |= bit_at(node & 63)
        for at in range(self.place.count):
            self.gpus.chosen[self.place.node[at] >> 6] = 0
        if not fits:
            self.place.count = 0
        return fits

    @compiled
    def _pick(self, kind: cython.int, gpus: cython.int) -> cython.int:
        """Return the node for one piece, -1 if none has room."""
        row: cython.int
        word: cython.int
        node: cython.int
        found: cython.longlong
        cores: cython.longlong
        mask: cython.longlong = self.kinds.mask[kind]
        if gpus > self.gpus.top:
            return -1
        cores = self._cores(kind, gpus)
        for row in range(gpus, self.gpus.top + 1):
            for word in range(self.gpus.words):
                found = self.gpus._seen(row, word)
                if mask >= 0:
                    found &= self.gpus.kinds.sets.bits[mask + word]
                while found != 0:
                    node = (word << 6) + lowest_bit(found)
                    found = without_lowest(found)
                    if self.free_cores[node] >= cores:
                        return node
        return -1

    # Changing.

    @compiled
    def _move_cores(
        self,
        kind: cython.int,
        pairs: Pairs,
        begin: cython.longlong,
        end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:
        at: cython.longlong
        if self.kinds.plain_of[kind] >= 0:
            return
        for at in range(begin, end):
            if self.constrained[pairs.node[at]]:
                self.free_cores[pairs.node[at]] += sign * self._cores(kind, pairs.grant[at])

    @compiled
    def take(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Take GPUs and cores that are free."""
        self._move_cores(kind, pairs, begin, end, -1)
        self.gpus.take(kind, pairs, begin, end)
        self._count()

    @compiled
    def give(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Give back what `take` took."""
        self._move_cores(kind, pairs, begin, end, 1)
        self.gpus.give(kind, pairs, begin, end)
        self._count()

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        at: cython.longlong
        enough: cython.bint = True
        self._move_cores(kind, pairs, begin, end, -1)
        for at in range(begin, end):
            if self.free_cores[pairs.node[at]] < 0:
                enough = False
        self._move_cores(kind, pairs, begin, end, 1)
        return enough and self.gpus.is_free(kind, pairs, begin, end)

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all."""
        mask: cython.longlong = self.kinds.mask[kind]
        if self.kinds.plain_of[kind] >= 0:
            return self.gpus.allows(self.kinds.plain_of[kind], node)
        return mask < 0 or (self.gpus.kinds.sets.bits[mask + (node >> 6)] >> (node & 63)) & 1 != 0

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice is free, allowed, and of the kind's shape."""
        at: cython.longlong
        other: cython.longlong
        node: cython.int
        first: cython.longlong = self.kinds.begin[kind]
        if self.kinds.plain_of[kind] >= 0:
            return self.gpus.fits(self.kinds.plain_of[kind], pairs)
        if pairs.count != self.kinds.begin[kind + 1] - first:
            return False
        for at in range(pairs.count):
            node = pairs.node[at]
            if not 0 <= node < self.nodes or not self.allows(kind, node):
                return False
            for other in range(at):
                if pairs.node[other] == node:
                    return False
            if self._pieces_of(kind, pairs.grant[at]) != self._grants_of(pairs, pairs.grant[at]):
                return False
            if pairs.grant[at] > self.kinds.top:
                return False
        return self.is_free(kind, pairs, 0, pairs.count)

    @compiled
    def _pieces_of(self, kind: cython.int, gpus: cython.longlong) -> cython.int:
        """Return how many of a shape's pieces have so many GPUs."""
        piece: cython.int
        found: cython.int = 0
        for piece in range(self.kinds.begin[kind], self.kinds.begin[kind + 1]):
            if self.kinds.piece[piece] == gpus:
                found += 1
        return found

    @compiled
    def _grants_of(self, pairs: Pairs, gpus: cython.longlong) -> cython.int:
        """Return how many pairs have so many GPUs."""
        at: cython.longlong
        found: cython.int = 0
        for at in range(pairs.count):
            if pairs.grant[at] == gpus:
                found += 1
        return found

    # Withholding, and other states: as of the GPUs.

    @compiled
    def withhold(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Hide a node's room from all but a group's jobs until it is restored as often."""
        self.gpus.withhold(node, group, units)
        self._count()

    @compiled
    def restore(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Undo one `withhold` of the same node for the same group."""
        self.gpus.restore(node, group, units)
        self._count()

    @compiled
    def open_for(self, access: cython.int) -> cython.bint:
        """Show what is withheld for the groups of an access set alone; return if anything is."""
        shows: cython.bint = self.gpus.open_for(access)
        self._count()
        return shows

    @compiled
    def close(self) -> cython.void:
        """Undo `open_for`."""
        self.gpus.close()
        self._count()

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        self._copy(cython.cast(FreeShapes, other))

    @compiled
    def _copy(self, other: FreeShapes) -> cython.void:
        self.gpus._copy(other.gpus)
        self.free_cores[:] = other.free_cores
        self._count()

    @compiled
    def meet(self, other: Free) -> cython.void:
        """Keep on each node only what is free in another state, too."""
        self._meet(cython.cast(FreeShapes, other))

    @compiled
    def _meet(self, other: FreeShapes) -> cython.void:
        node: cython.int
        self.gpus._meet(other.gpus)
        for node in range(self.nodes):
            self.free_cores[node] = min(self.free_cores[node], other.free_cores[node])
        self._count()

    @compiled
    def free_units(self, node: cython.int) -> cython.longlong:
        """Return the GPUs of a node that nobody holds, withheld or not."""
        return self.gpus.free_units(node)

    @compiled
    def is_withheld(self, node: cython.int) -> cython.bint:
        """Return whether a node is withheld."""
        return self.gpus.is_withheld(node)

    @compiled
    def holder(self, node: cython.int) -> cython.int:
        """Return whom a node is withheld for: its oldest hold's group, 0 nobody, -1 no hold."""
        return self.gpus.holder(node)

    @compiled
    def down(self) -> cython.longlong:
        """Return the GPUs that nobody holds and nobody may use."""
        return self.gpus.down()

    # As a row: two columns a node, its GPUs and its thousandths of cores.

    @compiled
    def width(self) -> cython.int:
        """Return how many columns a node has in a row."""
        return 2

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what nobody holds as a row."""
        node: cython.int
        at: cython.longlong = row * rows.columns
        for node in range(self.nodes):
            rows.cell[at + 2 * node] = self.gpus.free[node]
            rows.cell[at + 2 * node + 1] = self.free_cores[node]

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says; less than nothing is nothing."""
        node: cython.int
        gpus: cython.int
        at: cython.longlong = row * rows.columns
        for node in range(self.nodes):
            gpus = cython.cast(cython.int, max(rows.cell[at + 2 * node], 0))
            if gpus != self.gpus.free[node]:
                self.gpus._set_free(node, gpus)
            self.free_cores[node] = rows.cell[at + 2 * node + 1]
        self._count()

    @compiled
    def footprint(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        into: Pairs,
    ) -> cython.void:  # fmt: skip
        """Append what a job of a kind on these pairs takes of a row."""
        at: cython.longlong
        for at in range(begin, end):
            into.add(2 * pairs.node[at], pairs.grant[at])
            if self.kinds.plain_of[kind] < 0 and self.constrained[pairs.node[at]]:
                into.add(2 * pairs.node[at] + 1, self._cores(kind, pairs.grant[at]))

    @compiled
    def is_single(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits exactly where one node has enough."""
        if self.kinds.plain_of[kind] >= 0:
            return self.gpus.is_single(self.kinds.plain_of[kind])
        return self.kinds.begin[kind + 1] - self.kinds.begin[kind] == 1

    @compiled
    def need(self, kind: cython.int, column: cython.int) -> cython.longlong:
        """Return the GPUs (0) or thousandths of cores (1) that a job of a single kind needs."""
        gpus: cython.longlong
        if self.kinds.plain_of[kind] >= 0:
            return self.gpus.need(self.kinds.plain_of[kind], 0) if column == 0 else 0
        gpus = self.kinds.piece[self.kinds.begin[kind]]
        if column == 0 or gpus > self.kinds.top:
            return gpus
        return self._cores(kind, gpus)

    @compiled
    def closings(self, node: cython.int, access: cython.int) -> cython.int:
        """Return how many holds of a node are for groups that an access set does not have."""
        return self.gpus.closings(node, access)
