"""Kueue's manifests as they are written: v1beta1 and v1beta2, the fields that are known.

Fields that change no decision here are read as they are; one that is not known is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from windtunnel.policies.kueue.objects import Borrow, Reclaim, Taint, Toleration, TryOrStop, Within  # noqa: TC001 (msgspec reads the annotations)

Quantity = str | int | float
#: A priority.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


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
    max_priority_threshold: Int32 | None = None


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


class NodeSpec(Written, frozen=True):
    """A node's spec."""

    unschedulable: bool = False
    taints: list[Taint] = []
    config_source: Any = None
    external_id: Any = msgspec.field(default=None, name="externalID")
    pod_cidr: Any = msgspec.field(default=None, name="podCIDR")
    pod_cidrs: Any = msgspec.field(default=None, name="podCIDRs")
    provider_id: Any = msgspec.field(default=None, name="providerID")


class Condition(msgspec.Struct, frozen=True):
    """A node's condition."""

    type: str = ""
    status: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    """What a node holds."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: list[Condition] = []


class Metadata(Written, frozen=True):
    """A name, a namespace, labels, when it came."""

    name: str = ""
    generate_name: str = ""
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: Any = None  # text, or a time of YAML
    cluster_name: Any = None
    deletion_grace_period_seconds: Any = None
    deletion_timestamp: Any = None
    finalizers: Any = None
    generation: Any = None
    managed_fields: Any = None
    owner_references: Any = None
    resource_version: Any = None
    self_link: Any = None


class Object(Written, frozen=True):
    """What every object has."""

    kind: str
    api_version: str = ""
    metadata: Any = None
    spec: Any = None
    status: Any = None


class PriorityClass(Written, frozen=True):
    """A WorkloadPriorityClass, which has no spec."""

    kind: str
    value: Int32
    api_version: str = ""
    metadata: Any = None
    description: str = ""


class Settings(Written, frozen=True):
    """A Configuration; what is `Any` and has no default of its own decides nothing here."""

    kind: str
    api_version: str = ""
    metadata: Any = None
    fair_sharing: Any = None
    admission_fair_sharing: Any = None
    wait_for_pods_ready: Any = None
    feature_gates: dict[str, bool] = {}
    resources: Any = None
    cache_namespace: Any = None
    client_connection: Any = None
    controller: Any = None
    graceful_shutdown: Any = None
    health: Any = None
    integrations: Any = None
    internal_cert_management: Any = None
    leader_election: Any = None
    manage_jobs_without_queue_name: Any = None
    managed_jobs_namespace_selector: Any = None
    metrics: Any = None
    multi_kueue: Any = None
    namespace: Any = None
    object_retention_policies: Any = None
    pprof_bind_address: Any = None
    queue_visibility: Any = None
    sync_period: Any = None
    tls: Any = None
    visibility: Any = None
    webhook: Any = None


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
