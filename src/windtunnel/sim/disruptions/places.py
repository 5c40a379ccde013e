"""Where a description's nodes and GPUs are in a run: `Site`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.gpu_types import spelling, spelt
from windtunnel.cluster.levels import HOSTS
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.problem import Problem

#: (node or pool, GPU units there).
Places = tuple[tuple[int, int], ...]


class Site:
    """Where the cluster's nodes are in the run: themselves, or in the pool of their type."""

    def __init__(self, problem: Problem, cluster: ClusterSpec) -> None:
        self.is_pool = problem.is_pool
        self.has_nodes = not cluster.is_pool
        self.levels, self.paths = cluster.level_paths if self.has_nodes else ((), ())
        self.units = problem.units
        kinds = [kind for kind in cluster.node_types for _ in range(kind.count)]
        self.types = [kind.gpu_type for kind in kinds]
        self.spelling = spelling(cluster.gpu_types, cluster.aliases)
        self.gpus = [kind.gpus for kind in kinds]
        pooled = [k.gpu_type for k in cluster.node_types if k.gpus or cluster.is_pool]
        self.pool_types = list(dict.fromkeys(pooled))
        self.sizes = problem.sizes.tolist()

    def nodes(self, path: str, nodes: Sequence[int]) -> Places:
        """Return the places of nodes by their indices."""
        if not self.has_nodes:
            raise SpecError(
                path,
                "a pool has no nodes that fail. Give a cluster of nodes, such as 4x8, or tell in a "
                ".toml file which GPUs fail when ([[node_failures]] with gpus = 8).",
            )
        if len(set(nodes)) != len(nodes):
            raise SpecError(path, f"found {list(nodes)}; expected each node once.")
        places = []
        for node in nodes:
            if not 0 <= node < len(self.gpus):
                last = len(self.gpus) - 1
                raise SpecError(path, f"found node {node}; the cluster has nodes 0 to {last}.")
            if self.is_pool and self.gpus[node]:
                pool = self.pool_types.index(self.types[node])
                places.append((pool, self.gpus[node] * self.units))
            elif not self.is_pool:
                places.append((node, self.sizes[node]))
        return tuple(places)

    def pool(self, path: str, gpus: int, gpu_type: str | None) -> Places:
        """Return so many GPUs of a pool."""
        if not self.is_pool:
            raise SpecError(path, "expected nodes (nodes = [0]); only a pool loses single GPUs.")
        if gpu_type is None and len(self.pool_types) > 1:
            known = ", ".join(str(name) for name in self.pool_types)
            raise SpecError(path, f"expected a gpu_type, one of {known}.")
        index = 0 if gpu_type is None else self._pool_of(path, gpu_type)
        size = self.sizes[index] // self.units
        if not 1 <= gpus <= size:
            raise SpecError(path, f"found {gpus} GPUs; the pool has {size}.")
        return ((index, gpus * self.units),)

    def either(
        self, path: str, nodes: Sequence[int], gpus: int | None, gpu_type: str | None
    ) -> Places:
        """Return the places of nodes, or of GPUs of a pool, whichever is given."""
        if bool(nodes) == (gpus is not None):
            raise SpecError(path, "expected either nodes or gpus.")
        return self.nodes(path, nodes) if gpus is None else self.pool(path, gpus, gpu_type)

    def of_type(self, path: str, gpu_type: str | None) -> list[int]:
        """Return the nodes with GPUs, of one type or all of them."""
        gpu_type = None if gpu_type is None else spelt(gpu_type, self.spelling)
        if gpu_type is not None and gpu_type not in self.types:
            raise SpecError.unknown(path, gpu_type, [name for name in self.types if name])
        types = enumerate(self.types)
        return [n for n, name in types if self.gpus[n] and gpu_type in (None, name)]

    def domains(self, path: str, level: str | None, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the nodes of each domain of a level; each by itself where there is none.

        Raises:
            SpecError: the cluster has no such level.
        """
        if level is None or level in HOSTS:
            return [(node,) for node in nodes]
        if not self.has_nodes:
            raise SpecError(f"{path}.level", "a pool has no nodes, and so no levels above them.")
        if level not in self.levels:
            raise SpecError.unknown(f"{path}.level", level, [*self.levels, *HOSTS])
        depth = self.levels.index(level) + 1
        found: dict[tuple[str, ...], list[int]] = {}
        for node in nodes:
            if not 0 <= node < len(self.paths):
                self.nodes(path, (node,))  # says which nodes there are
            found.setdefault(self.paths[node][:depth], []).append(node)
        return [tuple(of) for of in found.values()]

    def _pool_of(self, path: str, gpu_type: str) -> int:
        gpu_type = spelt(gpu_type, self.spelling)
        if gpu_type not in self.pool_types:
            raise SpecError.unknown(path, gpu_type, [name for name in self.pool_types if name])
        return self.pool_types.index(gpu_type)
