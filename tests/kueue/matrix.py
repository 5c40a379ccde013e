"""The conformance matrix of docs/systems/kueue.md, made of the checker's verdicts."""

from __future__ import annotations

from typing import Any

#: Between these lines of the page stands the matrix.
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
#: What a case needs that windtunnel does not have, and why.
FOREIGN = {
    "admission_checks": "controllers outside Kueue decide as well",
    "concurrent_admission": "variants of one job, one a flavor (alpha)",
    "deleted_queue": "a LocalQueue is deleted meanwhile",
    "delayed_topology": "nodes are provisioned before places are sought",
    "elastic_slices": "a job is resized in place",
    "namespace_mismatch": "namespaces select queues",
    "node_affinity": "preferred affinity (alpha gate); required affinity is followed",
    "node_replacement": "one node of a running job is replaced",
    "other_objects": "Kubernetes' limit ranges",
    "partial_admission": "fewer pods than asked for",
    "preemption_gates": "controllers outside Kueue hold preemption back",
    "resource_transformations": "one resource is counted as another",
    "topology_flavor": "a pod set on flavors of two topologies, without nodes",
}
#: Cases that need nothing foreign by their own word, and yet differ.
DIFFERS = {
    "container resource requests exceed limits": "Kubernetes refuses such a pod; no quota is asked",
    "error during admission": "the write to Kubernetes fails; there is nothing to write to",
    "multiple preemptions within cq when fair sharing": (
        "`reclaimWithinCohort` is not set at all, which Kueue's API does not let through; "
        "it counts as neither `Never` nor anything else"
    ),
}


def matrix(verdicts: list[dict[str, Any]]) -> str:
    """Return the matrix: by suite what is the same, then each case that is not and why."""
    suites: dict[str, list[dict[str, Any]]] = {}
    for verdict in verdicts:
        suites.setdefault(verdict["suite"], []).append(verdict)
    lines = [
        "| suite | cases | the same | of those that need nothing foreign |",
        "|---|---|---|---|",
    ]
    for name, cases in suites.items():
        own = [case for case in cases if not case["foreign"]]
        same = sum(case["passed"] for case in cases)
        lines.append(
            f"| {name} | {len(cases)} | {same} | {sum(c['passed'] for c in own)} of {len(own)} |"
        )
    lines += ["", "| case that differs | why |", "|---|---|"]
    for verdict in verdicts:
        if not verdict["passed"]:
            why = "; ".join(f"{need}: {FOREIGN[need]}" for need in verdict["foreign"])
            lines.append(
                f"| {verdict['id']} {verdict['name']} | {why or DIFFERS[verdict['name']]} |"
            )
    return "\n".join(lines)


def written(page: str) -> str:
    """Return the matrix as a page has it."""
    return page.partition(BEGIN)[2].partition(END)[0].strip()
