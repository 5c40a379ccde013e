"""Jobs that arrive one by one and never leave: where each goes, and what that leaves over.

Each goes where a scored placement says, on the kernel's nodes with devices, or nowhere, once and
for all. What is over after each arrival follows from what is held (`windtunnel.sim.observe`), as of
any run, an arrival's number being its time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel import kernel
from windtunnel.cluster.devices import CORE_UNITS, MILLI
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.sim.observe.fragments import along
from windtunnel.sim.observe.holdings import Holdings
from windtunnel.sim.observe.node_states import node_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.placements.scored import ScoredPlacement
    from windtunnel.sim.fragmentation import TargetWorkload


class _Problem(NamedTuple):
    """What the kernel's nodes with devices look at of a `windtunnel.sim.problem.Problem`."""

    devices: Sequence[DeviceNode]
    demands: Sequence[DeviceDemand]
    pooled: bool = False


@dataclass(frozen=True)
class Filling:
    """Which jobs found a place, and what they hold.

    Attributes:
        nodes: the cluster.
        placed: Bool array (jobs,), whether each found a place, in order of arrival.
        held: an entry a job and grant, ``stay`` being the job; in order of arrival.
    """

    nodes: Sequence[DeviceNode]
    placed: np.ndarray
    held: Holdings

    def causes(self, workload: TargetWorkload) -> np.ndarray:
        """Return the free GPU milli by cause after each arrival.

        Args:
            workload: the target workload.

        Returns:
            Int array (jobs, causes), in the order of `windtunnel.sim.fragmentation.CAUSES`, times
            tasks of the target workload.
        """
        number = np.arange(len(self.placed), dtype=np.float64)
        forever = np.full(len(number), np.nan)
        cluster, places = _side_by_side(self.nodes)
        held = replace(self.held, node=places[self.held.node])
        states = node_states(cluster, held, number, forever, cores=True)
        time, _, causes = along(cluster, states, workload, -1.0)
        return np.asarray(causes[np.searchsorted(time, number, side="right") - 1])

    def touched(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how many nodes run anything after each arrival, and how many GPUs these have.

        Returns:
            Int arrays (jobs,).
        """
        count = len(self.placed)
        gpus = np.array([node.gpus for node in self.nodes])
        node, first = np.unique(self.held.node, return_index=True)
        since = self.held.stay[first]
        more = np.bincount(since, gpus[node], minlength=count).astype(np.int64)
        return np.cumsum(np.bincount(since, minlength=count)), np.cumsum(more)


def _side_by_side(nodes: Sequence[DeviceNode]) -> tuple[ClusterSpec, np.ndarray]:
    """Return a cluster in which nodes that fragment alike are neighbours.

    Returns:
        The cluster; Int array (nodes,), each node's index in it.
    """
    alike: dict[tuple[int, str | None, int | None], list[int]] = {}
    for index, node in enumerate(nodes):
        alike.setdefault((node.gpus, node.gpu_type, node.cores), []).append(index)
    kinds = tuple(
        NodeType(len(members), gpus, gpu_type, None if cores is None else cores / CORE_UNITS)
        for (gpus, gpu_type, cores), members in alike.items()
    )
    places = np.empty(len(nodes), dtype=np.int64)
    places[np.concatenate(list(alike.values()))] = np.arange(len(nodes))
    return ClusterSpec(kinds), places


def fill(
    nodes: Sequence[DeviceNode],
    demands: Sequence[DeviceDemand],
    kinds: np.ndarray,
    placement: ScoredPlacement,
) -> Filling:
    """Place jobs in order; one that does not fit is dropped.

    Args:
        nodes: where they may go.
        demands: the demand classes.
        kinds: Int array (jobs,), class of each job, in order of arrival.
        placement: it places.
    """
    free = kernel.FreeDevices(_Problem(nodes, demands), placement)
    placed = np.zeros(len(kinds), dtype=bool)
    entries: list[tuple[int, int, int]] = []
    for job, kind in enumerate(kinds.tolist()):
        where = free.fit_pairs(kind)
        if where is not None:
            free.take_pairs(kind, where)
            placed[job] = True
            entries += [(job, node, grant) for node, grant in where]
    grants = np.array(entries, dtype=np.int64).reshape(-1, 3)
    return Filling(nodes, placed, _held(grants, kinds, demands))


def _held(grants: np.ndarray, kinds: np.ndarray, demands: Sequence[DeviceDemand]) -> Holdings:
    """Return what (job, node, devices) grants hold: of whole GPUs one a node, else one a task."""
    job, node, devices = grants.T
    asked = np.array([(each.gpus, each.milli, each.cores) for each in demands], dtype=np.int64)
    gpus, milli, cores = asked[kinds[job]].T
    count = np.bitwise_count(devices).astype(np.int64)
    tasks = np.where(gpus > 0, count // np.maximum(gpus, 1), 1)
    amount = np.where(gpus > 0, count * MILLI, milli)
    return Holdings(job, node, amount, tasks * cores, devices)
