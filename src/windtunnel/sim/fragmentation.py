"""How much of the free GPUs is fragments: GPUs that the tasks to come can hardly use.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", ATC'23, section 3. A target workload says what tasks are to be expected; what a node has
free is a fragment as far as a task drawn from it could not use it. Everything is counted in whole
numbers, thousandths of GPUs times tasks of the target workload, so that sums are exact in any
order; `Fragmentation` divides once, at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.cluster.devices import MILLI
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.cluster.devices import DeviceNode
    from windtunnel.cluster.free_devices import FreeDevices
    from windtunnel.sim.device_requests import Requests

#: Share of all tasks, in percent, that the shapes of a target workload cover.
POPULAR = 95
#: Why free GPUs serve a task or not, in the order of the published tables: CPU and GPUs lack; GPUs
#: lack; it is served; CPU lacks; a task without GPUs, with enough CPU, and without; wrong type.
CAUSES: tuple[str, ...] = ("q1", "q2", "q3", "q4", "xl", "xr", "no_access")
_LACK_BOTH, _LACK_GPU, _SERVED, _LACK_CPU, _CPU_ONLY, _CPU_ONLY_LACKS, _NO_ACCESS = range(7)


@dataclass(frozen=True, order=True)
class Shape:
    """What one task of the target workload asks for; memory is left out.

    Attributes:
        cores: thousandths of CPU cores.
        milli: thousandths of each GPU: 1000 whole, 0 none.
        gpus: number of GPUs.
        types: acceptable GPU types joined by ``|``; empty = any.
    """

    cores: int
    milli: int
    gpus: int
    types: str = ""

    def accepts(self, gpu_type: str | None) -> bool:
        """Return whether GPUs of this type serve."""
        wanted = [part for part in self.types.split("|") if part]
        return not wanted or gpu_type in wanted


@dataclass(frozen=True)
class TargetWorkload:
    """What tasks are to be expected.

    Attributes:
        shapes: their shapes, most popular first.
        counts: tasks of each shape; its share is its popularity.
    """

    shapes: tuple[Shape, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Tasks of all shapes."""
        return sum(self.counts)


def workload_of(requests: Requests) -> TargetWorkload:
    """Return the target workload that the tasks of some jobs stand for.

    Raises:
        SpecError: there are no jobs.
    """
    return target_workload(
        (Shape(cores, MILLI if gpus else milli, gpus or int(milli > 0), types), tasks)
        for cores, gpus, milli, _, types, tasks in requests.shapes()
    )


def target_workload(shapes: Iterable[tuple[Shape, int]], popular: int = POPULAR) -> TargetWorkload:
    """Return the target workload that tasks seen before stand for.

    Shapes by number of tasks, most first (ties: the larger cores, milli, GPUs and types first), up
    to the first that reaches ``popular`` percent of all tasks; the others are left out.

    Args:
        shapes: (shape, number of tasks), a shape any number of times.
        popular: percent of all tasks to cover, over 0, up to 100.

    Raises:
        SpecError: there is no task, or ``popular`` is out of range.
    """
    seen: Counter[Shape] = Counter()
    for shape, count in shapes:
        seen[shape] += count
    everything = sum(seen.values())
    if everything < 1 or not 0 < popular <= 100:  # noqa: PLR2004 - percent
        raise SpecError(
            "workload", f"{everything} tasks, {popular} %; expected tasks, and 1 to 100"
        )
    ordered = sorted(seen.items(), key=lambda item: (item[1], item[0]), reverse=True)
    covered = kept = 0
    while covered * 100 < popular * everything:
        covered += ordered[kept][1]
        kept += 1
    return TargetWorkload(
        tuple(shape for shape, _ in ordered[:kept]), tuple(count for _, count in ordered[:kept])
    )


def node_causes(
    node: DeviceNode, devices: Sequence[int], cores: int, workload: TargetWorkload
) -> list[int]:
    """Return a node's free GPU milli by what becomes of it, times tasks of the target workload.

    Args:
        node: the node.
        devices: free thousandths of each of its GPUs.
        cores: free thousandths of its cores.
        workload: the target workload.

    Returns:
        One number a cause, in the order of `CAUSES`; they sum up to free milli x ``total``.
    """
    causes = [0] * len(CAUSES)
    free = sum(devices)
    for shape, count in zip(workload.shapes, workload.counts, strict=True):
        enough = cores >= shape.cores
        if shape.gpus == 0 or shape.milli == 0:
            causes[_CPU_ONLY if enough else _CPU_ONLY_LACKS] += count * free
        elif not shape.accepts(node.gpu_type):
            causes[_NO_ACCESS] += count * free
        elif sum(1 for left in devices if left >= shape.milli) < shape.gpus:
            causes[_LACK_GPU if enough else _LACK_BOTH] += count * free
        elif not enough:
            causes[_LACK_CPU] += count * free
        else:
            too_small = sum(left for left in devices if left < shape.milli)
            causes[_LACK_GPU] += count * too_small
            causes[_SERVED] += count * (free - too_small)
    return causes


def node_fragments(
    node: DeviceNode, devices: Sequence[int], cores: int, workload: TargetWorkload
) -> int:
    """Return a node's fragments: free GPU milli that does not serve, times tasks."""
    causes = node_causes(node, devices, cores, workload)
    return sum(causes) - causes[_SERVED]


@dataclass(frozen=True)
class Fragmentation:
    """How fragmented a cluster is.

    Attributes:
        causes: free GPU milli by what becomes of it, in the order of `CAUSES`.
        idle: free GPU milli.
        capacity: GPU milli of the whole cluster.
    """

    causes: tuple[float, ...]
    idle: int
    capacity: int

    @property
    def milli(self) -> float:
        """Fragments F, in GPU milli."""
        return sum(self.causes) - self.causes[_SERVED]

    @property
    def ratio(self) -> float:
        """Fragments as a share of the free GPUs; NaN where none is free."""
        return self.milli / self.idle if self.idle else float("nan")

    @property
    def amount(self) -> float:
        """Fragments as a share of all GPUs."""
        return self.milli / self.capacity


def fragmentation(free: FreeDevices, workload: TargetWorkload) -> Fragmentation:
    """Return how fragmented a cluster is.

    Raises:
        SpecError: its nodes' GPUs are pooled, so that there are no devices to fragment.
    """
    if free.pooled:
        raise SpecError("sharing", "found 'pooled'; only devices fragment: expected 'devices'")
    totals = [0] * len(CAUSES)
    for index, node in enumerate(free.nodes):
        found = node_causes(node, free.devices[index], free.cores[index], workload)
        totals = [a + b for a, b in zip(totals, found, strict=True)]
    return Fragmentation(
        tuple(total / workload.total for total in totals),
        sum(map(sum, free.devices)),
        sum(node.gpus for node in free.nodes) * MILLI,
    )
