"""Tree: gangs stay within domains of the cluster's levels, as far as they ask for it.

What a job asks is its ``topology`` (`windtunnel.cluster.topology.words`); the rules are Kueue's
(docs/systems/kueue.md). Where devices, cores or memory are modelled, a node has room for a pod if
it has all that the pod asks for; its devices are chosen as `best_fit` chooses them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.placements.load import BestFitDevices

if TYPE_CHECKING:
    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free import Demand, FreeNodes, Where
    from windtunnel.cluster.free_devices import FreeDevices
    from windtunnel.cluster.topology.node_tree import NodeTree
    from windtunnel.placements.layouts import Layout


#: More pods than any node holds.
_MANY = 2**40


class Tree:
    """The tightest domain that holds the job, at the level that it asks for.

    Args:
        tree: the cluster's.
    """

    name = "tree"

    def __init__(self, tree: NodeTree) -> None:
        self.tree = tree

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        return self.tree.place_gpus(np.array(free.free, np.int64), demand)


class TreeOfDevices(BestFitDevices):
    """The same where devices, cores or memory are modelled.

    Args:
        tree: the cluster's.
    """

    name = "tree"
    tree: NodeTree

    def __init__(self, tree: NodeTree) -> None:
        super().__init__()
        self.tree = tree

    def lay_out(self, free: FreeDevices, demand: DeviceDemand) -> Layout | None:
        """Return (node, pods) pairs, or None if they do not fit."""
        many = replace(demand, count=_MANY)  # how tight a node is counts past the job's own pods
        fitting = [free.fitting(node, many) for node in range(len(free.nodes))]
        return self.tree.place(np.array(fitting, np.int64), demand.count, demand.topology)
