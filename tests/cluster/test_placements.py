"""Where jobs go, worked out by hand, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.cluster.free import Demand, FreeNodes, FreePool

pytestmark = pytest.mark.parametrize("engine", ["reference", "compiled"])


def nodes(
    engine: str, gpus: list[float], cluster: str, *, placement: str = "best_fit", **columns: Any
) -> list[Any]:
    """The nodes of jobs submitted one after the other, each for a long time."""
    count = len(gpus)
    jobs = {
        "submit_time": [float(row) for row in range(count)],
        "duration": [100.0] * count,
        "num_gpus": gpus,
        **columns,
    }
    out = wt.simulate(jobs, cluster, placement=placement, queueing="skip", until=50, engine=engine)
    return [
        dict(zip(segment["nodes"], segment["node_gpus"], strict=True))
        for segment in out.segments.to_pylist()
    ]


def test_best_fit_takes_the_fullest_node_that_suffices(engine: str) -> None:
    # 3 of node 0; 2 do not fit its 1: node 1; then 1 fills node 0, 2 fill node 1, 1 opens node 2.
    found = nodes(engine, [3, 2, 1, 2, 1], "3x4")
    assert found == [{0: 3}, {1: 2}, {0: 1}, {1: 2}, {2: 1}]


def test_spread_takes_the_emptiest_node(engine: str) -> None:
    found = nodes(engine, [3, 2, 1, 2, 1, 3], "3x4", placement="spread")
    # Free after each: 1 4 4 / 1 2 4 / 1 2 3 / 1 2 1 / 1 1 1; then 3 GPUs fit nowhere.
    assert found == [{0: 3}, {1: 2}, {2: 1}, {2: 2}, {1: 1}]


def test_equal_nodes_go_by_index(engine: str) -> None:
    for placement in ("best_fit", "spread"):
        assert nodes(engine, [2, 2, 2, 2], "4x2", placement=placement) == [
            {0: 2},
            {1: 2},
            {2: 2},
            {3: 2},
        ]


def test_best_fit_prefers_the_smaller_node(engine: str) -> None:
    assert nodes(engine, [2, 2, 2, 5], "1x8,2x2") == [{1: 2}, {2: 2}, {0: 2}, {0: 5}]
    spread = nodes(engine, [2, 2, 2, 2, 2], "1x8,2x2", placement="spread")
    assert spread == [{0: 2}, {0: 2}, {0: 2}, {0: 2}, {1: 2}]


def test_a_job_as_large_as_a_node_stays_on_one(engine: str) -> None:
    # 4 GPUs fit a node: they are never split, even where two half-empty nodes have 4 free.
    assert nodes(engine, [2, 3, 4], "2x4") == [{0: 2}, {1: 3}]


def test_a_gang_takes_whole_empty_nodes_and_best_fits_the_rest(engine: str) -> None:
    # 1 on node 0. A gang of 10: nodes 1, 2 whole; the rest of 2 beside the 1 on node 0.
    assert nodes(engine, [1, 10], "4x4") == [{0: 1}, {1: 4, 2: 4, 0: 2}]
    # Spread puts the rest on the emptiest node.
    assert nodes(engine, [1, 10], "4x4", placement="spread") == [{0: 1}, {1: 4, 2: 4, 3: 2}]
    # A rest of 4 is a whole node.
    assert nodes(engine, [1, 12], "4x4") == [{0: 1}, {1: 4, 2: 4, 3: 4}]


def test_a_gang_waits_for_whole_nodes(engine: str) -> None:
    # 1 GPU on each of two nodes: 6 GPUs free, but the gang of 5 needs one node empty.
    assert nodes(engine, [3, 2, 1, 5], "2x4") == [{0: 3}, {1: 2}, {0: 1}]
    assert nodes(engine, [1, 5], "2x4") == [{0: 1}, {1: 4, 0: 1}]


def test_a_gang_on_nodes_of_several_sizes(engine: str) -> None:
    # 12 > 8: node 0 (2) whole, node 1 (8) whole, and 2 more on node 2.
    assert nodes(engine, [12], "1x2,1x8,1x4") == [{0: 2, 1: 8, 2: 2}]
    # 9: node 0 whole leaves 7; node 1 (8) is too large to be filled, node 2 (4) whole leaves 3.
    assert nodes(engine, [9], "1x2,1x8,1x4") == [{0: 2, 2: 4, 1: 3}]


def test_tasks_are_not_split(engine: str) -> None:
    # Three tasks of two GPUs on nodes of three: one task a node.
    assert nodes(engine, [6], "4x3", num_tasks=[3]) == [{0: 2, 1: 2, 2: 2}]
    # Without tasks the gang may be split anywhere.
    assert nodes(engine, [6], "4x3") == [{0: 3, 1: 3}]
    # The GPU that is left over on each of them serves others.
    assert nodes(engine, [6, 1, 1], "3x3", num_tasks=[3, 1, 1])[1:] == [{0: 1}, {1: 1}]


def test_types_narrow_the_nodes(engine: str) -> None:
    found = nodes(
        engine,
        [1, 1, 1, 6],
        "2x2:A,2x4:B",
        gpu_type=["B", "A|B", None, "B"],
    )
    # B: node 2. Either: best fit is the smaller node 0. Any: fills node 0. A gang of 6 B: node 3
    # whole and 2 of the 3 left on node 2.
    assert found == [{2: 1}, {0: 1}, {0: 1}, {3: 4, 2: 2}]


def test_more_nodes_than_bits_in_a_word(engine: str) -> None:
    gpus: list[float] = [1.0] * 3 + [140.0, 1.0]
    found = nodes(engine, gpus, "64x1:A,80x2:B", gpu_type=["B", "A", None, "B", "B"])
    assert found[:3] == [{64: 1}, {0: 1}, {1: 1}]  # any: the first of the nodes with one GPU free
    assert list(found[3]) == list(range(65, 135))
    assert found[4] == {64: 1}


def test_pools_take_the_fuller_that_suffices(engine: str) -> None:
    cluster = "1x4:A,1x8:B"
    jobs = {
        "submit_time": [0.0, 1.0, 2.0, 3.0],
        "duration": [100.0] * 4,
        "num_gpus": [3.0, 2.0, 6.0, 1.0],
        "gpu_type": [None, None, "B", None],
    }
    out = wt.simulate(jobs, cluster, placement="pool", queueing="skip", until=50, engine=engine)
    # 3 of A (4 < 8 free); 2 of B; 6 of B fill it; 1 fills A.
    assert out.metrics()["num_running"] == 4
    more = {name: [*values, values[0]] for name, values in jobs.items()}
    out = wt.simulate(
        {**more, "num_gpus": [3.0, 2.0, 6.0, 1.0, 1.0], "submit_time": [0.0, 1.0, 2.0, 3.0, 4.0]},
        cluster,
        placement="pool",
        until=50,
        engine=engine,
    )
    assert out.metrics()["num_waiting"] == 1


def test_names_of_placements(engine: str) -> None:
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1]}
    for cluster, given, used in (
        ("2x2", None, "best_fit"),
        ("2x2", "spread", "spread"),
        ("2x2", "pool", "pool"),
        ("pool:2", None, "pool"),
        ("pool:2", "best_fit", "pool"),
    ):
        out = wt.simulate(jobs, cluster, placement=given, engine=engine)
        assert out.settings["placement"] == used
    with pytest.raises(wt.SpecError, match=r"unknown name 'spred'\. Did you mean 'spread'\?"):
        wt.simulate(jobs, "2x2", placement="spred", engine=engine)


def test_free_state_is_as_before_after_giving_back(engine: str) -> None:
    demand = Demand(5, 1, 2_000, -1, 4, 2, 10)
    nodes_free = FreeNodes([4, 2, 4])
    before = (list(nodes_free.free), list(nodes_free.by_free), nodes_free.empty, nodes_free.total)
    where = [(0, 4), (2, 1)]
    nodes_free.take(where, demand)
    assert (nodes_free.free, nodes_free.empty, nodes_free.total) == ([0, 2, 3], 0b010, 5)
    assert nodes_free.fits([(2, 3), (1, 2)], demand)
    for wrong in ([(2, 4), (1, 1)], [(2, 3)], [(2, 3), (3, 2)], [(2, 3), (1, 0)], [(2, 2), (2, 3)]):
        assert not nodes_free.fits(wrong, demand)
    nodes_free.give(where, demand)
    assert before == (
        list(nodes_free.free),
        list(nodes_free.by_free),
        nodes_free.empty,
        nodes_free.total,
    )
    pools = FreePool([6, 8], [2_000, None])
    assert list(pools.candidates(demand)) == [0, 1]
    pools.take([(0, 5)], demand)
    assert (pools.free, pools.free_cpus, pools.total) == ([1, 8], [0, -0], 9)
    assert list(pools.candidates(demand)) == [1]
    assert not pools.fits([(0, 5)], demand)
    pools.give([(0, 5)], demand)
    assert (pools.free, pools.free_cpus, pools.total) == ([6, 8], [2_000, 0], 14)
