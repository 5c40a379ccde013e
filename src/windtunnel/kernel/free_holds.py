"""`Holds`: which nodes are withheld, for whom, and which of them an access set shows."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import bit_at
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer

#: Which nodes a search looks at: those not withheld; those shown alone; both.
LOOK_OPEN = cython.declare(cython.int, 0)
LOOK_SHOWN = cython.declare(cython.int, 1)
LOOK_BOTH = cython.declare(cython.int, 2)
#: The group of nodes that sleep: nobody's, too, but such a node is not down.
HOLD_ASLEEP = cython.declare(cython.int, 1 << 20)


@cython.final
@cython.cclass
class Holds:
    """What is withheld, as often as it is, and for whom: a list of holds, the oldest first.

    Args:
        num_nodes: nodes of the cluster.
        access_sets: the reservations of each access set; set 0 has none.

    Attributes:
        count: nodes that are withheld.
        times: how often each node is, (nodes,).
        hidden: the withheld nodes as bits, (words,).
        shown: those of them that the open access set shows, (words,).
        size: holds in the list.
        node: node of each hold.
        group: whom it is for; 0 = nobody.
        access: the access set that is open; 0 = none.
    """

    nodes: cython.int
    words: cython.int
    groups: cython.int
    count: cython.int
    size: cython.int
    capacity: cython.int
    access: cython.int
    times: cython.int[::1]
    hidden: cython.longlong[::1]
    shown: cython.longlong[::1]
    seen: cython.longlong[::1]
    node: cython.int[::1]
    group: cython.int[::1]
    may: cython.schar[::1]

    def __init__(self, num_nodes: int, access_sets: Any = ((),)) -> None:
        sets = [tuple(groups) for groups in access_sets]
        self.nodes = num_nodes
        self.words = (num_nodes + 63) // 64
        self.groups = 1 + max((group for groups in sets for group in groups), default=0)
        may = numpy.zeros((max(len(sets), 1), self.groups), dtype=numpy.int8)
        for number, groups in enumerate(sets):
            may[number, list(groups)] = 1
        may[:, 0] = 0  # nobody is in no access set
        self.may = may.reshape(-1)
        self._clear(16)

    def _clear(self, capacity: int) -> None:
        self.count = self.size = self.access = 0
        self.capacity = capacity
        self.times = numpy.zeros(self.nodes, dtype=numpy.int32)
        self.hidden = numpy.zeros(self.words, dtype=numpy.int64)
        self.shown = numpy.zeros(self.words, dtype=numpy.int64)
        self.seen = numpy.zeros(self.words, dtype=numpy.int64)
        self.node = numpy.zeros(capacity, dtype=numpy.int32)
        self.group = numpy.zeros(capacity, dtype=numpy.int32)

    def twin(self) -> Holds:
        """Return an equal list for another state of the same cluster."""
        twin: Holds = Holds.__new__(Holds)
        twin.nodes, twin.words, twin.groups = self.nodes, self.words, self.groups
        twin.may = self.may
        twin._clear(self.capacity)
        twin.copy_from(self)
        return twin

    def listed(self) -> list:
        """Return the holds, the oldest first: pairs of a node and the group it is held for."""
        return [(self.node[at], self.group[at]) for at in range(self.size)]

    def _grow(self, least: int) -> None:
        capacity = least + least // 2 + 16
        self.node = longer(self.node, capacity)
        self.group = longer(self.group, capacity)
        self.capacity = capacity

    @compiled
    def copy_from(self, other: Holds) -> cython.void:
        """Become equal to another list of the same cluster."""
        if self.size == 0 and other.size == 0:
            self.access = other.access
            return
        if self.capacity < other.size:
            with cython.gil:
                self._grow(other.size)
        for at in range(other.size):
            self.node[at] = other.node[at]
            self.group[at] = other.group[at]
        self.count = other.count
        self.size = other.size
        self.access = other.access
        self.times[:] = other.times
        self.hidden[:] = other.hidden
        self.shown[:] = other.shown

    @compiled
    def add(self, node: cython.int, group: cython.int) -> cython.bint:
        """Withhold a node once more; return whether nothing withheld it before."""
        if self.size == self.capacity:
            with cython.gil:
                self._grow(self.size)
        self.node[self.size] = node
        self.group[self.size] = group
        self.size += 1
        self.times[node] += 1
        if self.times[node] > 1:
            return False
        self.count += 1
        self.hidden[node >> 6] |= bit_at(node & 63)
        return True

    @compiled
    def remove(self, node: cython.int, group: cython.int) -> cython.bint:
        """Undo the oldest `add` of a node for a group; return whether nothing withholds it now."""
        at: cython.int = self._find(node, group)
        if at < 0:
            return False
        self.size -= 1
        for later in range(at, self.size):
            self.node[later] = self.node[later + 1]
            self.group[later] = self.group[later + 1]
        self.times[node] -= 1
        if self.times[node] > 0:
            return False
        self.count -= 1
        self.hidden[node >> 6] &= ~bit_at(node & 63)
        self.shown[node >> 6] &= ~bit_at(node & 63)
        return True

    @compiled
    def _find(self, node: cython.int, group: cython.int) -> cython.int:
        """Return the hold of a node for a group; of nobody's the newest: one is like the other."""
        if group == 0:
            at = self.size - 1
            while at >= 0 and (self.node[at] != node or self.group[at] != 0):
                at -= 1
            return at
        for at in range(self.size):
            if self.node[at] == node and self.group[at] == group:
                return at
        return -1

    @compiled
    def holder(self, node: cython.int) -> cython.int:
        """Return whom a node is withheld for: -1 no hold, 0 nobody, else its oldest hold's."""
        found: cython.int = -1
        if self.times[node] == 0:
            return -1
        for at in range(self.size):
            if self.node[at] == node:
                if self.group[at] == 0 or self.group[at] == HOLD_ASLEEP:
                    return 0
                if found < 0:
                    found = self.group[at]
        return found

    @compiled
    def closings(self, node: cython.int, access: cython.int) -> cython.int:
        """Return how many holds of a node are for groups that an access set does not have."""
        found: cython.int = 0
        if self.times[node] == 0:
            return 0
        for at in range(self.size):
            if self.node[at] == node and (
                self.group[at] >= self.groups or not self.may[access * self.groups + self.group[at]]
            ):
                found += 1
        return found

    @compiled
    def open_for(self, access: cython.int) -> cython.bint:
        """Show the nodes that are withheld for an access set alone; return if there are any."""
        self.access = access
        if self.refresh():
            return True
        self.access = 0
        return False

    @compiled
    def refresh(self) -> cython.bint:
        """Find out anew what the open access set shows; return if it shows anything."""
        found: cython.longlong = 0
        for word in range(self.words):
            self.shown[word] = self.hidden[word]
        for at in range(self.size):
            group = self.group[at]
            if group >= self.groups or not self.may[self.access * self.groups + group]:
                self.shown[self.node[at] >> 6] &= ~bit_at(self.node[at] & 63)
        for word in range(self.words):
            found |= self.shown[word]
        return found != 0

    @compiled
    def close(self) -> cython.void:
        """Undo `open_for`."""
        self.access = 0
        for word in range(self.words):
            self.shown[word] = 0

    @compiled
    def in_sight(self, looks: cython.int, word: cython.int) -> cython.longlong:
        """Return a word of the nodes that a search looks at."""
        if looks == LOOK_SHOWN:
            return self.shown[word]
        return ~self.hidden[word] | self.shown[word]

    @compiled
    def is_in_sight(self, looks: cython.int, node: cython.int) -> cython.bint:
        """Return whether a search looks at a node."""
        return (self.in_sight(looks, node >> 6) >> (node & 63)) & 1 != 0

    @compiled
    def is_seen(self, node: cython.int) -> cython.bint:
        """Return whether a search may look at a node: not withheld, or shown."""
        return self.times[node] == 0 or (self.shown[node >> 6] >> (node & 63)) & 1 != 0

    @compiled
    def is_first_of_nobody(self, at: cython.int) -> cython.bint:
        """Return whether a hold is nobody's, and its node's first such since hold 0.

        Asked of the holds in order, so that each such node is counted once.
        """
        node: cython.int = self.node[at]
        if at == 0:
            for word in range(self.words):
                self.seen[word] = 0
        if self.group[at] != 0 or (self.seen[node >> 6] >> (node & 63)) & 1 != 0:
            return False
        self.seen[node >> 6] |= bit_at(node & 63)
        return True
