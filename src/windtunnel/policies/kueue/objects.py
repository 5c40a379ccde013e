"""Kueue's objects as windtunnel holds them: quotas, queues, flavors, topologies, workloads.

Amounts are whole numbers: CPU in thousandths, memory in bytes, anything else in pieces.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from windtunnel.cluster.topology.request import TopologyRequest  # noqa: TC001 (msgspec reads it)

#: What a quota is of: a flavor and a resource.
FlavorResource = tuple[str, str]
#: Amounts by flavor and resource.
Amounts = dict[FlavorResource, int]

Within = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
Reclaim = Literal["Never", "LowerPriority", "Any"]
Borrow = Literal["Never", "LowerPriority"]
TryOrStop = Literal["MayStopSearch", "TryNextFlavor", "Borrow", "Preempt"]


class Quota(msgspec.Struct, frozen=True):
    """What a queue or a cohort owns of one flavor and resource; a limit of None is no limit."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class FlavorQuotas(msgspec.Struct, frozen=True):
    """The quotas of one flavor, by resource."""

    flavor: str
    quotas: dict[str, Quota] = {}


class ResourceGroup(msgspec.Struct, frozen=True):
    """Resources that come from one flavor together; flavors in the order to try."""

    flavors: tuple[FlavorQuotas, ...] = ()
    resources: tuple[str, ...] = ()

    @property
    def covered(self) -> frozenset[str]:
        """The resources: those listed, else those of its quotas."""
        named = (resource for flavor in self.flavors for resource in flavor.quotas)
        return frozenset(self.resources or named)


class BorrowWithinCohort(msgspec.Struct, frozen=True):
    """Whether one may preempt while borrowing, and whom: not above the threshold, if set."""

    policy: Borrow = "Never"
    max_priority_threshold: int | None = None


class Preemption(msgspec.Struct, frozen=True):
    """Whom a queue's workloads may preempt."""

    within_cluster_queue: Within = "Never"
    reclaim_within_cohort: Reclaim = "Never"
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


class Fungibility(msgspec.Struct, frozen=True):
    """When the search for a flavor goes on past one that fits by borrowing or preempting."""

    when_can_borrow: TryOrStop = "MayStopSearch"
    when_can_preempt: TryOrStop = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None


Effect = Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(msgspec.Struct, frozen=True):
    """What keeps pods off a node that do not tolerate it."""

    key: str
    effect: Effect = ""
    value: str = ""


class Toleration(msgspec.Struct, frozen=True):
    """What a pod tolerates: a key (empty = all), a value or any, an effect (empty = all)."""

    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: Effect = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether it covers a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


class Flavor(msgspec.Struct, frozen=True):
    """A kind of nodes: their labels, the topology they stand in, taints."""

    name: str
    node_labels: dict[str, str] = {}
    topology: str = ""
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class Cohort(msgspec.Struct, frozen=True):
    """A node of the tree above the queues."""

    name: str
    parent: str = ""
    weight: float = 1.0
    resource_groups: tuple[ResourceGroup, ...] = ()


class ClusterQueue(msgspec.Struct, frozen=True):
    """A queue with quotas of its own."""

    name: str
    cohort: str = ""
    strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    weight: float = 1.0
    resource_groups: tuple[ResourceGroup, ...] = ()
    preemption: Preemption = Preemption()
    fungibility: Fungibility = Fungibility()
    stop_policy: str = "None"
    admission_scope: str = ""


class LocalQueue(msgspec.Struct, frozen=True):
    """A namespace's door to a cluster queue; its weight counts in usage-based fair sharing."""

    name: str
    cluster_queue: str
    namespace: str = "default"
    weight: float = 1.0
    stop_policy: str = "None"


class Topology(msgspec.Struct, frozen=True):
    """Levels by node label, from the top."""

    name: str
    levels: tuple[str, ...]


class Node(msgspec.Struct, frozen=True):
    """A node: what it holds, and what keeps pods off it."""

    name: str
    labels: dict[str, str] = {}
    capacity: dict[str, int] = {}
    ready: bool = True
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one kind; ``requests`` are of one pod."""

    name: str = "main"
    count: int = 1
    requests: dict[str, int] = {}
    min_count: int | None = None
    topology: TopologyRequest | None = None
    group: str = ""
    node_selector: dict[str, str] = {}
    node_affinity: dict[str, Any] = {}
    tolerations: tuple[Toleration, ...] = ()

    @property
    def gang(self) -> str:
        """The group of pod sets that stands on one flavor together; empty = it stands alone."""
        return self.group or (self.topology.group if self.topology else "")


class Workload(msgspec.Struct, eq=False):
    """A job as Kueue sees it; the same workload is the same object.

    Attributes:
        queue: its local queue.
        created: when it came, s; None = before everything.
        evicted: it is on its way out.
        reclaimable_pods: pods of it that are done and need nothing more, by pod set.
    """

    name: str
    pod_sets: tuple[PodSet, ...] = ()
    namespace: str = ""
    uid: str = ""
    queue: str = ""
    priority: int = 0
    created: float | None = None
    evicted: bool = False
    reclaimable_pods: dict[str, int] = {}

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
