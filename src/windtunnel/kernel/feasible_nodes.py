"""`VictimsOnNodes`: whether a job fits on nodes once some running jobs are gone.

Counts instead of tries: on nodes with whole GPUs a job that fits on one node needs a node with so
many free, a larger gang whole empty nodes and one more for the rest. Exact for jobs that may use
nodes of one size only, and for all that fit on one node.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.free_nodes import FreeNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class VictimsOnNodes:
    """Trials on a copy of how many GPUs each node has free.

    Attributes:
        whole: empty nodes that a job of each kind needs; -1 = these counts do not tell.
        rest: GPUs that it needs on one more node.
        free: free GPUs of the nodes that this trial has touched.
        touched: number of the last trial that touched a node.
        empty: allowed nodes that are empty in this trial.
        fitting: allowed nodes with ``rest`` free GPUs.
    """

    state: State
    nodes: FreeNodes
    kind: cython.int
    whole: cython.longlong[::1]
    rest: cython.longlong[::1]
    free: cython.longlong[::1]
    touched: cython.longlong[::1]
    trials: cython.longlong
    empty: cython.longlong
    fitting: cython.longlong

    def __init__(self, state: State, nodes: FreeNodes) -> None:
        self.state, self.nodes = state, nodes
        kinds = nodes.kinds.count
        self.whole = numpy.full(max(kinds, 1), -1, dtype=numpy.int64)
        self.rest = numpy.zeros(max(kinds, 1), dtype=numpy.int64)
        for kind in range(kinds):
            self._set_needs(kind)
        self.free = numpy.zeros(max(nodes.nodes, 1), dtype=numpy.int64)
        self.touched = numpy.zeros(max(nodes.nodes, 1), dtype=numpy.int64)
        self.trials = 0

    def _set_needs(self, kind: int) -> None:
        """Work out the whole nodes and the rest that a job of a kind needs, if it is so simple."""
        gpus, task = self.nodes.kinds.gpus[kind], self.nodes.kinds.task[kind]
        if gpus <= self.nodes.kinds.largest[kind]:
            self.whole[kind], self.rest[kind] = 0, gpus
            return
        nodes = range(self.nodes.nodes)
        sizes = {int(self.nodes.size[node]) for node in nodes if self.nodes.allows(kind, node)}
        size = max(sizes, default=0)
        if len(sizes) == 1 and size > 0 and size % task == 0:
            self.whole[kind], self.rest[kind] = gpus // size, gpus % size

    @compiled
    def tells(self, kind: cython.int) -> cython.bint:
        """Return whether the counts are exact for jobs of a kind."""
        return self.whole[kind] >= 0

    @compiled
    def begin(self, kind: cython.int) -> cython.void:
        """Count the nodes as they are, for a job of a kind that does not fit on them."""
        self.kind = kind
        self.trials += 1
        self.empty = 0
        self.fitting = 0
        if self.whole[kind] == 0:
            return  # none has enough free
        if self.nodes.kinds.mask[kind] < 0:
            self.empty = self.nodes.marks[
                cython.cast(cython.longlong, self.nodes.top + 1) * self.nodes.stride
            ]
            for row in range(self.rest[kind], self.nodes.top + 1):
                self.fitting += self.nodes.marks[row * self.nodes.stride]
            return
        for node in range(self.nodes.nodes):
            if self._counts(node):
                self.empty += self.nodes.free[node] == self.nodes.size[node]
                self.fitting += self.nodes.free[node] >= self.rest[kind]

    @compiled
    def release(self, job: cython.int) -> cython.bint:
        """Let a running job be gone; return whether the job fits then."""
        stay: cython.int = self.state.stay[job]
        for pair in range(self.state.stays.first[stay], self.state.stays.last(stay)):
            self._release(self.state.stays.pairs.node[pair], self.state.stays.pairs.grant[pair])
        return self.empty >= self.whole[self.kind] and (
            self.rest[self.kind] == 0 or self.fitting > self.whole[self.kind]
        )

    @compiled
    def _counts(self, node: cython.int) -> cython.bint:
        """Return whether a job of the kind at hand may use a node."""
        if self.nodes.holds.times[node] != 0:
            return False
        return self.nodes.kinds.mask[self.kind] < 0 or self.nodes.allows(self.kind, node)

    @compiled
    def _release(self, node: cython.int, gpus: cython.longlong) -> cython.void:
        if not self._counts(node):
            return
        before = self.free[node]
        if self.touched[node] != self.trials:
            self.touched[node] = self.trials
            before = self.nodes.free[node]
        self.free[node] = before + gpus
        if before < self.rest[self.kind] <= before + gpus:
            self.fitting += 1
        if before + gpus == self.nodes.size[node]:
            self.empty += 1
