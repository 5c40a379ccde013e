"""Workloads, Jobs and JobSets as they are written: what says how many pods ask for what, and where.

Kueue's own fields are known, and one that is not is refused; of pods, which have hundreds of
fields, what decides is read. Sources: kueue.sigs.k8s.io, apis/kueue/v1beta1 and v1beta2;
Kubernetes' batch/v1; jobset.x-k8s.io/v1alpha2.
"""

from __future__ import annotations

from typing import Any

import msgspec

from windtunnel.policies.kueue.manifest_kinds import Quantity, Written
from windtunnel.policies.kueue.objects import Toleration  # noqa: TC001 (msgspec reads it)
from windtunnel.traces.kubernetes.resources import Count, PodSpec, Priority


class Expression(msgspec.Struct, frozen=True):
    """One condition on a node's label."""

    key: str
    operator: str = "In"
    values: list[str] = []


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions that hold together."""

    match_expressions: list[Expression] = []


class Terms(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of which one must hold."""

    node_selector_terms: list[Term] = []


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """Which nodes pods may use; what they merely prefer decides nothing by default."""

    required_during_scheduling_ignored_during_execution: Terms | None = None


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """What pods ask of nodes and of each other; the latter Kueue does not look at."""

    node_affinity: NodeAffinity | None = None


class Pods(PodSpec, rename="camel"):
    """A pod's specification, as far as it decides."""

    tolerations: list[Toleration] | None = None
    affinity: Affinity | None = None
    priority_class_name: str | None = None


class TemplateMeta(msgspec.Struct, frozen=True):
    """A pod template's labels and annotations."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Template(msgspec.Struct, frozen=True):
    """The pods of a job."""

    spec: Pods
    metadata: TemplateMeta | None = None


class Constraint(Written, frozen=True):
    """Slices within slices."""

    topology: str
    size: Count


class WrittenTopology(Written, frozen=True):
    """What a pod set asks of the topology."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Count | None = None
    podset_slice_required_topology_constraints: list[Constraint] | None = None


class WrittenPodSet(Written, frozen=True):
    """Pods of one kind."""

    template: Template
    name: str = "main"
    count: Count = 1
    min_count: Count | None = None
    topology_request: WrittenTopology | None = None


class ClassRef(msgspec.Struct, frozen=True):
    """A priority class."""

    name: str = ""


class WorkloadSpec(Written, frozen=True):
    """A workload."""

    pod_sets: list[WrittenPodSet]
    queue_name: str = ""
    priority_class_name: str | None = None
    priority_class_source: str | None = None
    priority_class_ref: ClassRef | None = None
    priority: Priority | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Count | None = None
    preemption_gates: Any = None


class Individual(Written, frozen=True):
    """The values of one level, domain by domain."""

    roots: list[str]
    prefix: str = ""
    suffix: str = ""


class LevelValues(Written, frozen=True):
    """The values of one level: one for all domains, or each its own."""

    universal: str | None = None
    individual: Individual | None = None


class PodCounts(Written, frozen=True):
    """Pods of each domain: one number for all, or each its own."""

    universal: Count | None = None
    individual: list[Count] | None = None


class AssignedSlice(Written, frozen=True):
    """Some of a topology assignment's domains (v1beta2)."""

    domain_count: Count
    values_per_level: list[LevelValues]
    pod_counts: PodCounts


class AssignedDomain(msgspec.Struct, frozen=True):
    """A domain of a topology assignment (v1beta1)."""

    values: list[str]
    count: Count


class TopologyAssignment(msgspec.Struct, frozen=True):
    """Where pods stand."""

    levels: list[str]
    domains: list[AssignedDomain] | None = None
    slices: list[AssignedSlice] | None = None


class PodSetAssignment(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod set was given."""

    name: str = "main"
    flavors: dict[str, str] | None = None
    resource_usage: dict[str, Quantity] | None = None
    count: Count | None = None
    topology_assignment: TopologyAssignment | None = None


class Admission(msgspec.Struct, frozen=True, rename="camel"):
    """What a workload was given."""

    cluster_queue: str
    pod_set_assignments: list[PodSetAssignment] | None = None


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One of a workload's conditions."""

    type: str
    status: str = ""
    last_transition_time: Any = None  # text, or a time of YAML


class Reclaimable(msgspec.Struct, frozen=True):
    """Pods of a pod set that are done."""

    name: str
    count: Count


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How a workload stands."""

    conditions: list[Condition] | None = None
    admission: Admission | None = None
    reclaimable_pods: list[Reclaimable] | None = None


class JobSpec(Written, frozen=True):
    """A Job of batch/v1."""

    template: Template
    parallelism: Count | None = None
    completions: Count | None = None
    suspend: bool | None = None
    active_deadline_seconds: Any = None
    backoff_limit: Any = None
    backoff_limit_per_index: Any = None
    completion_mode: Any = None
    managed_by: Any = None
    manual_selector: Any = None
    max_failed_indexes: Any = None
    pod_failure_policy: Any = None
    pod_replacement_policy: Any = None
    selector: Any = None
    success_policy: Any = None
    ttl_seconds_after_finished: Any = None


class JobTemplate(msgspec.Struct, frozen=True):
    """The job of which a JobSet makes several."""

    spec: JobSpec


class ReplicatedJob(Written, frozen=True):
    """Several like jobs."""

    name: str
    template: JobTemplate
    replicas: Count = 1
    group_name: Any = None
    depends_on: Any = None


class JobSetSpec(Written, frozen=True):
    """A JobSet."""

    replicated_jobs: list[ReplicatedJob]
    suspend: bool | None = None
    coordinator: Any = None
    failure_policy: Any = None
    managed_by: Any = None
    network: Any = None
    startup_policy: Any = None
    success_policy: Any = None
    ttl_seconds_after_finished: Any = None
    volume_claim_policies: Any = None
