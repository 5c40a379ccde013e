"""Scored placements on real devices: every node with room gets a score, the highest wins.

A placement says how good a node is for a job (`ScoredPlacement.score`) and which of its devices a
task gets; this module picks the node, breaks ties, and lays out gangs. Whole GPUs are taken lowest
index first. A share goes to the smallest free part of a GPU that suffices, lowest index on ties
(`best_fit`), to any that suffices (`random`), or to the one that scored best (`scored`).

Options of every placement:

* ``scores``: ``integer`` (cut to a whole number of 0 to 100, as Kubernetes does) or ``float``
  (cut to 2**-40);
* ``ties``: ``index`` (lowest node index), ``name`` (smallest node name, letter by letter) or
  ``random``;
* ``gang``: ``node``, the canonical rule: a job that fits one node goes to one node, a larger one
  takes whole empty nodes, lowest index first, and its remainder goes to one more; or ``fill``:
  walk the nodes in the order of their scores and put as many tasks on each as fit, all or nothing
  (the PAI simulator);
* ``topology``: ``none``, ``rack`` (what goes over several nodes stays in one rack where one
  holds it) or ``rack-only`` (it waits for one); see `windtunnel.placements.racks`.

Whether a job can be placed depends on neither score nor ties, and less capacity never makes a
placement possible; see `windtunnel.placements.gangs` for why, with tasks in place of GPUs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from windtunnel.cluster.devices import MILLI
from windtunnel.errors import SpecError
from windtunnel.placements import racks
from windtunnel.placements.draws import below, draw
from windtunnel.placements.layouts import empty_nodes, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.cluster.free import Where
    from windtunnel.cluster.free_devices import FreeDevices
    from windtunnel.cluster.topology.node_tree import NodeTree
    from windtunnel.placements.layouts import Layout
    from windtunnel.sim.fragmentation import TargetWorkload

SCORES: tuple[str, ...] = ("integer", "float")
TIES: tuple[str, ...] = ("index", "name", "random")
GANGS: tuple[str, ...] = ("node", "fill")
TOPOLOGIES: tuple[str, ...] = ("none", "rack", "rack-only")
#: Steps of a score of 1 where scores are floats.
FINE = 1 << 40
#: Purposes of random draws below this are for devices, by task; from here on for nodes, by index.
NODE_DRAWS = 1 << 32


class ScoredPlacement:
    """Where a job runs: the node with the highest score.

    Args:
        scores: ``integer`` or ``float``.
        ties: ``index``, ``name`` or ``random``; None = the placement's own.
        gang: ``node`` or ``fill``.
        topology: ``none``, ``rack`` or ``rack-only``.
        seed: seed of what is random.
        workload: target workload, for placements that need one.

    Attributes:
        name: what users type.
        device: which device a share gets.
        own_ties: the default of ``ties``.
        needs_devices: pooled nodes will not do.
        needs_workload: it scores against a target workload.

    Raises:
        SpecError: an option is unknown, or the target workload is missing.
    """

    name: ClassVar[str] = ""
    device: ClassVar[str] = "best_fit"
    own_ties: ClassVar[str] = "index"
    needs_devices: ClassVar[bool] = False
    needs_workload: ClassVar[bool] = False
    #: Thousandths that cores, memory and GPUs count for, for placements that weigh them.
    weights: tuple[int, int, int] = (0, 0, 0)
    #: The tree in which gangs are laid out; None = by the rules above.
    tree: NodeTree | None = None

    def __init__(
        self,
        *,
        scores: str = "integer",
        ties: str | None = None,
        gang: str = "node",
        topology: str = "none",
        seed: int = 0,
        workload: TargetWorkload | None = None,
    ) -> None:
        self.ties = self.own_ties if ties is None else ties
        known = {
            "scores": (scores, SCORES),
            "ties": (self.ties, TIES),
            "gang": (gang, GANGS),
            "topology": (topology, TOPOLOGIES),
        }
        for option, (value, words) in known.items():
            if value not in words:
                raise SpecError.unknown(option, value, words)
        if self.needs_workload and workload is None:
            raise SpecError("workload", f"placement {self.name!r} needs a target workload")
        self.scale = FINE if scores == "float" else 1
        self.gang = gang
        self.topology = topology
        self.seed = seed
        self.workload = workload

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return how good a node is: the higher the better.

        Args:
            free: the cluster before the tasks are placed.
            node: a node with room for them.
            demand: the job.
            grants: the devices that its tasks would get there.

        Returns:
            A whole number; where scores are floats, in steps of 1 / `FINE`.
        """
        raise NotImplementedError

    def check_sharing(self, *, pooled: bool) -> None:
        """Check that the placement goes with how the nodes' GPUs are shared.

        Args:
            pooled: a node's GPUs are one pool.

        Raises:
            SpecError: it needs devices.
        """
        if self.needs_devices and pooled:
            raise SpecError("sharing", f"placement {self.name!r} needs devices, not pooled nodes")

    def asked(self, nodes: Sequence[DeviceNode]) -> Callable[..., int] | None:  # noqa: ARG002 - for those that are asked
        """Return what the kernel calls for a score; None = it has the placement itself."""
        return None

    def check(self) -> None:
        """Raise what asking for scores has raised inside the kernel, if it has."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The least gain of each integer score, for the kernels, where scores are such steps."""
        return ()

    def place(self, free: FreeDevices, demand: DeviceDemand) -> Where | None:
        """Return where the job goes, or None if it does not fit now.

        Raises:
            SpecError: the nodes are pooled, and the placement needs devices.
        """
        self.check_sharing(pooled=free.pooled)
        if demand.is_nothing:
            return []
        chosen = self.lay_out(free, demand)
        if chosen is None:
            return None
        where: Where = []
        placed = 0
        for node, tasks in chosen:
            where += [(node, grant) for grant in self.grants(free, node, demand, tasks, placed)]
            placed += tasks
        return where

    def lay_out(self, free: FreeDevices, demand: DeviceDemand) -> Layout | None:
        """Return (node, tasks) pairs in placement order, or None if the job does not fit now."""
        if self.gang == "node" and demand.count <= demand.largest:
            node = self.best(free, demand, demand.count, range(len(free.nodes)))
            return None if node is None else [(node, demand.count)]
        if self.topology != "none":
            return racks.lay_out(self, free, demand, spill=self.topology == "rack")
        if self.gang == "fill":
            return filled(free, demand, self.ranked(free, demand, range(len(free.nodes))))
        return self.spread_over_nodes(free, demand, range(len(free.nodes)))

    def grants(
        self, free: FreeDevices, node: int, demand: DeviceDemand, tasks: int, first: int
    ) -> list[int]:
        """Return what so many tasks get on a node that has room for them.

        Args:
            free: the cluster.
            node: the node.
            demand: the job.
            tasks: how many of its tasks.
            first: tasks of the job that are placed elsewhere already.
        """
        if not demand.amount:
            return [0] * tasks
        if free.pooled:
            return [tasks * demand.amount]
        left = free.devices[node].copy()
        if demand.gpus:
            idle = [device for device, milli in enumerate(left) if milli == MILLI]
            return [sum(1 << device for device in idle[: tasks * demand.gpus])]
        cores = free.cores[node]
        found = []
        for task in range(tasks):
            device = self.pick_device(free, node, demand, left, cores=cores, task=first + task)
            left[device] -= demand.milli
            cores -= demand.cores
            found.append(1 << device)
        return found

    def pick_device(
        self,
        free: FreeDevices,
        node: int,  # noqa: ARG002 - for placements that score devices
        demand: DeviceDemand,
        left: list[int],
        *,
        cores: int,  # noqa: ARG002 - ditto
        task: int,
    ) -> int:
        """Return the device that one task with a share gets.

        Args:
            free: the cluster.
            node: the node.
            demand: the job.
            left: free thousandths of the node's devices, less what earlier tasks of the job get.
            cores: the same for the node's cores.
            task: number of the task in its job.
        """
        fitting = [device for device, milli in enumerate(left) if milli >= demand.milli]
        if self.device == "random":
            return fitting[below(len(fitting), self.seed, free.draws, task)]
        return min(fitting, key=left.__getitem__)

    def cut(self, value: float) -> int:
        """Return a score as a whole number of steps, cut off downwards."""
        return math.floor(value * self.scale)

    def _order(
        self, free: FreeDevices, demand: DeviceDemand, tasks: int, nodes: Iterable[int]
    ) -> list[tuple[int, int, int]]:
        """Return (negated score, tie key, node) of the nodes with room for so many tasks."""
        found = []
        for node in nodes:
            if free.fitting(node, demand) >= tasks:
                score = self.score(free, node, demand, self.grants(free, node, demand, tasks, 0))
                found.append((-score, self._tie(free, node), node))
        return found

    def _tie(self, free: FreeDevices, node: int) -> int:
        if self.ties == "name":
            return free.ranks[node]
        if self.ties == "random":
            return draw(self.seed, free.draws, NODE_DRAWS + node)
        return node

    def best(
        self, free: FreeDevices, demand: DeviceDemand, tasks: int, nodes: Iterable[int]
    ) -> int | None:
        """Return the best of some nodes for so many tasks; None = it fits none."""
        return min(self._order(free, demand, tasks, nodes), default=(0, 0, None))[2]

    def ranked(self, free: FreeDevices, demand: DeviceDemand, nodes: Iterable[int]) -> list[int]:
        """Return those of some nodes that have room for a task, the best first."""
        return [node for _, _, node in sorted(self._order(free, demand, 1, nodes))]

    def spread_over_nodes(
        self, free: FreeDevices, demand: DeviceDemand, nodes: Sequence[int]
    ) -> Layout | None:
        """Lay out a gang over some nodes: whole empty ones, then the remainder on one more.

        Args:
            free: the cluster.
            demand: a job larger than a node.
            nodes: where it may go, in the order in which empty nodes are taken.

        Returns:
            (node, tasks) pairs in placement order, or None if it does not fit.
        """
        chosen, rest = empty_nodes(free, demand, nodes)
        if rest == 0:
            return chosen
        taken = {node for node, _ in chosen}
        last = self.best(free, demand, rest, [node for node in nodes if node not in taken])
        return None if last is None else [*chosen, (last, rest)]
