"""Placement `tree`: required, preferred, unconstrained and slices, with any policy and rule."""

from __future__ import annotations

import random
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.cluster.levels import Levels
from windtunnel.cluster.topology.node_tree import NodeTree
from windtunnel.cluster.topology.words import request_of
from windtunnel.errors import WindtunnelError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: 2 blocks of 2 racks of 4 nodes of 4 GPUs.
LEVELS = "block=8,rack=4"
APART = "slice=rack/2/apart"


def flown(jobs: dict[str, list[Any]], **options: Any) -> wt.Outcome:
    given: dict[str, Any] = {"topology": LEVELS, "placement": "tree", "policy": "fifo", **options}
    return wt.simulate(jobs, "16x4", **given)


def nodes_of(out: wt.Outcome) -> list[list[int]]:
    offset = out.flight.node_offset
    return [out.flight.nodes[a:b].tolist() for a, b in pairwise(offset.tolist())]


def at_once(num_gpus: Sequence[float], words: Sequence[str | None]) -> dict[str, list[Any]]:
    count = len(num_gpus)
    return {
        "submit_time": [0.0] * count,
        "duration": [10.0] * count,
        "num_gpus": list(num_gpus),
        "topology": list(words),
    }


def test_the_tightest_domain_that_is_asked_for() -> None:
    # 3 nodes leave a hole of one, which a later job of one node fills before an empty rack.
    out = flown(at_once([12, 4, 8], ["required:rack", "preferred:rack", "required:rack"]))
    assert nodes_of(out) == [[0, 1, 2], [3], [4, 5]]


def test_required_waits_and_preferred_goes_up() -> None:
    # Jobs of three nodes leave one in each rack.
    for words, start, where in (
        ("required:rack", 10.0, [0, 1]),
        ("preferred:rack", 0.0, [3, 7]),
        ("required:block", 0.0, [3, 7]),
    ):
        out = flown(at_once([12, 12, 12, 12, 8], ["required:rack"] * 4 + [words]))
        assert out.table["start_time"].to_pylist()[-1] == start, words
        assert nodes_of(out)[-1] == where, words


def test_slices_stay_whole_wherever_they_are() -> None:
    out = flown(at_once([24], ["slice=rack/3"]))
    racks = np.array(nodes_of(out)[0]) // 4
    assert np.unique(racks, return_counts=True)[1].tolist() == [3, 3]


def test_slices_apart_go_to_as_many_domains() -> None:
    """Two slices of two nodes fit one rack, and apart two; five need five racks, of four."""
    together, apart = flown(at_once([16], ["slice=rack/2"])), flown(at_once([16], [APART]))
    assert [len({n // 4 for n in nodes_of(out)[0]}) for out in (together, apart)] == [1, 2]
    with pytest.raises(WindtunnelError, match="the cluster cannot hold it"):
        flown(at_once([40], [APART]))
    jobs = at_once([8, 8, 32], ["required:rack", "required:rack", APART])
    assert flown(jobs).table["start_time"].to_pylist() == [0, 0, 10], "three racks have two free"
    with pytest.raises(WindtunnelError, match="the first may end in /apart"):
        flown(at_once([16], ["slice=block/4+slice=rack/2/apart"]))


@pytest.mark.parametrize("seed", range(20))
def test_slices_apart_fit_where_enough_domains_hold_one(seed: int) -> None:
    """Against counting: as many racks (in a block) as slices have that many free nodes."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    cluster = wt.ClusterSpec((wt.NodeType(24, 1),), topology=Levels.parse("block=12,rack=4"))
    tree = NodeTree(cluster)
    for _ in range(40):
        free = np.array([int(pick.random() < 0.7) for _ in range(24)])
        size, slices = pick.choice((1, 2, 3)), pick.choice((1, 2, 3, 4))
        words = pick.choice(("", "required:block+", "preferred:rack+"))
        level = pick.choice(("rack", "rack", "host")) if size == 1 else "rack"
        words += f"slice={level}/{size}/apart"
        domains = free.reshape(2, 3, 4).sum(axis=2) if level == "rack" else free.reshape(2, 12)
        able = (domains >= size).sum(axis=1)
        fits = (able.max() if words.startswith("required") else able.sum()) >= slices
        if words.startswith("preferred:rack") and level == "rack" and slices == 1:
            fits = bool(able.any())
        where = tree.place(free, size * slices, request_of(words, tree.levels))
        assert (where is not None) == fits, (words, slices, free)
        if where is not None:
            used = np.bincount([n // 4 if level == "rack" else n for n, _ in where])
            assert set(used[used > 0].tolist()) == {size}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_cores_memory_and_shares_limit_pods(engine: Any) -> None:
    """Four pods of 4 cores go two a node of 8 cores; GPUs alone would hold them all on one."""
    node = wt.NodeType(4, 4, cpus=8.0, mem_gib=32.0, nodes_per_rack=2)
    jobs = {
        "submit_time": [0.0, 1.0, 2.0, 3.0, 4.0],
        "duration": [100.0] * 5,
        "num_gpus": [4.0, 4.0, 1.0, 4.0, 4.0],
        "num_tasks": [4, 4, 2, 4, 4],
        "num_cpus": [16.0, None, None, 16.0, None],
        "mem_gib": [None, 128.0, None, None, None],
        "topology": ["required:rack", "preferred:rack", "required:host", "required:rack",
                     "required:host"],
    }  # fmt: skip
    out = wt.simulate(jobs, wt.ClusterSpec((node,)), "fifo", placement="tree", engine=engine)
    # Pods of 32 GiB have a node each, and no rack holds four; two shares of half a GPU go to one
    # node; only the second rack still has cores for the fourth job.
    assert nodes_of(out)[0] == [0, 1]
    assert nodes_of(out)[1] == [0, 1, 2, 3]
    assert nodes_of(out)[3] == [2, 3]
    assert out.table["start_time"].to_pylist()[:4] == [0, 1, 2, 3]
    assert [len(set(nodes)) for nodes in nodes_of(out)] == [2, 4, 1, 2, 1]
    with pytest.raises(WindtunnelError, match="cores and memory"):
        out.topology_losses()


def test_a_default_by_size_and_its_note() -> None:
    jobs = at_once([32, 4, 20], [None, None, None])
    out = flown(jobs, topology_request="slice=rack/4@16,required:rack@4")
    assert [len({n // 4 for n in nodes}) for nodes in nodes_of(out)] == [2, 1, 2]
    assert "1 jobs come in pods that the slices asked for do not divide" in " ".join(out.notes)


@pytest.mark.sample(6)
@pytest.mark.parametrize("placement", ["tree", "tree:least-free", "tree:balanced"])
@pytest.mark.parametrize(
    ("policy", "queueing"),
    [("fifo", "strict"), ("sjf", "skip"), ("fifo", "easy"), ("sjf", "conservative"),
     ("srtf", "strict"), ("las", "skip")],
)  # fmt: skip
def test_engines_agree_and_requests_hold(policy: str, queueing: str, placement: str) -> None:
    pick = random.Random(policy + queueing + placement)  # noqa: S311 - a test's own chance
    gpus = [float(pick.choice((1, 2, 3, 4, 8, 8, 16, 32))) for _ in range(60)]
    words = ("required:rack", "preferred:rack", "required:block", "unconstrained", None)
    length = [float(pick.choice((1, 5, 20, 50))) for _ in gpus]
    jobs: dict[str, list[Any]] = {
        "submit_time": sorted(pick.uniform(0, 120) for _ in gpus),
        "duration": length,
        "estimate": [2 * of for of in length],
        "num_gpus": gpus,
        "topology": [pick.choice(words[1:] if n > 16 else words) for n in gpus],
    }
    failures = {"node_failures": [{"time": 30.0, "until": 50.0, "node": 5}]}
    runs = [
        flown(jobs, policy=policy, queueing=queueing, placement=placement, engine=engine,
              disruptions=failures)
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    assert runs[0].table.equals(runs[1].table)
    assert nodes_of(runs[0]) == nodes_of(runs[1])
    for stay, nodes in enumerate(nodes_of(runs[0])):
        asked = jobs["topology"][int(runs[0].flight.segment_job[stay])]
        if asked == "required:rack":
            assert len({n // 4 for n in nodes}) == 1
        if asked == "required:block":
            assert len({n // 8 for n in nodes}) == 1


def closed_form(n: int, p: float, s: int) -> float:
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) * (k // s) * s / n for k in range(n + 1))


@pytest.mark.parametrize(("n", "s"), [(6, 1), (6, 2), (7, 3), (8, 4)])
def test_the_usable_share_of_segments_flown(n: int, s: int) -> None:
    """Drains of every number of a block's nodes, flown; each weighed by its probability."""
    p = 0.9
    expected = 0.0
    for up in range(n + 1):
        down = [{"start": 0.0, "end": 100.0, "nodes": list(range(n - up))}] if up < n else []
        count = n // s
        jobs = {
            "submit_time": [1.0] * count,
            "duration": [5.0] * count,
            "num_gpus": [4.0 * s] * count,
            "topology": [f"slice=block/{s}"] * count,
        }
        out = wt.simulate(
            jobs, f"{n}x4", topology=f"block={n}", placement="tree", policy="fifo",
            disruptions={"maintenance": down} if down else None, until=2.0,
        )  # fmt: skip
        running = sum(start is not None for start in out.table["start_time"].to_pylist())
        expected += comb(n, up) * p**up * (1 - p) ** (n - up) * running * s / n
    assert expected == pytest.approx(closed_form(n, p, s), abs=1e-9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topology_request": "required:room"}, "room"),
        ({"topology_request": "slice=rack/2@many"}, "WORDS@GPUS"),
        ({"placement": "best_fit", "topology_request": "required:rack"}, "--placement tree"),
        ({"placement": "tree:tight"}, "tight"),
        ({"sharing": "pooled", "compat": "pai"}, "PAI simulator does not know"),
    ],
)
def test_what_is_wrong_is_reported(options: dict[str, Any], says: str) -> None:
    with pytest.raises(WindtunnelError, match=says):
        flown(at_once([4], [None]), **options)


@pytest.mark.parametrize("sharing", ["devices", "pooled"])
def test_shares_of_gpus_fill_the_fullest_node(sharing: str) -> None:
    jobs = at_once([12, 4, 8, 0.5, 0.5], ["required:rack", None, "required:rack", None, None])
    out = flown(jobs, sharing=sharing)
    assert nodes_of(out) == [[0, 1, 2], [3], [4, 5], [6], [6]]


@pytest.mark.parametrize("sharing", [None, "devices", "pooled"])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_tightest_node_with_and_without_devices(sharing: str | None, engine: Any) -> None:
    """The first node is empty again, and the second has one GPU left: the last job goes there."""
    jobs = {
        "submit_time": [0.0, 0.0, 20.0],
        "duration": [10.0, 100.0, 10.0],
        "num_gpus": [4.0, 3.0, 1.0],
    }
    options = {"sharing": sharing} if sharing else {}
    assert nodes_of(flown(jobs, engine=engine, **options)) == [[0], [1], [1]]


def test_a_jobs_own_words_are_checked() -> None:
    with pytest.raises(WindtunnelError, match=r"job '1'.*not slices"):
        flown(at_once([4, 12], [None, "slice=rack/2"]))
    with pytest.raises(WindtunnelError, match="as required:rack"):
        flown(at_once([32], ["required:rack"]))


@pytest.mark.parametrize(
    ("policy", "placement", "by"),
    [
        ("fifo", None, "the placement"),
        ("sjf", "fgd:topology=rack", "placement 'fgd:topology=rack'"),
        ("gavel:fifo", None, "the placement"),
        ("fixed-plan", "spread", "placement 'spread'"),
        ("fifo", "tree", None),
        ("fixed-plan", "tree", None),
    ],
)
def test_levels_that_nobody_looks_at_are_noted(
    policy: str, placement: str | None, by: str | None
) -> None:
    """Also where the placement looks at racks: those are its own rule, not what jobs ask for."""
    jobs = at_once([4, 4, 4, 4], ["required:rack", "unconstrained", None, "preferred:rack"])
    notes = flown(jobs, policy=policy, placement=placement).notes
    expected = f"2 jobs ask for levels (column topology); {by} did not look at them"
    found = [note for note in notes if "column topology" in note]
    assert found == ([f"{expected}: --placement tree does."] if by else [])
