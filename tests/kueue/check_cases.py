"""Check windtunnel's Kueue against recorded decisions: ``python check_cases.py FOLDER --json``.

The folder holds one JSON case a line, one file a suite. Printed are passed and total by suite, and
each case that fails.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cases
from windtunnel.policies.kueue import classical, fair, objects
from windtunnel.policies.kueue.cycle import Scheduler
from windtunnel.policies.kueue.flavors import FlavorSearch, Mode
from windtunnel.policies.kueue.placing import Refused, Wish, places
from windtunnel.policies.kueue.preempting import Attempt
from windtunnel.policies.kueue.shares import dominant_share

Case = dict[str, Any]


def available(case: Case) -> Any:
    """Return what queues may still use and could ever use."""
    tree = cases.tree_of(case)
    cases.use(tree, case["usage"])
    found: Case = {"available": {}, "potential": {}}
    for name, node in tree.queues.items():
        amounts = sorted(node.nominal)
        found["available"][name] = [[*what, node.available(what)] for what in amounts]
        found["potential"][name] = [[*what, node.potential(what)] for what in amounts]
    return found


def share(case: Case) -> Any:
    """Return the dominant shares of queues and cohorts."""
    tree = cases.tree_of(case)
    cases.use(tree, case["usage"])
    added = {(flavor, resource): amount for flavor, resource, amount in case["incoming_usage"]}
    found = []
    for kind, nodes in (("cluster_queue", tree.queues), ("cohort", tree.cohorts)):
        for name, node in nodes.items():
            of = dominant_share(node, added if kind == "cluster_queue" else None)
            found.append([name, kind, of.rounded, of.resource, of.borrows])
    return sorted(found)


def preemption(case: Case) -> Any:
    """Return who gives way."""
    state = cases.state_of(case)
    workload = cases.workload_of(case["incoming"])
    usage: objects.Amounts = {}
    short = set()
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in case["assignment"]:
        pod_set = pod_sets[assigned["pod_set"]]
        for resource, amount in pod_set.requests.items():
            flavor = assigned["flavors"].get(resource)
            if flavor is None:
                continue
            what = (flavor, resource)
            usage[what] = usage.get(what, 0) + amount * pod_set.count
            if assigned["mode"][resource] == "Preempt":
                short.add(what)
    queue = state.tree.queues[case["incoming"]["cluster_queue"]]
    attempt = Attempt(state, queue, workload, usage, frozenset(short))
    rule = fair if state.fair else classical
    victims = rule.victims(attempt)
    return {"preempted": sorted([v.holding.workload.name, v.reason] for v in victims)}


def placement(case: Case) -> Any:
    """Return where pod sets go, or that they are refused."""
    tree = cases.topology_tree(
        case["levels"], case["nodes"], case.get("flavor_node_labels", {})
    )
    ends = {path[len(path) - n :]: path for path in tree.leaf_index for n in range(1, len(path) + 1)}
    for values, requests, pods in case.get("usage", []):
        path = ends.get(tuple(values))  # None: a node that is out
        if path is not None:
            tree.take(cases.of_pods(requests, {path: pods}))
    pod_sets = cases.converted(case["pod_sets"], list[objects.PodSet])
    wishes = [Wish(pod_set, pod_set.count, tree) for pod_set in pod_sets]
    found = places(wishes, cases.gates_of(case))
    if isinstance(found, Refused):
        return {name: None for name in case["expect"]}
    return {name: cases.assignment_of(tree, place) for name, place in found.items()}


def flavors(case: Case) -> Any:
    """Return a workload's flavors; who would go is given."""
    state = cases.state_of(case)
    cases.use(state.tree, case["usage"])
    given = {(f, r): (MODES[mode], level) for f, r, mode, level in case["preemption_oracle"]}
    incoming = case["incoming"]
    search = FlavorSearch(
        state,
        state.tree.queues[incoming["cluster_queue"]],
        cases.workload_of({"name": "", **incoming}),
        lambda what, _: given.get(what, (Mode.PREEMPT, 0)),
    )
    found = search.assign()
    if found.mode is Mode.NO_FIT:
        return {"mode": "NoFit"}
    return {
        "mode": found.mode.label,
        "borrowing_level": found.level,
        "pod_sets": [
            {
                "name": name,
                "count": found.counts[name],
                "flavors": {r: [c.flavor, c.mode.label] for r, c in of.items()},
            }
            for name, of in found.flavors.items()
        ],
    }


def cycle(case: Case) -> Any:
    """Return what one cycle admits and preempts, and who is tried again."""
    state = cases.state_of(case)
    scheduler = Scheduler(state)
    queues = {(q["namespace"], q["name"]): q["cluster_queue"] for q in case["local_queues"]}
    for given in case["workloads"]:
        if "admission" not in given and not given.get("finished"):
            workload = cases.workload_of(given)
            queue = queues.get((workload.namespace, workload.queue), "")
            if queue in state.tree.queues:
                scheduler.submit(workload, queue)
    changes = scheduler.cycle()
    return {
        "admitted": sorted(
            (cases.admitted(state, nomination) for nomination in changes.admitted),
            key=lambda of: of["workload"],
        ),
        "preempted": sorted([v.holding.workload.key, v.reason] for v in changes.preempted),
        "waiting": cases.by_queue(scheduler, "active"),
        "inadmissible": cases.by_queue(scheduler, "aside"),
    }


def expected_cycle(case: Case) -> Any:
    """Return a cycle's answer, its lists sorted."""
    expect = case["expect"]
    return {
        "admitted": sorted(expect["admitted"], key=lambda of: of["workload"]),
        "preempted": sorted(expect["preempted"]),
        "waiting": {queue: sorted(names) for queue, names in expect["waiting"].items()},
        "inadmissible": {queue: sorted(names) for queue, names in expect["inadmissible"].items()},
    }


def flight(case: Case) -> Any:
    """Return the events of a whole run."""
    return cases.flown(case)


MODES = {"NoCandidates": Mode.NO_CANDIDATES, "Preempt": Mode.PREEMPT, "Reclaim": Mode.RECLAIM}


def expected(case: Case) -> Any:
    """Return what a case expects, as far as it binds."""
    if case["kind"] == "placement":
        return expected_placement(case)
    if case["kind"] == "cycle":
        return expected_cycle(case)
    if case["kind"] == "flavors" and case["expect"]["mode"] == "NoFit":
        return {"mode": "NoFit"}
    return case["expect"]


def expected_placement(case: Case) -> Any:
    """Return a placement case's answer: where, not how much of it would have fit."""
    refused = any(of["assignment"] is None for of in case["expect"].values())
    return {name: None if refused else of["assignment"] for name, of in case["expect"].items()}


KINDS = {"available": available, "share": share, "preemption": preemption, "placement": placement, "flavors": flavors, "cycle": cycle, "flight": flight}


def check(case: Case) -> tuple[bool, Any]:
    """Return whether a case is decided as recorded, and what was decided."""
    try:
        found = KINDS[case["kind"]](case)
    except Exception as error:  # noqa: BLE001 - a case that stops us has failed, the rest go on
        if "--raise" in sys.argv:
            raise
        return False, f"{type(error).__name__}: {error}"
    return found == expected(case), found


def main() -> None:
    """Check the folder that is named."""
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    suites: dict[str, Case] = {}
    for file in sorted(Path(arguments[0]).glob("*.jsonl")):
        for line in file.read_text().splitlines():
            case = json.loads(line)
            if case["kind"] not in KINDS or any(a not in case["id"] for a in arguments[1:]):
                continue
            suite = suites.setdefault(
                case["suite"], {"passed": 0, "total": 0, "failed": [], "foreign": []}
            )
            passed, found = check(case)
            suite["total"] += 1
            suite["passed"] += passed
            if not passed:
                suite["failed"].append([case["id"], case["needs"]])
            if "--show" in sys.argv and not passed:
                print(case["id"], case["name"], case["needs"])
                print("  expected", json.dumps(case["expect"]))
                print("  found   ", json.dumps(found, default=str))
    for name, suite in suites.items():
        print(name, f"{suite['passed']}/{suite['total']}", suite["failed"])


if __name__ == "__main__":
    main()
