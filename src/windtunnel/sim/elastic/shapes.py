"""`Shapes`: options of elastic jobs as kinds of demands on the kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from windtunnel import kernel
from windtunnel.cluster.devices import CORE_UNITS
from windtunnel.sim.elastic.domains import ANYWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.contract import Placement
    from windtunnel.sim.elastic.domains import Within
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.neighbours import Neighbours
    from windtunnel.sim.problem import Problem


class Shapes:
    """What an elastic run's jobs can ask for.

    Attributes:
        free: the kernel's free state.
    """

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        elastic: Elastic,
        access: Sequence[tuple[int, ...]],
    ) -> None:
        scores = elastic.scores
        self.works, self.cores, self.scores = elastic.works, elastic.cores, scores
        self.domains = elastic.domains
        scored = None
        if scores is not None:
            nodes = SimpleNamespace(devices=scores.nodes, demands=(), pooled=False)
            scored = kernel.FreeDevices(nodes, scores.placement)
        levels = () if self.domains is None else self.domains.levels
        self.free: Any = kernel.FreeShapes(
            problem, placement, access, elastic.cores, scored, levels
        )
        self._demands = [problem.demands[number] for number in problem.demand_of.tolist()]
        self._kinds: dict[tuple[tuple[int, ...], int, int, Within], int] = {}
        self._options: dict[int, Option] = {}
        self._pace: Any = None
        self._neighbours: Neighbours | None = None

    def kind(self, job: int, option: Option) -> int:
        """Return the number of what a job asks for in an option."""
        within, demand = ANYWHERE, self._demands[job]
        if self.domains is not None:
            within = self.domains.within(demand.topology, len(option.shape))
        asked = option.shape, option.num_cpus, demand.allowed & option.nodes, within
        found = self._kinds.get(asked)
        if found is None:
            pieces: Any = ()
            if self.scores is not None:
                pieces = [self.scores.demand(option, gpus) for gpus in option.shape]
            found = self._kinds[asked] = self.free.add_shape(*asked[:3], pieces, within)
            self._options[found] = option
            self._tell_pace(found, asked[2])
        return found

    def slow(self, pace: Any, neighbours: Neighbours) -> None:
        """Tell the kernel's pace of every option, also of those to come."""
        self._pace, self._neighbours = pace, neighbours
        for (_, _, nodes, _), kind in self._kinds.items():
            self._tell_pace(kind, nodes)

    def _tell_pace(self, kind: int, nodes: int) -> None:
        option = self._options[kind]
        if self._neighbours is not None:
            racks = self._neighbours.fewest_racks(option, nodes)
            cores = option.num_cpus * CORE_UNITS
            self._pace.add_option(kind, option.num_gpus, cores, len(option.shape), racks)

    def option(self, kind: int) -> Option:
        """Return an option that a kind stands for."""
        return self._options[kind]
