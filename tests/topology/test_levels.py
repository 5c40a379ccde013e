"""Levels above a cluster's nodes: words, tables, Slurm's and Kueue's files, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.cluster.levels import Levels
from windtunnel.errors import WindtunnelError
from windtunnel.study.resolving import levels_of

if TYPE_CHECKING:
    from pathlib import Path

TABLE = """
[topology]
levels = ["block", "rack", "host"]
blocks = 2
racks_per_block = 2
hosts_per_rack = 3

[[node_types]]
count = 12
gpus = 4
"""


def test_a_table_counts_domains(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(TABLE)
    cluster = wt.ClusterSpec.from_toml(file)
    assert cluster.topology == Levels(("block", "rack"), (6, 3))
    assert cluster.racks == (0,) * 3 + (1,) * 3 + (2,) * 3 + (3,) * 3
    assert wt.ClusterSpec.from_mapping(cluster.to_mapping()) == cluster


def test_racks_are_one_level() -> None:
    cluster = wt.ClusterSpec.uniform(4, 8, nodes_per_rack=2)
    assert cluster.level_paths == (("rack",), (("0",), ("0",), ("1",), ("1",)))
    assert wt.ClusterSpec.uniform(2, 8).level_paths == ((), ((), ()))


def test_slurms_switches(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(
        "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=s3 Nodes=n5\n"
        "SwitchName=top Switches=s[1-2]\nSwitchName=core Switches=top,s3\n"
    )
    levels = levels_of(str(file))
    assert levels is not None
    assert levels.levels == ("switch3", "switch2", "switch")
    assert levels.paths[0] == ("core", "top", "s1")
    assert levels.paths[4] == ("core", "core", "s3")


def test_slurms_blocks(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    lines = [f"BlockName=b{i} Nodes=n[{3 * i + 1}-{3 * i + 3}]" for i in range(4)]
    file.write_text("\n".join([*lines, "BlockSizes=3,6"]))
    levels = levels_of(str(file))
    assert levels is not None
    assert levels.levels == ("block2", "block")
    assert levels.paths[0] == ("0", "b0")
    assert levels.paths[11] == ("1", "b3")


def test_kueues_nodes(tmp_path: Path) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {{name: n{0}, labels: {{x/rack: r{1}}}}}\n---\n"
    head = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: dc}\n"
        "spec: {levels: [{nodeLabel: x/rack}, {nodeLabel: kubernetes.io/hostname}]}\n---\n"
    )
    file = tmp_path / "nodes.yaml"
    file.write_text(head + "".join(node.format(i, i // 2) for i in range(4)))
    assert levels_of(file) == Levels(("rack",), paths=(("r0",), ("r0",), ("r1",), ("r1",)))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("rack", "block=72,rack=18"),
        ("block=10,rack=4", "multiple"),
        ("rack=2,rack=2", "different names"),
        ("host=2", "different names"),
        (7, "words or a file"),
    ],
)
def test_wrong_levels_are_refused(given: object, says: str) -> None:
    with pytest.raises(WindtunnelError, match=says):
        wt.simulate({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}, "4x8",
                    topology=given)  # fmt: skip


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    for text, says in (
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1", "circle"),
        ("BlockName=a Nodes=n1\nBlockName=b Nodes=n1", "twice"),
        ("# nothing", "name nodes"),
        ("BlockName=a Nodes=n[1-4]\nBlockSizes=3,5", "multiples"),
    ):
        file.write_text(text)
        with pytest.raises(WindtunnelError, match=says):
            levels_of(str(file))
    file.write_text("BlockName=a Nodes=n[1-3]")
    with pytest.raises(WindtunnelError, match="has 3 nodes; the cluster has 4"):
        wt.simulate({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}, "4x8",
                    topology=str(file))  # fmt: skip
