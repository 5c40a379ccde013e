"""`FreeNodes`: which GPUs of nodes are free, as sets of nodes by their number of free GPUs.

"Fewest free GPUs that suffice, then lowest index" is then a lowest set bit: of the nodes of the
first such number that has any.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import bit_at, lowest_bit, without_lowest
from windtunnel.kernel.free import Free
from windtunnel.kernel.free_holds import LOOK_OPEN, LOOK_SHOWN, Holds
from windtunnel.kernel.free_kinds import FreeKinds
from windtunnel.kernel.free_on_nodes import FreeOnNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.rows import Rows


@cython.cclass
class FreeNodes(FreeOnNodes):
    """Free GPUs of each node; see `windtunnel.cluster.free` and `windtunnel.placements.gangs`.

    Args:
        problem: jobs and cluster (`windtunnel.sim.problem.Problem`).
        placement: ``best_fit`` or ``spread``.
        access_sets: reservations of each access set; set 0 has none.

    Attributes:
        kinds: what each kind of job asks for.
        top: GPUs of the largest node.
        size: GPUs of each node, (nodes,).
        free: those that nobody holds, withheld or not.
        marks: row k has the nodes with exactly k free GPUs that are not withheld, row top + 1 those
            that are empty: how many, then a bit for each word below that is not 0, then a bit for
            each node, (rows x stride,).
        hidden: the same of withheld nodes, the bits of nodes alone, (rows x words,).
        chosen: scratch: nodes that the gang at hand has already, as bits, (words,).
        shown_units: free GPUs of the nodes that the open access set shows.
    """

    kinds: FreeKinds
    words: cython.int
    tops: cython.int
    stride: cython.int
    top: cython.int
    spreads: cython.bint
    is_even: cython.bint
    size: cython.int[::1]
    free: cython.int[::1]
    marks: cython.longlong[::1]
    hidden: cython.longlong[::1]
    chosen: cython.longlong[::1]
    shown_units: cython.longlong

    def __init__(self, problem: Any, placement: Any, access_sets: Any = ((),)) -> None:
        names = ("best_fit", "spread", "tree")
        if placement.name not in names:
            raise ValueError(f"placement {placement.name!r} on whole GPUs; expected {names}")
        sizes = [int(size) for size in problem.sizes]
        self.kinds = FreeKinds(sizes, problem.demands)
        self.holds = Holds(len(sizes), access_sets)
        self.nodes = len(sizes)
        self.words = (len(sizes) + 63) // 64
        self.tops = (self.words + 63) // 64
        self.stride = 1 + self.tops + self.words
        self.top = max(sizes, default=0)
        self.is_even = min(sizes, default=0) == self.top > 0
        self.spreads = placement.name == "spread"
        self.size = numpy.array(sizes, dtype=numpy.int32)
        self._clear()
        for node, size in enumerate(sizes):
            self.free[node] = size
            self._mark(size, node)
            self._mark(self.top + 1, node)
        self.total = sum(sizes)

    def _clear(self) -> None:
        rows = self.top + 2
        self.looks = 0
        self.total = self.draws = self.version = self.changes = 0
        self.shown_units = 0
        self.free = numpy.zeros(self.nodes, dtype=numpy.int32)
        self.marks = numpy.zeros(rows * self.stride, dtype=numpy.int64)
        self.hidden = numpy.zeros(rows * self.words, dtype=numpy.int64)
        self.chosen = numpy.zeros(self.words, dtype=numpy.int64)
        self.place = Pairs()

    def _twin(self) -> Free:
        twin: FreeNodes = FreeNodes.__new__(FreeNodes)
        twin._share(self)
        return twin

    def _share(self, other: FreeNodes) -> None:
        """Become equal to another state, and share with it what never changes."""
        self.kinds, self.holds, self.size = other.kinds, other.holds.twin(), other.size
        self.nodes, self.words, self.tops = other.nodes, other.words, other.tops
        self.stride, self.top, self.spreads = other.stride, other.top, other.spreads
        self.is_even = other.is_even
        self._clear()
        self.version, self.changes = other.version, other.changes
        FreeNodes.copy_from(self, other)

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        return int(self.kinds.count)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind, for this state and its twins."""
        return self.kinds.add(demand)

    def free_by_node(self) -> numpy.ndarray:
        """Return the free GPUs of each node, 0 where it is hidden, Int64 array (nodes,)."""
        if self.holds.count == 0:
            return numpy.asarray(self.free).astype(numpy.int64)
        seen = [self.holds.is_seen(node) for node in range(self.nodes)]
        return numpy.where(seen, self.free, 0).astype(numpy.int64)

    # Which nodes have how many free GPUs.

    @compiled
    def _mark(self, row: cython.int, node: cython.int) -> cython.void:
        base: cython.longlong = cython.cast(cython.longlong, row) * self.stride
        word: cython.int = node >> 6
        self.marks[base] += 1
        self.marks[base + 1 + (word >> 6)] |= bit_at(word & 63)
        self.marks[base + 1 + self.tops + word] |= bit_at(node & 63)

    @compiled
    def _unmark(self, row: cython.int, node: cython.int) -> cython.void:
        base: cython.longlong = cython.cast(cython.longlong, row) * self.stride
        word: cython.int = node >> 6
        left: cython.longlong = self.marks[base + 1 + self.tops + word] & ~bit_at(node & 63)
        self.marks[base + 1 + self.tops + word] = left
        if left == 0:
            self.marks[base + 1 + (word >> 6)] &= ~bit_at(word & 63)
        self.marks[base] -= 1

    @compiled
    def _row_of(self, node: cython.int) -> cython.int:
        """Return a node's row: its free GPUs, or the nearest there are where it is overdrawn."""
        return min(max(self.free[node], 0), self.size[node])

    @compiled
    def _set_free(self, node: cython.int, gpus: cython.int) -> cython.void:
        """Change how many GPUs of a node are free."""
        before: cython.int = self._row_of(node)
        self.free[node] = gpus
        gpus = self._row_of(node)
        if self.holds.count != 0 and self.holds.times[node] != 0:
            self._set_hidden(node, before, gpus)
            return
        self._unmark(before, node)
        self._mark(gpus, node)
        if before == self.size[node]:
            self._unmark(self.top + 1, node)
        if gpus == self.size[node]:
            self._mark(self.top + 1, node)
        self.total += gpus - before

    @compiled
    def _set_hidden(self, node: cython.int, before: cython.int, gpus: cython.int) -> cython.void:
        """Change in which rows of ``hidden`` a node is; -1 = in none."""
        bit: cython.longlong = bit_at(node & 63)
        word: cython.int = node >> 6
        if before >= 0:
            self.hidden[before * self.words + word] &= ~bit
            if before == self.size[node]:
                self.hidden[(self.top + 1) * self.words + word] &= ~bit
        if gpus >= 0:
            self.hidden[gpus * self.words + word] |= bit
            if gpus == self.size[node]:
                self.hidden[(self.top + 1) * self.words + word] |= bit
        if self.looks != LOOK_OPEN and self.holds.shown[word] & bit:
            self.total += max(gpus, 0) - max(before, 0)
            self.shown_units += max(gpus, 0) - max(before, 0)

    # Searching.

    @compiled
    def _first(self, row: cython.int, mask: cython.longlong) -> cython.int:
        """Return the lowest node of a row that is allowed and not chosen, -1 if none."""
        base: cython.longlong = cython.cast(cython.longlong, row) * self.stride + 1
        if self.looks != LOOK_OPEN:
            return self._first_shown(row, mask)
        for part in range(self.tops):
            left = self.marks[base + part]
            while left != 0:
                word = (part << 6) + lowest_bit(left)
                found = self.marks[base + self.tops + word] & ~self.chosen[word]
                if mask >= 0:
                    found &= self.kinds.sets.bits[mask + word]
                if found != 0:
                    return (word << 6) + lowest_bit(found)
                left = without_lowest(left)
        return -1

    @compiled
    def _seen(self, row: cython.int, word: cython.int) -> cython.longlong:
        """Return a word of a row's nodes, of those that the search looks at."""
        found: cython.longlong = 0
        if self.looks != LOOK_SHOWN:
            found = self.marks[
                cython.cast(cython.longlong, row) * self.stride + 1 + self.tops + word
            ]
        if self.looks != LOOK_OPEN:
            found |= self.hidden[row * self.words + word] & self.holds.shown[word]
        return found & ~self.chosen[word]

    @compiled
    def _first_shown(self, row: cython.int, mask: cython.longlong) -> cython.int:
        """Return what `_first` does, while an access set is open."""
        for word in range(self.words):
            found = self._seen(row, word)
            if mask >= 0:
                found &= self.kinds.sets.bits[mask + word]
            if found != 0:
                return (word << 6) + lowest_bit(found)
        return -1

    @compiled
    def _next(self, row: cython.int) -> cython.int:
        """Return the first row from ``row`` on that may have nodes; top + 1 if none has."""
        if self.looks != LOOK_OPEN:
            return row
        while row <= self.top and self.marks[cython.cast(cython.longlong, row) * self.stride] == 0:
            row += 1
        return row

    @compiled
    def _pick(self, gpus: cython.int, mask: cython.longlong) -> cython.int:
        """Return the one node for so many GPUs under the placement, -1 if none has them."""
        if self.spreads:
            row = self.top
            while row >= gpus:
                node = self._first(row, mask)
                if node >= 0:
                    return node
                row -= 1
            return -1
        row = self._next(gpus)
        while row <= self.top:
            node = self._first(row, mask)
            if node >= 0:
                return node
            row = self._next(row + 1)
        return -1

    @compiled
    def fit_in_sight(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits the nodes that a search looks at; see `fit`."""
        gpus: cython.longlong = self.kinds.gpus[kind]
        self.place.count = 0
        if gpus > self.total:
            return False
        if 0 < gpus <= self.kinds.largest[kind]:
            node = self._pick(cython.cast(cython.int, gpus), self.kinds.mask[kind])
            if node < 0:
                return False
            self.place.add(node, gpus)
            return True
        return gpus == 0 or self._fit_gang(kind)

    @compiled
    def _fit_gang(self, kind: cython.int) -> cython.bint:
        """Fit a gang larger than a node: whole empty nodes, then the remainder on one more."""
        empties: cython.longlong = cython.cast(cython.longlong, self.top + 1) * self.stride
        if self.looks == LOOK_OPEN and self.marks[empties] < self.kinds.empties[kind]:
            return False
        rest = self._choose_empty(kind)
        node = -1
        if rest > 0 and rest <= self.top:
            node = self._pick(cython.cast(cython.int, rest), self.kinds.mask[kind])
        for at in range(self.place.count):
            self.chosen[self.place.node[at] >> 6] = 0
        if rest == 0:
            return True
        if node < 0:
            return False
        self.place.add(node, rest)
        return True

    @compiled
    def _choose_empty(self, kind: cython.int) -> cython.longlong:
        """Write the empty nodes that a gang takes whole into ``place``; return the GPUs left."""
        mask: cython.longlong = self.kinds.mask[kind]
        rest: cython.longlong = self.kinds.gpus[kind]
        for word in range(self.words):
            if rest < self.kinds.smallest[kind]:
                break
            found = self._seen(self.top + 1, word)
            if mask >= 0:
                found &= self.kinds.sets.bits[mask + word]
            while found != 0 and rest >= self.kinds.smallest[kind]:
                node = (word << 6) + lowest_bit(found)
                found = without_lowest(found)
                usable = self.size[node] - self.size[node] % self.kinds.task[kind]
                if 0 < usable <= rest:
                    self.place.add(node, usable)
                    self.chosen[word] |= bit_at(node & 63)
                    rest -= usable
        return rest

    # Changing.

    @compiled
    def move(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Give (1) GPUs to nodes, or take (-1) those that are free."""
        for at in range(begin, end):
            node = pairs.node[at]
            self._set_free(node, self.free[node] + sign * cython.cast(cython.int, pairs.grant[at]))

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        return self.has_gpus(pairs, begin, end)

    @compiled
    def has_gpus(self, pairs: Pairs, begin: cython.longlong, end: cython.longlong) -> cython.bint:
        """Return whether the GPUs of these pairs are free, all together, on nodes in sight."""
        enough: cython.bint = True
        for at in range(begin, end):
            node = pairs.node[at]
            self.free[node] -= cython.cast(cython.int, pairs.grant[at])
            if self.free[node] < 0 or not self.holds.is_seen(node):
                enough = False
        for at in range(begin, end):
            self.free[pairs.node[at]] += cython.cast(cython.int, pairs.grant[at])
        return enough

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all: its GPU type is acceptable."""
        return self.kinds.allows(kind, node)

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice of nodes is free, allowed and of the right sum."""
        asked: cython.longlong = 0
        for at in range(pairs.count):
            node = pairs.node[at]
            gpus = pairs.grant[at]
            if not 0 <= node < self.nodes or gpus < 1 or gpus > self.size[node]:
                return False
            if gpus % self.kinds.task[kind] != 0 or not self.kinds.allows(kind, node):
                return False
            asked += gpus
        return asked == self.kinds.gpus[kind] and self.has_gpus(pairs, 0, pairs.count)

    # Withholding.

    @compiled
    def hide(self, node: cython.int) -> cython.void:
        """Count a node out that is withheld from now on."""
        gpus: cython.int = self._row_of(node)
        self._unmark(gpus, node)
        if gpus == self.size[node]:
            self._unmark(self.top + 1, node)
        self.total -= gpus
        self._set_hidden(node, -1, gpus)

    @compiled
    def unhide(self, node: cython.int) -> cython.void:
        """Count a node in that is not withheld any more."""
        gpus: cython.int = self._row_of(node)
        self._set_hidden(node, gpus, -1)
        self._mark(gpus, node)
        if gpus == self.size[node]:
            self._mark(self.top + 1, node)
        self.total += gpus

    @compiled
    def look_again(self) -> cython.void:
        """Find out anew what the open access set shows, and count it in."""
        self.look_away()
        self.holds.refresh()
        for word in range(self.words):
            found = self.holds.shown[word]
            while found != 0:
                self.shown_units += self._row_of((word << 6) + lowest_bit(found))
                found = without_lowest(found)
        self.total += self.shown_units

    @compiled
    def look_away(self) -> cython.void:
        """Count out what the open access set shows."""
        self.total -= self.shown_units
        self.shown_units = 0

    # As a row: the GPUs of each node that nobody holds.

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what nobody holds as a row."""
        at: cython.longlong = row * rows.columns
        for node in range(self.nodes):
            rows.cell[at + node] = self.free[node]

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says; less than nothing is nothing."""
        at: cython.longlong = row * rows.columns
        for node in range(self.nodes):
            gpus = cython.cast(cython.int, max(rows.cell[at + node], 0))
            if gpus != self.free[node]:
                self._set_free(node, gpus)

    @compiled
    def footprint(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        into: Pairs,
    ) -> cython.void:  # fmt: skip
        """Append what a job of a kind on these pairs takes of a row."""
        into.extend(pairs, begin, end)

    @compiled
    def is_single(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits exactly where one node has enough GPUs."""
        return 0 < self.kinds.gpus[kind] <= self.kinds.largest[kind]

    @compiled
    def need(self, kind: cython.int, column: cython.int) -> cython.longlong:
        """Return the GPUs that a job of a kind needs."""
        return self.kinds.gpus[kind]

    @compiled
    def wants_idle_alone(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fills whole nodes, which are all of one size."""
        return (
            self.is_even
            and self.kinds.gpus[kind] > self.top
            and (self.kinds.gpus[kind] % self.top == 0)
        )

    @compiled
    def idle_need(self, kind: cython.int) -> cython.longlong:
        """Return how many nodes must be empty for a job of a kind, at least."""
        return self.kinds.empties[kind] if self.kinds.gpus[kind] > 0 else 0

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        if self.holds.count != 0 or cython.cast(FreeNodes, other).holds.count != 0:
            self.hidden[:] = cython.cast(FreeNodes, other).hidden
        FreeOnNodes.copy_from(self, other)
        self.free[:] = cython.cast(FreeNodes, other).free
        self.marks[:] = cython.cast(FreeNodes, other).marks
        self.shown_units = cython.cast(FreeNodes, other).shown_units

    @compiled
    def free_units(self, node: cython.int) -> cython.longlong:
        """Return the GPUs of a node that nobody holds, withheld or not."""
        return self.free[node]
