"""`DeviceSearch`: what a search of nodes with devices works with, and how many tasks fit a node."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.bits import lowest_bit
from windtunnel.kernel.device_cluster import DEVICE_MILLI, DeviceKinds
from windtunnel.kernel.device_scoring import DeviceScoring
from windtunnel.kernel.device_state import BUCKET_SHIFT, SET_LEVELS, SET_WITH_GPUS, DeviceState
from windtunnel.kernel.free_holds import Holds
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs

#: More tasks than fit any node.
MANY_TASKS = cython.declare(cython.longlong, 1 << 40)


@cython.final
@cython.cclass
class DeviceSearch:
    """What is free, who asks for what, how nodes are scored, and the best node seen so far.

    A search looks at the nodes in ``state.within``.

    Attributes:
        sight: all nodes that may be used: not withheld, or shown, (words,).
        which: the best node, -1 = none.
        score: its score.
        tie: what decides between it and a node of the same score; lower wins.
        kind_fitting: scratch: how many tasks fit a node of each kind that runs nothing.
        rack_scratch: scratch: a number of each rack.
    """

    state: DeviceState
    scoring: DeviceScoring
    kinds: DeviceKinds
    place: Pairs
    sight: cython.longlong[::1]
    which: cython.int
    score: cython.longlong
    tie: cython.longlong
    kind_fitting: cython.longlong[::1]
    rack_scratch: cython.longlong[::1]

    def __init__(
        self, state: DeviceState, scoring: DeviceScoring, kinds: DeviceKinds, place: Pairs
    ) -> None:
        self.state, self.scoring, self.kinds, self.place = state, scoring, kinds, place
        self.sight = numpy.zeros(state.cluster.words, dtype=numpy.int64)
        self.kind_fitting = numpy.zeros(state.cluster.kinds, dtype=numpy.int64)
        self.rack_scratch = numpy.zeros(state.cluster.racks, dtype=numpy.int64)

    # Which nodes are looked at.

    @compiled
    def look(self, holds: Holds, looks: cython.int) -> cython.void:
        """Look at all nodes that may be used."""
        for word in range(self.state.cluster.words):
            self.sight[word] = self.state.cluster.every[word] & holds.in_sight(looks, word)
        self.look_at_all()

    @compiled
    def look_at_all(self) -> cython.void:
        """Look at all in sight again."""
        for word in range(self.state.cluster.words):
            self.state.within[word] = self.sight[word]

    @compiled
    def look_at_none(self) -> cython.void:
        """Look at no node."""
        for word in range(self.state.cluster.words):
            self.state.within[word] = 0

    @compiled
    def is_in_sight(self, which: cython.int) -> cython.bint:
        """Return whether a node may be used."""
        return (self.sight[which >> 6] >> (which & 63)) & 1 != 0

    # How many tasks fit.

    @compiled
    def fitting(self, kind: cython.int, which: cython.int) -> cython.longlong:
        """Return how many of a job's tasks fit a node now, in sight or not."""
        return self.fitting_up_to(kind, which, self.kinds.tasks[kind])

    @compiled
    def fitting_up_to(
        self, kind: cython.int, which: cython.int, most: cython.longlong
    ) -> cython.longlong:
        """Return how many of at most so many tasks of a job's kind fit a node now."""
        found: cython.longlong = most
        if not self.kinds.allows(kind, which):
            return 0
        if self.kinds.cores[kind] > 0:
            found = min(found, self.state.cores[which] // self.kinds.cores[kind])
        if self.kinds.mem[kind] > 0:
            found = min(found, self.state.mem[which] // self.kinds.mem[kind])
        if found <= 0 or self.kinds.milli[kind] == 0:
            return max(found, 0)
        if self.state.cluster.pooled:
            return min(found, self.state.total[which] // self.kinds.milli[kind])
        if self.kinds.part[kind] == 0:
            return min(found, self.state.idle[which] // self.kinds.whole[kind])
        return self.shares(self.kinds.part[kind], which, found)

    @compiled
    def shares(
        self, part: cython.longlong, which: cython.int, most: cython.longlong
    ) -> cython.longlong:
        """Return how many of at most so many shares fit a node's devices."""
        fitting: cython.longlong = 0
        each: cython.int = self.state.cluster.each
        for device in range(which * each, (which + 1) * each):
            fitting += self.state.devices[device] // part
            if fitting >= most:
                return most
        return fitting

    @compiled
    def fits(self, kind: cython.int, which: cython.int, tasks: cython.longlong) -> cython.bint:
        """Return whether so many of a job's tasks fit a node that they may use."""
        part: cython.longlong = self.kinds.part[kind]
        if self.state.cores[which] < tasks * self.kinds.cores[kind]:
            return False
        if self.state.mem[which] < tasks * self.kinds.mem[kind]:
            return False
        if self.state.cluster.pooled:
            return self.state.total[which] >= tasks * self.kinds.milli[kind]
        if part == 0:
            return self.state.idle[which] >= tasks * self.kinds.whole[kind]
        if self.state.most_free[which] < part or self.state.total[which] < tasks * part:
            return False
        return tasks == 1 or self.shares(part, which, tasks) == tasks

    # Nodes by sets.

    @compiled
    def candidates(self, kind: cython.int, tasks: cython.longlong) -> cython.longlong:
        """Return where in ``state.sets`` the nodes begin whose GPUs may suffice.

        -1: any may, because the tasks need none; -2: none does.
        """
        words: cython.longlong = self.state.cluster.words
        if self.kinds.milli[kind] == 0:
            return -1
        if self.state.cluster.pooled or self.kinds.part[kind] == 0:
            least = tasks * self.kinds.milli[kind] // DEVICE_MILLI
            if least > self.state.cluster.top:
                return -2
            return (SET_LEVELS + least - 1) * words if least > 0 else SET_WITH_GPUS * words
        least = self.kinds.part[kind] >> BUCKET_SHIFT
        return (self.state.first_bucket + least - 1) * words if least > 0 else SET_WITH_GPUS * words

    @compiled
    def word_of(self, kind: cython.int, row: cython.longlong, word: cython.int) -> cython.longlong:
        """Return a word of the candidates that a search looks at, and that the kind may use."""
        found: cython.longlong = self.state.within[word]
        if row >= 0:
            found &= self.state.sets[row + word]
        if self.kinds.mask[kind] >= 0:
            found &= self.kinds.sets.bits[self.kinds.mask[kind] + word]
        return found

    @compiled
    def first_idle(self, kind: cython.int, own: cython.int) -> cython.int:
        """Return the first node of a kind that runs nothing and that a job may use, or -1.

        Nodes of one kind have one GPU type, but a job may be bound to some nodes of it alone.
        """
        which: cython.int = self.state.first_idle(own)
        if which < 0 or self.kinds.allows(kind, which):
            return which
        begin = (self.state.first_kind + own) * self.state.cluster.words
        for word in range(which >> 6, self.state.cluster.words):
            found = self.word_of(kind, begin, word)
            if found != 0:
                return (word << 6) + lowest_bit(found)
        return -1
