"""A request in numbers of a tree's levels, and a domain's part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.cluster.topology.counts import Slicing


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
