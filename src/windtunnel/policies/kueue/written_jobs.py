"""A Workload, Job or JobSet as written, made a workload of ours.

Kueue makes the Workload of a Job itself: one pod set of as many pods as run at once; of a JobSet
one for each of its replicated jobs; labels name queue and priority class, and annotations of the
pods say what they ask of the topology.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from windtunnel.checked import checked_choice
from windtunnel.cluster.topology.request import Layer, TopologyRequest
from windtunnel.errors import SpecError, quote
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue import workload_kinds as kinds
from windtunnel.policies.kueue.converting import converted, named
from windtunnel.policies.kueue.manifest_kinds import Metadata
from windtunnel.policies.kueue.quantities import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.yaml_files import Document

_KUEUE = "kueue.x-k8s.io/"
_QUEUE, _CLASS = f"{_KUEUE}queue-name", f"{_KUEUE}priority-class"
_LEAST = f"{_KUEUE}job-min-parallelism"
_ASKS = f"{_KUEUE}podset-"
#: The kinds that are read.
KINDS = ("Workload", "Job", "JobSet")


class WrittenJob(NamedTuple):
    """A job as written.

    Attributes:
        workload: the workload.
        cluster_queue: the queue that its LocalQueue leads to; empty = there is no such LocalQueue.
        stopped: its LocalQueue lets nobody in.
        where: file and document, for messages.
    """

    workload: objects.Workload
    cluster_queue: str
    stopped: bool
    where: str


def read_job(document: Document, manifests: Manifests) -> WrittenJob:
    """Return the job of a document.

    Args:
        document: a Workload, Job or JobSet.
        manifests: its queues and priority classes.

    Raises:
        SpecError: a field is wrong (file, document, path), or it names no queue.
    """
    kind = document.data.get("kind")
    checked_choice(f"{document.where}, $.kind", kind, KINDS)
    meta: Metadata = converted(
        document.data.get("metadata") or {}, Metadata, document, "$.metadata"
    )
    labels = meta.labels
    where = f"{document.where} ({named(document)})"
    written = document.data.get("spec")
    spec: Any = {} if written is None else written
    if kind == "Workload":
        found = converted(spec, kinds.WorkloadSpec, document, "$.spec")
        pod_sets = [_pod_set(of, f"{where}, $.spec.podSets[{n}]")
                    for n, of in enumerate(found.pod_sets)]  # fmt: skip
        pods = [of.template.spec for of in found.pod_sets]
        ref = found.priority_class_ref.name if found.priority_class_ref else ""
        queue, class_ = found.queue_name, ref or found.priority_class_name or ""
        priority = found.priority
    else:
        shape = kinds.JobSpec if kind == "Job" else kinds.JobSetSpec
        found = converted(spec, shape, document, "$.spec")
        of_job = _of_job if kind == "Job" else _of_jobset
        pod_sets, pods = of_job(found, meta, where)
        queue, class_, priority = labels.get(_QUEUE, ""), labels.get(_CLASS, ""), None
    if not queue:
        queue = labels.get(_QUEUE, "")
    if not queue:
        expected = "spec.queueName" if kind == "Workload" else f"a label {_QUEUE}"
        raise SpecError(where, f"names no LocalQueue; expected {expected}.")
    local = _local_queue(manifests, meta.namespace, queue)
    cluster_queue = local.cluster_queue if local else _as_cluster_queue(manifests, queue)
    if priority is None:
        priority = _priority(class_, pods, manifests, where)
    workload = objects.Workload(
        name=meta.name or meta.generate_name or "new",
        pod_sets=tuple(pod_sets),
        namespace=meta.namespace,
        uid=meta.uid,
        queue=queue,
        priority=priority,
    )
    return WrittenJob(workload, cluster_queue, bool(local and local.stop_policy != "None"), where)


def _local_queue(manifests: Manifests, namespace: str, name: str) -> objects.LocalQueue | None:
    """Return a namespace's LocalQueue, else the only one of that name."""
    of_name = [of for of in manifests.local_queues if of.name == name]
    there = [of for of in of_name if of.namespace == namespace]
    chosen = there or (of_name if len(of_name) == 1 else [])
    return chosen[0] if chosen else None


def _as_cluster_queue(manifests: Manifests, name: str) -> str:
    """Return the name where it is a ClusterQueue's, else nothing."""
    return name if any(of.name == name for of in manifests.queues) else ""


def _priority(class_: str, pods: list[kinds.Pods], manifests: Manifests, where: str) -> int:
    """Return the value of a job's priority class, else its pods' own priority."""
    if class_:
        checked_choice(f"{where}: priority class", class_, manifests.priorities)
        return manifests.priorities[class_]
    given = [of.priority for of in pods if of.priority is not None]
    return given[0] if given else 0


def _of_job(
    spec: kinds.JobSpec, meta: Metadata, where: str
) -> tuple[list[objects.PodSet], list[kinds.Pods]]:
    """Return the pod set of a Job: as many pods as run at once."""
    count = _at_once(spec)
    least = meta.annotations.get(_LEAST)
    if least is not None and not (least.isdecimal() and 0 < int(least) <= count):
        message = f"found {quote(least)}; expected a whole number of at most {count}."
        raise SpecError(f"{where}, annotation {_LEAST}", message)
    given = kinds.WrittenPodSet(spec.template, "main", count, int(least) if least else None)
    return [_pod_set(given, f"{where}, $.spec")], [spec.template.spec]


def _of_jobset(
    spec: kinds.JobSetSpec, meta: Metadata, where: str
) -> tuple[list[objects.PodSet], list[kinds.Pods]]:
    """Return the pod sets of a JobSet, one for each of its replicated jobs."""
    del meta
    found = []
    for number, of in enumerate(spec.replicated_jobs):
        job = of.template.spec
        given = kinds.WrittenPodSet(job.template, of.name, of.replicas * _at_once(job))
        found.append(_pod_set(given, f"{where}, $.spec.replicatedJobs[{number}]"))
    return found, [of.template.spec.template.spec for of in spec.replicated_jobs]


def _at_once(spec: kinds.JobSpec) -> int:
    """Return how many pods of a job run at once."""
    many = 1 if spec.parallelism is None else spec.parallelism
    return many if spec.completions is None else min(many, spec.completions)


def _pod_set(given: kinds.WrittenPodSet, where: str) -> objects.PodSet:
    """Return a pod set."""
    pods = given.template.spec
    asks = given.topology_request
    notes = (given.template.metadata and given.template.metadata.annotations) or {}
    topology = _annotated(notes, where) if asks is None else _requested(asks)
    affinity = pods.affinity and pods.affinity.node_affinity
    if given.min_count is not None and given.min_count > given.count:
        message = f"found {given.min_count}; expected at most the count, {given.count}."
        raise SpecError(f"{where}.minCount", message)
    return objects.PodSet(
        given.name,
        given.count,
        _requests(pods, where),
        given.min_count,
        topology,
        node_selector=pods.node_selector or {},
        node_affinity=_affinity(affinity) if affinity else {},
        tolerations=tuple(pods.tolerations or ()),
    )


def _affinity(given: kinds.NodeAffinity) -> dict[str, Any]:
    """Return required affinity as `eligibility.selected` reads it."""
    required = given.required_during_scheduling_ignored_during_execution
    if required is None:
        return {}
    terms: dict[str, Any] = msgspec.to_builtins(required)
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _requests(pods: kinds.Pods, where: str) -> dict[str, int]:
    """Return what one pod takes: CPU in thousandths, anything else in pieces, rounded up."""
    try:
        asked = pods.asked()
    except ValueError as error:
        message = f"found {quote(str(error))}; expected a quantity such as 8, 500m or 36Gi."
        raise SpecError(f"{where}, a container's resources", message) from None
    found = {r: math.ceil(of * (1000 if r == "cpu" else 1)) for r, of in asked.items() if of}
    for resource, amount in found.items():
        if amount > MOST:
            message = f"asks for more than 2^63 - 1 units of {quote(resource)}."
            raise SpecError(f"{where}, a container's resources", message)
    return found


def _requested(asks: kinds.WrittenTopology) -> TopologyRequest | None:
    """Return what a Workload's topologyRequest asks."""
    layers = asks.podset_slice_required_topology_constraints or []
    first = layers[0] if layers else None
    found = TopologyRequest(
        required=asks.required or "",
        preferred=asks.preferred or "",
        unconstrained=bool(asks.unconstrained),
        slice_level=first.topology if first else asks.pod_set_slice_required_topology or "",
        slice_size=first.size if first else asks.pod_set_slice_size or 0,
        layers=tuple(Layer(of.topology, of.size) for of in layers[1:]),
        group=asks.pod_set_group_name or "",
    )
    return found if found.places or found.group else None


def _annotated(notes: Mapping[str, str], where: str) -> TopologyRequest | None:
    """Return what the pods' annotations ask of the topology."""
    words = {key.removeprefix(_ASKS): of for key, of in notes.items() if key.startswith(_ASKS)}
    where = f"{where}.template.metadata.annotations"
    known = {
        *("required-topology", "preferred-topology", "unconstrained-topology", "group-name"),
        *("slice-required-topology", "slice-size", "slice-required-topology-constraints"),
        *("index-offset",),
    }
    for key in words.keys() - known:
        raise SpecError.unknown(where, _ASKS + key, [_ASKS + of for of in known])
    size = words.get("slice-size", "0")
    if not size.isdecimal():
        message = f"found {quote(size)}; expected a whole number."
        raise SpecError(f"{where}: {_ASKS}slice-size", message)
    layers: list[kinds.Constraint] | None = None
    if "slice-required-topology-constraints" in words:
        try:
            layers = msgspec.json.decode(
                words["slice-required-topology-constraints"], type=list[kinds.Constraint],
                strict=False,
            )  # fmt: skip
        except msgspec.MsgspecError as error:
            at = f"{where}: {_ASKS}slice-required-topology-constraints"
            raise SpecError(at, f"{error}; expected a list of topology and size.") from None
    return _requested(
        kinds.WrittenTopology(
            required=words.get("required-topology"),
            preferred=words.get("preferred-topology"),
            unconstrained=words.get("unconstrained-topology") == "true",
            pod_set_group_name=words.get("group-name"),
            pod_set_slice_required_topology=words.get("slice-required-topology"),
            pod_set_slice_size=int(size),
            podset_slice_required_topology_constraints=layers,
        )
    )
