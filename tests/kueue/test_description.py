"""`windtunnel describe` of manifests: the tree and the warnings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner
from test_manifests import GOOD, written

from windtunnel.cli.root import windtunnel
from windtunnel.policies.kueue.description import described
from windtunnel.policies.kueue.manifests import read_manifests

if TYPE_CHECKING:
    from pathlib import Path

LENDER = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: lender}
spec:
  cohortName: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 10, lendingLimit: 3}]
"""


def test_who_may_borrow_how_much_is_stated(tmp_path: Path) -> None:
    found = described(read_manifests(written(tmp_path, GOOD + LENDER)))
    rows = {(row["name"], row["resource"]): row for row in found["nodes"]}
    research = rows["research", "nvidia.com/gpu"]
    assert (research["owns"], research["may_use"], research["may_borrow"]) == (8, 11, 3)
    assert research["lends"] == 2
    assert rows["lender", "nvidia.com/gpu"]["lends"] == 3
    assert rows["lender", "nvidia.com/gpu"]["may_borrow"] == 2
    assert rows["top", "nvidia.com/gpu"]["owns"] == 5
    assert [row["depth"] for row in found["nodes"] if row["name"] == "research"] == [2, 2]


def test_quota_above_capacity_and_queues_without_a_door_are_warned_of(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace("nominalQuota: 8", "nominalQuota: 80") + LENDER)
    warnings = described(read_manifests(file))["warnings"]
    assert any("come to" in warning and "hold 8" in warning for warning in warnings)
    assert any("'lender' has no LocalQueue" in warning for warning in warnings)


def test_the_command_shows_the_tree(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)
    shown = CliRunner().invoke(windtunnel, ["describe", str(file)])
    assert shown.exit_code == 0, shown.output
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert "· · research h100 cpu 1500m 1500m 0 1500m" in lines
    assert "top h100 cpu 1500m 1500m 0 0" in lines
    assert "Not read: 1 Deployment" in shown.output
    data = json.loads(CliRunner().invoke(windtunnel, ["describe", str(tmp_path), "--json"]).output)
    assert data["counts"]["ClusterQueue"] == 1
