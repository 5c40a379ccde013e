"""Where pods stand in a topology."""

from __future__ import annotations

from typing import NamedTuple

#: A domain's values, level by level from the top.
Path = tuple[str, ...]
#: Every pod takes one of these of its node.
PODS = "pods"


class Place(NamedTuple):
    """Pods of one kind, leaf by leaf.

    Attributes:
        requests: what one pod takes of its leaf, one of `PODS` included.
        leaves: pairs of a leaf's path and the pods there, sorted by path.
    """

    requests: dict[str, int]
    leaves: tuple[tuple[Path, int], ...]


def of_pods(requests: dict[str, int], leaves: dict[Path, int]) -> Place:
    """Return the place of pods that each take ``requests``, and one of a leaf's pods."""
    counted = {**requests, PODS: requests.get(PODS, 0) + 1}
    return Place(counted, tuple(sorted((path, pods) for path, pods in leaves.items() if pods)))
