"""`Elastic`: what an elastic run has besides; `Scores`: where pieces go if nodes are scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from windtunnel.cluster.devices import MILLI, device_demand
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.sim.elastic.work import cores_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.cluster.free import Where
    from windtunnel.sim.elastic.domains import Domains
    from windtunnel.sim.elastic.work import Option, Work


class Scoring(Protocol):
    """A placement that scores nodes; `windtunnel.placements.scored.ScoredPlacement` is one."""

    topology: str

    def best(
        self, free: FreeDevices, demand: DeviceDemand, tasks: int, nodes: Iterable[int]
    ) -> int | None:
        """Return the best of some nodes for so many tasks; None = it fits none."""


class Scores:
    """What is free as a scored placement sees it: nodes with devices.

    Each piece of an option is one task of that many whole GPUs, with its part of the cores. Which
    GPUs of a node a job has is unknown: it takes the first that are idle, and gives back the first
    that are not.

    Attributes:
        nodes: the cluster, with the cores that constrain.
        devices: what is free.
    """

    def __init__(self, placement: Scoring, nodes: Sequence[DeviceNode]) -> None:
        self.placement, self.nodes = placement, tuple(nodes)
        self.devices = FreeDevices(self.nodes)
        self._demands: dict[tuple[int, int], DeviceDemand] = {}

    def copy(self) -> Scores:
        """Return an independent copy."""
        twin = object.__new__(Scores)
        twin.__dict__.update(self.__dict__)
        twin.devices = self.devices.copy()
        return twin

    def demand(self, option: Option, gpus: int) -> DeviceDemand:
        """Return what a piece of an option asks for."""
        asked = gpus, cores_on(option, gpus)
        found = self._demands.get(asked)
        if found is None:
            found = device_demand(self.nodes, gpus=asked[0], cores=asked[1])
            self._demands[asked] = found
        return found

    def best(self, option: Option, gpus: int, nodes: Iterable[int], draws: int) -> int | None:
        """Return the node of some that scores best for a piece; ``draws`` seeds what is random."""
        self.devices.draws = draws
        return self.placement.best(self.devices, self.demand(option, gpus), 1, nodes)

    def move(self, where: Where, option: Option, sign: int) -> None:
        """Take (-1) or give back (1) the devices of an option."""
        for node, gpus in where:
            idle = self.devices.devices[node]
            wanted = [device for device, milli in enumerate(idle) if (milli == MILLI) == (sign < 0)]
            pair = node, sum(1 << device for device in wanted[:gpus])
            if sign < 0:
                self.devices.take([pair], self.demand(option, gpus))
            else:
                self.devices.give([pair], self.demand(option, gpus))


@dataclass(frozen=True)
class Elastic:
    """What the run of a policy that resizes jobs has besides.

    Attributes:
        works: what each flown job is.
        cores: thousandths of cores of each node, None = not constrained.
        scores: of a placement that scores nodes, with nothing taken; None = best fit.
        domains: in which pieces lie together; None = they go anywhere.
    """

    works: Sequence[Work]
    cores: Sequence[int | None]
    scores: Scores | None = None
    domains: Domains | None = None
