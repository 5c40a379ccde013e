"""One more job on a cluster as it stands: where, after whom, why not, and from which quota on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from windtunnel.errors import SpecError
from windtunnel.policies.kueue.least_quota import least_quotas, with_quotas
from windtunnel.policies.kueue.manifests import Manifests, read_manifests
from windtunnel.policies.kueue.one_job import ruling
from windtunnel.policies.kueue.snapshots import Snapshot, read_snapshot
from windtunnel.policies.kueue.written_jobs import WrittenJob, read_job
from windtunnel.policies.kueue.yaml_files import documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GPU = "nvidia.com/gpu"
API = "kueue.x-k8s.io/v1beta2"
Object = dict[str, Any]


def queue(name: str, gpus: int, cohort: str = "", **spec: Any) -> Object:
    quota: Object = {"name": GPU, "nominalQuota": gpus, **spec.pop("limits", {})}
    flavors = [{"name": of, "resources": [dict(quota)]} for of in spec.pop("flavors", ["h100"])]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"cohortName": cohort, "resourceGroups": groups, **spec},
    }


def door(name: str, cluster_queue: str, **spec: Any) -> Object:
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"clusterQueue": cluster_queue, **spec},
    }


def flavor(name: str, topology: str = "") -> Object:
    spec = {"topologyName": topology} if topology else {}
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def pods(gpus: int, **more: Any) -> Object:
    return {"spec": {"containers": [{"resources": {"limits": {GPU: str(gpus)}}}], **more}}


def workload(
    name: str, door: str, gpus: int, *, count: int = 1, by: str = "", **more: Any
) -> Object:
    """A Workload; ``by`` = the ClusterQueue that admitted it, on h100."""
    topology = more.pop("topology", None)
    asks = more.pop("asks", None)
    pod_set = {"name": "main", "count": count, "template": pods(gpus)}
    if asks:
        pod_set["topologyRequest"] = asks
    found: Object = {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"queueName": door, "podSets": [pod_set], **more},
    }
    if by:
        given: Object = {
            "name": "main",
            "flavors": {GPU: "h100"},
            "resourceUsage": {GPU: str(gpus * count)},
            "count": count,
        }
        if topology:
            given["topologyAssignment"] = topology
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-08-01T10:00:00Z"}
            for kind in ("QuotaReserved", "Admitted")
        ]
        found["status"] = {
            "admission": {"clusterQueue": by, "podSetAssignments": [given]},
            "conditions": conditions,
        }
    return found


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., tuple[Manifests, Snapshot, WrittenJob]]:
    def ask(
        manifests: list[Object], snapshot: list[Object], job: Object
    ) -> tuple[Manifests, Snapshot, WrittenJob]:
        (tmp_path / "kueue.yaml").write_text(yaml.safe_dump_all(manifests))
        items = {"apiVersion": "v1", "kind": "List", "items": snapshot}
        (tmp_path / "now.yaml").write_text(yaml.safe_dump(items))
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        read = read_manifests(tmp_path / "kueue.yaml")
        (document,) = documents(tmp_path / "job.yaml")
        return read, read_snapshot(tmp_path / "now.yaml", read), read_job(document, read)

    return ask


Asked = "Callable[..., tuple[Manifests, Snapshot, WrittenJob]]"
LENDER = queue(
    "research", 8, "all", preemption={"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
)
TWO = [
    flavor("h100"),
    LENDER,
    queue("product", 8, "all"),
    door("a", "research"),
    door("b", "product"),
]


def test_borrows_what_is_free(asked: Callable[..., Any]) -> None:
    found = ruling(*asked(TWO, [workload("x", "b", 4, by="product")], workload("new", "a", 12)))
    assert found.admitted
    assert not found.preempted
    assert [of.flavors for of in found.stands] == [{GPU: "h100"}]
    (quota,) = found.quotas
    assert (quota.asked, quota.nominal, quota.available, quota.potential) == (12, 8, 12, 16)


def test_reclaims_what_others_borrow(asked: Callable[..., Any]) -> None:
    held = [workload("x", "b", 6, by="product"), workload("y", "b", 6, by="product")]
    given = asked(TWO, held, workload("new", "a", 8))
    found = ruling(*given)
    assert found.admitted
    # Both borrow; one is enough, and of equals the last by uid stays: x goes.
    assert [(of.workload, of.reason) for of in found.preempted] == [
        ("team/x", "InCohortReclamation")
    ]
    (least,) = least_quotas(*given)
    # 4 GPUs are free: of a quota of 8 it may reclaim up to its nominal quota, never less.
    assert (least.now, least.least, least.unharmed) == (8, 8, 12)


def test_tells_from_which_quota_on(asked: Callable[..., Any]) -> None:
    alone = [flavor("h100"), queue("research", 8), door("a", "research")]
    given = asked(alone, [workload("x", "a", 5, by="research")], workload("new", "a", 4))
    found = ruling(*given)
    assert not found.admitted
    assert "no flavor has room" in found.refused or "short of" in found.refused
    (least,) = least_quotas(*given)
    assert (least.flavor, least.now, least.least, least.unharmed) == ("h100", 8, 9, 9)


def test_behind_a_strict_head(asked: Callable[..., Any]) -> None:
    alone = [
        flavor("h100"),
        queue("research", 8, queueingStrategy="StrictFIFO"),
        door("a", "research"),
    ]
    waiting = [workload("x", "a", 5, by="research"), workload("big", "a", 7)]
    given = asked(alone, waiting, workload("new", "a", 1))
    found = ruling(*given)
    assert found.refused == "ClusterQueue 'research' is StrictFIFO, and 'team/big' is before it"
    assert found.ahead == ("team/big",)
    (least,) = least_quotas(*given)
    assert least.least == 13, "5 that run, 7 before it, and its own"
    high = ruling(*asked(alone, waiting, workload("new", "a", 1, priority=5)))
    assert high.admitted, "a higher priority goes before it"


def test_stopped_queues(asked: Callable[..., Any]) -> None:
    stopped = [flavor("h100"), queue("r", 8, stopPolicy="Hold"), door("a", "r")]
    assert "is stopped (Hold)" in ruling(*asked(stopped, [], workload("new", "a", 1))).refused
    stopped = [flavor("h100"), queue("r", 8), door("a", "r", stopPolicy="Hold")]
    assert "LocalQueue 'a' is stopped" in ruling(*asked(stopped, [], workload("n", "a", 1))).refused


def nodes(count: int, gpus: int = 8) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{k}", "labels": {"rack": f"r{k // 2}"}},
            "status": {"allocatable": {GPU: str(gpus), "pods": "110"}},
        }
        for k in range(count)
    ]


TREE = [
    {
        "apiVersion": API,
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    },
    flavor("h100", "t"),
    queue("r", 100, preemption={"withinClusterQueue": "LowerPriority"}),
    door("a", "r"),
]
ON_N0 = {
    "levels": ["kubernetes.io/hostname"],
    "slices": [
        {
            "domainCount": 2,
            "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["0", "2"]}}],
            "podCounts": {"universal": 1},
        }
    ],
}
ON_N0_ONE_BY_ONE = {
    "levels": ["kubernetes.io/hostname"],
    "slices": [
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": host}],
            "podCounts": {"individual": [1]},
        }
        for host in ("n0", "n2")
    ],
}
ON_N0_OLD = {
    "levels": ["kubernetes.io/hostname"],
    "domains": [{"values": ["n0"], "count": 1}, {"values": ["n2"], "count": 1}],
}


@pytest.mark.parametrize("spelling", [ON_N0, ON_N0_ONE_BY_ONE, ON_N0_OLD])
def test_domains_as_both_versions_write_them(asked: Callable[..., Any], spelling: Object) -> None:
    held = [workload("x", "a", 8, count=2, by="r", topology=spelling, priority=3)]
    job = workload("new", "a", 8, count=2, asks={"required": "rack"})
    given = asked([*TREE, *nodes(4)], held, job)
    found = ruling(*given)
    assert found.refused == "no room in the topology for 'main'"
    assert least_quotas(*given) == [], "quota is not what lacks"
    found = ruling(
        *asked([*TREE, *nodes(4)], held, {**job, "spec": {**job["spec"], "priority": 9}})
    )
    assert [of.workload for of in found.preempted] == ["team/x"]
    found = ruling(*asked([*TREE, *nodes(6)], held, job))
    assert found.stands[0].domains == ((("r2", "n4"), 1), (("r2", "n5"), 1))


def on(*hosts: str) -> Object:
    domains = [{"values": [host], "count": 1} for host in hosts]
    return {"levels": ["kubernetes.io/hostname"], "domains": domains}


def test_moves_after_which_it_fits(asked: Callable[..., Any]) -> None:
    """A job of one GPU on a node of each rack: to free a rack the smaller one moves."""
    held = [
        workload("x", "a", 1, by="r", topology=on("n0")),
        workload("y", "a", 1, by="r", topology=on("n2")),
        workload("z", "a", 8, by="r", topology=on("n3")),
    ]
    job = workload("new", "a", 8, count=2, asks={"required": "rack"})
    given = asked([*TREE, *nodes(4)], held, job)
    found = ruling(*given, moves=True)
    assert found.refused == "no room in the topology for 'main'"
    assert found.moves is not None
    assert (found.moves.domain, found.moves.pods) == (("r0",), 1)
    (move,) = found.moves.moves
    assert (move.workload, move.before) == ("team/x", ((("r0", "n0"), 1),))
    assert move.after == ((("r1", "n2"), 1),), "it asks for nothing, and n2 is the fullest"
    assert ruling(*given).moves is None, "it was not asked"


def test_no_moves_where_nobody_fits_elsewhere(asked: Callable[..., Any]) -> None:
    held = [
        workload("x", "a", 8, by="r", topology=on("n0")),
        workload("y", "a", 8, by="r", topology=on("n2")),
        workload("z", "a", 8, by="r", topology=on("n3")),
    ]
    job = workload("new", "a", 8, count=2, asks={"required": "rack"})
    found = ruling(*asked([*TREE, *nodes(4)], held, job), moves=True)
    assert found.refused
    assert found.moves is None


def test_who_is_not_needed_stays(asked: Callable[..., Any]) -> None:
    """The small one alone makes no room; the large one does, and the small one then stays."""
    held = [
        workload("small", "a", 1, by="r", topology=on("n0")),
        workload("large", "a", 2, count=2, by="r", topology=on("n0", "n1")),
        workload("other", "a", 4, by="r", topology=on("n2")),
        workload("block", "a", 4, by="r", topology=on("n3")),
    ]
    job = workload("new", "a", 7, count=2, asks={"required": "rack"})
    found = ruling(*asked([*TREE, *nodes(4)], held, job), moves=True)
    assert found.moves is not None
    assert [of.workload for of in found.moves.moves] == ["team/large"]
    assert found.moves.pods == 2


def test_a_topology_needs_nodes(asked: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match="kubectl get nodes"):
        ruling(*asked(TREE, [], workload("new", "a", 8)))


def test_jobs_and_job_sets(asked: Callable[..., Any]) -> None:
    notes = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "labels": {"kueue.x-k8s.io/queue-name": "a"},
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"metadata": {"annotations": notes}, **pods(8)},
        },
    }
    found = ruling(*asked([*TREE, *nodes(4)], [], job))
    assert found.stands[0].domains == ((("r0", "n0"), 1), (("r0", "n1"), 1))
    several = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": job["metadata"],
        "spec": {
            "replicatedJobs": [
                {"name": "driver", "template": {"spec": {"template": pods(1)}}},
                {
                    "name": "workers",
                    "replicas": 2,
                    "template": {"spec": {"parallelism": 3, "template": pods(2)}},
                },
            ]
        },
    }
    found = ruling(*asked([*TREE, *nodes(4)], [], several))
    assert [(of.name, of.pods) for of in found.stands] == [("driver", 1), ("workers", 6)]


def test_what_admitted_workloads_hold(asked: Callable[..., Any]) -> None:
    finished = workload("done", "a", 8, by="r")
    finished["status"]["conditions"].append({"type": "Finished", "status": "True"})
    idle = workload("idle", "a", 8, active=False)
    half = workload("half", "a", 1, count=4, by="r")
    half["status"]["reclaimablePods"] = [{"name": "main", "count": 3}]
    alone = [flavor("h100"), queue("r", 8), door("a", "r")]
    given = asked(alone, [finished, idle, half], workload("new", "a", 7))
    assert given[1].over == 2
    assert ruling(*given).admitted, "3 of the 4 pods of half are done"
    assert not ruling(*asked(alone, [finished, half], workload("new", "a", 8))).admitted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Deployment"}, "Known: Job, JobSet, Workload"),
        ({"spec": {"queueName": "a", "podSet": []}}, "podSet"),
        ({"spec": {"podSets": []}}, "names no LocalQueue"),
        (
            {"spec": {"queueName": "a", "podSets": [{"template": pods(1), "count": -1}]}},
            r"\$\.spec.podSets\[0\]\.count",
        ),
        (
            {"spec": {"queueName": "a", "podSets": [{"template": pods("8 GPUs")}]}},  # type: ignore[arg-type]
            "8 GPUs",
        ),
        (
            {"spec": {"queueName": "a", "podSets": [{"template": pods(10**22)}]}},
            r"2\^63",
        ),
        ({"spec": {"queueName": "a", "podSets": [], "priorityClassName": "hi"}}, "priority class"),
        ({"metadata": {"name": "x", "creationTimestamp": "noon"}}, ""),
    ],
)
def test_one_message_for_what_is_wrong(
    asked: Callable[..., Any], change: Object, message: str
) -> None:
    job = {**workload("new", "a", 1), **change}
    if not message:
        with pytest.raises(SpecError, match=r"creationTimestamp.*noon"):
            asked(TWO, [job], workload("other", "a", 1))
        return
    with pytest.raises(SpecError, match=message) as caught:
        asked(TWO, [], job)
    assert "job.yaml" in str(caught.value)


def test_the_least_quota_is_the_least(asked: Callable[..., Any]) -> None:
    """Halving finds what trying every quota finds."""
    rng = random.Random(3)  # noqa: S311 - no secret
    checked = 0
    rules = [{}, {"reclaimWithinCohort": "Any"}, {"withinClusterQueue": "LowerPriority"}]
    for _ in range(10):
        limits = rng.choice([{}, {"borrowingLimit": rng.randrange(4)}])
        manifests = [
            flavor("h100"),
            queue("r", rng.randrange(10), "all", preemption=rng.choice(rules), limits=limits),
            queue("p", rng.randrange(10), "all"),
            door("a", "r"),
            door("b", "p"),
        ]
        held = []
        for k in range(rng.randrange(4)):
            at, by = rng.choice([("a", "r"), ("b", "p")])
            gpus, priority = rng.randint(1, 4), rng.randrange(3)
            held.append(workload(f"w{k}", at, gpus, by=by, priority=priority))
        read, *given = asked(manifests, held, workload("new", "a", rng.randint(1, 9), priority=1))
        tried = [ruling(with_quotas(read, "r", {("h100", GPU): n}), *given) for n in range(25)]
        for row in least_quotas(read, *given):
            checked += 1
            admitted = [n for n, of in enumerate(tried) if of.admitted]
            assert row.least == admitted[0]
            assert row.unharmed == next(n for n in admitted if not tried[n].preempted)
    assert checked >= 6
