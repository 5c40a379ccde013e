"""Which admitted workloads would have to move for a job to find room in one domain.

For each domain of the level that the job requires and that would hold it empty: whoever stands
there is taken out, the fewest pods first, until the job fits; each must find places elsewhere, as
it asks for itself; whoever is not needed stays. Of the domains the one that moves the fewest pods
is chosen. It is not proven that no other choice moves fewer. Asked for at kueue#11078.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.policies.kueue.placing import PodSetRequest, Refused, places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.topology.places import Path, Place
    from windtunnel.cluster.topology.tree import TopologyTree
    from windtunnel.policies.kueue.state import Holding, State

_Places = tuple[tuple[str, "Place"], ...]


class Move(NamedTuple):
    """A workload that moves: its pods that do, and its leaves before and after."""

    workload: str
    pods: int
    before: tuple[tuple[Path, int], ...]
    after: tuple[tuple[Path, int], ...]


class Moves(NamedTuple):
    """Moves that make room.

    Attributes:
        domain: where the job would stand.
        pods: how many pods move.
        moves: who moves.
    """

    domain: Path
    pods: int
    moves: tuple[Move, ...]


def moves_to_fit(state: State, requests: Sequence[PodSetRequest]) -> Moves | None:
    """Return moves after which a job has room where it requires it; None = there are none.

    Args:
        state: as things stand; it is left so.
        requests: the job's pod sets. One of them requires a level, all are of one topology.
    """
    level = next((w.pod_set.topology.required for w in requests
                  if w.pod_set.topology and w.pod_set.topology.required), "")  # fmt: skip
    tree = requests[0].tree if requests else None
    if not level or tree is None or any(request.tree is not tree for request in requests):
        return None
    best: Moves | None = None
    number = tree.levels.index(level)
    for domain in tree.paths[number]:
        inside = np.array([path[: number + 1] == domain for path in tree.paths[-1]])
        found = _Domain(state, tree, requests, domain, inside).moves()
        if found is not None and (best is None or found.pods < best.pods):
            best = found
    return best


class _Domain:
    """One domain that is to hold a job."""

    def __init__(
        self,
        state: State,
        tree: TopologyTree,
        requests: Sequence[PodSetRequest],
        domain: Path,
        inside: np.ndarray,
    ) -> None:
        self.state, self.tree, self.domain = state, tree, domain
        self.requests = [
            request._replace(
                allowed=inside if request.allowed is None else inside & request.allowed
            )
            for request in requests
        ]

    def moves(self) -> Moves | None:
        """Return the moves that make room here."""
        if isinstance(places(self.requests, self.state.gates, empty=True), Refused):
            return None
        there = sorted(self._holders(), key=lambda of: (_pods(of), of.workload.key))
        going: list[Holding] = []
        for holding in there:
            going.append(holding)
            if self._rest(going) is not None:
                break
        else:
            return None
        for holding in going[-2::-1]:  # the last one is needed
            fewer = [of for of in going if of is not holding]
            if self._rest(fewer) is not None:
                going = fewer
        after = self._rest(going) or []
        moves = tuple(
            Move(of.workload.key, *_moved(of.places, then))
            for of, then in zip(going, after, strict=True)
        )
        return Moves(self.domain, sum(move.pods for move in moves), moves)

    def _holders(self) -> Iterator[Holding]:
        """Yield who stands here."""
        depth = len(self.domain)
        for holdings in self.state.holdings.values():
            for holding in holdings:
                if any(
                    self.state.topologies[flavor] is self.tree and path[:depth] == self.domain
                    for flavor, place in holding.places
                    for path, _ in place.leaves
                ):
                    yield holding

    def _rest(self, going: Sequence[Holding]) -> list[_Places] | None:
        """Return where those who go find room once the job stands here; None = one finds none."""
        taken: list[tuple[TopologyTree, Place]] = []

        def take(found: Sequence[tuple[str, Place]]) -> None:
            for flavor, place in found:
                for tree in self.state.sharing[flavor]:
                    tree.take(place)
                    taken.append((tree, place))

        with self.state.gone(going):
            try:
                got = places(self.requests, self.state.gates)
                if isinstance(got, Refused):
                    return None
                flavors = {request.pod_set.name: request.flavor for request in self.requests}
                take([(flavors[name], place) for name, place in got.items()])
                after: list[_Places] = []
                for holding in going:
                    requests = self._requests(holding)
                    found = None if requests is None else places(requests, self.state.gates)
                    if requests is None or found is None or isinstance(found, Refused):
                        return None
                    then = tuple((w.flavor, found[w.pod_set.name]) for w in requests)
                    take(then)
                    after.append(then)
                return after
            finally:
                for tree, place in taken:
                    tree.give(place)

    def _requests(self, holding: Holding) -> list[PodSetRequest] | None:
        """Return a workload's pod sets as it asks for them; None = it holds what it did not ask."""
        left = list(holding.workload.pod_sets)
        found = []
        for flavor, place in holding.places:
            asks = {name: n for name, n in place.requests.items() if name != "pods"}
            of = next((p for p in left if {**p.requests, "pods": 0} == {**asks, "pods": 0}), None)
            if of is None:
                return None
            left.remove(of)
            tree = self.state.topologies[flavor]
            pods = sum(pods for _, pods in place.leaves)
            found.append(PodSetRequest(of, pods, tree, flavor, self.state.allowed(of, flavor)))
        return found


def _pods(holding: Holding) -> int:
    """Return how many pods a workload has in topologies."""
    return sum(pods for _, place in holding.places for _, pods in place.leaves)


def _moved(
    before: _Places, after: _Places
) -> tuple[int, tuple[tuple[Path, int], ...], tuple[tuple[Path, int], ...]]:
    """Return how many pods stand elsewhere, and the leaves before and after."""
    one, other = (
        {(flavor, path): pods for flavor, place in of for path, pods in place.leaves}
        for of in (before, after)
    )
    stay = sum(min(pods, other.get(where, 0)) for where, pods in one.items())
    return sum(one.values()) - stay, _leaves(one), _leaves(other)


def _leaves(held: dict[tuple[str, Path], int]) -> tuple[tuple[Path, int], ...]:
    """Return the leaves of all flavors with their pods, in order."""
    return tuple((path, pods) for (_, path), pods in sorted(held.items()))
