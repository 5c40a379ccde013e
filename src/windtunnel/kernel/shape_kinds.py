"""`ShapeKinds`: kinds of elastic jobs, each an option: GPUs on each of several nodes, and cores.

`ShapeDomains`: domains of nodes in which the pieces of a shape lie together, level by level.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.node_sets import NodeSets
from windtunnel.kernel.pairs import with_capacity


@cython.final
@cython.cclass
class ShapeKinds:
    """Shapes and plain demands as columns; states of one cluster share them.

    Args:
        top: GPUs of the largest node.
        plain: how many kinds are plain demands; they come first.

    Attributes:
        count: kinds.
        plain_of: number of a plain demand in `windtunnel.kernel.free_nodes.FreeNodes`; -1 = the
            kind is a shape.
        begin: where the kind's pieces begin in ``piece``, (kinds + 1,).
        piece: GPUs of each piece, largest first.
        mask: the set of the nodes that a shape may use (`NodeSets.place`).
        cores: thousandths of cores beside so many GPUs of the kind, (kinds x (top + 1),).
        scored: kind of each piece on devices (`windtunnel.kernel.device_cluster`), of a placement
            that scores nodes.
        level: the level whose domains are to hold all pieces; -1 = none.
        required: no other level will do.
    """

    count: cython.int
    top: cython.int
    plain_of: cython.int[::1]
    begin: cython.int[::1]
    piece: cython.int[::1]
    scored: cython.int[::1]
    level: cython.int[::1]
    required: cython.schar[::1]
    mask: cython.longlong[::1]
    cores: cython.longlong[::1]

    def __init__(self, top: Any, plain: Any) -> None:
        self.top = top
        self.count = 0
        self.plain_of = numpy.zeros(8, dtype=numpy.int32)
        self.begin = numpy.zeros(9, dtype=numpy.int32)
        self.piece = numpy.zeros(8, dtype=numpy.int32)
        self.scored = numpy.zeros(8, dtype=numpy.int32)
        self.level = numpy.zeros(8, dtype=numpy.int32)
        self.required = numpy.zeros(8, dtype=numpy.int8)
        self.mask = numpy.zeros(8, dtype=numpy.int64)
        self.cores = numpy.zeros(8 * (top + 1), dtype=numpy.int64)
        for kind in range(plain):
            self.add(kind, (), 0, -1)

    def add(
        self,
        plain: Any,
        shape: Any,
        num_cpus: Any,
        mask: Any,
        scored: Any = (),
        within: Any = (-1, False),
    ) -> int:
        """Add a kind; return its number.

        Args:
            plain: number of the plain demand; -1 = it is a shape.
            shape: GPUs on each node, largest first.
            num_cpus: cores of the whole gang.
            mask: where the set of the nodes that it may use begins.
            scored: kind of each piece on devices.
            within: the level whose domains are to hold all pieces, and whether no other will do.

        Raises:
            ValueError: the pieces are not in order, or not positive.
        """
        pieces = [int(gpus) for gpus in shape]
        if pieces != sorted(pieces, reverse=True) or min(pieces, default=1) < 1:
            raise ValueError(f"shape {pieces}: expected GPUs on each node, largest first")
        kind: cython.int = self.count
        first: cython.int = self.begin[kind]
        most: cython.int = self.top + 1
        self.plain_of = with_capacity(self.plain_of, kind + 1)
        self.begin = with_capacity(self.begin, kind + 2)
        self.mask = with_capacity(self.mask, kind + 1)
        self.piece = with_capacity(self.piece, first + len(pieces))
        self.scored = with_capacity(self.scored, first + len(pieces))
        self.cores = with_capacity(self.cores, (kind + 1) * most)
        self.level = with_capacity(self.level, kind + 1)
        self.required = with_capacity(self.required, kind + 1)
        self.plain_of[kind] = plain
        self.level[kind], self.required[kind] = within
        self.mask[kind] = mask
        self.begin[kind + 1] = first + len(pieces)
        numpy.asarray(self.piece)[first : first + len(pieces)] = numpy.minimum(pieces, 2**30)
        numpy.asarray(self.scored)[first : first + len(scored)] = scored
        if pieces:
            num_gpus: object = sum(pieces)
            beside = [round(num_cpus * 1000 * gpus / num_gpus) for gpus in range(most)]
            numpy.asarray(self.cores)[kind * most : (kind + 1) * most] = beside
        self.count += 1
        return int(kind)


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
