"""Check windtunnel's Kueue against recorded decisions: ``python check_cases.py FOLDER --json``.

The folder holds one JSON case a line, one file a suite. Printed are passed and total by suite, and
each case that fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cases
import click

from windtunnel.policies.kueue import classical, fair, objects
from windtunnel.policies.kueue.cycle import Scheduler, holding_of
from windtunnel.policies.kueue.flavors import FlavorSearch, Mode
from windtunnel.policies.kueue.placing import PodSetRequest, Refused, places
from windtunnel.policies.kueue.preempting import Attempt
from windtunnel.policies.kueue.quota_tree import QuotaTree
from windtunnel.policies.kueue.shares import dominant_share
from windtunnel.policies.kueue.state import State
from windtunnel.policies.kueue.usage import UsageBook

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
    tree = cases.topology_tree(case["levels"], case["nodes"], case.get("flavor_node_labels", {}))
    flavor = objects.Flavor(name="f", topology="t")
    nodes = cases.converted(case["nodes"], list[objects.Node])
    state = State(
        QuotaTree(()), {"f": flavor}, {"f": tree}, gates=cases.gates_of(case), nodes=nodes
    )
    for place in cases.places_used(case, tree):
        tree.take(place)
    pod_sets = cases.converted(case["pod_sets"], list[objects.PodSet])
    requests = [PodSetRequest(p, p.count, tree, "f", state.allowed(p, "f")) for p in pod_sets]
    found = places(requests, state.gates)
    if isinstance(found, Refused):
        return dict.fromkeys(case["expect"])
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


def usage_fair(case: Case) -> Any:
    """Return who is admitted in as many cycles as workloads, by the use of local queues."""
    state = cases.state_of(case)
    settings = case["settings"]
    queues = cases.converted(case["local_queues"], list[objects.LocalQueue])
    book = UsageBook(
        queues, settings["half_life_s"], settings["sampling_s"], settings["resource_weights"]
    )
    for name, used in case["initial_usage"].items():
        amounts = {r: amount / 1000 if r == "cpu" else amount for r, amount in used.items()}
        book.used[f"default/{name}"] = amounts
    scheduler = Scheduler(state, book)
    target = {queue.name: queue.cluster_queue for queue in queues}
    for given in case["workloads"]:
        workload = cases.workload_of(given)
        scheduler.submit(workload, target[workload.queue])
    found = {given["name"]: "waiting" for given in case["workloads"]}
    for _ in range(case["cycles"]):
        for nomination in scheduler.cycle().admitted:
            state.add(holding_of(nomination, 0.0))
            book.admit(nomination.pending.workload, 0.0)
            found[nomination.pending.workload.name] = "admitted"
    return found


KINDS = {
    "usage_fair": usage_fair,
    "available": available,
    "share": share,
    "preemption": preemption,
    "placement": placement,
    "flavors": flavors,
    "cycle": cycle,
    "flight": flight,
}


def check(case: Case) -> tuple[bool, Any]:
    """Return whether a case is decided as recorded, and what was decided."""
    try:
        found = KINDS[case["kind"]](case)
    except Exception as error:  # noqa: BLE001 - a case that stops us has failed, the rest go on
        return False, f"{type(error).__name__}: {error}"
    return found == expected(case), found


def check_folder(folder: Path, ids: tuple[str, ...] = ()) -> list[Case]:
    """Return the verdict on each case of a folder: id, suite, needs, whether it passed, what came.

    Args:
        folder: holds one file a suite, one JSON case a line.
        ids: only cases whose id contains one of these; empty = all.
    """
    verdicts = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if ids and not any(part in case["id"] for part in ids):
                continue
            passed, found = check(case)
            facts = {key: case[key] for key in ("id", "suite", "name", "needs")}
            facts["foreign"] = sorted({*case["needs"]} - OWN)
            verdicts.append({**facts, "passed": passed, "found": found, "expect": case["expect"]})
    return verdicts


#: What a case may need that windtunnel has.
OWN = {
    "several_resources",
    "several_resource_groups",
    "evicting",
    "node_selector",
    "taints",
    "overlapping_flavors",
    "foreign_pods",
    "reclaimable_pods",
}


def summary(verdicts: list[Case]) -> Case:
    """Return passed and total by suite, in all and without what is foreign, and who failed."""
    suites: dict[str, Case] = {}
    for verdict in verdicts:
        suite = suites.setdefault(
            verdict["suite"],
            {"passed": 0, "total": 0, "own_passed": 0, "own_total": 0, "failed": []},
        )
        suite["total"] += 1
        suite["passed"] += verdict["passed"]
        if not verdict["foreign"]:
            suite["own_total"] += 1
            suite["own_passed"] += verdict["passed"]
        if not verdict["passed"]:
            suite["failed"].append({key: verdict[key] for key in ("id", "name", "foreign")})
    keys = ("passed", "total", "own_passed", "own_total")
    return {**{key: sum(s[key] for s in suites.values()) for key in keys}, "suites": suites}


def main() -> None:
    """Check the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="one file a suite, one JSON case a line")
    parser.add_argument("ids", nargs="*", help="only cases whose id contains one of these")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--show", action="store_true", help="print what failing cases decided")
    chosen = parser.parse_args()
    verdicts = check_folder(chosen.folder, tuple(chosen.ids))
    found = summary(verdicts)
    if chosen.json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, suite in found["suites"].items():
        click.echo(f"{name}: {suite['passed']} of {suite['total']}")
        for failed in suite["failed"]:
            click.echo(f"  {failed['id']} {failed['name']} {' '.join(failed['foreign'])}")
    for verdict in verdicts if chosen.show else ():
        if not verdict["passed"]:
            of = {key: verdict[key] for key in ("id", "expect", "found")}
            click.echo(json.dumps(of, default=str))


if __name__ == "__main__":
    main()
