"""Nodes with real GPU devices, and what jobs ask of them.

A GPU has 1,000 thousandths ("milli"). A task asks for whole GPUs or for a share of one GPU, never
for shares of several: half of one GPU and half of another are not a GPU. That is what fragments a
shared cluster (Weng et al., "Beware of Fragmentation", ATC'23, section 2). Cores and memory are
constraints of the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.cluster.topology.request import TopologyRequest

#: Thousandths of a GPU.
MILLI = 1000
#: Thousandths of a CPU core.
CORE_UNITS = 1000
#: MiB of a GiB.
MIB = 1024
#: Free amount of a resource that is not constrained.
UNLIMITED = 1 << 60
#: Devices of one node that a 64-bit integer of a grant can name.
MAX_DEVICES = 62


@dataclass(frozen=True)
class DeviceNode:
    """One node.

    Attributes:
        name: unique; ties may be broken by it.
        gpus: number of GPUs.
        gpu_type: their type; None = not distinguished.
        cores: thousandths of CPU cores; None = not constrained.
        mem: memory in MiB; None = not constrained.
        rack: its rack; None = the cluster states no racks.
    """

    name: str
    gpus: int
    gpu_type: str | None = None
    cores: int | None = None
    mem: int | None = None
    rack: int | None = None


@dataclass(frozen=True)
class DeviceDemand:
    """What jobs of one class ask for; jobs with equal demands are interchangeable.

    Attributes:
        count: tasks of the gang, each of which must fit one node.
        gpus: whole GPUs of one task.
        milli: share of one GPU that one task asks for, thousandths; 0 = whole GPUs, or none. On a
            pooled state both may be set: one and a half GPUs.
        cores: thousandths of cores of one task; 0 = unknown or none.
        mem: MiB of one task; 0 = unknown or none.
        allowed: bitset of the nodes whose GPU type is acceptable (a task without GPUs takes any).
        largest: most tasks that one allowed empty node holds, at most ``count``.
        smallest: least such number above 0 (0 where no allowed node serves).
        capacity: tasks that the allowed nodes of an empty cluster hold.
        topology: what it asks of the levels of a tree in which it is placed; None = nothing.
    """

    count: int
    gpus: int
    milli: int
    cores: int
    mem: int
    allowed: int
    largest: int
    smallest: int
    capacity: int
    topology: TopologyRequest | None = None

    @property
    def amount(self) -> int:
        """Thousandths of GPUs of one task."""
        return self.gpus * MILLI + self.milli

    @property
    def is_nothing(self) -> bool:
        """Whether the job asks for nothing at all, and so runs nowhere in particular."""
        return not (self.gpus or self.milli or self.cores or self.mem)

    @property
    def group(self) -> int:
        """What kind of GPU job it is: 0 a share, k whole GPUs; -1 without GPUs."""
        if self.milli:
            return 0
        return self.gpus or -1

    def tasks(self, grant: int, *, pooled: bool) -> int:
        """Return how many tasks a grant serves."""
        if pooled:
            return grant // self.amount if self.amount else 1
        return grant.bit_count() // self.gpus if self.gpus else 1


def device_nodes(
    cluster: ClusterSpec, names: Sequence[str] | None = None
) -> tuple[DeviceNode, ...]:
    """Return a cluster's nodes, one by one, in its order.

    Args:
        cluster: a cluster with nodes.
        names: a name a node; None = ``node-0000`` and so on, which sort as they are numbered.

    Raises:
        SpecError: the cluster is a pool, a node has too many GPUs, or the names do not fit it.
    """
    if cluster.is_pool:
        raise SpecError("cluster", "found a pool; expected nodes, as in 64x8:A100, to place GPUs.")
    count = cluster.num_nodes
    width = max(4, len(str(count - 1)))
    given = [f"node-{i:0{width}d}" for i in range(count)] if names is None else list(names)
    if len(given) != count or len(set(given)) != count:
        raise SpecError("names", f"found {len(set(given))} names; expected {count}, all different")
    nodes: list[DeviceNode] = []
    racks = cluster.racks or (None,) * count
    for kind in cluster.node_types:
        if kind.gpus > MAX_DEVICES:
            raise SpecError("cluster", f"{kind.gpus} GPUs a node; expected at most {MAX_DEVICES}")
        cores = None if kind.cpus is None else round(kind.cpus * CORE_UNITS)
        mem = None if kind.mem_gib is None else round(kind.mem_gib * MIB)
        kind_of_gpu = kind.gpu_type if kind.gpus else None
        for _ in range(kind.count):
            index = len(nodes)
            nodes.append(DeviceNode(given[index], kind.gpus, kind_of_gpu, cores, mem, racks[index]))
    return tuple(nodes)


def device_demand(
    nodes: Sequence[DeviceNode],
    *,
    gpus: int = 0,
    milli: int = 0,
    cores: int = 0,
    mem: int = 0,
    count: int = 1,
    types: frozenset[str] | None = None,
    pooled: bool = False,
    bind_cpu_tasks: bool = False,
) -> DeviceDemand:
    """Return the demand of one class of jobs on a cluster.

    Args:
        nodes: the cluster.
        gpus: whole GPUs of one task.
        milli: share of one GPU of one task, 0 to 999 thousandths.
        cores: thousandths of cores of one task.
        mem: MiB of one task.
        count: tasks of the gang.
        types: acceptable GPU types; None = any. They bind tasks with GPUs only.
        pooled: whether a node's GPUs are one pool.
        bind_cpu_tasks: types bind tasks without GPUs, too.

    Raises:
        SpecError: a number is out of range, or a task asks for more than one GPU with a share.
    """
    if min(gpus, milli, cores, mem) < 0 or count < 1 or milli >= MILLI:
        raise SpecError(
            "demand",
            f"{count} tasks of {gpus} GPUs, {milli} milli, {cores} core milli, {mem} MiB; expected "
            f"at least one task, nothing negative, and less than {MILLI} milli.",
        )
    if gpus and milli and not pooled:
        raise SpecError(
            "demand",
            f"a task of {gpus + milli / MILLI:g} GPUs; expected whole GPUs, or a share of one.",
        )
    binds = types is not None and (gpus or milli or bind_cpu_tasks)
    asked = {"gpus": gpus, "milli": milli, "cores": cores, "mem": mem, "count": count}
    allowed = largest = smallest = capacity = 0
    for kind in node_kinds(nodes):
        if binds and types is not None and kind.example.gpu_type not in types:
            continue
        allowed |= kind.members
        fitting = _tasks_on_empty(kind.example, **asked, pooled=pooled)
        if fitting:
            largest = max(largest, fitting)
            smallest = min(smallest or fitting, fitting)
            capacity += fitting * kind.count
    return DeviceDemand(
        *(count, gpus, milli, cores, mem, allowed),
        largest=largest,
        smallest=smallest,
        capacity=capacity,
    )


@dataclass(frozen=True)
class NodeKind:
    """Nodes that are alike but for their names.

    Attributes:
        example: one of them.
        count: how many.
        members: which, as a bitset.
    """

    example: DeviceNode
    count: int
    members: int


def node_kinds(nodes: Sequence[DeviceNode]) -> tuple[NodeKind, ...]:
    """Return the distinct kinds of nodes, in order of appearance."""
    found: dict[tuple[object, ...], list[int]] = {}
    for index, node in enumerate(nodes):
        found.setdefault((node.gpus, node.gpu_type, node.cores, node.mem), []).append(index)
    return tuple(
        NodeKind(nodes[members[0]], len(members), sum(1 << index for index in members))
        for members in found.values()
    )


def _tasks_on_empty(
    node: DeviceNode, *, gpus: int, milli: int, cores: int, mem: int, count: int, pooled: bool
) -> int:
    """Return how many of ``count`` tasks an empty node holds."""
    fitting = count
    if cores and node.cores is not None:
        fitting = min(fitting, node.cores // cores)
    if mem and node.mem is not None:
        fitting = min(fitting, node.mem // mem)
    if pooled and (gpus or milli):
        return min(fitting, node.gpus * MILLI // (gpus * MILLI + milli))
    if milli:
        return min(fitting, node.gpus * (MILLI // milli))
    return min(fitting, node.gpus // gpus) if gpus else fitting


def name_ranks(nodes: Sequence[DeviceNode]) -> list[int]:
    """Return each node's place among all by name, letter by letter."""
    ranks = [0] * len(nodes)
    for rank, index in enumerate(sorted(range(len(nodes)), key=lambda i: nodes[i].name)):
        ranks[index] = rank
    return ranks


def nodes_of_racks(nodes: Sequence[DeviceNode]) -> tuple[tuple[int, ...], ...]:
    """Return the nodes of each rack, in rack order; empty where nodes state no racks."""
    found: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        if node.rack is not None:
            found.setdefault(node.rack, []).append(index)
    return tuple(tuple(found[rack]) for rack in sorted(found))


def largest_node(nodes: Sequence[DeviceNode]) -> tuple[int, int]:
    """Return the most cores and the most GPUs of any node, in thousandths, 1 at least."""
    cores = max((n.cores for n in nodes if n.cores is not None), default=1)
    return max(cores, 1), max(1, *(n.gpus * MILLI for n in nodes), 1)
