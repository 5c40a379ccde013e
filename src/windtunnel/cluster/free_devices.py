"""`FreeDevices`: what is free of each GPU, of the cores and of the memory of every node.

It is the free state for the reference engine, in the manner of `windtunnel.cluster.free`. Where a
job runs is a list of (node, grant): a grant is the set of devices as one bit each, so that which
GPUs a job holds is part of where it runs. Tasks of whole GPUs on one node share one grant; every
other task has its own. In a *pooled* state a node's GPUs are one pool of thousandths, as in the PAI
simulator, and a grant is the thousandths taken.

What fits is monotone: where less is free no node ever holds more tasks. Queues rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.devices import (
    MAX_DEVICES,
    MILLI,
    UNLIMITED,
    largest_node,
    name_ranks,
    nodes_of_racks,
)
from windtunnel.cluster.free import NOBODY, FreeOfNodes
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.cluster.free import Where


class FreeDevices(FreeOfNodes):
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
        ranks: place of each node among all by name.
        racks: the nodes of each rack; empty where the cluster states no racks.
        max_cores: thousandths of cores of the largest node, by which scores are scaled.
        max_milli: the same for GPUs.
    """

    def __init__(self, nodes: Sequence[DeviceNode], *, pooled: bool = False) -> None:
        for node in nodes:
            if node.gpus > MAX_DEVICES and not pooled:
                raise SpecError("cluster", f"{node.gpus} GPUs a node; at most {MAX_DEVICES} fit")
        super().__init__()
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
        self.ranks = name_ranks(nodes)
        self.racks = nodes_of_racks(nodes)
        self.max_cores, self.max_milli = largest_node(nodes)

    def free_milli(self, node: int) -> int:
        """Return the free thousandths of a node's GPUs."""
        return sum(self.devices[node])

    def idle(self, node: int) -> int:
        """Return how many of a node's GPUs nobody uses; a pooled state cannot tell."""
        return self.devices[node].count(MILLI)

    def fitting(self, node: int, demand: DeviceDemand) -> int:
        """Return how many of the gang's tasks fit a node now (0 to ``demand.count``)."""
        if not demand.allowed >> node & 1 or node in self.withheld:
            return 0
        fitting = demand.count
        if demand.cores:
            fitting = min(fitting, self.cores[node] // demand.cores)
        if demand.mem:
            fitting = min(fitting, self.mem[node] // demand.mem)
        if not demand.amount or fitting == 0:
            return fitting
        if self.pooled:
            return min(fitting, self.free_milli(node) // demand.amount)
        if demand.milli:
            return min(fitting, sum(free // demand.milli for free in self.devices[node]))
        return min(fitting, self.idle(node) // demand.gpus)

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
