"""`FreeTree`: free GPUs of nodes under levels of domains, where gangs are placed level by level.

Where a job goes is asked of its placement (`windtunnel.placements.tree`), which looks at all nodes
at once; what is refused is remembered by the rules, as of every state.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.free import Free
from windtunnel.kernel.free_nodes import FreeNodes
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.raised import Raised


@cython.final
@cython.cclass
class FreeTree(FreeNodes):
    """Free GPUs of each node, for pods that are placed by a tree.

    Args:
        problem: jobs and cluster, with nodes and whole GPUs.
        placement: says where (`windtunnel.placements.tree.Tree`).
        access_sets: reservations of each access set; set 0 has none.

    Attributes:
        demands: what each kind of job asks for.
        tree: (free GPUs of each node, demand) -> (node, GPUs) pairs, or None.
    """

    demands: list
    tree: object

    def __init__(self, problem: Any, placement: Any, access_sets: Any = ((),)) -> None:
        super().__init__(problem, placement, access_sets)
        self.demands = list(problem.demands)
        self.tree = placement.tree.place_gpus
        self.raised = Raised()

    def _twin(self) -> Free:
        twin: FreeTree = FreeTree.__new__(FreeTree)
        twin.demands, twin.tree, twin.raised = self.demands, self.tree, self.raised
        twin._share(self)
        return twin

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind, for this state and its twins."""
        self.demands.append(demand)
        return self.kinds.add(demand)

    @compiled
    def fit_in_sight(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits the nodes that a search looks at; see `fit`."""
        fits: cython.bint
        self.place.count = 0
        if self.kinds.gpus[kind] > self.total:
            return False
        if self.kinds.gpus[kind] == 0:
            return True
        with cython.gil:
            fits = self._placed(kind)
        return fits

    def _placed(self, kind: int) -> bool:
        """Place a job of a kind on the nodes that a search looks at."""
        free: Any = numpy.maximum(numpy.asarray(self.free), 0).astype(numpy.int64)
        if self.holds.count != 0:
            for node in range(self.nodes):
                if not self.holds.is_in_sight(self.looks, node):
                    free[node] = 0
        found: Any = self.raised.call(self.tree, (free, self.demands[kind]))
        if found is None:
            return False
        for node, gpus in found:
            self.place.add(node, gpus)
        return True

    @compiled
    def is_single(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind is one pod, which fits where a node has enough GPUs."""
        return self.kinds.pods[kind] == 1

    @compiled
    def wants_idle_alone(self, kind: cython.int) -> cython.bint:
        """Return False: pods may share nodes with others."""
        return False

    @compiled
    def idle_need(self, kind: cython.int) -> cython.longlong:
        """Return 0: pods may share nodes with others."""
        return 0
