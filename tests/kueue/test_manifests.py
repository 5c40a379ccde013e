"""Kueue's manifests: what is read, and one clear message for each thing that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SpecError
from windtunnel.policies.kueue import yaml_files
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.manifests import read_manifests
from windtunnel.policies.kueue.quantities import amount

if TYPE_CHECKING:
    from pathlib import Path

FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec: {nodeLabels: {gpu: h100}}
"""
QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: all
  queueingStrategy: StrictFIFO
  preemption:
    withinClusterQueue: LowerPriority
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  fairSharing: {weight: 500m}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 1500m}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: "4", lendingLimit: 2}
"""
OTHERS = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: all}
spec: {parent: top}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team, namespace: a}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
description: first
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {gpu: h100}}
  spec: {unschedulable: true}
  status:
    allocatable: {cpu: "64", memory: 1Gi, nvidia.com/gpu: "8"}
    conditions: [{type: Ready, status: "False"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
"""
TOPOLOGY = """---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: t}
spec: {levels: [{nodeLabel: rack}]}
"""
GOOD = f"{FLAVOR}---{QUEUE}---{OTHERS}"


def written(folder: Path, text: str) -> Path:
    file = folder / "kueue.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_manifests_of_both_versions_are_read(tmp_path: Path) -> None:
    found = read_manifests(written(tmp_path, GOOD))
    (queue,) = found.queues
    assert queue.cohort == "all"
    assert queue.strategy == "StrictFIFO"
    assert queue.weight == 0.5
    assert queue.preemption.borrow_within_cohort.max_priority_threshold == 100
    (flavor,) = queue.resource_groups[0].flavors
    assert flavor.quotas["cpu"].nominal == 1500
    gpus = flavor.quotas["nvidia.com/gpu"]
    assert (gpus.nominal, gpus.borrowing_limit, gpus.lending_limit) == (8, 4, 2)
    assert found.cohorts[0].parent == "top"
    assert found.local_queues[0].namespace == "a"
    assert found.priorities == {"high": 1000}
    (node,) = found.nodes
    assert node.capacity == {"cpu": 64000, "memory": 2**30, "nvidia.com/gpu": 8}
    assert not node.ready
    assert node.unschedulable
    assert found.other == {"Deployment": 1}
    assert read_manifests(tmp_path) == found


WRONG = {
    "a field of a queue": (GOOD.replace("cohortName", "cohortname"), "document 2.*cohortName"),
    "a field of a flavor": (GOOD.replace("nodeLabels", "nodeLabel"), "document 1.*nodeLabels"),
    "a field of a cohort": (GOOD.replace("parent: top", "parant: top"), "document 3.*parent"),
    "a field of a local queue": (GOOD.replace("clusterQueue:", "queue:"), "document 4.*queue"),
    "a word": (
        GOOD.replace("StrictFIFO", "Strict"),
        r"queueingStrategy.*'Strict'; expected one of BestEffortFIFO, StrictFIFO",
    ),
    "a quantity": (GOOD.replace("nominalQuota: 8", "nominalQuota: 8x"), "nominalQuota.*8x"),
    "a quota beyond 64 bits": (
        GOOD.replace("nominalQuota: 8", "nominalQuota: 9223372036854775808"),
        r"nominalQuota.*2\^63",
    ),
    "a quota of exponents": (
        GOOD.replace("nominalQuota: 8", "nominalQuota: 1e999"),
        r"nominalQuota.*2\^63",
    ),
    "a negative quota": (
        GOOD.replace("nominalQuota: 8", "nominalQuota: -8"),
        "nominalQuota.*-8.*0 or more",
    ),
    "a word for a list": (
        GOOD + "---\nkind: Configuration\nfairSharing: {preemptionStrategies: 5}\n",
        r"\$\.fairSharing\.preemptionStrategies",
    ),
    "a field of a priority class": (
        GOOD.replace("description: first", "descripton: first"),
        "document 5.*WorkloadPriorityClass 'high'.*description",
    ),
    "a field of a node": (
        GOOD.replace("unschedulable: true", "unschedulabel: true"),
        r"document 6.*Node 'n1'.*\$\.spec.*unschedulable",
    ),
    "a field of a topology": (
        GOOD + TOPOLOGY.replace("nodeLabel: rack", "nodelabel: rack"),
        "document 8.*Topology 't'.*nodeLabel",
    ),
    "a field of a configuration": (
        GOOD + "---\nkind: Configuration\nfairsharing: {}\n",
        "document 8.*fairsharing.*fairSharing",
    ),
    "a field beside the spec": (
        GOOD.replace("spec:\n  cohortName", "spce:\n  cohortName"),
        "document 2.*ClusterQueue 'research'.*spce.*'spec'",
    ),
    "two configurations": (GOOD + "---\nkind: Configuration\n" * 2, "document 9.*second"),
    "a topology without levels": (
        GOOD + TOPOLOGY.replace("[{nodeLabel: rack}]", "[]"),
        "document 8.*no level",
    ),
    "a level twice": (
        GOOD + TOPOLOGY.replace("[{nodeLabel: rack}]", "[{nodeLabel: rack}, {nodeLabel: rack}]"),
        "'rack' twice",
    ),
    "a taint's effect": (
        GOOD.replace("unschedulable: true", "taints: [{key: a, effect: Maybe}]"),
        r"taints\[0\]\.effect.*Maybe.*NoExecute, NoSchedule",
    ),
    "a field twice": (
        GOOD.replace("nominalQuota: 8", "nominalQuota: 8, nominalQuota: 9"),
        "line 23 has 'nominalQuota' a second time",
    ),
    "a flavor twice": (
        GOOD.replace(
            "    - name: h100\n",
            "    - {name: h100, resources: [{name: cpu, "
            "nominalQuota: 1}, {name: nvidia.com/gpu, nominalQuota: 1}]}\n"
            "    - name: h100\n",
        ),
        "flavors: found 'h100' twice",
    ),
    "no quota of a resource": (
        GOOD.replace("      - {name: cpu, nominalQuota: 1500m}\n", ""),
        r"flavors\[0\]\.resources: found 'nvidia.com/gpu'; expected all .*'cpu'",
    ),
    "a field that is no word": (GOOD.replace("{gpu: h100}}\n", "{1: a}}\n", 1), "document 1.*word"),
    "a threshold beyond 32 bits": (
        GOOD.replace("maxPriorityThreshold: 100", "maxPriorityThreshold: 2147483648"),
        "maxPriorityThreshold.*2147483647",
    ),
    "a list for an object": (
        GOOD + "---\nkind: Configuration\nfairSharing: [1]\n",
        r"\$\.fairSharing",
    ),
    "a duration": (
        GOOD + "---\nkind: Configuration\nadmissionFairSharing: {usageHalfLifeTime: soon}\n",
        "usageHalfLifeTime.*soon.*1h30m",
    ),
    "a priority": (GOOD.replace("value: 1000", "value: many"), r"\$\.value.*many"),
    "no such flavor": (GOOD.replace("- name: h100", "- name: h200"), "h200.*h100"),
    "no such queue": (GOOD.replace("clusterQueue: research", "clusterQueue: r"), "LocalQueue"),
    "a cycle of cohorts": (
        GOOD
        + "---\nkind: Cohort\napiVersion: kueue.x-k8s.io/v1beta2\nmetadata: {name: top}\n"
        + "spec: {parentName: all}\n",
        "cycle: .*all.*top",
    ),
    "a name twice": (GOOD + "---" + FLAVOR, "h100.*twice"),
    "no queue": (FLAVOR, "no ClusterQueue"),
    "no object": ("- 1\n- 2\n", "apiVersion, kind"),
    "no YAML": ("a: [1, 2\n", "line 2, column 1 cannot be read as YAML"),
    "aliases": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "line 2 has an alias"),
    "a deep nest": ("[" * 500 + "]" * 500, "nested deeper"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_one_message(tmp_path: Path, wrong: str) -> None:
    text, expected = WRONG[wrong]
    with pytest.raises(SpecError, match=f"(?s){expected}") as caught:
        read_manifests(written(tmp_path, text))
    assert "kueue.yaml" in str(caught.value)


def test_a_null_field_is_left_out(tmp_path: Path) -> None:
    nulls = "spec:\n  namespaceSelector:\n  preemption: {reclaimWithinCohort: null}\n"
    queue = QUEUE.replace("spec:\n", nulls).replace(
        "\n  preemption:\n    withinClusterQueue: LowerPriority\n    borrowWithinCohort: "
        "{policy: LowerPriority, maxPriorityThreshold: 100}",
        "\n  stopPolicy:",
    )
    (found,) = read_manifests(written(tmp_path, f"{FLAVOR}---{queue}")).queues
    assert found.preemption.reclaim_within_cohort == "Never"
    assert found.stop_policy == "None"


def test_feature_gates_of_a_configuration(tmp_path: Path) -> None:
    gates = "featureGates: {TASBalancedPlacement: true, PartialAdmission: false, Other: true}"
    text = f"{GOOD}---\nkind: Configuration\n{gates}\nresources: {{}}\n"
    found = read_manifests(written(tmp_path, text))
    assert found.gates == Gates(tas_balanced_placement=True, partial_admission=False)
    assert found.other == {"Deployment": 1, "feature gate Other": 1, "Configuration.resources": 1}


def test_a_file_too_large_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_files, "MOST_BYTES", 100)
    with pytest.raises(SpecError, match="expected at most"):
        read_manifests(written(tmp_path, GOOD))


def test_missing_folders_and_empty_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no \.yaml"):
        read_manifests(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        read_manifests(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        (8, 8),
        ("500m", 1),
        ("1.5k", 1500),
        ("36Gi", 36 * 2**30),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
    ],
)
def test_quantities(text: object, value: int) -> None:
    assert amount("memory", text, "$") == value


def test_cores_are_counted_in_thousandths() -> None:
    assert amount("cpu", "500m", "$") == 500
    assert amount("cpu", "4", "$") == 4000
