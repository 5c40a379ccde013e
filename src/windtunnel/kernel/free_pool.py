"""`FreePool`: what is free in a cluster without nodes, one pool a GPU type."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.free import Free
from windtunnel.kernel.free_kinds import FreeKinds
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.rows import Rows

#: Free cores of a pool where cores are not counted, as a row has them.
POOL_UNLIMITED = cython.declare(cython.longlong, 1 << 60)


@cython.final
@cython.cclass
class FreePool(Free):
    """Free GPU units and thousandths of cores of each pool; see `windtunnel.cluster.free`.

    A job takes all it wants of one pool: the fullest that suffices, the lowest index on ties. While
    units are withheld that jobs still hold, a pool's free units are negative, and ``total`` is then
    no bound for what fits.

    Args:
        problem: jobs and cluster (`windtunnel.sim.problem.Problem`).
        placement: the placement ``pool``; it has no options.
        access_sets: reservations of each access set; a pool knows none.

    Attributes:
        kinds: what each kind of job asks for.
        size: GPU units of each pool, (pools,).
        free: those that are free, less those withheld.
        free_cpus: free thousandths of cores.
        constrained: whether they are counted.
        withheld: GPU units that are withheld.
    """

    kinds: FreeKinds
    size: cython.longlong[::1]
    free: cython.longlong[::1]
    free_cpus: cython.longlong[::1]
    constrained: cython.schar[::1]
    withheld: cython.longlong[::1]

    def __init__(self, problem: Any, placement: Any = None, access_sets: Any = ((),)) -> None:
        sizes = [int(size) for size in problem.sizes]
        limits = problem.cpu_limits
        self.kinds = FreeKinds(sizes, problem.demands)
        self.nodes = len(sizes)
        self.size = numpy.array(sizes, dtype=numpy.int64)
        self.free = numpy.array(sizes, dtype=numpy.int64)
        self.free_cpus = numpy.array([limit or 0 for limit in limits], dtype=numpy.int64)
        self.constrained = numpy.array([limit is not None for limit in limits], dtype=numpy.int8)
        self.withheld = numpy.zeros(len(sizes), dtype=numpy.int64)
        self.total = sum(sizes)
        self.draws = self.version = self.changes = 0
        self.place = Pairs()

    def _twin(self) -> Free:
        twin: FreePool = FreePool.__new__(FreePool)
        twin.kinds, twin.nodes = self.kinds, self.nodes
        twin.size, twin.constrained = self.size, self.constrained
        twin.free = numpy.array(self.free)
        twin.free_cpus = numpy.array(self.free_cpus)
        twin.withheld = numpy.array(self.withheld)
        twin.version = self.version
        twin.changes = self.changes
        twin.place = Pairs()
        twin.copy_from(self)
        return twin

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        return int(self.kinds.count)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind, for this state and its twins."""
        return self.kinds.add(demand)

    def free_by_node(self) -> numpy.ndarray:
        """Return the free units of each pool, less those withheld, Int64 array (pools,)."""
        return numpy.array(self.free)

    @compiled
    def _serves(self, kind: cython.int, pool: cython.int) -> cython.bint:
        """Return whether the whole demand fits a pool now."""
        if self.free[pool] < self.kinds.gpus[kind]:
            return False
        if self.constrained[pool] and self.free_cpus[pool] < self.kinds.cpus[kind]:
            return False
        return self.allows(kind, pool)

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a pool at all."""
        return self.kinds.allows(kind, node)

    @compiled
    def fit(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits now, and write where into ``place``."""
        best: cython.int = -1
        self.place.count = 0
        if self.kinds.gpus[kind] == 0 and self.kinds.cpus[kind] == 0:
            return True
        for pool in range(self.nodes):
            if (best < 0 or self.free[pool] < self.free[best]) and self._serves(kind, pool):
                best = pool
        if best < 0:
            return False
        self.place.add(best, self.kinds.gpus[kind])
        return True

    @compiled
    def move(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Give (1) GPUs and cores to pools, or take (-1) those that are free."""
        for at in range(begin, end):
            pool = pairs.node[at]
            self.free[pool] += sign * pairs.grant[at]
            self.free_cpus[pool] += sign * self.kinds.cpus[kind]
            self.total += sign * pairs.grant[at]

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        enough: cython.bint = True
        self.move(kind, pairs, begin, end, -1)
        for at in range(begin, end):
            pool = pairs.node[at]
            if self.free[pool] < 0 or (self.constrained[pool] and self.free_cpus[pool] < 0):
                enough = False
        self.move(kind, pairs, begin, end, 1)
        return enough

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice of a pool serves; the numbers may be any."""
        if pairs.count == 0:
            return self.kinds.gpus[kind] == 0 and self.kinds.cpus[kind] == 0
        if pairs.count > 1 or not 0 <= pairs.node[0] < self.nodes:
            return False
        return pairs.grant[0] == self.kinds.gpus[kind] and self._serves(kind, pairs.node[0])

    @compiled
    def withhold(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Take GPU units out of a pool; below 0 = all that it has."""
        lost: cython.longlong = self.size[node] if units < 0 else units
        self.withheld[node] += lost
        self.free[node] -= lost
        self.total -= lost
        self.changes += 1

    @compiled
    def restore(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Undo one `withhold` of the same units."""
        back: cython.longlong = self.size[node] if units < 0 else units
        self.withheld[node] -= back
        self.free[node] += back
        self.total += back
        self.version += 1
        self.changes += 1

    # As a row: two columns a pool, its free units and its free thousandths of cores.

    @compiled
    def width(self) -> cython.int:
        """Return how many columns a pool has in a row."""
        return 2

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what nobody holds, less what is withheld, as a row."""
        at: cython.longlong = row * rows.columns
        for pool in range(self.nodes):
            rows.cell[at + 2 * pool] = self.free[pool]
            rows.cell[at + 2 * pool + 1] = (
                self.free_cpus[pool] if self.constrained[pool] else POOL_UNLIMITED
            )

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says."""
        at: cython.longlong = row * rows.columns
        self.total = 0
        for pool in range(self.nodes):
            self.free[pool] = rows.cell[at + 2 * pool]
            self.free_cpus[pool] = rows.cell[at + 2 * pool + 1]
            self.total += self.free[pool]

    @compiled
    def footprint(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        into: Pairs,
    ) -> cython.void:  # fmt: skip
        """Append what a job of a kind on these pairs takes of a row."""
        for at in range(begin, end):
            into.add(2 * pairs.node[at], pairs.grant[at])
            into.add(2 * pairs.node[at] + 1, self.kinds.cpus[kind])

    @compiled
    def is_single(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits exactly where a pool has enough."""
        return self.kinds.gpus[kind] != 0 or self.kinds.cpus[kind] != 0

    @compiled
    def need(self, kind: cython.int, column: cython.int) -> cython.longlong:
        """Return the units (0) or thousandths of cores (1) that a job of a kind needs."""
        return self.kinds.cpus[kind] if column else self.kinds.gpus[kind]

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        Free.copy_from(self, other)
        self.free[:] = cython.cast(FreePool, other).free
        self.free_cpus[:] = cython.cast(FreePool, other).free_cpus
        self.withheld[:] = cython.cast(FreePool, other).withheld

    @compiled
    def free_units(self, node: cython.int) -> cython.longlong:
        """Return the GPU units of a pool that nobody holds, withheld or not."""
        return self.free[node] + self.withheld[node]

    @compiled
    def holder(self, node: cython.int) -> cython.int:
        """Return 0 where anything of a pool is withheld, -1 where nothing is."""
        return 0 if self.withheld[node] != 0 else -1

    @compiled
    def down(self) -> cython.longlong:
        """Return the GPU units that nobody holds and nobody may use."""
        found: cython.longlong = 0
        for pool in range(self.nodes):
            if self.withheld[pool] != 0:
                found += self.withheld[pool] + min(self.free[pool], 0)
        return found
