"""`ClusterSpec`: the immutable description of a cluster that a run takes.

A cluster is an ordered list of node types; nodes are numbered through that list, so the node index
that breaks ties is fixed by the specification. A *pool* is a cluster without node boundaries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from windtunnel.cluster.levels import Levels
from windtunnel.errors import SpecError, quote
from windtunnel.toml_file import read_toml, struct_of

#: GPUs of a cluster: they are counted in whole numbers of 32 bits.
MAX_GPUS = 2**31 - 1
#: Larger clusters do not exist; a typing error should not eat the machine's memory.
MAX_NODES = 1_000_000
#: Nor nodes with more GPUs; a pool, which is one big node, may have as many as any cluster.
MAX_GPUS_A_NODE = 1_000_000
#: Node types spelled out in a one-line description.
_SHOWN_TYPES = 6


class NodeType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that are alike.

    Attributes:
        count: how many nodes.
        gpus: GPUs a node; 0 for a CPU node.
        gpu_type: the GPUs' type; None where the cluster does not tell types apart.
        cpus: CPU cores a node; None = not constrained.
        mem_gib: host memory a node in GiB; None = not constrained.
        nodes_per_rack: nodes a rack (hypernode, switch block); None = the cluster states no racks.
    """

    count: int
    gpus: int
    gpu_type: str | None = None
    cpus: float | None = None
    mem_gib: float | None = None
    nodes_per_rack: int | None = None


class ClusterSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cluster: node types in order, or a pool.

    Attributes:
        node_types: the node types, in the order in which nodes are numbered.
        name: what to call the cluster on a page.
        is_pool: no node boundaries: any free GPUs serve (each node type is one big node).
        aliases: other names of its GPU types: name -> type. Types are compared without regard to
            case.
        topology: levels above the nodes; None = it states none but racks.

    >>> ClusterSpec.uniform(nodes=64, gpus_per_node=8, gpu_type="A100").num_gpus
    512
    """

    node_types: tuple[NodeType, ...]
    name: str = ""
    is_pool: bool = False
    aliases: dict[str, str] = {}
    topology: Levels | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SpecError: a count is no whole number or not positive, the cluster has no GPU, some of
                its node types state racks and others do not, or an alias is of no GPU type that it
                has.
        """
        for index, node in enumerate(self.node_types):
            path = f"$.node_types[{index}]"
            _check_kinds(node, path)
            self._check_racks(node, f"{path}.nodes_per_rack")
            if node.count < 1:
                raise SpecError(f"{path}.count", f"found {node.count}; expected at least 1 node")
            if node.gpus < 0:
                raise SpecError(f"{path}.gpus", f"found {node.gpus}; expected 0 or more GPUs")
            if node.gpus > MAX_GPUS:
                message = f"found {node.gpus:.6g}; expected at most {MAX_GPUS:,} GPUs"
                raise SpecError(f"{path}.gpus", message)
            if node.gpus > MAX_GPUS_A_NODE and not self.is_pool:
                expected = f"at most {MAX_GPUS_A_NODE:,} GPUs a node, or a pool (pool:512)"
                raise SpecError(f"{path}.gpus", f"found {node.gpus:,}; expected {expected}.")
            for field in ("cpus", "mem_gib"):
                value = getattr(node, field)
                if value is not None and not 0 < value < float("inf"):
                    raise SpecError(f"{path}.{field}", f"found {value}; expected a number > 0")
        self._check_totals()
        self._check_levels()
        self._check_aliases()

    def _check_aliases(self) -> None:
        there = {name.lower() for name in self.gpu_types}
        gpu_type: Any  # in Python anything
        for alias, gpu_type in self.aliases.items():
            if not isinstance(gpu_type, str):
                expected = f"found {quote(gpu_type)}; expected a GPU type's name."
                raise SpecError(f"$.aliases.{alias}", expected)
            if gpu_type.lower() not in there:
                raise SpecError.unknown(f"$.aliases.{alias}", gpu_type, self.gpu_types)

    def _check_levels(self) -> None:
        if self.topology is None:
            return
        if self.is_pool:
            raise SpecError("topology", "a pool has no nodes, and so no levels above them")
        if any(node.nodes_per_rack is not None for node in self.node_types):
            message = "racks are stated twice; expected levels or nodes_per_rack"
            raise SpecError("topology", message)
        self.topology.of_nodes(self.num_nodes)

    def _check_totals(self) -> None:
        if self.num_nodes > MAX_NODES:
            raise SpecError(
                "$.node_types", f"{self.num_nodes:,} nodes; expected at most {MAX_NODES:,}"
            )
        if self.num_gpus < 1:
            raise SpecError("$.node_types", "the cluster has no GPU; expected at least one")
        if self.num_gpus > MAX_GPUS:
            message = f"{self.num_gpus:,} GPUs; expected at most {MAX_GPUS:,}"
            raise SpecError("$.node_types", message)

    def _check_racks(self, node: NodeType, path: str) -> None:
        per_rack = node.nodes_per_rack
        if per_rack is None:
            if any(other.nodes_per_rack is not None for other in self.node_types):
                message = "missing; other node types of the cluster state it, so all must"
                raise SpecError(path, message)
        elif self.is_pool:
            raise SpecError(path, f"found {per_rack}; a pool has no nodes, and so no racks")
        elif per_rack < 1:
            raise SpecError(path, f"found {per_rack}; expected at least 1 node a rack")

    @classmethod
    def uniform(
        cls,
        nodes: int,
        gpus_per_node: int,
        gpu_type: str | None = None,
        *,
        cpus_per_node: float | None = None,
        mem_gib_per_node: float | None = None,
        nodes_per_rack: int | None = None,
        name: str = "",
    ) -> ClusterSpec:
        """Return a cluster of ``nodes`` equal nodes.

        Raises:
            SpecError: a number is none, or out of range.
        """
        values: tuple[Any, ...] = (nodes, gpus_per_node, gpu_type, cpus_per_node)
        values += (mem_gib_per_node, nodes_per_rack)
        node = NodeType(*(value.item() if hasattr(value, "item") else value for value in values))
        return cls((node,), name or f"{nodes}x{gpus_per_node}" + (f":{gpu_type}" * bool(gpu_type)))

    @classmethod
    def pool(
        cls,
        gpus: int,
        cpus: float | None = None,
        gpu_type: str | None = None,
        *,
        name: str = "",
    ) -> ClusterSpec:
        """Return a pool of ``gpus`` GPUs (and, if given, ``cpus`` cores) without nodes."""
        label = name or f"pool:{gpus}" + (f":{gpu_type}" * bool(gpu_type))
        return cls((NodeType(1, gpus, gpu_type, cpus),), label, is_pool=True)

    @classmethod
    def from_toml(cls, path: str | Path) -> ClusterSpec:
        """Read a cluster from a TOML file.

        The file has ``name`` (optional), ``is_pool`` (optional) and one ``[[node_types]]`` table a
        node type, with the fields of `NodeType`.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
        """
        return cls.from_mapping(read_toml(path), source=str(path), default_name=Path(path).stem)

    @classmethod
    def from_mapping(
        cls, raw: dict[str, Any], *, source: str = "$", default_name: str = ""
    ) -> ClusterSpec:
        """Build a cluster from plain data (parsed TOML or JSON).

        Raises:
            SpecError: an unknown key (the nearest is suggested), a missing key or a wrong type.
        """
        bare = {name: value for name, value in raw.items() if name != "topology"}
        cluster = struct_of(cls, {"name": default_name, **bare}, source)
        levels = raw.get("topology")
        if levels is None:
            return cluster
        if not isinstance(levels, dict):
            raise SpecError(f"{source}: $.topology", f"found {quote(levels)}; expected a table.")
        return cluster.with_levels(Levels.from_mapping(levels, cluster.num_nodes))

    def with_levels(self, levels: Levels) -> ClusterSpec:
        """Return the cluster with other levels above its nodes.

        Raises:
            SpecError: they are of other nodes.
        """
        nodes = tuple(msgspec.structs.replace(n, nodes_per_rack=None) for n in self.node_types)
        return msgspec.structs.replace(self, node_types=nodes, topology=levels)

    def to_mapping(self) -> dict[str, Any]:
        """Return the cluster as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @property
    def num_nodes(self) -> int:
        """Number of nodes (node types of a pool count once each)."""
        return sum(node.count for node in self.node_types)

    @property
    def num_gpus(self) -> int:
        """Number of GPUs."""
        return sum(node.count * node.gpus for node in self.node_types)

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """Distinct GPU types in node order; empty where the cluster does not tell them apart."""
        named = (n.gpu_type for n in self.node_types if n.gpu_type is not None and n.gpus)
        return tuple(dict.fromkeys(named))

    @property
    def racks(self) -> tuple[int, ...]:
        """Rack of each node, in node order; empty where the cluster states no racks.

        The domains of the lowest level above the nodes are the racks. Else they are numbered
        through the list of node types: each type begins a new rack, and its last rack may have
        fewer nodes than the others.

        >>> ClusterSpec((NodeType(3, 8, nodes_per_rack=2), NodeType(1, 4, nodes_per_rack=2))).racks
        (0, 0, 1, 2)
        """
        if self.topology is not None:
            numbers: dict[tuple[str, ...], int] = {}
            paths = self.topology.of_nodes(self.num_nodes)
            return tuple(numbers.setdefault(path, len(numbers)) for path in paths)
        found: list[int] = []
        first = 0
        for node in self.node_types:
            if node.nodes_per_rack is None:
                return ()
            found += [first + index // node.nodes_per_rack for index in range(node.count)]
            first = found[-1] + 1
        return tuple(found)

    @property
    def level_paths(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The levels above the nodes from the top, and of each node its domain of each.

        Racks are the one level of a cluster that states no others.
        """
        if self.topology is not None:
            return self.topology.levels, self.topology.of_nodes(self.num_nodes)
        if not self.racks:
            return (), ((),) * self.num_nodes
        width = len(str(self.racks[-1]))
        return ("rack",), tuple((f"{rack:0{width}d}",) for rack in self.racks)

    def part(self, divisor: int) -> ClusterSpec:
        """Return a smaller cluster alike: of each node type 1 in ``divisor`` nodes, at least one.

        Args:
            divisor: at least 1; half a node counts as the next even number (Python's `round`).

        Raises:
            SpecError: ``divisor`` is below 1.

        >>> ClusterSpec.uniform(nodes=64, gpus_per_node=8, name="big").part(6).describe()
        '88 GPUs: 11 nodes x 8 GPUs'
        """
        if divisor < 1:
            raise SpecError("cluster", f"found 1/{divisor} of {self.name}; expected 1/1 or less.")
        smaller = tuple(
            msgspec.structs.replace(node, count=max(1, round(node.count / divisor)))
            for node in self.node_types
        )
        return ClusterSpec(smaller, f"{self.name}/{divisor}", self.is_pool)

    def describe(self) -> str:
        """Return the cluster in one line: ``512 GPUs: 64 nodes x 8 A100``.

        Nodes that differ in cores or memory alone are one kind; of many kinds those with most GPUs
        are named.
        """
        if self.is_pool:
            parts = [f"{n.count * n.gpus} {n.gpu_type or 'GPUs'}" for n in self.node_types]
            return f"{self.num_gpus:,} GPUs in a pool without nodes" + (
                f" ({', '.join(parts)})" if self.gpu_types else ""
            )
        counts: dict[tuple[int, str | None, int | None], int] = {}
        for n in self.node_types:
            kind = (n.gpus, n.gpu_type, n.nodes_per_rack)
            counts[kind] = counts.get(kind, 0) + n.count
        kinds = list(counts)
        more = len(kinds) - _SHOWN_TYPES
        if more > 0:
            kinds.sort(key=lambda kind: -kind[0] * counts[kind])
        parts = [
            f"{counts[kind]:,} nodes x {kind[0]} {kind[1] or 'GPU' + 's' * (kind[0] != 1)}"
            + (f" in racks of {kind[2]:,}" if kind[2] is not None else "")
            for kind in kinds[:_SHOWN_TYPES]
        ]
        if more > 0:
            parts.append(f"and {more} more type{'s' * (more > 1)}")
        shown = ", ".join(parts)
        return f"{self.num_gpus:,} GPUs: {shown}"


def _check_kinds(node: NodeType, path: str) -> None:
    """Check what each value of a node type is; those that files give are known to be of the kind.

    Raises:
        SpecError: a number or a GPU type is something else.
    """
    for name in ("count", "gpus", "nodes_per_rack"):
        value = getattr(node, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and (value is not None or name != "nodes_per_rack"):
            raise SpecError(f"{path}.{name}", f"found {quote(value)}; expected a whole number.")
    for name in ("cpus", "mem_gib"):
        value = getattr(node, name)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise SpecError(f"{path}.{name}", f"found {quote(value)}; expected a number > 0.")
    kind = node.gpu_type
    if kind is not None and (not isinstance(kind, str) or not kind or "|" in kind):
        message = f"found {quote(kind)}; expected one type's name, without '|'"
        raise SpecError(f"{path}.gpu_type", message)
