"""Placements of a user's own: a function that says how good a node is for a job.

The rest is as for every scored placement (`windtunnel.placements.scored`): the function is asked of
nodes that have room, the highest number wins, ties go by index, gangs larger than a node take whole
empty nodes. It must go by what it is shown alone: what it returned for a node is remembered until
the node changes.
"""

from __future__ import annotations

import inspect
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from windtunnel.cluster.devices import CORE_UNITS, MIB, MILLI, UNLIMITED
from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.placements.scored import ScoredPlacement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.cluster.free_devices import FreeDevices

    #: (node, request) -> how good the node is, the higher the better.
    Score = Callable[["CandidateNode", "Request"], float]

_SIGN = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CandidateNode:
    """A node that can hold a request, before it is placed there.

    Attributes:
        index: from 0, in the cluster's order.
        name: its name.
        gpu_type: type of its GPUs; None = not distinguished.
        num_gpus: GPUs that it has.
        free_gpus: GPUs that are free, shares of GPUs counted.
        devices: free share of each GPU, 0 to 1; where a node's GPUs are one pool, their sum alone.
        num_cpus, mem_gib: cores and GiB that it has; None = not constrained.
        free_cpus, free_mem_gib: cores and GiB that are free; None = not constrained.
        num_tasks: tasks that run there.
        rack: its rack; None = the cluster states none.
    """

    index: int
    name: str
    gpu_type: str | None
    num_gpus: int
    free_gpus: float
    devices: tuple[float, ...]
    num_cpus: float | None
    free_cpus: float | None
    mem_gib: float | None
    free_mem_gib: float | None
    num_tasks: int
    rack: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """What would go to a node: a whole job, or the tasks of a gang that are scored together.

    Attributes:
        num_tasks: tasks.
        num_gpus: their GPUs together.
        num_cpus, mem_gib: their cores and GiB together; 0 = unknown or none.
    """

    num_tasks: int
    num_gpus: float
    num_cpus: float
    mem_gib: float


class AskedPlacement(ScoredPlacement):
    """A placement that asks a function; `as_placement` makes its subclasses.

    Args:
        options: as for every scored placement; scores are compared exactly whatever they are.

    Attributes:
        function: how good a node is, the higher the better.
    """

    function: ClassVar[Score]

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return what the function says, as a whole number of the same order."""
        tasks = sum(demand.tasks(grant, pooled=free.pooled) for grant in grants)
        return self._score(
            *(free.nodes[node], node, free.devices[node], free.cores[node], free.mem[node]),
            *(free.tasks[node], tasks, demand.amount, demand.cores, demand.mem),
        )

    def asked(self, nodes: Sequence[DeviceNode]) -> Callable[..., int]:
        """Return what the kernel calls for a score."""
        return lambda node, *state: self._score(nodes[node], node, *state)

    def _score(  # noqa: PLR0917 - what the kernel has of a node and a kind, in its order
        self,
        size: DeviceNode,
        node: int,
        devices: Sequence[int],
        cores: int,
        mem: int,
        running: int,
        tasks: int,
        milli: int,
        task_cores: int,
        task_mem: int,
    ) -> int:
        """Return the score of a node; free and asked for in the units of `DeviceNode`."""
        candidate = CandidateNode(
            index=node,
            name=size.name,
            gpu_type=size.gpu_type,
            num_gpus=size.gpus,
            free_gpus=sum(devices) / MILLI,
            devices=tuple(free / MILLI for free in devices),
            num_cpus=None if size.cores is None else size.cores / CORE_UNITS,
            free_cpus=None if cores == UNLIMITED else cores / CORE_UNITS,
            mem_gib=None if size.mem is None else size.mem / MIB,
            free_mem_gib=None if mem == UNLIMITED else mem / MIB,
            num_tasks=running,
            rack=size.rack,
        )
        request = Request(
            tasks, tasks * milli / MILLI, tasks * task_cores / CORE_UNITS, tasks * task_mem / MIB
        )
        given = type(self).function(candidate, request)
        try:
            value = float(given)
        except (TypeError, ValueError):
            value = math.nan
        if math.isnan(value):
            found = f"gave {quote(given)} for node {quote(size.name)}; expected a number"
            raise PolicyError(self.name, f"the placement {found}.")
        return _ordered(value)


def _ordered(value: float) -> int:
    """Return a whole number for a number, so that both are in the same order."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(int(bits) & _SIGN)


def as_placement(name: str, given: Any) -> type[ScoredPlacement]:
    """Return the placement that an object is, by this name where it has none of its own.

    Args:
        name: what to call it; empty or ``module:name`` = the function's own name.
        given: a function ``(node, request) -> number``, or a placement's class.

    Raises:
        SpecError: it is none.
    """
    if isinstance(given, type) and issubclass(given, ScoredPlacement):
        return given
    if not callable(given) or isinstance(given, type):
        raise SpecError("placement", f"found {quote(given)}; expected a name or a function.")
    own = name if name and ":" not in name else getattr(given, "__name__", "placement")
    try:
        required = inspect.signature(given).parameters.values()
        count = sum(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in required)
    except (TypeError, ValueError) as error:
        raise SpecError(f"placement {own}", f"its arguments cannot be read: {error}.") from error
    if count != 2:  # noqa: PLR2004 - a node and what would go there
        raise SpecError(
            f"placement {own}", f"a function of {count} arguments; expected (node, request)."
        )
    members = {"name": own, "function": staticmethod(given), "__doc__": given.__doc__}
    return type(own, (AskedPlacement,), members)
