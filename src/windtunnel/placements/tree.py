"""Tree: gangs stay within domains of the cluster's levels, as far as they ask for it.

What a job asks is its ``topology`` (`windtunnel.cluster.topology.words`); the rules are Kueue's
(docs/systems/kueue.md), of pods of whole GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreeNodes, Where
    from windtunnel.cluster.topology.node_tree import NodeTree


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
        return self.tree.place(np.array(free.free, np.int64), demand)
