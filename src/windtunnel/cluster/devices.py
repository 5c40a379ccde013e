"""Nodes with real GPU devices, and what is free on them.

A GPU has 1,000 thousandths ("milli"). A task asks for whole GPUs or for a share of one GPU, never
for shares of several: half of one GPU and half of another are not a GPU. That is what fragments a
shared cluster (Weng et al., "Beware of Fragmentation", ATC'23, section 2). Cores and memory are
constraints of the node.

`FreeDevices` is the free state for the reference engine, in the manner of
`windtunnel.cluster.free`. Where a job runs is a list of (node, grant): a grant is the set of
devices as one bit each, so that which GPUs a job holds is part of where it runs. Tasks of whole
GPUs on one node share one grant; every other task has its own. In a *pooled* state a node's GPUs
are one pool of thousandths, as in the PAI simulator, and a grant is the thousandths taken.

Room is monotone: of less free room no node ever holds more tasks. Queues rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.cluster.free import NOBODY
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.cluster.spec import ClusterSpec

#: Thousandths of a GPU.
MILLI = 1000
#: Thousandths of a CPU core.
CORE_UNITS = 1000
#: MiB of a GiB.
MIB = 1024
#: Room of a resource that is not constrained.
UNLIMITED = 1 << 60
#: Devices of one node that a grant's 64-bit integer has room for.
MAX_DEVICES = 62


@dataclass(frozen=True)
class DeviceNode:
    """One node.

    Attributes:
        name: unique; ties may be broken by it.
        gpus: number of GPUs.
        gpu_type: their type; None = not told apart.
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
    kinds: Sequence[NodeKind] | None = None,
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
        kinds: the cluster's kinds of nodes, where they are known already.

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
    for kind in node_kinds(nodes) if kinds is None else kinds:
        if binds and types is not None and kind.example.gpu_type not in types:
            continue
        allowed |= kind.members
        room = _empty_room(kind.example, **asked, pooled=pooled)
        if room:
            largest = max(largest, room)
            smallest = min(smallest or room, room)
            capacity += room * kind.count
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


def _empty_room(
    node: DeviceNode, *, gpus: int, milli: int, cores: int, mem: int, count: int, pooled: bool
) -> int:
    """Return how many of ``count`` tasks an empty node holds."""
    room = count
    if cores and node.cores is not None:
        room = min(room, node.cores // cores)
    if mem and node.mem is not None:
        room = min(room, node.mem // mem)
    if pooled and (gpus or milli):
        return min(room, node.gpus * MILLI // (gpus * MILLI + milli))
    if milli:
        return min(room, node.gpus * (MILLI // milli))
    return min(room, node.gpus // gpus) if gpus else room


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


class FreeDevices:
    """What is free on each node.

    Args:
        nodes: the cluster.
        pooled: a node's GPUs are one pool of thousandths.

    Attributes:
        total: free thousandths of all GPUs.
        devices: free thousandths of each GPU of each node; of a pooled node, one number for all.
        cores: free thousandths of cores of each node; `UNLIMITED` = not constrained.
        mem: free MiB of each node; `UNLIMITED` = not constrained.
        tasks: tasks on each node.
        held: tasks with GPUs on each node by `DeviceDemand.group`.
        draws: jobs taken so far; seeds what is random in the next placement.
        withheld: nodes without room for others (down, or reserved): for whom, once for each time
            that they were withheld.
        shown: nodes that `opened` showed.
        ranks: place of each node among all by name.
        racks: the nodes of each rack; empty where the cluster states no racks.
        max_cores: thousandths of cores of the largest node, by which scores are scaled.
        max_milli: the same for GPUs.
    """

    def __init__(self, nodes: Sequence[DeviceNode], *, pooled: bool = False) -> None:
        for node in nodes:
            if node.gpus > MAX_DEVICES and not pooled:
                raise SpecError("cluster", f"{node.gpus} GPUs a node; at most {MAX_DEVICES} fit")
        self.nodes = tuple(nodes)
        self.pooled = pooled
        self.total = sum(node.gpus for node in nodes) * MILLI
        self.devices = [
            ([n.gpus * MILLI] if n.gpus else []) if pooled else [MILLI] * n.gpus for n in nodes
        ]
        self.cores = [UNLIMITED if n.cores is None else n.cores for n in nodes]
        self.mem = [UNLIMITED if n.mem is None else n.mem for n in nodes]
        self.tasks = [0] * len(nodes)
        top = max((n.gpus for n in nodes), default=0)
        self.held = [[0] * (top + 1) for _ in nodes]
        self.draws = 0
        self.withheld: dict[int, tuple[int, ...]] = {}
        self.shown: frozenset[int] = frozenset()
        self.ranks = name_ranks(nodes)
        self.racks = nodes_of_racks(nodes)
        self.max_cores, self.max_milli = largest_node(nodes)

    def free_milli(self, node: int) -> int:
        """Return the free thousandths of a node's GPUs."""
        return sum(self.devices[node])

    def idle(self, node: int) -> int:
        """Return how many of a node's GPUs nobody uses; a pooled state cannot tell."""
        return self.devices[node].count(MILLI)

    def room(self, node: int, demand: DeviceDemand) -> int:
        """Return how many of the gang's tasks fit a node now (0 to ``demand.count``)."""
        if not demand.allowed >> node & 1 or node in self.withheld:
            return 0
        room = demand.count
        if demand.cores:
            room = min(room, self.cores[node] // demand.cores)
        if demand.mem:
            room = min(room, self.mem[node] // demand.mem)
        if not demand.amount or room == 0:
            return room
        if self.pooled:
            return min(room, self.free_milli(node) // demand.amount)
        if demand.milli:
            return min(room, sum(free // demand.milli for free in self.devices[node]))
        return min(room, self.idle(node) // demand.gpus)

    def take(self, where: Where, demand: DeviceDemand) -> None:
        """Take what a placement chose."""
        self._move(where, demand, -1)
        self.draws += 1

    def give(self, where: Where, demand: DeviceDemand) -> None:
        """Give back what `take` took."""
        self._move(where, demand, 1)

    def copy(self) -> FreeDevices:
        """Return an independent copy."""
        twin = object.__new__(FreeDevices)
        twin.__dict__.update(self.__dict__)
        twin.devices = [free.copy() for free in self.devices]
        twin.held = [held.copy() for held in self.held]
        twin.cores, twin.mem, twin.tasks = self.cores.copy(), self.mem.copy(), self.tasks.copy()
        twin.withheld = self.withheld.copy()
        return twin

    def withhold(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - one contract with FreePool
        """Hide a node's room until it is restored as often as it was withheld.

        Args:
            node: its index; jobs may still run there.
            group: the reservation whose jobs may use it all the same (`opened`).
            units: of pools only; a node is withheld whole.
        """
        self.withheld[node] = (*self.withheld.get(node, ()), group)

    def restore(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - one contract with FreePool
        """Undo one `withhold` of the same node for the same group."""
        groups = list(self.withheld.pop(node))
        groups.remove(group)
        if groups:
            self.withheld[node] = tuple(groups)

    def opened(self, groups: Collection[int]) -> FreeDevices:
        """Return a copy that shows what is withheld for these groups alone."""
        twin = self.copy()
        shown = [n for n, held in self.withheld.items() if all(g in groups for g in held)]
        for node in shown:
            del twin.withheld[node]
        twin.shown = frozenset(shown)
        return twin

    def free_units(self, node: int) -> int:
        """Return the thousandths of a node's GPUs that nobody holds, hidden or not."""
        return self.free_milli(node)

    @property
    def down(self) -> int:
        """Thousandths of GPUs that nobody holds and nobody may use."""
        return sum(self.free_milli(n) for n, held in self.withheld.items() if NOBODY in held)

    def meet(self, other: FreeDevices) -> None:
        """Keep on each node only what is free in ``other``, too.

        Who uses the rest is unknown then: a node that either side uses counts as used by as many
        tasks as the fuller side has.
        """
        for node in range(len(self.nodes)):
            mine, theirs = self.devices[node], other.devices[node]
            self.devices[node] = list(map(min, mine, theirs))
            self.total -= sum(mine) - sum(self.devices[node])
            self.held[node] = list(map(max, self.held[node], other.held[node]))
        self.cores = list(map(min, self.cores, other.cores))
        self.mem = list(map(min, self.mem, other.mem))
        self.tasks = list(map(max, self.tasks, other.tasks))
        self.withheld = other.withheld | self.withheld

    def fits(self, where: Where, demand: DeviceDemand) -> bool:
        """Return whether a policy's own choice of devices is free and of the right sum."""
        if demand.is_nothing:
            return not where
        trial = self.copy()
        placed = 0
        for node, grant in where:
            if not 0 <= node < len(self.nodes) or grant < 0 or not demand.allowed >> node & 1:
                return False
            if node in self.withheld:
                return False
            if not self._well_formed(node, grant, demand):
                return False
            placed += demand.tasks(grant, pooled=self.pooled)
            trial._move([(node, grant)], demand, -1)  # noqa: SLF001 - its own kind
            lowest = min(trial.devices[node], default=0)
            if min(lowest, trial.cores[node], trial.mem[node]) < 0:
                return False
        return placed == demand.count

    def _well_formed(self, node: int, grant: int, demand: DeviceDemand) -> bool:
        """Return whether a grant is one that this demand could get on this node."""
        if self.pooled or not demand.amount:
            whole = grant % demand.amount == 0 if demand.amount else grant == 0
            return (
                whole and (grant > 0 or not demand.amount) and bool(self.devices[node] or not grant)
            )
        if grant >> len(self.devices[node]):
            return False
        held = grant.bit_count()
        return held == 1 if demand.milli else held > 0 and held % demand.gpus == 0

    def _move(self, where: Where, demand: DeviceDemand, sign: int) -> None:
        each = demand.milli or MILLI
        for node, grant in where:
            free = self.devices[node]
            tasks = demand.tasks(grant, pooled=self.pooled)
            if self.pooled:
                if grant:
                    free[0] += sign * grant
                    self.total += sign * grant
            else:
                for device in range(len(free)):
                    if grant >> device & 1:
                        free[device] += sign * each
                self.total += sign * each * grant.bit_count()
            if self.cores[node] != UNLIMITED:
                self.cores[node] += sign * tasks * demand.cores
            if self.mem[node] != UNLIMITED:
                self.mem[node] += sign * tasks * demand.mem
            self.tasks[node] -= sign * tasks
            if demand.group >= 0:
                self.held[node][demand.group] -= sign * tasks
