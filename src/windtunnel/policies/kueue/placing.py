"""Places for the pod sets of a workload: one after the other, a leader with its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windtunnel.cluster.topology.asking import asked
from windtunnel.cluster.topology.fitting import fit
from windtunnel.cluster.topology.places import Place, of_pods
from windtunnel.cluster.topology.request import TopologyRequest
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from windtunnel.cluster.topology.tree import TopologyTree
    from windtunnel.policies.kueue.gates import Gates
    from windtunnel.policies.kueue.objects import PodSet

#: What a pod set without a request gets where its flavor has a topology.
ANYWHERE = TopologyRequest(unconstrained=True)


class PodSetRequest(NamedTuple):
    """A pod set to place.

    Attributes:
        pod_set: the pod set.
        pods: how many of its pods.
        tree: where.
        flavor: the flavor it is placed on.
        allowed: the leaves that it may use; bool array of shape (leaves,), None = all.
    """

    pod_set: PodSet
    pods: int
    tree: TopologyTree
    flavor: str = ""
    allowed: np.ndarray | None = None


class Refused(NamedTuple):
    """A pod set without room.

    Attributes:
        pod_set: its name.
        fits_only: slices that would fit.
        reason: why, if the request itself is at fault.
    """

    pod_set: str
    fits_only: int = 0
    reason: str = ""


def places(
    requests: Sequence[PodSetRequest], gates: Gates, *, empty: bool = False
) -> dict[str, Place] | Refused:
    """Return the place of each pod set, by name, or the first that has none.

    Args:
        requests: the pod sets in order; each sees what the earlier ones take.
        gates: Kueue's feature gates.
        empty: as if nothing were used.
    """
    found: dict[str, Place] = {}
    assumed: list[tuple[str, Place]] = []
    for workers, leader in _groups(requests):
        try:
            ask = asked(
                workers.tree.levels,
                workers.pod_set.topology or ANYWHERE,
                workers.pods,
                workers.pod_set.requests,
                leader.pod_set.requests if leader else None,
            )
        except SpecError as error:
            return Refused(workers.pod_set.name, reason=str(error))
        got = fit(
            workers.tree,
            ask,
            assumed=[
                place for flavor, place in assumed if flavor == workers.flavor or workers.tree.hosts
            ],
            empty=empty,
            mixed=gates.tas_profile_mixed,
            balanced=gates.tas_balanced_placement,
            allowed=workers.allowed,
        )
        if got.pods is None:
            return Refused(workers.pod_set.name, got.fits_only)
        of = {workers.pod_set.name: of_pods(workers.pod_set.requests, got.pods)}
        if leader is not None and got.leader is not None:
            of[leader.pod_set.name] = of_pods(leader.pod_set.requests, {got.leader: 1})
        found |= of
        assumed += [(workers.flavor, place) for place in of.values()]
    return found


def _groups(
    requests: Sequence[PodSetRequest],
) -> Iterator[tuple[PodSetRequest, PodSetRequest | None]]:
    """Yield workers and their leader, if they have one: the smaller of a group of two."""
    waiting = list(requests)
    while waiting:
        first = waiting.pop(0)
        gang = first.pod_set.gang
        other = next(
            (request for request in waiting if gang and request.pod_set.gang == gang), None
        )
        if other is None:
            yield first, None
            continue
        waiting.remove(other)
        yield (first, other) if other.pods < first.pods else (other, first)
