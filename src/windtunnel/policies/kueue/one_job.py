"""What would happen to one more job: where it is admitted, after whose preemption, or why not.

Those that wait are let in first as far as they can be; then the job joins, and cycles run until it
is admitted or three in a row change nothing. Whoever is preempted is gone before the next cycle,
and waits again. Asked for at kubernetes-sigs/kueue#15614.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from windtunnel.errors import quote
from windtunnel.policies.kueue.cycle import Scheduler, holding_of
from windtunnel.policies.kueue.moves import Moves, moves_to_fit
from windtunnel.policies.kueue.site_trees import manifest_trees
from windtunnel.policies.kueue.snapshots import place_held
from windtunnel.policies.kueue.state import State

if TYPE_CHECKING:
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.nominating import Nomination
    from windtunnel.policies.kueue.preempting import Victim
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.snapshots import Snapshot
    from windtunnel.policies.kueue.waiting import Pending
    from windtunnel.policies.kueue.written_jobs import WrittenJob

#: Cycles in a row that change nothing end it, and so many end it though workloads take turns.
QUIET, MOST_CYCLES = 3, 200


class Gone(NamedTuple):
    """A workload that was preempted: its name, its queue, and Kueue's reason."""

    workload: str
    queue: str
    reason: str


class PlacedPods(NamedTuple):
    """A pod set of the admitted job.

    Attributes:
        name: the pod set.
        pods: how many of its pods.
        flavors: the flavor of each resource.
        domains: the values of its domains' levels from the top, with their pods; empty where the
            flavor has no topology.
    """

    name: str
    pods: int
    flavors: dict[str, str]
    domains: tuple[tuple[tuple[str, ...], int], ...]


class FlavorQuota(NamedTuple):
    """What the job's queue has of one flavor and resource.

    Attributes:
        flavor, resource: of what.
        asked: what the job asks for in all.
        nominal: what the queue owns.
        available: what it may use now, borrowing included.
        potential: what it could ever use, were the whole tree empty.
    """

    flavor: str
    resource: str
    asked: int
    nominal: int
    available: int
    potential: int


class Ruling(msgspec.Struct, frozen=True):
    """What happens to the job.

    Attributes:
        queue: its ClusterQueue.
        stands: where it stands; empty = it is not admitted.
        preempted: who went for it, in order.
        let_in: of those who waited, who is admitted without it.
        ahead: who waits before it in its queue.
        quotas: its queue's quotas before it came.
        refused: why it is not admitted; empty = it is.
        lost: pods of admitted workloads on domains that no node manifest has.
        moves: who would have to move for it to fit; None = that is not what it lacks.
    """

    queue: str
    stands: tuple[PlacedPods, ...]
    preempted: tuple[Gone, ...]
    let_in: tuple[str, ...]
    ahead: tuple[str, ...]
    quotas: tuple[FlavorQuota, ...]
    refused: str
    lost: int
    moves: Moves | None = None

    @property
    def admitted(self) -> bool:
        """Whether it starts."""
        return not self.refused


def ruling(
    manifests: Manifests,
    snapshot: Snapshot,
    job: WrittenJob,
    *,
    moves: bool = False,
) -> Ruling:
    """Return what would happen to one more job.

    Args:
        manifests: queues, flavors, topologies, nodes.
        snapshot: who is admitted, and who waits.
        job: the job.
        moves: where free nodes are what lacks, seek who would have to move.

    Raises:
        PolicyError: a flavor has a topology and no node of the manifests stands in it.
    """
    return _Trial(manifests, snapshot, asks_moves=moves).of(job)


class _Trial:
    """The cluster as it stands, and what cycles make of it."""

    def __init__(self, manifests: Manifests, snapshot: Snapshot, *, asks_moves: bool) -> None:
        self.asks_moves = asks_moves
        flavors = {flavor.name: flavor for flavor in manifests.flavors}
        trees = manifest_trees(manifests)
        self.state = State(
            manifests.tree(), flavors, trees, fair=manifests.fair, gates=manifests.gates,
            nodes=manifests.nodes,
        )  # fmt: skip
        self.lost = sum(place_held(self.state, held) for held in snapshot.held)
        self.scheduler = Scheduler(self.state)
        #: After everything in the snapshot, s.
        came = [held.workload.created or 0.0 for held in snapshot.held]
        came += [waits.workload.created or 0.0 for waits in snapshot.waiting]
        self.now = 1.0 + max([0.0, *came, *(held.reserved_at for held in snapshot.held)])
        #: Workloads that this run admitted or that were waiting, to wait again when they must go.
        self._pending: dict[str, Pending] = {}
        for waits in snapshot.waiting:
            if waits.cluster_queue and not waits.stopped:
                self._submit(waits)

    def _submit(self, job: WrittenJob) -> Pending:
        waits = self.scheduler.submit(job.workload, job.cluster_queue)
        self._pending[job.workload.key] = waits
        return waits

    def of(self, job: WrittenJob) -> Ruling:
        """Return what happens to a job that comes last."""
        if not job.cluster_queue:
            why = f"LocalQueue {quote(job.workload.queue)} is not in the manifests"
            return Ruling("", (), (), (), (), (), why, self.lost)
        admitted, _ = self._run(None)
        let_in = tuple(nomination.pending.workload.key for nomination in admitted)
        node = self.state.tree.queues[job.cluster_queue]
        quotas = _queue_quotas(node, job)
        if job.stopped:
            why = f"LocalQueue {quote(job.workload.queue)} is stopped"
            return Ruling(node.name, (), (), let_in, (), quotas, why, self.lost)
        uid = job.workload.uid or "~"
        workload = msgspec.structs.replace(job.workload, created=self.now, uid=uid)
        waits = self._submit(job._replace(workload=workload))
        admitted, victims = self._run(waits)
        gone = tuple(
            Gone(of.holding.workload.key, of.holding.queue.name, of.reason) for of in victims
        )
        mine = next((of for of in admitted if of.pending is waits), None)
        ahead = self._ahead(waits, node)
        refused = "" if mine is not None else self._refusal(waits, node, ahead)
        moves = self._moves(waits, node) if refused else None
        stands = () if mine is None else tuple(_placed_pods(mine))
        return Ruling(node.name, stands, gone, let_in, ahead, quotas, refused, self.lost, moves)

    def _moves(self, waits: Pending, node: QuotaNode) -> Moves | None:
        """Return who would have to move for it, where quota suffices and nodes are what lacks."""
        if not self.asks_moves or not self.state.topologies or self.scheduler.held(node):
            return None
        waits.tried = {}
        found = self.scheduler.nominator.nominate(waits, node)
        if not node.fits(found.assignment.usage) or not found.assignment.usage:
            return None
        requests = self.scheduler.nominator.requests(found, implied=True)
        return moves_to_fit(self.state, requests) if requests else None

    def _run(self, until: Pending | None) -> tuple[list[Nomination], list[Victim]]:
        """Run cycles until one workload is admitted or nothing changes any more."""
        admitted: list[Nomination] = []
        gone: list[Victim] = []
        quiet = 0
        for _ in range(MOST_CYCLES):
            if quiet == QUIET or not self.scheduler.ready:
                break
            waiting = self.scheduler.num_active
            changes = self.scheduler.cycle()
            still = waiting == self.scheduler.num_active
            changed = changes.admitted or changes.preempted or not still
            quiet = 0 if changed else quiet + 1
            for nomination in changes.admitted:
                self.state.add(holding_of(nomination, self.now))
            admitted += changes.admitted
            if until is not None and any(of.pending is until for of in changes.admitted):
                break
            for victim in changes.preempted:
                self._evict(victim)
            gone += changes.preempted
        return admitted, gone

    def _evict(self, victim: Victim) -> None:
        """Let a workload go, and wait again."""
        holding = victim.holding
        self.scheduler.release(holding)
        waits = self._pending.get(holding.workload.key)
        if waits is None:
            waits = self.scheduler.submit(holding.workload, holding.queue.name)
            self._pending[holding.workload.key] = waits
        else:
            self.scheduler.resubmit(waits, holding.queue)

    def _ahead(self, waits: Pending, node: QuotaNode) -> tuple[str, ...]:
        """Return who waits before it in its queue, in order."""
        line = self.scheduler.lines[node]
        before = [of for of in (*line.active(), *line.aside()) if of.rank < waits.rank]
        return tuple(of.workload.key for of in sorted(before, key=lambda of: of.rank))

    def _refusal(self, waits: Pending, node: QuotaNode, ahead: tuple[str, ...]) -> str:
        """Return why it waits."""
        if self.scheduler.held(node):
            return f"ClusterQueue {quote(node.name)} is stopped ({node.asks.stop_policy})"
        if self.scheduler.lines[node].strict and ahead:
            return (
                f"ClusterQueue {quote(node.name)} is StrictFIFO, and {quote(ahead[0])} is before it"
            )
        waits.tried = {}
        found = self.scheduler.nominator.nominate(waits, node)
        if found.refused:
            return found.refused
        short = ", ".join(sorted(f"{resource} of {flavor}" for flavor, resource in
                                 found.assignment.short))  # fmt: skip
        if short and not found.victims:
            return f"short of {short}, and nobody may go for it"
        if found.victims:
            return f"short of {short}: it and those that it preempts take turns"
        return "others of the same cohort go before it in every cycle"


def _queue_quotas(node: QuotaNode, job: WrittenJob) -> tuple[FlavorQuota, ...]:
    """Return what a queue has of what a job asks for, flavor by flavor."""
    asked: dict[str, int] = {}
    for pod_set in job.workload.pod_sets:
        for resource, amount in (*pod_set.requests.items(), ("pods", 1)):
            asked[resource] = asked.get(resource, 0) + amount * pod_set.count
    return tuple(
        FlavorQuota(
            of.flavor, resource, asked[resource], node.nominal.get((of.flavor, resource), 0),
            node.available((of.flavor, resource)), node.potential((of.flavor, resource)),
        )
        for group in node.asks.resource_groups
        for of in group.flavors
        for resource in of.quotas
        if asked.get(resource)
    )  # fmt: skip


def _placed_pods(mine: Nomination) -> list[PlacedPods]:
    """Return where an admitted job stands."""
    found = []
    for name, of in mine.assignment.flavors.items():
        flavors = {resource: chosen.flavor for resource, chosen in of.items()}
        _, place = mine.places.get(name, ("", None))
        domains = () if place is None else tuple(place.leaves)
        found.append(PlacedPods(name, mine.assignment.counts[name], flavors, domains))
    return found
