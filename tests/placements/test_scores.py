"""Every score by hand on a few nodes, ties, gangs, and the devices that tasks get."""

from __future__ import annotations

import math
from typing import Any

import pytest

import windtunnel as wt
from windtunnel.cluster.devices import DeviceNode, device_demand
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.placements.draws import below, draw
from windtunnel.placements.fgd import steps
from windtunnel.placements.scored import FINE
from windtunnel.placements.scored_catalogue import resolve_scored
from windtunnel.sim.fragmentation import Shape, target_workload

#: 0: idle, 8 GPUs, 128 cores; 1: one GPU at 400 free, one idle; 2: 4 GPUs, first one at 700 free.
NODES = (
    DeviceNode("c", 8, "G", cores=128_000),
    DeviceNode("a", 2, "T", cores=64_000),
    DeviceNode("b", 4, "G", cores=32_000),
)


def ask(**wanted: Any) -> Any:
    return device_demand(NODES, **wanted)


def state() -> FreeDevices:
    free = FreeDevices(NODES)
    free.take([(1, 0b01)], ask(milli=600, cores=4000))
    free.take([(2, 0b0001)], ask(milli=300, cores=8000))
    free.take([(2, 0b0010)], ask(gpus=1, cores=0))
    return free


def scores(name: str, free: FreeDevices, demand: Any, **options: Any) -> list[int | None]:
    placement = resolve_scored(name, **options)
    found: list[int | None] = []
    for node in range(len(free.nodes)):
        if free.fitting(node, demand) < demand.count:
            found.append(None)
            continue
        grants = placement.grants(free, node, demand, demand.count, 0)
        found.append(placement.score(free, node, demand, grants))
    return found


# Free milli: 8000, 1400, 2700. Free cores: 128, 60, 24. Largest node: 128 cores, 8 GPUs.
HALF = {"milli": 500, "cores": 8000}
PAIR = {"gpus": 2, "cores": 16_000}


@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        ("best_fit", HALF, [-8000, -1400, -2700]),
        ("worst_fit", PAIR, [8000, None, 2700]),
        ("most_idle", HALF, [8, 1, 2]),
        ("least_idle", PAIR, [-8, None, -2]),
        # GPUs taken: 0, 600 of 2000, 1300 of 4000; cores: 0, 4 of 64, 8 of 32.
        ("load_rate", HALF, [100, 81, 71]),  # 1 - (0.3 + 0.0625) / 2, 1 - (0.325 + 0.25) / 2
        # Node 1: GPUs 600/2000, cores 4/64; node 2: GPUs 1300/4000, cores 8/32.
        ("lowest_utilization", HALF, [0, -round(100 * (0.3 + 0.0625) / 2), -29]),
        # Left over: of node 0, 120 of 128 cores and 7500 of 8000 milli; of node 1, 52 and 900; ..
        ("openb_best_fit", HALF, [6, 74, 80]),
        ("openb_best_fit", PAIR, [18, None, 92]),
        # Of node 1: 60/128 of the cores are free and 8/128 asked for, 1400/8000 and 500/8000.
        ("dot_prod", HALF, [93, 97, 98]),
        ("dot_prod", PAIR, [81, None, 94]),
        # Node 0 idle: 33 - 8; node 1 must open a GPU: 50 - 1; node 2 uses 700 of a used one: 93.
        ("gpu_packing", HALF, [25, 49, 93]),
        ("gpu_packing", PAIR, [25, None, 48]),
        # Node 0 runs nothing: 25 + 0; node 1 shares alone: 75 + 25 x 6600/8000; node 2 mixes.
        ("gpu_clustering", HALF, [25, 95, 66]),
        ("gpu_clustering", PAIR, [25, None, 16]),
        ("gpu_clustering", {"gpus": 1}, [25, 20, 66]),
        ("gpu_packing", {"cores": 1000}, [0, 0, 0]),
        ("gpu_clustering", {"cores": 1000}, [0, 0, 0]),
        ("first_fit", HALF, [0, 0, 0]),
    ],
)
def test_scores_by_hand(name: str, wanted: dict[str, int], expected: list[int | None]) -> None:
    assert scores(name, state(), ask(**wanted)) == expected


def test_an_idle_node_scores_by_its_size() -> None:
    sizes = tuple(DeviceNode(str(gpus), gpus) for gpus in (1, 16, 17, 20))
    demand = device_demand(sizes, milli=1)
    # 33 less the number of GPUs, or the number of GPUs where that is more.
    assert scores("gpu_packing", FreeDevices(sizes), demand) == [32, 17, 17, 20]


def test_float_scores_are_not_cut() -> None:
    found = scores("openb_best_fit", state(), ask(**HALF), scores="float")
    exact = [100 * (1 - (120 / 128 + 7500 / 8000) / 2), 100 * (1 - (52 / 128 + 900 / 8000) / 2)]
    assert [score / FINE for score in found[:2] if score is not None] == pytest.approx(exact)
    packed = scores("gpu_packing", state(), ask(milli=555), scores="float")[2]
    assert packed is not None
    assert packed / FINE == pytest.approx(93.0)


def test_fgd_by_hand() -> None:
    # The workload is half "one GPU" and half "a 0.3 share". On 1000 + 400 free, a share of 300:
    # before, 0.5 x 400 are fragments. From the used device 100 + 0.5 x 0 ... stay; see below.
    node = (DeviceNode("n", 2, None, cores=8000),)
    workload = target_workload([(Shape(0, 1000, 1), 1), (Shape(0, 300, 1), 1)])
    free = FreeDevices(node)
    free.take([(0, 0b10)], device_demand(node, milli=600))
    share = device_demand(node, milli=300)
    placement = resolve_scored("fgd", workload=workload, scores="float")
    # F x 2 before: 400 (too small for a whole one). On device 0: 700 and 400 left, no whole GPU:
    # 1100. On device 1: 1000 and 100: 100 for either task.
    assert placement.place(free, share) == [(0, 0b10)]
    assert placement.score(free, 0, share, [0b10]) == 400 - (100 + 100)
    assert placement.score(free, 0, share, [0b01]) == 400 - 1100
    whole = resolve_scored("fgd", workload=workload)
    gain = (400 - 200) / 2 / 1000
    assert whole.score(free, 0, share, [0b10]) == int(100 / (1 + math.exp(-gain)))


def test_the_steps_of_fgd_are_those_of_the_sigmoid() -> None:
    total = 7
    for gain in range(-60_000, 60_001, 97):
        score = int(100 / (1 + math.exp(-gain / total / 1000)))
        assert sum(1 for step in steps(total) if gain >= step) == score
    assert steps(total)[49] == 0


def test_ties_go_by_index_by_name_or_by_seed() -> None:
    free = FreeDevices(NODES)
    demand = ask(milli=10)
    assert resolve_scored("first_fit").place(free, demand) == [(0, 1)]
    assert resolve_scored("first_fit", ties="name").place(free, demand) == [(1, 1)]
    found = []
    for seed in range(300):
        where = resolve_scored("random", seed=seed).place(free, demand)
        assert where is not None
        found.append(where[0][0])
    assert all(70 < found.count(node) < 130 for node in range(3))


def test_random_devices_are_drawn_evenly() -> None:
    free = FreeDevices(NODES[:1])
    demand = device_demand(NODES[:1], milli=10)
    placement = resolve_scored("random")
    grants = []
    for _ in range(800):
        where = placement.place(free, demand)
        assert where is not None
        grants.append(where[0][1])
        free.draws += 1
    assert all(70 < grants.count(1 << device) < 130 for device in range(8))
    assert sum(below(10, 1, placed, 2) for placed in range(2000)) / 2000 == pytest.approx(4.5, 0.05)
    assert 0 <= draw(5, 6, 7) < 2**31


def test_a_share_gets_the_smallest_part_that_suffices() -> None:
    free = state()
    assert resolve_scored("best_fit").place(free, ask(milli=300)) == [(1, 0b01)]
    assert resolve_scored("best_fit").place(free, ask(milli=450)) == [(1, 0b10)]
    three = ask(milli=700, count=3)
    # Node 2 has 700, 1000 and 1000 free: one task on each, the fullest device first.
    assert resolve_scored("best_fit").place(free, three) == [(2, 0b0001), (2, 0b0100), (2, 0b1000)]


def test_a_gang_that_fits_one_node_goes_to_one_node() -> None:
    free = state()
    assert resolve_scored("best_fit").place(free, ask(gpus=1, count=3)) == [(0, 0b111)]
    # Eight GPUs fit the first node; nine take it whole, and the remainder fits the fullest other.
    assert resolve_scored("best_fit").place(free, ask(gpus=1, count=9)) == [(0, 255), (1, 0b10)]
    assert resolve_scored("best_fit").place(free, ask(gpus=1, count=12)) is None


def test_filling_walks_the_nodes_in_the_order_of_their_scores() -> None:
    free = state()
    demand = ask(gpus=1, count=4)
    fullest_first = resolve_scored("best_fit", gang="fill").place(free, demand)
    assert fullest_first == [(1, 0b10), (2, 0b1100), (0, 0b1)]
    assert resolve_scored("worst_fit", gang="fill").place(free, demand) == [(0, 0b1111)]
    assert resolve_scored("best_fit", gang="fill").place(free, ask(gpus=1, count=12)) is None


def test_a_job_that_asks_for_nothing_runs_nowhere() -> None:
    assert resolve_scored("worst_fit").place(state(), ask(count=4)) == []


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("1/0/0", [100, 93, 75]),  # cores alone
        ((0, 0, 1), [100, 70, 67]),  # GPUs alone
        ("1/5/3", [100, 75, 69]),  # no node says what memory it has: 1 - (0.0625 + 0.9) / 4 ...
        ((0.0, 1.0, 0.0), [100, 100, 100]),
    ],
)
def test_weights_of_the_load_rate(weights: Any, expected: list[int]) -> None:
    assert scores("load_rate", state(), ask(**HALF), weights=weights) == expected


def test_memory_counts_where_it_is_limited() -> None:
    nodes = (DeviceNode("a", 1, mem=1000), DeviceNode("b", 1, mem=100))
    free = FreeDevices(nodes)
    placement = resolve_scored("load_rate", weights="0/1/0", scores="float")
    demand = device_demand(nodes, milli=100, mem=40)
    found = []
    for _ in range(3):
        where = placement.place(free, demand)
        assert where is not None
        free.take(where, demand)
        found.append(where[0][0])
    assert found == [0, 1, 0]  # rates 0 and 0; 0.04 and 0; 0.04 and 0.4


@pytest.mark.parametrize("weights", ["1/1", "a/b/c", (0, 0, 0), (-1, 1, 1), (1, 1, float("nan"))])
def test_weights_that_are_refused(weights: Any) -> None:
    with pytest.raises(wt.SpecError, match="expected three numbers from 0 to 1000"):
        resolve_scored("load_rate", weights=weights)


def test_only_the_load_rate_weighs() -> None:
    with pytest.raises(wt.SpecError, match="weighs nothing"):
        resolve_scored("first_fit", weights="1/1/1")
