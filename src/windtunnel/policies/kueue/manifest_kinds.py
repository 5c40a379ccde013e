"""Kueue's manifests as they are written: v1beta1 and v1beta2, the fields that are known.

Fields that change no decision here are read as they are; one that is not known is refused.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from windtunnel.policies.kueue.objects import (  # noqa: TC001 (msgspec reads the annotations)
    Borrow,
    Reclaim,
    Taint,
    Toleration,
    TryOrStop,
    Within,
)

Quantity = str | int | float


class Written(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What all of a manifest's parts have in common."""


class ResourceQuota(Written, frozen=True):
    """A flavor's quota of one resource."""

    name: str
    nominal_quota: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuota(Written, frozen=True):
    """The quotas of one flavor."""

    name: str
    resources: list[ResourceQuota] = []


class Group(Written, frozen=True):
    """Resources that come from one flavor together."""

    covered_resources: list[str]
    flavors: list[FlavorQuota]


class FairSharing(Written, frozen=True):
    """A weight."""

    weight: Quantity | None = None


class BorrowWithin(Written, frozen=True):
    """Preemption while borrowing."""

    policy: Borrow = "Never"
    max_priority_threshold: int | None = None


class PreemptionRules(Written, frozen=True):
    """Whom a queue may preempt."""

    within_cluster_queue: Within = "Never"
    reclaim_within_cohort: Reclaim = "Never"
    borrow_within_cohort: BorrowWithin | None = None


class FungibilityRules(Written, frozen=True):
    """When the search for a flavor goes on."""

    when_can_borrow: TryOrStop = "MayStopSearch"
    when_can_preempt: TryOrStop = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None


class AdmissionScope(Written, frozen=True):
    """How local queues compete."""

    admission_mode: str = ""


class ClusterQueueSpec(Written, frozen=True):
    """A cluster queue."""

    resource_groups: list[Group] = []
    cohort: str = ""
    cohort_name: str = ""
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] = "BestEffortFIFO"
    namespace_selector: Any = None
    flavor_fungibility: FungibilityRules | None = None
    preemption: PreemptionRules | None = None
    admission_checks: Any = None
    admission_checks_strategy: Any = None
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] | None = None
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None
    concurrent_admission_policy: Any = None


class CohortSpec(Written, frozen=True):
    """A cohort."""

    parent: str = ""
    parent_name: str = ""
    resource_groups: list[Group] = []
    fair_sharing: FairSharing | None = None


class FlavorSpec(Written, frozen=True):
    """A flavor."""

    node_labels: dict[str, str] = {}
    node_taints: list[Taint] = []
    tolerations: list[Toleration] = []
    topology_name: str = ""


class LocalQueueSpec(Written, frozen=True):
    """A namespace's door to a cluster queue."""

    cluster_queue: str
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] | None = None
    fair_sharing: FairSharing | None = None


class LevelSpec(Written, frozen=True):
    """A level of a topology."""

    node_label: str


class TopologySpec(Written, frozen=True):
    """A topology."""

    levels: list[LevelSpec]


class NodeSpec(msgspec.Struct, frozen=True):
    """A node's spec; Kubernetes' other fields are not read."""

    unschedulable: bool = False
    taints: list[Taint] = []


class Condition(msgspec.Struct, frozen=True):
    """A node's condition."""

    type: str = ""
    status: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    """What a node holds."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: list[Condition] = []


class Metadata(msgspec.Struct, frozen=True):
    """A name, a namespace, labels."""

    name: str = ""
    namespace: str = "default"
    labels: dict[str, str] = {}


class FairSettings(Written, frozen=True):
    """Fair sharing, as a Configuration states it."""

    enable: bool = True
    preemption_strategies: list[str] | None = None


class UsageSettings(Written, frozen=True):
    """Usage-based sharing, as a Configuration states it."""

    usage_half_life_time: Quantity | None = None
    usage_sampling_interval: Quantity | None = None
    resource_weights: dict[str, float] = {}


#: The specs that are read, by kind.
SPECS: dict[str, type[msgspec.Struct]] = {
    "ClusterQueue": ClusterQueueSpec,
    "Cohort": CohortSpec,
    "ResourceFlavor": FlavorSpec,
    "LocalQueue": LocalQueueSpec,
    "Topology": TopologySpec,
    "Node": NodeSpec,
}
