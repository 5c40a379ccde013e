"""A recorded case of Kueue, made windtunnel's objects; what they decide, in the case's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.cluster.topology.places import Place, of_pods
from windtunnel.cluster.topology.tree import TopologyTree
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.cycle import Scheduler
from windtunnel.policies.kueue.cycle import holding_of as holding_made
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.quota_tree import QuotaTree
from windtunnel.policies.kueue.state import Holding, State

if TYPE_CHECKING:
    from windtunnel.policies.kueue.nominating import Nomination
    from windtunnel.policies.kueue.waiting import Pending

Case = dict[str, Any]
#: The recorded runs end an instant after so many cycles, though workloads take turns for ever.
CYCLES = 200
#: What fair sharing goes by where a case says no more than that it is on.
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


def converted(value: Any, kind: type[Any]) -> Any:
    """Return a neutral form as an object of windtunnel's."""
    return msgspec.convert(value, kind, strict=False)


def tree_of(case: Case) -> QuotaTree:
    """Return a case's queues and cohorts."""
    return QuotaTree(
        converted(case["cluster_queues"], list[objects.ClusterQueue]),
        converted(case.get("cohorts", []), list[objects.Cohort]),
    )


def gates_of(case: Case) -> Gates:
    """Return a case's feature gates."""
    gates: Gates = converted(case.get("gates", {}), Gates)
    return gates


def use(tree: QuotaTree, usage: dict[str, list[list[Any]]]) -> None:
    """Count what queues use."""
    for queue, amounts in usage.items():
        for flavor, resource, amount in amounts:
            tree.queues[queue].use((flavor, resource), amount)


def usage_of(workload: objects.Workload, pod_sets: list[Case]) -> objects.Amounts:
    """Return what an admitted workload holds: as recorded, else its pods' requests."""
    of = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    usage: objects.Amounts = {}
    for admitted in pod_sets:
        pod_set = of[admitted["name"]]
        count = admitted.get("count", pod_set.count)
        amounts = admitted.get("usage") or {
            resource: amount * count for resource, amount in pod_set.requests.items()
        }
        for resource, amount in amounts.items():
            flavor = admitted["flavors"].get(resource)
            if flavor is not None:
                what = (flavor, resource)
                usage[what] = usage.get(what, 0) + amount
    return usage


def place_of(tree: TopologyTree, pod_set: objects.PodSet, assignment: Case) -> Place:
    """Return the place that a recorded assignment names."""
    skipped = len(tree.levels) - len(assignment["levels"])
    by_end = {path[skipped:]: path for path in tree.leaf_index}
    leaves = {
        by_end.get(tuple(values), tuple(values)): pods for values, pods in assignment["domains"]
    }
    return of_pods(pod_set.requests, leaves)


def topology_tree(levels: list[str], nodes: list[Case], labels: dict[str, str]) -> TopologyTree:
    """Return the tree of the nodes that carry a flavor's labels."""
    stand = []
    for node in converted(nodes, list[objects.Node]):
        has = node.labels
        if not node.ready or node.unschedulable or any(level not in has for level in levels):
            continue
        if all(has.get(key) == value for key, value in labels.items()):
            stand.append((tuple(has[level] for level in levels), node.capacity))
    return TopologyTree(tuple(levels), stand)


def places_used(case: Case, tree: TopologyTree) -> list[Place]:
    """Return what is already used in a placement case: by others, and by pods of other systems."""
    ends = {
        path[len(path) - n :]: path for path in tree.leaf_index for n in range(1, len(path) + 1)
    }
    used: list[Any] = [(values, requests, pods) for values, requests, pods in case.get("usage", [])]
    shared = case.get("usage_of_overlapping_flavor", [])
    used += [tuple(of) for of in shared]
    nodes = {node["name"]: node["labels"] for node in case["nodes"]}
    for pod in case.get("pods", []):
        labels = nodes.get(pod.get("node", ""))
        if labels and pod.get("phase") not in ("Succeeded", "Failed") and not pod.get("tas"):
            path = tuple(labels.get(level, "") for level in tree.levels)
            used.append((list(path), pod["requests"], 1))
    found = []
    for values, requests, pods in used:
        path = ends.get(tuple(values))  # None: a node that is out
        if path is not None:
            found.append(of_pods(requests, {path: pods}))
    return found


def state_of(case: Case) -> State:
    """Return a case's quotas, topologies, and whoever is admitted."""
    flavors = converted(case.get("flavors", []), list[objects.Flavor])
    levels = {topology["name"]: topology["levels"] for topology in case.get("topologies", [])}
    topologies = {
        flavor.name: topology_tree(
            levels[flavor.topology], case.get("nodes", []), flavor.node_labels
        )
        for flavor in flavors
        if flavor.topology in levels
    }
    sharing = case.get("fair_sharing")
    named = sharing["strategies"] if isinstance(sharing, dict) else STRATEGIES
    fair: tuple[str, ...] = tuple(named) if sharing else ()
    state = State(
        tree_of(case),
        {flavor.name: flavor for flavor in flavors},
        topologies,
        fair=fair,
        gates=gates_of(case),
        nodes=converted(case.get("nodes", []), list[objects.Node]),
    )
    for tree in topologies.values() if case.get("pods") else ():
        for place in places_used({"nodes": case["nodes"], "pods": case["pods"]}, tree):
            tree.take(place)
    for given in case.get("workloads", []):
        if "admission" in given and not given.get("finished"):
            state.add(holding_of(state, given))
    return state


def workload_of(given: Case) -> objects.Workload:
    """Return a workload of a case."""
    workload: objects.Workload = converted(
        {**given, "evicted": bool(given.get("evicted"))}, objects.Workload
    )
    return workload


def holding_of(state: State, given: Case) -> Holding:
    """Return what an admitted workload of a case holds."""
    workload, admission = workload_of(given), given["admission"]
    of = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    places = []
    for admitted in admission["pod_sets"]:
        assignment = admitted.get("topology_assignment")
        if assignment:
            flavor = next(iter(admitted["flavors"].values()))
            tree = state.topologies[flavor]
            places.append((flavor, place_of(tree, of[admitted["name"]], assignment)))
    return Holding(
        workload,
        state.tree.queues[admission["cluster_queue"]],
        usage_of(workload, admission["pod_sets"]),
        tuple(places),
        admission.get("reserved_at") or 0.0,
    )


def assignment_of(tree: TopologyTree, place: Place) -> Case:
    """Return a place as a case writes it: hosts alone, or whole paths."""
    hosts = tree.levels[-1] == "kubernetes.io/hostname"
    levels = tree.levels[-1:] if hosts else tree.levels
    domains = [[list(path[-1:] if hosts else path), pods] for path, pods in place.leaves]
    return {"levels": list(levels), "domains": domains}


def by_queue(scheduler: Scheduler, kind: str) -> dict[str, list[str]]:
    """Return who is tried again (active) or set aside, by queue, sorted."""
    found = {}
    for node, line in scheduler.lines.items():
        names = sorted(waits.workload.key for waits in getattr(line, kind)())
        if names:
            found[node.name] = names
    return found


def admitted(state: State, nomination: Nomination) -> Case:
    """Return an admission as a case writes it."""
    pod_sets = []
    by_name = {pod_set.name: pod_set for pod_set in nomination.pending.workload.pod_sets}
    for name, of in nomination.assignment.flavors.items():
        count = nomination.assignment.counts[name]
        requests = by_name[name].requests
        written: Case = {
            "name": name,
            "count": count,
            "flavors": {resource: chosen.flavor for resource, chosen in of.items()},
            "usage": {
                resource: count * requests.get(resource, 1 if resource == "pods" else 0)
                for resource in of
            },
        }
        if name in nomination.places:
            flavor, place = nomination.places[name]
            written["topology_assignment"] = assignment_of(state.topologies[flavor], place)
        if not count:
            del written["count"]
        pod_sets.append(written)
    return {
        "cluster_queue": nomination.queue.name,
        "pod_sets": pod_sets,
        "workload": nomination.pending.workload.key,
    }


def flown(case: Case) -> Case:
    """Return a case's run: ends, arrivals, then cycles until three in a row change nothing."""
    state = state_of(case)
    scheduler = Scheduler(state)
    jobs = {job["name"]: job for job in case["jobs"]}
    arrivals = sorted(jobs.values(), key=lambda job: (job["at"], job["name"]))
    ends: dict[str, float] = {}
    holdings: dict[str, tuple[Pending, Holding]] = {}
    events: list[list[Any]] = []
    at = 0
    while at < len(arrivals) or ends:
        times = [*ends.values(), *(job["at"] for job in arrivals[at : at + 1])]
        now = min(times)
        globals()["NOW"] = now
        for name in sorted(name for name, end in ends.items() if end == now):
            del ends[name]
            scheduler.release(holdings.pop(name)[1])
            events.append([now, "end", name])
        while at < len(arrivals) and arrivals[at]["at"] == now:
            job = arrivals[at]
            at += 1
            pod_set = {key: job[key] for key in ("count", "requests", "topology") if key in job}
            workload = converted(
                {
                    "name": job["name"],
                    "uid": job["name"],
                    "priority": job["priority"],
                    "created": now,
                    "pod_sets": [pod_set],
                },
                objects.Workload,
            )
            scheduler.submit(workload, job["cluster_queue"])
        quiet = cycles = 0
        while quiet < 3 and cycles < CYCLES:
            cycles += 1
            before = by_queue(scheduler, "active")
            changes = scheduler.cycle()
            still = before == by_queue(scheduler, "active")
            quiet = quiet + 1 if still and not (changes.admitted or changes.preempted) else 0
            for nomination in sorted(changes.admitted, key=lambda n: n.pending.workload.name):
                name = nomination.pending.workload.name
                holding = holding_made(nomination, now)
                state.add(holding)
                holdings[name] = (nomination.pending, holding)
                ends[name] = now + jobs[name]["duration"]
                flavor = next(iter(nomination.assignment.flavors["main"].values())).flavor
                event = [now, "admit", name, flavor]
                if nomination.places:
                    of, place = nomination.places["main"]
                    event.append(assignment_of(state.topologies[of], place)["domains"])
                events.append(event)
            for victim in sorted(changes.preempted, key=lambda v: v.holding.workload.name):
                name = victim.holding.workload.name
                waits, holding = holdings.pop(name)
                del ends[name]
                scheduler.release(holding)
                scheduler.resubmit(waits, holding.queue)
                events.append([now, "preempt", name, victim.reason])
    finished = {event[2] for event in events if event[1] == "end"}
    return {"events": events, "never_finished": sorted(set(jobs) - finished)}
