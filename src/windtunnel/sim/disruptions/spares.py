"""Spare nodes: hot swap (`Spares`), and nodes for nobody that stand in for failed ones (`Standby`).

Hot swap: a gang that loses one node of several goes on at once with another in its place.

The node taken has GPUs of the same type and can hold all that the gang had on the failed one; of
several it is the nearest by the cluster's levels, then the one with the fewest free GPUs, then the
lowest index. What the job asks of the levels is kept: a required domain, whole slices, one rack.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.cluster.free import NOBODY
from windtunnel.cluster.topology.tree import HOST
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.cluster.topology.request import TopologyRequest
    from windtunnel.sim.disruptions.holds import Hold
    from windtunnel.sim.disruptions.places import Places
    from windtunnel.sim.disruptions.spec import Disruptions
    from windtunnel.sim.problem import Problem


class Without(NamedTuple):
    """What would be, were a running job gone.

    Attributes:
        units: the GPU units of a node that nobody would hold.
        grants: what so many of its tasks would get on a node with devices, so many others being
            elsewhere; None = they do not fit there.
        fits: whether it could run elsewhere, as what it runs now: all is free, allowed and within
            its power.
    """

    units: Callable[[int], int]
    grants: Callable[[int, int, int], Sequence[int] | None]
    fits: Callable[[Where], bool]


class Spares:
    """Which node takes a failed one's place.

    ``one_rack``: a gang stays in one domain of the lowest of the cluster's levels above the nodes.
    """

    def __init__(self, problem: Problem, cluster: ClusterSpec, *, one_rack: bool) -> None:
        levels, paths = cluster.level_paths
        self.problem, self.one_rack = problem, one_rack
        self.levels = (*levels, HOST)
        self.paths = full = [(*path, str(node)) for node, path in enumerate(paths)]
        #: Each node's domain of each level, itself last; Int array (levels, nodes).
        self.domains = np.array(
            [
                np.unique(["/".join(path[: level + 1]) for path in full], return_inverse=True)[1]
                for level in range(len(levels) + 1)
            ]
        ).reshape(len(levels) + 1, len(full))

    @classmethod
    def of(
        cls, disruptions: Disruptions, problem: Problem, cluster: ClusterSpec, *, one_rack: bool
    ) -> Spares | None:
        """Return the spares of a run; None = no node takes another's place.

        Raises:
            SpecError: one is to, and there are no nodes.
        """
        if disruptions.on_failure != "swap":
            return None
        if problem.is_pool:
            raise SpecError("on_failure", "a pool has no nodes; expected restart or end.")
        return cls(problem, cluster, one_rack=one_rack)

    def place(self, run: Any, job: int, failed: set[int]) -> Where | None:
        """Return where a running job goes on; None: nowhere, or more than one of its nodes failed.

        The nodes that ``failed`` at once are out of the run already.
        """
        where = list(run.where(job))
        lost = {node for node, _ in where} & failed
        if len(lost) != 1 or all(node in lost for node, _ in where) or len(run.sharing(job)) > 1:
            return None
        there = run.without(job)
        (gone,) = lost
        taken = {node for node, _ in where}
        for node in self._nearest(gone, there.units, self._units(job, where, gone)):
            then = None if node in taken else self._moved(job, where, gone, node, there.grants)
            if then is None or not self._suits(job, then):
                continue
            if there.fits(then) and run.may_go_on(job, then):
                return then
        return None

    def _nearest(self, gone: int, units: Callable[[int], int], least: int) -> Iterator[int]:
        """Yield the nodes like a node with at least so many units free, the nearest first."""
        near = (self.domains == self.domains[:, [gone]]).sum(axis=0)
        free = np.array([units(node) for node in range(len(near))])
        order = np.lexsort((free, -near))
        types = self.problem.types
        return (int(n) for n in order if free[n] >= least and types[n] == types[gone])

    def _moved(self, job: int, where: Where, gone: int, node: int, grants: Any) -> Where | None:
        """Return where a job runs with one node in place of another; None: it has no room there.

        Which devices it gets there is for the placement to say, as on any node.
        """
        if not self.problem.devices:
            return [(node if old == gone else old, grant) for old, grant in where]
        tasks = self._tasks(job, where, gone)
        found = grants(node, tasks, self.problem.demand(job).count - tasks)
        if found is None:
            return None
        first = [old for old, _ in where].index(gone)
        kept = [pair for pair in where if pair[0] != gone]
        return [*kept[:first], *((node, grant) for grant in found), *kept[first:]]

    def _units(self, job: int, where: Where, gone: int) -> int:
        """Return the GPU units that a job has on one of its nodes."""
        problem, demand = self.problem, self.problem.demand(job)
        return sum(problem.units_of(demand, grant) for node, grant in where if node == gone)

    def _tasks(self, job: int, where: Where, gone: int) -> int:
        """Return how many of a job's tasks are on one of its nodes, which have devices."""
        demand, pooled = self.problem.demand(job), self.problem.pooled
        return sum(demand.tasks(grant, pooled=pooled) for node, grant in where if node == gone)

    def _suits(self, job: int, where: Where) -> bool:
        """Return whether nodes keep to what a job asks of the levels."""
        if self.one_rack and len({self.paths[node][:-1] for node, _ in where}) > 1:
            return False
        demand = self.problem.demand(job)
        request: TopologyRequest | None = demand.topology
        if request is None:
            return True

        def pods(grant: int) -> int:
            if self.problem.devices:
                return int(demand.tasks(grant, pooled=self.problem.pooled))
            return int(grant // (demand.gpus // demand.pods))

        return request.kept_by(self.levels, [(self.paths[n], pods(grant)) for n, grant in where])


class Standby:
    """The spare nodes of a run, and all that is taken out of it and comes back.

    As many nodes are for nobody as there are spares of their size, less those that have failed: so
    one stands in at once, and who is repaired is a spare where nobody is without one.
    """

    def __init__(self, run: Any, nodes: Places) -> None:
        self.run = run
        self._nodes = dict(nodes)
        self._number = Counter(self._nodes.values())
        #: Failures of each node that are not repaired; failed nodes of each size.
        self._failures: Counter[int] = Counter()
        self._failed: Counter[int] = Counter()
        for place, units in nodes:
            run.hold(place, NOBODY, units)

    def take_out(self, hold: Hold) -> None:
        """Keep the places of a hold; spares take those of nodes that fail."""
        for place, units in hold.places:
            self.run.hold(place, hold.group, units)
            if hold.planned or not self._number:
                continue
            self._failures[place] += 1
            if self._failures[place] > 1:
                continue
            self._failed[units] += 1
            alike = (spare for spare, size in self._nodes.items() if size == units)
            stands_in = place if place in self._nodes else next(alike, None)
            if stands_in is not None:
                self.run.release(stands_in, NOBODY, self._nodes.pop(stands_in))

    def bring_back(self, hold: Hold) -> None:
        """Undo `take_out`; a repaired node that nobody lacks is a spare."""
        for place, units in hold.places:
            if not hold.planned and self._number:
                self._failures[place] -= 1
                if not self._failures[place]:
                    self._failed[units] -= 1
                    there = sum(size == units for size in self._nodes.values())
                    if there < self._number[units] - self._failed[units]:
                        self._nodes[place] = units
                        continue
            self.run.release(place, hold.group, units)
