"""Policy ``kueue``: a trace under Kueue's own manifests, decided as Kueue decides.

At every instant cycles run until three in a row change nothing. Where a flavor has a topology, a
job is admitted where its pods have nodes, and holds them while it waits for power; where it has
none, Kueue looks at quota alone, and an admitted job holds its quota while it waits for nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.cluster.topology.places import Place
from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies.described import PerRun
from windtunnel.policies.kueue.as_quotas import quotas_of
from windtunnel.policies.kueue.cycle import Scheduler, holding_of
from windtunnel.policies.kueue.manifests import Manifests, changed_quotas, read_manifests
from windtunnel.policies.kueue.node_sets import NodeSets
from windtunnel.policies.kueue.objects import Quota
from windtunnel.policies.kueue.pods_ready import Unready
from windtunnel.policies.kueue.site_trees import flavor_types, site_nodes, trees
from windtunnel.policies.kueue.state import State
from windtunnel.policies.kueue.usage import UsageBook
from windtunnel.policies.kueue.workloads import JobReader, gpu_resource, idle_queues
from windtunnel.sim.contract import Policy, Preempt, Start, Wake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.cluster.free import Where
    from windtunnel.policies.kueue.cycle import Changes
    from windtunnel.policies.kueue.node_sets import Nodes
    from windtunnel.policies.kueue.objects import FlavorResource
    from windtunnel.policies.kueue.state import Holding
    from windtunnel.policies.kueue.waiting import Pending
    from windtunnel.policies.quotas import Quotas
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem

#: An instant ends after so many cycles, though workloads take turns for ever.
MOST_CYCLES = 200
#: Cycles in a row that change nothing end an instant.
QUIET = 3


class Kueue(PerRun):
    """Kueue's queues, cohorts, flavors and topologies, read from its manifests.

    Args:
        manifests: what they say, as read.
        dir: a folder or a file of manifests (`read_manifests`).
        gpu: the resource that GPUs are; None = the one with "gpu" in its name.
        topology: what jobs ask of the topology that say nothing themselves, such as
            ``preferred:rack``; None = nothing.
        balanced: ``yes`` sets the gate TASBalancedPlacement; ``no`` leaves it as the manifests say.

    Raises:
        SpecError: a manifest is wrong.
    """

    name = "kueue"
    keeps_levels = True

    def __init__(
        self,
        manifests: Manifests | None = None,
        *,
        dir: str | Path | None = None,  # noqa: A002 - what users type
        gpu: str | None = None,
        topology: str | None = None,
        balanced: str = "no",
    ) -> None:
        checked_choice("balanced", balanced, ("yes", "no"))
        if isinstance(manifests, str):
            raise SpecError("kueue", "a folder of manifests is given as dir=FOLDER.")
        self.manifests = read_manifests(dir) if dir is not None else manifests
        self.gpu = gpu
        self.topology = topology
        self.balanced = balanced == "yes"

    @classmethod
    def from_manifests(cls, path: str | Path, **options: Any) -> Kueue:
        """Return the policy of manifests.

        Args:
            path: a file or a folder of them.
            options: ``gpu``, ``topology``, ``balanced``, as above.

        Raises:
            SpecError: a manifest or an option is wrong.
        """
        return cls(read_manifests(path), **options)

    def to_quotas(self) -> Quotas:
        """Return the same as quotas of the simple policy `Quota`.

        Raises:
            SpecError: they say more than it knows; names each thing.
            PolicyError: there are no manifests, or it is not known which resource the GPUs are.
        """
        if self.manifests is None:
            raise PolicyError(self.label, "needs manifests: Kueue.from_manifests(DIR)")
        return quotas_of(self.manifests, self.gpu)

    def for_run(self, problem: Problem) -> Policy:
        """Return the manifests at work on these jobs.

        Raises:
            PolicyError: there are no manifests, or they do not go with the cluster or the jobs.
        """
        if self.manifests is None:
            raise PolicyError(self.label, "needs manifests: --kueue DIR, or kueue:dir=DIR")
        return KueueRun(self, self.manifests, problem)


class KueueRun(Policy):
    """Manifests at work: one run's quotas, lines and places.

    Args:
        policy: the options.
        manifests: the manifests.
        problem: the run.
    """

    name = "kueue"

    def __init__(self, policy: Kueue, manifests: Manifests, problem: Problem) -> None:
        self.gpu = policy.gpu or gpu_resource(manifests)
        gates = manifests.gates
        if policy.balanced:
            gates = msgspec.structs.replace(gates, tas_balanced_placement=True)
        units = problem.units
        scaled = _in_units(manifests, self.gpu, units)
        self.types = flavor_types(manifests, problem)
        nodes = site_nodes(manifests, problem, self.gpu)
        if problem.is_pool and any(flavor.topology for flavor in manifests.flavors):
            message = "a flavor has a topology and the cluster is a pool; give its nodes: 4x8"
            raise PolicyError("kueue", message)
        by_flavor = trees(manifests, nodes, self.types, problem)
        self.node_of = {node.labels.get("kubernetes.io/hostname", node.name): index
                        for index, node in enumerate(nodes)}  # fmt: skip
        levels = next((tree.levels for tree in by_flavor.values()), ())
        flavors = {flavor.name: flavor for flavor in scaled.flavors}
        self.state = State(
            scaled.tree(), flavors, by_flavor, fair=scaled.fair, gates=gates, nodes=nodes
        )
        self.book = UsageBook(
            scaled.local_queues, scaled.half_life, scaled.sampling, scaled.resource_weights
        )
        self.scheduler = Scheduler(self.state, self.book)
        self.reader = JobReader(scaled, problem, self.gpu, policy.topology, levels)
        self.held: dict[int, tuple[JobView, Pending, Holding]] = {}
        self.unplaced: dict[int, JobView] = {}
        rules = manifests.pods_ready
        self.unready = None if rules is None else Unready(rules)
        self._jobs: dict[int, JobView] = {}
        self._number: dict[str, int] = {}
        self._leaves = {
            flavor: np.array([self.node_of[path[-1]] for path in tree.paths[-1]], np.intp)
            for flavor, tree in by_flavor.items()
        }
        self._paths = {flavor: tree.paths[-1] for flavor, tree in by_flavor.items()}
        self._placed = 0
        self._withheld = 0
        self._total = int(problem.sizes.sum())
        self._units = units
        self._node_sets = NodeSets(
            self.state, self.gpu, self.types, tuple(problem.types), self._leaves
        )
        self._turns = 0
        if by_flavor and problem.devices:
            raise PolicyError(
                "kueue",
                "flavors with a topology place pods on whole GPUs of nodes; leave out what models "
                "devices (cores, memory, shares of GPUs)",
            )
        self._idle = idle_queues(manifests, problem)
        self._other = ", ".join(f"{count:,} {kind}" for kind, count in manifests.other.items())
        self.parameters = {
            "gates": {"as in": "v0.20", **gates.changed},
            "fair_sharing": list(scaled.fair),
            "topology": policy.topology,
            "gpu": self.gpu,
        }

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override] # known after the run
        """What a reader of the numbers must know."""
        gates = self.state.gates.in_words
        found = [f"Kueue's feature gates were {gates}; docs/systems/kueue.md lists them."]
        found += self._idle
        if self._other:
            found.append(f"Of the manifests {self._other} were not read: they decide nothing here.")
        if self.unready is not None and self.unready.evictions:
            found.append(
                f"waitForPodsReady evicted {self.unready.evictions:,} times who had no nodes in "
                f"time, and {self.unready.out:,} jobs for good."
            )
        if self._turns:
            found.append(
                f"At {self._turns:,} instants workloads preempted each other in turns; each was "
                f"ended after {MOST_CYCLES} cycles."
            )
        return tuple(found)

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Start | Preempt | Wake]:
        """Yield who starts and who gives way."""
        self._note_changes(now, queue, cluster)
        yield from self._place_admitted(now, cluster)
        yield from self._send_away(now)
        self._see_nodes(cluster)
        quiet = cycles = 0
        while quiet < QUIET and self.scheduler.ready and not self._is_blocked:
            if cycles == MOST_CYCLES:
                self._turns += 1
                break
            cycles += 1
            self._see_nodes(cluster)
            waiting = self.scheduler.num_active
            changes = self.scheduler.cycle()
            still = waiting == self.scheduler.num_active
            yield from self._apply(changes, now, cluster)
            changed = changes.admitted or changes.preempted or not still
            quiet = 0 if changed else quiet + 1

    def _see_nodes(self, cluster: Any) -> None:
        """Withhold from the topologies what others hold, or failures and drains took away.

        Where room has come back, whoever was set aside is tried again.
        """
        if not self._leaves:
            return
        taken = self._total - self._placed - round(cluster.free_gpus * self._units)
        if taken == self._withheld == 0:
            return  # otherwise one node may be back as another fails
        self._withheld = taken
        free = self._free_for_others(cluster)
        has_more = False
        for flavor, nodes in self._leaves.items():
            tree = self.state.topologies[flavor]
            before = tree.withheld.get(self.gpu, np.zeros(len(nodes), np.int64))
            amounts = np.maximum(tree.left[self.gpu] + before - free[nodes], 0)
            if (amounts != before).any():
                self.state.withhold(flavor, self.gpu, amounts)
                has_more = has_more or bool((amounts < before).any())
        if has_more:
            self.scheduler.wake_all()

    def _free_for_others(self, cluster: Any) -> np.ndarray:
        """Return the free GPU units of each node, without those of who is admitted there."""
        free = np.rint(np.array(cluster.free_by_node) * self._units).astype(np.int64)
        for number in self.unplaced:
            for node, gpus in self._nodes(self.held[number][2]):
                free[node] -= gpus
        left: np.ndarray = np.maximum(free, 0)
        return left

    def _note_changes(self, now: float, queue: Any, cluster: Any) -> None:
        """Book what ended, what was taken off its nodes, and what began to wait."""
        for job in (*cluster.finished, *cluster.interrupted):
            _, waits, holding = self.held.pop(job.number)
            self._placed -= self._gpus(holding)
            self.scheduler.release(holding)
            self.book.leave(waits.workload, now)
        for job in cluster.moved:
            if job.number in self.held:  # it may be over by now
                self._move(job.number, cluster.where(job))
        for job in queue.arrived:
            workload = self.reader.workload(job)
            self._number[workload.uid] = job.number
            self._jobs[job.number] = job
            queue_name = self.reader.queue_of(job)
            if job.vc not in self.reader.stopped:
                self.scheduler.submit(workload, queue_name)

    def node_sets_for(self, job: int) -> tuple[Nodes, ...]:
        """Return the nodes of a job's flavor; before it is admitted, of each with quota for it."""
        if not self._node_sets.differ:
            return (None,)
        if job in self.held:
            _, waits, holding = self.held[job]
            return self._node_sets.for_admitted(waits.workload, holding.usage)
        view = self._jobs.get(job)
        if view is None:
            return (None,)  # it came after the last decision
        node = self.state.tree.queues[self.reader.queue_of(view)]
        gpus = round(view.num_gpus * self._units)
        return self._node_sets.for_waiting(self.reader.workload(view), node, gpus)

    def may_go_on(self, job: int, where: Where) -> bool:
        """Return whether an admitted job may go on there, by its flavor's nodes and its request."""
        _, waits, holding = self.held[job]
        if not holding.places:
            return True
        ((flavor, place),) = self._moved(holding, where)
        tree, pod_set = self.state.topologies[flavor], waits.workload.pod_sets[0]
        allowed = self.state.allowed(pod_set, flavor)
        leaves = [tree.leaf_index.get(path) for path, _ in place.leaves]
        if any(leaf is None or (allowed is not None and not allowed[leaf]) for leaf in leaves):
            return False
        return pod_set.topology is None or pod_set.topology.kept_by(tree.levels, place.leaves)

    def _moved(self, holding: Holding, where: Where) -> tuple[tuple[str, Place], ...]:
        """Return the places of a holding on other nodes: jobs have one pod set."""
        ((flavor, place),) = holding.places
        size = place.requests[self.gpu]
        leaf_of = dict(zip(self._leaves[flavor].tolist(), self._paths[flavor], strict=True))
        leaves = {leaf_of.get(node, (str(node),)): gpus // size for node, gpus in where}
        return ((flavor, Place(place.requests, tuple(sorted(leaves.items())))),)

    def _move(self, number: int, where: Where) -> None:
        """Book that another node took the place of a failed one of a job."""
        job, waits, holding = self.held[number]
        if holding.places:
            moved = msgspec.structs.replace(holding, places=self._moved(holding, where))
            self.state.remove(holding)
            self.state.add(moved)
            self.held[number] = job, waits, moved

    def _apply(
        self, changes: Changes, now: float, cluster: Any
    ) -> Iterator[Start | Preempt | Wake]:
        """Carry a cycle's decisions out: admissions, then preemptions."""
        for victim in changes.preempted:
            number = self._number[victim.holding.workload.uid]
            job, waits, holding = self.held.pop(number)
            if self.unready is not None:
                self.unready.gone(number)
            if self.unplaced.pop(number, None) is None:
                self._placed -= self._gpus(holding)
                yield Preempt(job)
            self.scheduler.release(holding)
            self.book.leave(waits.workload, now)
            self.scheduler.resubmit(waits, holding.queue)
        for nomination in changes.admitted:
            if self._is_blocked:
                self.scheduler.resubmit(nomination.pending, nomination.queue)
                continue
            holding = holding_of(nomination, now)
            self.state.add(holding)
            self.book.admit(nomination.pending.workload, now)
            number = self._number[nomination.pending.workload.uid]
            job = self._jobs[number]
            self.held[number] = job, nomination.pending, holding
            self.unplaced[number] = job
            if self.unready is not None:
                yield from self._place_admitted(now, cluster)
                if number in self.unplaced:
                    yield Wake(self.unready.admitted(number, now))
        yield from self._place_admitted(now, cluster)

    @property
    def _is_blocked(self) -> bool:
        """Whether nobody is admitted before somebody's pods are ready."""
        return self.unready is not None and self.unready.rules.block and bool(self.unplaced)

    def _send_away(self, now: float) -> Iterator[Wake]:
        """Evict whoever is without nodes for too long, and let in whoever's wait is over."""
        if self.unready is None:
            return
        for number in self.unready.overdue(now):
            del self.unplaced[number]
            _, waits, holding = self.held.pop(number)
            self.scheduler.release(holding)
            self.book.leave(waits.workload, now)
            back = self.unready.evict(number, waits, holding.queue, now)
            if back is not None and back > now:
                yield Wake(back)
        for waits, node in self.unready.back(now):
            self.scheduler.resubmit(waits, node)

    def _place_admitted(self, now: float, cluster: Any) -> Iterator[Start]:
        """Start whoever is admitted and has nodes, in the order of admission."""
        refused: set[tuple[int, tuple[str, ...] | None]] = set()
        for number, job in list(self.unplaced.items()):
            _, _, holding = self.held[number]
            types = self._types(holding)
            if holding.places:
                if self._start_there(job, holding, cluster):
                    self._is_placed(number, holding)
                elif self._has_lost_nodes(holding, cluster):
                    self._readmit(number, now)
                continue
            kind = (cluster.demand_class(job), types)
            if kind in refused:
                continue
            where = cluster.fit(job, types) if job.num_gpus else cluster.fit(job)
            if where is None:
                refused.add(kind)
                continue
            self._is_placed(number, holding)
            yield Start(job, where)

    def _is_placed(self, number: int, holding: Holding) -> None:
        """Note that an admitted job runs."""
        del self.unplaced[number]
        if self.unready is not None:
            self.unready.gone(number)
        self._placed += self._gpus(holding)

    def _start_there(self, job: JobView, holding: Holding, cluster: Any) -> bool:
        """Start a job in its places; return False where it has to wait: power, or nodes, are short.

        Raises:
            PolicyError: it cannot run in these places, though elsewhere it could.
        """
        try:
            started: bool = cluster.start(job, self._nodes(holding))
        except PolicyError:
            fits = cluster.fit(job, self._types(holding)) is not None
            if fits and not self._has_lost_nodes(holding, cluster):
                raise
            return False
        return started

    def _has_lost_nodes(self, holding: Holding, cluster: Any) -> bool:
        """Return whether what a job was to have of some node is not free any more."""
        free = cluster.free_by_node
        return any(free[node] * self._units < gpus for node, gpus in self._nodes(holding))

    def _readmit(self, number: int, now: float) -> None:
        """Let an admitted job that has lost its nodes before it ran wait to be admitted again."""
        del self.unplaced[number]
        _, waits, holding = self.held.pop(number)
        if self.unready is not None:
            self.unready.gone(number)
        self.scheduler.release(holding)
        self.book.leave(waits.workload, now)
        self.scheduler.resubmit(waits, holding.queue)

    def _gpus(self, holding: Holding) -> int:
        """Return the GPU units that a holding has in places."""
        return sum(
            place.requests.get(self.gpu, 0) * sum(pods for _, pods in place.leaves)
            for _, place in holding.places
        )

    def _types(self, holding: Holding) -> tuple[str, ...] | None:
        """Return the GPU types of the flavor that a holding's GPUs are on."""
        flavor = next((f for f, r in holding.usage if r == self.gpu), None)
        return None if flavor is None else self.types[flavor]

    def _nodes(self, holding: Holding) -> list[tuple[int, int]]:
        """Return a holding's places as pairs of a node and its GPUs."""
        found: dict[int, int] = {}
        for _, place in holding.places:
            gpus = place.requests.get(self.gpu, 0)
            for path, pods in place.leaves:
                node = self.node_of[path[-1]]
                found[node] = found.get(node, 0) + pods * gpus
        return sorted(found.items())


def _in_units(manifests: Manifests, gpu: str, units: int) -> Manifests:
    """Return manifests with quotas of GPUs in the run's units, of which a GPU has ``units``."""
    if units == 1:
        return manifests

    def scaled(what: FlavorResource, quota: Quota) -> Quota:
        if what[1] != gpu:
            return quota
        limits = (quota.nominal, quota.borrowing_limit, quota.lending_limit)
        nominal, borrow, lend = (None if of is None else of * units for of in limits)
        return Quota(nominal or 0, borrow, lend)

    def all_scaled(of: Any) -> Any:
        groups = changed_quotas(of.resource_groups, scaled)
        return msgspec.structs.replace(of, resource_groups=groups)

    return msgspec.structs.replace(
        manifests,
        queues=tuple(map(all_scaled, manifests.queues)),
        cohorts=tuple(map(all_scaled, manifests.cohorts)),
    )
