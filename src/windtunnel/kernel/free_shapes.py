"""`FreeShapes`: free GPUs and cores of nodes, for elastic jobs whose options are shapes."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import bit_at, lowest_bit, without_lowest
from windtunnel.kernel.free import Free
from windtunnel.kernel.free_devices import FreeDevices
from windtunnel.kernel.free_nodes import FreeNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.shape_kinds import ShapeDomains, ShapeKinds

#: Free cores of a node on which they are not constrained.
SHAPES_UNLIMITED = cython.declare(cython.longlong, 1 << 60)


@cython.final
@cython.cclass
class FreeShapes(FreeNodes):
    """What is free of each node; see `windtunnel.sim.elastic.nodes`.

    A shape is placed piece by piece, largest first, each on the node with the fewest free GPUs that
    suffice, then the lowest index, or on the one that scores best (`scored`); no two pieces share a
    node, and each piece gets its part of the gang's cores. Pieces that are to lie in one domain
    (`domains`) go to the one with the fewest GPUs free to them that holds them. The first kinds are
    the problem's demands, plain numbers of GPUs without cores. Nothing plans with such states: the
    policies of elastic jobs decide by themselves.

    Args:
        problem: jobs and cluster, with nodes and whole GPUs.
        placement: where plain numbers of GPUs go: ``best_fit`` or ``spread``.
        access_sets: reservations of each access set; set 0 has none.
        cores: thousandths of cores of each node, None = not constrained.
        scored: the same nodes with devices, all free, whose placement picks the node of each piece;
            None = best fit.
        domains: nodes of each domain, level by level from the top.

    Attributes:
        shapes: what each kind of job asks for; ``kinds`` has the plain demands.
        free_cores: free thousandths of cores of each node, (nodes,).
        constrained: whether they are counted.
        scored: what is free, as `FreeDevices`. Which GPUs of a node a job has is unknown: it takes
            the first that are idle, and gives back the first that are not.
        domains: racks, or domains of a tree; with ``shapes`` one for all twins.
    """

    shapes: ShapeKinds
    domains: ShapeDomains
    scored: FreeDevices
    grant: Pairs
    free_cores: cython.longlong[::1]
    constrained: cython.schar[::1]

    def __init__(
        self,
        problem: Any,
        placement: Any,
        access_sets: Any = ((),),
        cores: Any = None,
        scored: Any = None,
        domains: Any = (),
    ) -> None:
        super().__init__(problem, placement, access_sets)
        self.domains = ShapeDomains(domains, self.kinds.sets)
        self.shapes = ShapeKinds(self.top, self.kinds.count)
        self.scored = scored
        self.raised = None if self.scored is None else self.scored.raised
        self.grant = Pairs()
        limits = [None] * self.nodes if cores is None else list(cores)
        self.free_cores = numpy.array(
            [SHAPES_UNLIMITED if limit is None else limit for limit in limits], dtype=numpy.int64
        )
        self.constrained = numpy.array([limit is not None for limit in limits], dtype=numpy.int8)

    def _twin(self) -> Free:
        twin: FreeShapes = FreeShapes.__new__(FreeShapes)
        twin.shapes, twin.domains = self.shapes, self.domains
        twin.constrained = self.constrained
        twin.free_cores = numpy.array(self.free_cores)
        twin.scored = None if self.scored is None else self.scored.twin()
        twin.grant, twin.raised = Pairs(), self.raised
        twin._share(self)
        return twin

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        return int(self.shapes.count)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind that asks for a plain number of GPUs."""
        return self.shapes.add(self.kinds.add(demand), (), 0, -1)

    def add_shape(
        self,
        shape: Any,
        num_cpus: Any,
        allowed: Any = -1,
        pieces: Any = (),
        within: Any = (-1, False),
    ) -> int:
        """Return the number of a new kind, for this state and its twins.

        Args:
            shape: GPUs on each node, largest first.
            num_cpus: CPU cores of the whole gang, spread over the nodes as its GPUs are.
            allowed: bitset of the nodes that it may use; -1 = all.
            pieces: what each piece asks for (`windtunnel.cluster.devices.DeviceDemand`), of a
                placement that scores nodes.
            within: the level whose domains are tried first, -1 = none; whether no other will do.
        """
        scored = [self.scored.add_kind(demand) for demand in pieces]
        mask = self.kinds.sets.place(allowed)
        return self.shapes.add(-1, shape, num_cpus, mask, scored, within)

    def cores_by_node(self) -> numpy.ndarray:
        """Return the free thousandths of cores of each node, 2**60 where not constrained."""
        return numpy.array(self.free_cores)

    @compiled
    def _cores(self, kind: cython.int, gpus: cython.longlong) -> cython.longlong:
        """Return the thousandths of cores that a kind has beside so many of its GPUs."""
        return self.shapes.cores[kind * (self.shapes.top + 1) + gpus]

    # Searching.

    @compiled
    def fit_in_sight(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits the nodes that a search looks at; see `fit`."""
        if self.shapes.plain_of[kind] >= 0:
            return FreeNodes.fit_in_sight(self, self.shapes.plain_of[kind])
        return self._fit_shape(kind)

    @compiled
    def _fit_shape(self, kind: cython.int) -> cython.bint:
        """Fit a shape: in a domain of its level, then of the next one up, then anywhere."""
        level: cython.int = self.shapes.level[kind]
        while level >= 0:
            if self._fit_level(kind, level):
                return True
            if self.shapes.required[kind]:
                return False
            level -= 1
        return self._fit_pieces(kind, -1)

    @compiled
    def _fit_level(self, kind: cython.int, level: cython.int) -> cython.bint:
        """Fit a shape in the domain of a level with the fewest free GPUs, or else the next one."""
        asked: cython.longlong = 0
        for piece in range(self.shapes.begin[kind], self.shapes.begin[kind + 1]):
            asked += self.shapes.piece[piece]
        first: cython.int = self.domains.first[level]
        behind: cython.int = self.domains.first[level + 1]
        for domain in range(first, behind):
            free = self._domain_free(kind, domain)
            self.domains.free[domain] = free if free >= asked else -1
        while True:
            tightest = -1
            for domain in range(first, behind):
                if self.domains.free[domain] >= 0 and (
                    tightest < 0 or self.domains.free[domain] < self.domains.free[tightest]
                ):
                    tightest = domain
            if tightest < 0:
                return False
            if self._fit_pieces(kind, self.domains.mask[tightest]):
                return True
            self.domains.free[tightest] = -1

    @compiled
    def _domain_free(self, kind: cython.int, domain: cython.int) -> cython.longlong:
        """Return the free GPUs of a domain's nodes in sight that a kind may use."""
        free: cython.longlong = 0
        for at in range(self.domains.begin[domain], self.domains.begin[domain + 1]):
            node = self.domains.node[at]
            if self._may_use(kind, -1, node >> 6) & bit_at(node & 63) and self.holds.is_in_sight(
                self.looks, node
            ):
                free += max(self.free[node], 0)
        return free

    @compiled
    def _fit_pieces(self, kind: cython.int, domain: cython.longlong) -> cython.bint:
        """Fit a shape on the nodes of a domain, given as a set; -1 = on all."""
        fits: cython.bint = True
        self.place.count = 0
        for piece in range(self.shapes.begin[kind], self.shapes.begin[kind + 1]):
            if self.scored is None:
                node = self._pick_piece(kind, self.shapes.piece[piece], domain)
            else:
                node = self._best_for_piece(kind, piece, domain)
            if node < 0:
                fits = False
                break
            self.place.add(node, self.shapes.piece[piece])
            self.chosen[node >> 6] |= bit_at(node & 63)
        for at in range(self.place.count):
            self.chosen[self.place.node[at] >> 6] = 0
        if not fits:
            self.place.count = 0
        return fits

    @compiled
    def _may_use(
        self, kind: cython.int, domain: cython.longlong, word: cython.int
    ) -> cython.longlong:
        """Return a word of the nodes of a domain that a kind may use."""
        mask: cython.longlong = self.shapes.mask[kind]
        found: cython.longlong = -1
        if mask >= 0:
            found = self.kinds.sets.bits[mask + word]
        if domain >= 0:
            found &= self.kinds.sets.bits[domain + word]
        return found

    @compiled
    def _best_for_piece(
        self, kind: cython.int, piece: cython.int, domain: cython.longlong
    ) -> cython.int:
        """Return the node of a domain that scores best for one piece, -1 if it fits none."""
        for word in range(self.words):
            seen = 0
            for row in range(self.shapes.piece[piece], self.top + 1):
                seen |= self._seen(row, word)
            self.scored.state.within[word] = seen & self._may_use(kind, domain, word)
        self.scored.draws = self.draws
        return self.scored.best(self.shapes.scored[piece])

    @compiled
    def _pick_piece(
        self, kind: cython.int, gpus: cython.int, domain: cython.longlong
    ) -> cython.int:
        """Return the tightest node of a domain for one piece, -1 if it fits none."""
        if gpus > self.top:
            return -1
        cores = self._cores(kind, gpus)
        for row in range(gpus, self.top + 1):
            for word in range(self.words):
                found = self._seen(row, word) & self._may_use(kind, domain, word)
                while found != 0:
                    node = (word << 6) + lowest_bit(found)
                    found = without_lowest(found)
                    if self.free_cores[node] >= cores:
                        return node
        return -1

    # Changing.

    @compiled
    def move(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Give (1) GPUs and cores to nodes, or take (-1) those that are free."""
        self._move_cores(kind, pairs, begin, end, sign)
        self._move_scored(kind, pairs, begin, end, sign)
        FreeNodes.move(self, kind, pairs, begin, end, sign)

    @compiled
    def _move_cores(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        if self.shapes.plain_of[kind] >= 0:
            return
        for at in range(begin, end):
            if self.constrained[pairs.node[at]]:
                self.free_cores[pairs.node[at]] += sign * self._cores(kind, pairs.grant[at])

    @compiled
    def _move_scored(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Take or give the devices of some pairs."""
        if self.scored is None or self.shapes.plain_of[kind] >= 0:
            return
        for at in range(begin, end):
            piece = self.shapes.begin[kind]
            while self.shapes.piece[piece] != pairs.grant[at]:
                piece += 1
            self.grant.count = 0
            self.grant.add(
                pairs.node[at],
                self.scored.state.first_devices(pairs.node[at], pairs.grant[at], sign < 0),
            )
            if sign < 0:
                self.scored.take(self.shapes.scored[piece], self.grant, 0, 1)
            else:
                self.scored.give(self.shapes.scored[piece], self.grant, 0, 1)

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        enough: cython.bint = True
        self._move_cores(kind, pairs, begin, end, -1)
        for at in range(begin, end):
            if self.free_cores[pairs.node[at]] < 0:
                enough = False
        self._move_cores(kind, pairs, begin, end, 1)
        return enough and self.has_gpus(pairs, begin, end)

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all."""
        mask: cython.longlong = self.shapes.mask[kind]
        if self.shapes.plain_of[kind] >= 0:
            return FreeNodes.allows(self, self.shapes.plain_of[kind], node)
        return mask < 0 or self.kinds.sets.has(mask, node)

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice is free, allowed, and of the kind's shape."""
        if self.shapes.plain_of[kind] >= 0:
            return FreeNodes.fits(self, self.shapes.plain_of[kind], pairs)
        if pairs.count != self.shapes.begin[kind + 1] - self.shapes.begin[kind]:
            return False
        for at in range(pairs.count):
            node = pairs.node[at]
            if not 0 <= node < self.nodes or not self.allows(kind, node):
                return False
            for other in range(at):
                if pairs.node[other] == node:
                    return False
            if pairs.grant[at] > self.shapes.top or self._lacks(kind, pairs, pairs.grant[at]) != 0:
                return False
        return self.is_free(kind, pairs, 0, pairs.count)

    @compiled
    def _lacks(self, kind: cython.int, pairs: Pairs, gpus: cython.longlong) -> cython.int:
        """Return how many more pieces of a shape have so many GPUs than pairs do."""
        found: cython.int = 0
        for at in range(self.shapes.begin[kind], self.shapes.begin[kind + 1]):
            if self.shapes.piece[at] == gpus:
                found += 1
        for at in range(pairs.count):
            if pairs.grant[at] == gpus:
                found -= 1
        return found

    # Other states.

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        FreeNodes.copy_from(self, other)
        self.free_cores[:] = cython.cast(FreeShapes, other).free_cores
        if self.scored is not None:
            self.scored.copy_from(cython.cast(FreeShapes, other).scored)
