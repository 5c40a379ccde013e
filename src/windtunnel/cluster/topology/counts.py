"""How many pods and slices of a request each domain of a tree could hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.cluster.topology.places import Place
    from windtunnel.cluster.topology.tree import TopologyTree


class Slicing(NamedTuple):
    """In which units a request's pods come.

    Attributes:
        level: the level in whose domains a slice stays.
        size: pods a slice.
        inner: sizes of the slices within slices, by level below ``level``; 1 = single pods.
        apart: no two slices in one domain of ``level``.
    """

    level: int
    size: int
    inner: tuple[int, ...]
    apart: bool = False

    @property
    def is_pods(self) -> bool:
        """Whether slices are single pods, anywhere."""
        return self.size == 1 and not self.apart

    def unit(self, level: int) -> int:
        """Return how many pods go together into one domain of a level."""
        return self.size if level <= self.level else self.inner[level]


class Counts(NamedTuple):
    """What each domain could hold; lists by level of int arrays of shape (domains,).

    Attributes:
        pods, slices: pods and slices.
        with_pods, with_slices: the same beside the leader, where it can stand.
        leaders: 1 where the leader can stand; no lists if there is none.
    """

    pods: list[np.ndarray]
    slices: list[np.ndarray]
    with_pods: list[np.ndarray]
    with_slices: list[np.ndarray]
    leaders: list[np.ndarray]


def pods_that_fit(free: Mapping[str, np.ndarray], requests: Mapping[str, int]) -> np.ndarray:
    """Return how many pods fit in what is free of each leaf; int array of shape (leaves,)."""
    fits = [
        np.maximum(free[what], 0) if amount == 1 else np.maximum(free[what], 0) // amount
        for what, amount in requests.items()
        if amount > 0
    ]
    fewest: np.ndarray = np.minimum.reduce(fits)  # every pod takes one of its node's pods
    return fewest


def count(
    tree: TopologyTree,
    slicing: Slicing,
    requests: Mapping[str, int],
    leader: Mapping[str, int] | None = None,
    *,
    assumed: Sequence[Place] = (),
    empty: bool = False,
    allowed: np.ndarray | None = None,
) -> Counts:
    """Return how many pods and slices each domain could hold.

    Args:
        tree: the tree.
        slicing: in which units the pods come.
        requests: what one pod takes, one of its leaf's pods included.
        leader: what the leader takes; None = there is none.
        assumed: what others that are placed at the same time take.
        empty: as if nothing were used.
        allowed: which leaves count; bool array of shape (leaves,), None = all.
    """
    free = _free(tree, {*requests, *(leader or ())}, assumed, empty=empty)
    if allowed is not None:
        free = {resource: amount * allowed for resource, amount in free.items()}
    pods = pods_that_fit(free, requests)
    if leader is None:
        levels = _up(tree, slicing, pods)
        return Counts(*levels, *levels, [])
    leaders = np.minimum(pods_that_fit(free, leader), 1)
    less = {what: amount - leaders * leader.get(what, 0) for what, amount in free.items()}
    with_pods = pods_that_fit(less, requests)
    return _up_with_leader(tree, slicing, pods, with_pods, leaders)


def _free(
    tree: TopologyTree, resources: set[str], assumed: Sequence[Place], *, empty: bool
) -> dict[str, np.ndarray]:
    """Return what is free of each leaf, by resource."""
    free = {resource: tree.free(resource, empty=empty) for resource in resources}
    if assumed:
        free = {resource: amount.copy() for resource, amount in free.items()}
    for place in assumed:
        for path, pods in place.leaves:
            leaf = tree.leaf_of(path)
            for resource, amount in place.requests.items():
                if resource in free and leaf is not None:
                    free[resource][leaf] -= pods * amount
    return free


def _up(
    tree: TopologyTree, slicing: Slicing, pods: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sum pods and slices up from the leaves."""
    if slicing.is_pods:
        sums = [pods]
        for starts in reversed(tree.starts):
            sums.insert(0, _sum(sums[0], starts))
        return sums, sums
    all_pods, all_slices = [pods], [_slices(slicing, len(tree.levels) - 1, pods)]
    for level in range(len(tree.levels) - 2, -1, -1):
        whole = _whole(slicing, level + 1, all_pods[0])
        above = _sum(whole, tree.starts[level])
        below = all_slices[0]
        all_pods.insert(0, above)
        at_or_below = level >= slicing.level
        all_slices.insert(
            0, _slices(slicing, level, above) if at_or_below else _sum(below, tree.starts[level])
        )
    return all_pods, all_slices


def _up_with_leader(
    tree: TopologyTree,
    slicing: Slicing,
    pods: np.ndarray,
    with_pods: np.ndarray,
    leaders: np.ndarray,
) -> Counts:
    """Sum up what fits with and without a leader: it stands where it costs least."""
    plain_pods, plain_slices = _up(tree, slicing, pods)
    lowest = len(tree.levels) - 1
    counts = Counts(
        plain_pods, plain_slices, [with_pods], [_slices(slicing, lowest, with_pods)], [leaders]
    )
    for level in range(lowest - 1, -1, -1):
        starts = tree.starts[level]
        can = counts.leaders[0] > 0
        leaders = np.maximum.reduceat(counts.leaders[0], starts)
        whole = _whole(slicing, level + 1, plain_pods[level + 1])
        with_whole = _whole(slicing, level + 1, counts.with_pods[0])
        above = plain_pods[level] - _least_loss(whole - with_whole, can, starts)
        if level >= slicing.level:
            slices = _slices(slicing, level, above)
        else:
            loss = plain_slices[level + 1] - counts.with_slices[0]
            slices = plain_slices[level] - _least_loss(loss, can, starts)
        counts.with_pods.insert(0, above)
        counts.with_slices.insert(0, slices)
        counts.leaders.insert(0, leaders)
    return counts


def _slices(slicing: Slicing, level: int, pods: np.ndarray) -> np.ndarray:
    """Return the units that pods come to at or below the slice level."""
    unit = slicing.unit(level)
    units = pods if unit == 1 else pods // unit
    return np.minimum(units, 1) if slicing.apart and level == slicing.level else units


def _whole(slicing: Slicing, level: int, pods: np.ndarray) -> np.ndarray:
    """Return the pods of a level that make whole inner slices."""
    unit = slicing.unit(level)
    return pods // unit * unit if level > slicing.level and unit > 1 else pods


def _sum(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sums over the children."""
    return np.add.reduceat(values, starts)


def _least_loss(loss: np.ndarray, can: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the least loss among the children that can hold the leader; 0 where none can."""
    least = np.minimum.reduceat(np.where(can, loss, np.iinfo(np.int64).max), starts)
    return np.where(least == np.iinfo(np.int64).max, 0, least)
