"""Describing clusters: constructors, TOML, one-line words, presets; every mistake is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.cluster import PRESETS, parse_cluster, preset

if TYPE_CHECKING:
    from pathlib import Path


def test_uniform() -> None:
    cluster = wt.ClusterSpec.uniform(
        nodes=64, gpus_per_node=8, gpu_type="A100", cpus_per_node=96, mem_gib_per_node=1024
    )
    assert cluster.node_types == (wt.NodeType(64, 8, "A100", 96, 1024),)
    assert (cluster.num_nodes, cluster.num_gpus, cluster.gpu_types) == (64, 512, ("A100",))
    assert (cluster.name, cluster.is_pool) == ("64x8:A100", False)
    assert cluster.describe() == "512 GPUs: 64 nodes x 8 A100"
    assert wt.ClusterSpec.uniform(2, 4).name == "2x4"
    assert wt.ClusterSpec.uniform(2, 4, name="mine").name == "mine"
    assert wt.ClusterSpec.uniform(2, 1).describe() == "2 GPUs: 2 nodes x 1 GPU"


def test_pool() -> None:
    cluster = wt.ClusterSpec.pool(1_512, cpus=64)
    assert (cluster.num_gpus, cluster.is_pool, cluster.gpu_types) == (1_512, True, ())
    assert (cluster.name, cluster.node_types[0].cpus) == ("pool:1512", 64)
    assert cluster.describe() == "1,512 GPUs in a pool without nodes"
    typed = wt.ClusterSpec.pool(4, gpu_type="T4")
    assert (typed.name, typed.describe()) == ("pool:4:T4", "4 GPUs in a pool without nodes (4 T4)")


def test_types_in_node_order_without_cpu_nodes() -> None:
    kinds = [("B", 1), ("A", 2), (None, 1), ("C", 0), ("B", 4)]
    cluster = wt.ClusterSpec(tuple(wt.NodeType(1, gpus, kind) for kind, gpus in kinds))
    assert cluster.gpu_types == ("B", "A")
    many = wt.ClusterSpec(tuple(wt.NodeType(1, 1, f"t{i}") for i in range(8)))
    assert many.describe().endswith("1 nodes x 1 t5, and 2 more types")


def test_nodes_that_differ_in_cores_are_one_kind_and_the_largest_kinds_first() -> None:
    """As in openb, whose list of 1,523 nodes begins with those that have no GPU."""
    idle = [wt.NodeType(3, 0, cpus=float(n)) for n in range(1, 9)]
    some = [wt.NodeType(1, 8, "A", cpus=96.0), wt.NodeType(2, 2, "B"), wt.NodeType(4, 8, "A")]
    cluster = wt.ClusterSpec((*idle, *some), "mixed")
    assert cluster.describe() == "44 GPUs: 24 nodes x 0 GPUs, 5 nodes x 8 A, 2 nodes x 2 B"
    kinds = [wt.NodeType(1, n + 1, f"t{n}") for n in range(7)]
    many = wt.ClusterSpec((*idle, *kinds), "many").describe()
    assert many.startswith("28 GPUs: 1 nodes x 7 t6, 1 nodes x 6 t5")
    assert many.endswith("1 nodes x 2 t1, and 2 more types")


@pytest.mark.parametrize(
    ("node", "path", "message"),
    [
        ((0, 8), "$.node_types[0].count", "found 0; expected at least 1 node"),
        ((-3, 8), "$.node_types[0].count", "found -3; expected at least 1 node"),
        ((1, -1), "$.node_types[0].gpus", "found -1; expected 0 or more GPUs"),
        ((1, 0), "$.node_types", "the cluster has no GPU; expected at least one"),
        ((1, 1, None, 0.0), "$.node_types[0].cpus", "found 0.0; expected a number > 0"),
        ((1, 1, None, float("nan")), "$.node_types[0].cpus", "found nan; expected a number > 0"),
        ((1, 1, None, 1, float("inf")), "$.node_types[0].mem_gib", "found inf; expected a number"),
        ((1, 1, ""), "$.node_types[0].gpu_type", "found ''; expected one type's name"),
        ((1, 1, "A|B"), "$.node_types[0].gpu_type", "found 'A|B'; expected one type's name"),
    ],
)
def test_impossible_nodes(node: tuple[Any, ...], path: str, message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        wt.ClusterSpec((wt.NodeType(*node),))
    assert error.value.path == path
    assert str(error.value).startswith(f"{path}: {message}")


def test_the_second_node_type_is_named() -> None:
    with pytest.raises(wt.SpecError, match=r"^\$\.node_types\[1\]\.count: found 0"):
        wt.ClusterSpec((wt.NodeType(1, 1), wt.NodeType(0, 1)))
    with pytest.raises(wt.SpecError, match="the cluster has no GPU"):
        wt.ClusterSpec(())


TOML = """
name = "ours"

[[node_types]]
count = 2
gpus = 4
gpu_type = "V100"
cpus = 64

[[node_types]]
count = 1
gpus = 8
mem_gib = 512.5
"""


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(TOML)
    cluster = wt.ClusterSpec.from_toml(path)
    expected = (wt.NodeType(2, 4, "V100", 64), wt.NodeType(1, 8, mem_gib=512.5))
    assert cluster == wt.ClusterSpec(expected, "ours")
    assert parse_cluster(str(path)) == cluster
    assert wt.ClusterSpec.from_mapping(cluster.to_mapping()) == cluster
    path.write_text(TOML.replace('name = "ours"', "is_pool = true"))
    assert (wt.ClusterSpec.from_toml(path).name, wt.ClusterSpec.from_toml(path).is_pool) == (
        "site",
        True,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[nodetypes]]\ncount = 1", "$.nodetypes: unknown name 'nodetypes'. Did you mean 'node"),
        (TOML.replace("cpus", "cpu"), "$.node_types[0].cpu: unknown name 'cpu'. Did you mean 'cp"),
        (TOML.replace("count = 1", 'count = "1"'), "Expected `int`, got `str`"),
        (TOML.replace("count = 1\n", ""), "missing required field `count`"),
        ("name = 'x'", "missing required field `node_types`"),
        ("node_types = 3", "Expected `array`, got `int`"),
        ("node_types = [3]", "Expected `object`, got `int`"),
        (TOML.replace("gpus = 4", "gpus = 4.5"), "Expected `int`, got `float`"),
        (TOML.replace("count = 1", "count = 0"), "$.node_types[1].count: found 0"),
        ("name = ", "cannot be read as TOML"),
        (b"\xff\xfe", "cannot be read as TOML"),
    ],
)
def test_wrong_toml(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "site.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(wt.SpecError) as error:
        wt.ClusterSpec.from_toml(path)
    assert message in str(error.value)


def test_a_missing_toml_file_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "none.toml")
    for read in (wt.ClusterSpec.from_toml, parse_cluster):
        with pytest.raises(wt.SpecError, match=r"cannot be read as TOML: .*No such file") as error:
            read(path)
        assert error.value.path == path


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("64x8", wt.ClusterSpec.uniform(64, 8)),
        (" 64x8:A100 ", wt.ClusterSpec.uniform(64, 8, "A100")),
        ("1x2:RTX-3090.a+b", wt.ClusterSpec.uniform(1, 2, "RTX-3090.a+b")),
        ("pool:512", wt.ClusterSpec.pool(512)),
        ("pool:512:T4", wt.ClusterSpec.pool(512, gpu_type="T4")),
        ("KALOS", PRESETS["kalos"]),
    ],
)
def test_one_line_words(word: str, expected: wt.ClusterSpec) -> None:
    assert parse_cluster(word) == expected


def test_several_node_types_in_a_line() -> None:
    cluster = parse_cluster("2x4:V100, 1x8:A100,3x0")
    expected = (wt.NodeType(2, 4, "V100"), wt.NodeType(1, 8, "A100"), wt.NodeType(3, 0))
    assert cluster.node_types == expected
    assert cluster.name == "2x4:V100, 1x8:A100,3x0"


def test_gpus_by_type_in_a_line() -> None:
    cluster = parse_cluster("v100:8, p100:16,k80:2x4")
    expected = (wt.NodeType(1, 8, "v100"), wt.NodeType(1, 16, "p100"), wt.NodeType(2, 4, "k80"))
    assert cluster.node_types == expected
    assert (cluster.is_pool, parse_cluster("pool:8").is_pool) == (False, True)


@pytest.mark.parametrize(
    "word",
    ["", "x", "8", "8x", "x8", "8*8", "-1x8", "64x8:", "64x8:A|B", "pool:", "pool:x", "64x8,"],
)
def test_words_that_are_no_cluster(word: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        parse_cluster(word)
    text = str(error.value)
    assert text.startswith(f"cluster: found {word!r}; expected NODESxGPUS[:TYPE][,...], pool:GPUS")
    assert "helios, helios-earth" in text


@pytest.mark.parametrize("word", ["0x8", "8x0", "pool:0"])
def test_words_for_nothing(word: str) -> None:
    with pytest.raises(wt.SpecError, match="expected at least"):
        parse_cluster(word)


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        ("seren", 286, 2_288),
        ("kalos", 302, 2_416),
        ("philly", 352, 2_816),
        ("pai", 1_897, 6_742),
        ("openb", 1_213, 6_212),
        ("morphling", 8, 64),
        ("helios", 802, 6_416),
        ("helios-venus", 133, 1_064),
        ("helios-earth", 143, 1_144),
        ("helios-saturn", 262, 2_096),
        ("helios-uranus", 264, 2_112),
    ],
)
def test_presets_have_the_published_totals(name: str, nodes: int, gpus: int) -> None:
    cluster = preset(name)
    assert (cluster.name, cluster.num_nodes, cluster.num_gpus) == (name, nodes, gpus)
    assert not cluster.is_pool


def test_presets_are_all_tested_and_their_details_published() -> None:
    assert len(PRESETS) == 11
    cores = sum(n.count * (n.cpus or 0) for n in preset("pai").node_types)
    assert cores == 156_576
    assert set(preset("openb").gpu_types) == {
        *("A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32")
    }
    assert preset("pai").gpu_types == ("MISC", "P100", "T4", "V100", "V100M32")
    with pytest.raises(wt.SpecError, match=r"unknown name 'kalso'\. Did you mean 'kalos'\?"):
        preset("kalso")


def test_racks_are_numbered_through_the_list(tmp_path: Path) -> None:
    text = TOML.replace("gpus = 4", "gpus = 4\nnodes_per_rack = 1")
    path = tmp_path / "racks.toml"
    path.write_text(text.replace("gpus = 8", "gpus = 8\nnodes_per_rack = 16"))
    cluster = wt.ClusterSpec.from_toml(path)
    assert cluster.racks == (0, 1, 2)
    expected = "16 GPUs: 2 nodes x 4 V100 in racks of 1, 1 nodes x 8 GPUs in racks of 16"
    assert cluster.describe() == expected
    assert wt.ClusterSpec.from_mapping(cluster.to_mapping()) == cluster
    path.write_text(TOML)
    assert wt.ClusterSpec.from_toml(path).racks == ()
    path.write_text(text)
    with pytest.raises(wt.SpecError, match=r"node_types\[1\]\.nodes_per_rack: missing; other"):
        wt.ClusterSpec.from_toml(path)
    assert wt.ClusterSpec.uniform(5, 8, nodes_per_rack=2).racks == (0, 0, 1, 1, 2)
    with pytest.raises(wt.SpecError, match="found 0; expected at least 1 node a rack"):
        wt.ClusterSpec.uniform(5, 8, nodes_per_rack=0)
    with pytest.raises(wt.SpecError, match="a pool has no nodes, and so no racks"):
        wt.ClusterSpec((wt.NodeType(1, 8, nodes_per_rack=1),), is_pool=True)


def test_a_part_of_a_preset_has_its_share_of_each_node_type() -> None:
    cluster = parse_cluster("PAI/6")
    whole = preset("pai").node_types
    assert [node.count for node in cluster.node_types] == [47, 133, 83, 8, 10, 22, 14]
    assert [(n.gpus, n.gpu_type, n.cpus, n.mem_gib) for n in cluster.node_types] == [
        (n.gpus, n.gpu_type, n.cpus, n.mem_gib) for n in whole
    ]
    assert (cluster.name, cluster.num_gpus) == ("pai/6", 1128)
    assert parse_cluster("pai/1").node_types == whole
    assert {node.count for node in parse_cluster("pai/100000").node_types} == {1}


def test_a_part_is_one_in_at_least_one() -> None:
    with pytest.raises(wt.SpecError, match="expected 1/1 or less"):
        parse_cluster("pai/0")


def test_toml_with_a_byte_order_mark_and_toml_that_is_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[[node_types]]\ncount = 2\ngpus = 4\n", encoding="utf-8-sig")
    assert wt.ClusterSpec.from_toml(path).num_gpus == 8
    path.write_text(f"x = {'[' * 100_000}", encoding="utf-8")
    with pytest.raises(wt.SpecError, match="nested too deeply"):
        wt.ClusterSpec.from_toml(path)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"nodes": "a"}, r"count: found 'a'; expected a whole number"),
        ({"nodes": True}, r"count: found True; expected a whole number"),
        ({"gpus_per_node": 2.5}, r"gpus: found 2.5; expected a whole number"),
        ({"nodes_per_rack": "x"}, r"nodes_per_rack: found 'x'; expected a whole number"),
        ({"cpus_per_node": "x"}, r"cpus: found 'x'; expected a number > 0"),
        ({"gpu_type": 3}, r"gpu_type: found 3; expected one type's name"),
    ],
)
def test_numbers_that_are_none(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        wt.ClusterSpec.uniform(**{"nodes": 2, "gpus_per_node": 8, **numbers})
    assert wt.ClusterSpec.uniform(np.int64(2), np.int32(8)).num_gpus == 16
