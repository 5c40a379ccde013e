"""A cluster as it stands: admitted Workloads with what they hold, and those that wait.

What ``kubectl get workloads -A -o yaml`` prints, of v1beta1 and v1beta2.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.checked import checked_choice
from windtunnel.cluster.topology.places import Place, of_pods
from windtunnel.errors import SpecError, quote
from windtunnel.policies.kueue import workload_kinds as kinds
from windtunnel.policies.kueue.converting import converted
from windtunnel.policies.kueue.quantities import amount
from windtunnel.policies.kueue.state import Holding
from windtunnel.policies.kueue.written_jobs import WrittenJob, read_job
from windtunnel.policies.kueue.yaml_files import documents

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cluster.topology.places import Path as Domain
    from windtunnel.cluster.topology.tree import TopologyTree
    from windtunnel.policies.kueue import objects
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.state import State


class Held(msgspec.Struct, frozen=True):
    """What an admitted workload holds.

    Attributes:
        workload: the workload.
        cluster_queue: the queue that admitted it.
        usage: by flavor and resource.
        stands: by pod set, its flavor and its domains' values (those of the lowest levels) with
            their pods.
        reserved_at: when it got its quota, s since 1970.
    """

    workload: objects.Workload
    cluster_queue: str
    usage: dict[tuple[str, str], int]
    stands: tuple[tuple[str, str, tuple[tuple[Domain, int], ...]], ...]
    reserved_at: float


class Snapshot(msgspec.Struct, frozen=True):
    """A cluster as it stands.

    Attributes:
        held: who is admitted.
        waiting: who waits, in file order.
        over: how many have finished or are not active.
        other: how many objects of each other kind there are.
    """

    held: tuple[Held, ...] = ()
    waiting: tuple[WrittenJob, ...] = ()
    over: int = 0
    other: dict[str, int] = {}


def read_snapshot(path: str | Path, manifests: Manifests) -> Snapshot:
    """Return the Workloads of a file or a folder.

    Args:
        path: YAML or JSON.
        manifests: their queues and priority classes.

    Raises:
        SpecError: a field is wrong (file, document, path); one was admitted by a queue, or on a
            flavor, that the manifests do not have; a name stands twice.
    """
    held: list[Held] = []
    waiting: list[WrittenJob] = []
    other: Counter[str] = Counter()
    seen: set[str] = set()
    over = 0
    for document in documents(path):
        kind = document.data.get("kind") if isinstance(document.data, dict) else None
        if not isinstance(kind, str):
            message = "expected an object with apiVersion, kind and metadata."
            raise SpecError(document.where, message)
        if kind != "Workload":
            other[kind] += 1
            continue
        given = document.data.get("status") or {}
        status: kinds.WorkloadStatus = converted(given, kinds.WorkloadStatus, document, "$.status")
        job = read_job(document, manifests)
        if job.workload.key in seen:
            raise SpecError(job.where, "stands twice; name each Workload once.")
        seen.add(job.workload.key)
        true = {of.type: of for of in status.conditions or () if of.status == "True"}
        job = job._replace(workload=_dated(job, document.data, true))
        if "Finished" in true:
            over += 1
        elif status.admission is not None:
            held.append(_held(job, status, status.admission, true, manifests))
        elif (document.data.get("spec") or {}).get("active") is False:
            over += 1
        else:
            waiting.append(job)
    if other and not seen:
        found = ", ".join(f"{number:,} {quote(kind)}" for kind, number in other.items())
        message = (
            f"found no Workload but {found}; expected what kubectl get workloads -A -o yaml says."
        )
        raise SpecError(str(path), message)
    return Snapshot(tuple(held), tuple(waiting), over, dict(other))


def _dated(
    job: WrittenJob, data: dict[str, Any], true: dict[str, kinds.Condition]
) -> objects.Workload:
    """Return a workload with its age, and whether it is on its way out."""
    created = (data.get("metadata") or {}).get("creationTimestamp")
    return msgspec.structs.replace(
        job.workload,
        created=_time(created, f"{job.where}, $.metadata.creationTimestamp"),
        evicted="Evicted" in true,
    )


def _time(given: Any, where: str) -> float | None:
    """Return a time in s since 1970; None = none is given. YAML's own times are read as well."""
    if given is None:
        return None
    if isinstance(given, datetime):
        return given.timestamp()
    try:
        return datetime.fromisoformat(given).timestamp()
    except (TypeError, ValueError):
        expected = "expected a time such as 2026-08-01T12:00:00Z."
        raise SpecError(where, f"found {quote(given)}; {expected}") from None


def _held(
    job: WrittenJob,
    status: kinds.WorkloadStatus,
    admission: kinds.Admission,
    true: dict[str, kinds.Condition],
    manifests: Manifests,
) -> Held:
    """Return what an admitted workload holds."""
    where = f"{job.where}, $.status.admission"
    queues = [queue.name for queue in manifests.queues]
    checked_choice(f"{where}.clusterQueue", admission.cluster_queue, queues)
    known = {flavor.name for flavor in manifests.flavors}
    done = {of.name: of.count for of in status.reclaimable_pods or ()}
    pod_sets = {of.name: of for of in job.workload.pod_sets}
    usage: dict[tuple[str, str], int] = {}
    stands = []
    for number, of in enumerate(admission.pod_set_assignments or ()):
        at = f"{where}.podSetAssignments[{number}]"
        checked_choice(f"{at}.name", of.name, pod_sets)
        flavors = of.flavors or {}
        for flavor in flavors.values():
            checked_choice(f"{at}.flavors", flavor, known)
        for resource, held in _amounts(of, pod_sets[of.name], done.get(of.name, 0), at).items():
            if resource in flavors:
                what = (flavors[resource], resource)
                usage[what] = usage.get(what, 0) + held
        if of.topology_assignment is not None and flavors:
            domains = _domains(of.topology_assignment, f"{at}.topologyAssignment")
            stands.append((of.name, next(iter(flavors.values())), domains))
    reserved = true.get("QuotaReserved")
    time = reserved.last_transition_time if reserved else None
    at = f"{job.where}, $.status.conditions[QuotaReserved].lastTransitionTime"
    return Held(job.workload, admission.cluster_queue, usage, tuple(stands), _time(time, at) or 0.0)


def _amounts(
    of: kinds.PodSetAssignment, pod_set: objects.PodSet, done: int, where: str
) -> dict[str, int]:
    """Return what a pod set holds: as recorded, else its pods' requests, less those done."""
    count = pod_set.count if of.count is None else of.count
    if of.resource_usage is None:
        amounts = {resource: each * count for resource, each in pod_set.requests.items()}
    else:
        amounts = {
            resource: amount(resource, given, f"{where}.resourceUsage.{resource}")
            for resource, given in of.resource_usage.items()
        }
    if not done or not count:
        return amounts
    return {resource: of // count * max(0, count - done) for resource, of in amounts.items()}


def _domains(
    given: kinds.TopologyAssignment, where: str
) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return an assignment's domains with their pods, in either version's spelling."""
    found: list[tuple[tuple[str, ...], int]] = [
        (tuple(of.values), of.count) for of in given.domains or ()
    ]
    for number, part in enumerate(given.slices or ()):
        size = part.domain_count
        columns = [_values(of, size) for of in part.values_per_level]
        each = part.pod_counts.universal
        counts = part.pod_counts.individual or [] if each is None else [each] * size
        if len(counts) != size or any(len(of) != size for of in columns):
            message = f"expected as many values a level, and pod counts, as domains: {size}."
            raise SpecError(f"{where}.slices[{number}]", message)
        found += zip(zip(*columns, strict=True), counts, strict=True)
    if any(len(values) != len(given.levels) for values, _ in found):
        raise SpecError(where, "expected a value of each level for every domain.")
    return tuple(found)


def _values(given: kinds.LevelValues, domains: int) -> list[str]:
    """Return one level's value of each of so many domains."""
    if given.universal is not None:
        return [given.universal] * domains
    own = given.individual
    return [] if own is None else [f"{own.prefix}{root}{own.suffix}" for root in own.roots]


def place_held(state: State, held: Held) -> int:
    """Let an admitted workload hold its quota and places; return its pods on unknown domains."""
    of = {pod_set.name: pod_set for pod_set in held.workload.pod_sets}
    places: list[tuple[str, Place]] = []
    lost = 0
    for name, flavor, domains in held.stands:
        tree = state.topologies.get(flavor)
        if tree is None:
            lost += sum(pods for _, pods in domains)
            continue
        leaves = {}
        for values, pods in domains:
            path = _leaf(tree, values)
            if path is None:
                lost += pods
            else:
                leaves[path] = pods
        places.append((flavor, of_pods(of[name].requests, leaves)))
    queue = state.tree.queues[held.cluster_queue]
    state.add(Holding(held.workload, queue, held.usage, tuple(places), held.reserved_at))
    return lost


def _leaf(tree: TopologyTree, values: tuple[str, ...]) -> Domain | None:
    """Return the leaf that the values of its lowest levels name; None = the tree has none."""
    if tree.hosts:
        number = tree.by_host.get(values[-1])
        return None if number is None else tree.paths[-1][number]
    return values if values in tree.leaf_index else None
