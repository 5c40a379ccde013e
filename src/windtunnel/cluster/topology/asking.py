"""A request in the words of levels, made one in numbers of a tree; and a domain's part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windtunnel.cluster.topology.counts import Slicing
from windtunnel.cluster.topology.places import PODS
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.cluster.topology.request import TopologyRequest


class Ask(NamedTuple):
    """A request in numbers of a tree's levels.

    Attributes:
        pods: pods to place; whole slices.
        requests: what one takes, one of its leaf's pods included.
        level: the level at which to begin.
        required: only there; else one level up, and so on, and at the top several domains.
        unconstrained: several domains of that level at once.
        slicing: in which units the pods come.
        leader: what the leader takes, that stands in the same domain of ``level``; None = none.
    """

    pods: int
    requests: Mapping[str, int]
    level: int
    required: bool
    unconstrained: bool
    slicing: Slicing
    leader: Mapping[str, int] | None = None


class Share(NamedTuple):
    """A domain's part of a request: its pods, and whether the leader is there."""

    domain: int
    pods: int
    leader: bool = False


def asked(
    levels: tuple[str, ...],
    request: TopologyRequest,
    pods: int,
    requests: Mapping[str, int],
    leader: Mapping[str, int] | None = None,
) -> Ask:
    """Return a request in numbers of a tree's levels.

    Args:
        levels: the tree's levels, from the top.
        request: what is asked for.
        pods: how many pods, the leader not among them.
        requests: what one pod takes.
        leader: what the leader takes; None = there is none.

    Raises:
        SpecError: a level that the tree does not have, slices above the level asked for, sizes that
            do not divide.
    """
    slicing = _slicing(levels, request)
    named = request.required or request.preferred
    anywhere = 0 if request.slices else len(levels) - 1  # slices from the top, pods in the leaves
    level = _level(levels, named) if named else anywhere
    if level > slicing.level:
        raise SpecError(
            "slice_level",
            f"slices of {levels[slicing.level]!r} are above {levels[level]!r}, which is asked for.",
        )
    if pods % slicing.size:
        raise SpecError("slice_size", f"{pods:,} pods are not slices of {slicing.size:,} each.")
    return Ask(
        pods=pods,
        requests=_with_pods(requests),
        level=level,
        required=bool(request.required),
        unconstrained=not named,
        slicing=slicing,
        leader=None if leader is None else _with_pods(leader),
    )


def _with_pods(requests: Mapping[str, int]) -> dict[str, int]:
    """Return what a pod takes, itself as one of its leaf's pods included."""
    return {**requests, PODS: requests.get(PODS, 0) + 1}


def _slicing(levels: tuple[str, ...], request: TopologyRequest) -> Slicing:
    """Return in which units the pods come: single pods of the lowest level by default."""
    layers = request.slices
    inner = [1] * len(levels)
    if not layers:
        return Slicing(len(levels) - 1, 1, tuple(inner))
    above, size = -1, 0
    for layer in layers:
        level = _level(levels, layer.level)
        if level <= above or layer.size < 1 or (size and size % layer.size):
            raise SpecError(
                "layers",
                f"{layer.size:,} pods of {layer.level!r} do not lie within the layer above; "
                "expected a lower level and a size that divides the one above.",
            )
        above, size = level, layer.size
        inner[level] = size
    for level in range(len(levels) - 2, -1, -1):  # a level between two layers keeps the inner one's
        if inner[level] == 1:
            inner[level] = inner[level + 1]
    first = layers[0]
    return Slicing(_level(levels, first.level), first.size, tuple(inner), first.apart)


def _level(levels: tuple[str, ...], name: str) -> int:
    """Return a level's number."""
    if name not in levels:
        raise SpecError.unknown("topology level", name, levels)
    return levels.index(name)
