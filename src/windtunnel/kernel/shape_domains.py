"""`ShapeDomains`: domains of nodes in which the pieces of a shape lie together, level by level."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.node_sets import NodeSets


@cython.final
@cython.cclass
class ShapeDomains:
    """The domains of a cluster's levels; see `windtunnel.sim.elastic.domains`.

    Args:
        levels: nodes of each domain, level by level from the top.
        sets: the cluster's sets of nodes.

    Attributes:
        first: number of each level's first domain, (levels + 1,).
        begin: where each domain's nodes begin in ``node``, (domains + 1,).
        node: nodes by domain.
        mask: each domain as a set (`NodeSets.place`), (domains,).
        free: scratch: free GPUs of each domain, (domains,); -1 = it is not to be tried any more.
    """

    first: cython.int[::1]
    begin: cython.int[::1]
    node: cython.int[::1]
    mask: cython.longlong[::1]
    free: cython.longlong[::1]

    def __init__(self, levels: Any, sets: NodeSets) -> None:
        domains = [nodes for level in levels for nodes in level]
        sizes: Any = [len(nodes) for nodes in domains]
        counts: Any = [len(level) for level in levels]
        self.first = numpy.array([0, *numpy.cumsum(counts)], dtype=numpy.int32)
        self.begin = numpy.array([0, *numpy.cumsum(sizes)], dtype=numpy.int32)
        self.node = numpy.array([node for nodes in domains for node in nodes], dtype=numpy.int32)
        masks = [sets.place(sum([1 << node for node in nodes])) for nodes in domains]
        self.mask = numpy.array(masks, dtype=numpy.int64)
        self.free = numpy.zeros(len(domains), dtype=numpy.int64)
