"""What the head of a queue would hold: flavors, then places, then whoever must go for it.

Source: Kueue's scheduler (Apache-2.0), restated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windtunnel.cluster.topology.places import Place
from windtunnel.policies.kueue import classical, fair
from windtunnel.policies.kueue.flavors import Assignment, FlavorSearch, Mode
from windtunnel.policies.kueue.placing import PodSetRequest, Refused, places
from windtunnel.policies.kueue.preempting import Attempt, Victim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.kueue.objects import FlavorResource, PodSet
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import State
    from windtunnel.policies.kueue.usage import UsageBook
    from windtunnel.policies.kueue.waiting import Pending


#: More than so many are forgotten.
_MOST_SOUGHT = 100_000
#: What `placing.places` returns.
_Places = dict[str, Place] | Refused


class Nomination(msgspec.Struct, eq=False):
    """What a head would hold, and who must go for it.

    Attributes:
        pending: the head.
        queue: its queue's node.
        assignment: its flavors.
        places: its places, by pod set.
        victims: who must go.
        refused: why it cannot start.
    """

    pending: Pending
    queue: QuotaNode
    assignment: Assignment
    places: dict[str, tuple[str, Place]] = {}
    victims: list[Victim] = []
    refused: str = ""

    @property
    def mode(self) -> Mode:
        """How it fits."""
        return self.assignment.mode


class Nominator:
    """Finds what heads would hold as things stand.

    Args:
        state: quotas, topologies and who holds what.
        usage: what local queues used, where queues go by it.
    """

    def __init__(self, state: State, usage: UsageBook | None = None) -> None:
        self.state = state
        self.usage = usage
        #: Places sought since the last change, and on the empty topology, by pod set.
        self._sought: dict[tuple[int, int, str, bool], tuple[int, PodSetRequest, _Places]] = {}

    def nominate(self, pending: Pending, queue: QuotaNode) -> Nomination:
        """Return what a head would hold and who must go for it."""
        search = FlavorSearch(
            self.state,
            queue,
            pending.workload,
            lambda what, amount: self._simulate(pending, queue, what, amount),
            tried=pending.tried,
        )
        full = self._of(pending, queue, search, None, as_it_stands=True)
        if full.mode is Mode.FIT or full.victims or not self.state.gates.partial_admission:
            return full
        return self._partial(pending, queue, search) or full

    def again(self, nomination: Nomination) -> Nomination:
        """Return what a head would hold as things stand now, on the same flavors."""
        pending, queue, before = nomination.pending, nomination.queue, nomination.assignment
        search = FlavorSearch(
            self.state,
            queue,
            pending.workload,
            lambda what, amount: self._simulate(pending, queue, what, amount),
            fixed=before,
        )
        counts = [before.counts[pod_set.name] for pod_set in pending.workload.pod_sets]
        found = self._of(pending, queue, search, counts)
        found.assignment.tried = before.tried
        return found

    def _of(
        self,
        pending: Pending,
        queue: QuotaNode,
        search: FlavorSearch,
        counts: Sequence[int] | None,
        *,
        as_it_stands: bool = False,
    ) -> Nomination:
        """Return what it would hold with so many pods of each pod set."""
        assignment = search.assign(counts)
        found = Nomination(pending, queue, assignment, refused=assignment.refused)
        requests = self.requests(found, implied=search.only_topologies)
        if requests is None:
            assignment.mode = Mode.NO_FIT
            found.refused = "its resources stand on flavors of several topologies"
        if assignment.mode is Mode.NO_FIT or requests is None:
            return found
        self._place(found, requests, as_it_stands=as_it_stands)
        if Mode.NO_FIT < assignment.mode < Mode.FIT:
            found.victims = self._victims(found, requests)
        return found

    def requests(self, found: Nomination, *, implied: bool) -> list[PodSetRequest] | None:
        """Return the pod sets to place; None if one stands on several topologies.

        Args:
            found: what the workload would hold.
            implied: pod sets without a request are placed as well.
        """
        requests: list[PodSetRequest] = []
        if not self.state.topologies or not self.state.gates.topology_aware_scheduling:
            return requests
        for pod_set in found.pending.workload.pod_sets:
            of = found.assignment.flavors.get(pod_set.name, {})
            flavors = {c.flavor for c in of.values() if c.flavor in self.state.topologies}
            if len(flavors) > 1:
                return None
            count = found.assignment.counts[pod_set.name]
            if flavors and count and (implied or _asks(pod_set)):
                flavor = flavors.pop()
                tree = self.state.topologies[flavor]
                allowed = self.state.allowed(pod_set, flavor)
                requests.append(PodSetRequest(pod_set, count, tree, flavor, allowed))
        return requests

    def _places(self, requests: list[PodSetRequest], *, empty: bool) -> _Places:
        """Return places as `placing.places` does; what was sought since the last change is known.

        Only for the state as it stands between cycles, or for the empty topology.
        """
        if len(requests) > 1:
            return places(requests, self.state.gates, empty=empty)
        (request,) = requests
        key = (id(request.pod_set), request.pods, request.flavor, empty)
        stamp = 0 if empty else self.state.changes
        known = self._sought.get(key)
        if known is not None and known[0] == stamp and known[1].pod_set is request.pod_set:
            return known[2]
        found = places(requests, self.state.gates, empty=empty)
        if len(self._sought) > _MOST_SOUGHT:
            self._sought.clear()
        self._sought[key] = stamp, request, found
        return found

    def _place(
        self, found: Nomination, requests: list[PodSetRequest], *, as_it_stands: bool
    ) -> None:
        """Find places; where there is no room others must go, or it can never be placed."""
        if not requests:
            return
        if found.mode is Mode.FIT:
            if as_it_stands:
                got = self._places(requests, empty=False)
            else:
                got = places(requests, self.state.gates)
            if not isinstance(got, Refused):
                found.places = _with_flavors(requests, got)
                return
            found.assignment.lower(got.pod_set, Mode.PREEMPT)
            found.refused = f"no room in the topology for {got.pod_set!r}"
        never = self._places(requests, empty=True)
        if isinstance(never, Refused):
            found.assignment.lower(never.pod_set, Mode.NO_FIT)
            found.refused = never.reason or f"{never.pod_set!r} does not fit an empty topology"
            return
        found.places = _with_flavors(requests, never)
        for request in requests:  # free nodes are what lacks, whatever the quotas
            found.assignment.lower(request.pod_set.name, Mode.PREEMPT)

    def _victims(self, found: Nomination, requests: list[PodSetRequest]) -> list[Victim]:
        """Return who must go for the whole request, and find its places without them."""
        attempt = Attempt(
            self.state,
            found.queue,
            found.pending.workload,
            found.assignment.usage,
            found.assignment.short,
            self._fits_topology(requests),
            self.usage,
        )
        victims = self.search(attempt)
        if victims and requests:
            for victim in victims:
                self.state.vacate(victim.holding)
            got = places(requests, self.state.gates)
            if not isinstance(got, Refused):
                found.places = _with_flavors(requests, got)
            attempt.restore(victims)
        return victims

    def _fits_topology(self, requests: list[PodSetRequest]) -> Callable[[], bool] | None:
        """Return the question whether the topology has room now; None = there is none."""
        if not requests:
            return None
        return lambda: not isinstance(places(requests, self.state.gates), Refused)

    def search(self, attempt: Attempt) -> list[Victim]:
        """Return who must go, by priority or by fair share."""
        return fair.victims(attempt) if self.state.fair else classical.victims(attempt)

    def _simulate(
        self, pending: Pending, queue: QuotaNode, what: FlavorResource, amount: int
    ) -> tuple[Mode, int]:
        """Return who would go for one flavor's resource alone, on any nodes, and its level."""
        attempt = Attempt(
            self.state,
            queue,
            pending.workload,
            {what: amount},
            frozenset((what,)),
            usage_book=self.usage,
        )
        victims = self.search(attempt)
        for victim in victims:
            self.state.vacate(victim.holding)
        level, _ = queue.borrowing_level(what, amount)
        attempt.restore(victims)
        if not victims:
            return Mode.NO_CANDIDATES, level
        own = any(victim.holding.queue is queue for victim in victims)
        return (Mode.PREEMPT if own else Mode.RECLAIM), level

    def _partial(
        self, pending: Pending, queue: QuotaNode, search: FlavorSearch
    ) -> Nomination | None:
        """Return the largest part of the pods that fits or can be made to fit, None if none."""
        pod_sets = pending.workload.pod_sets
        spare = [p.count - (p.count if p.min_count is None else p.min_count) for p in pod_sets]
        total = sum(spare)
        if total <= 0:
            return None
        best: Nomination | None = None
        low, high = 1, total  # pods left out
        while low <= high:
            out = (low + high) // 2
            counts = [
                pod_set.count - left * out // total
                for pod_set, left in zip(pod_sets, spare, strict=True)
            ]
            found = self._of(pending, queue, search, counts)
            if found.mode is Mode.FIT or found.victims:
                best, high = found, out - 1
            else:
                low = out + 1
        return best


def _asks(pod_set: PodSet) -> bool:
    """Return whether a pod set asks for places itself."""
    return pod_set.topology is not None and pod_set.topology.places


def _with_flavors(
    requests: list[PodSetRequest], got: dict[str, Place]
) -> dict[str, tuple[str, Place]]:
    """Return places with their flavors, by pod set."""
    flavors = {request.pod_set.name: request.flavor for request in requests}
    return {name: (flavors[name], place) for name, place in got.items()}
