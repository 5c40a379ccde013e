"""Hiding what a node has free, in every kind of free state, against plain bookkeeping."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.cluster.devices import DeviceNode, device_demand
from windtunnel.cluster.free import EVERY_NODE, Demand, FreeNodes, FreePool
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.placements.whole import BestFit

SIZES = (4, 2, 4, 0)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["take", "give", "withhold", "restore"]), st.integers(0, 3)),
    max_size=40,
)


def demand(gpus: int) -> Demand:
    return Demand(gpus, 1, 0, EVERY_NODE, 4, 2, 10)


@given(ACTIONS, st.randoms(use_true_random=False))
def test_nodes_show_what_is_free_and_not_withheld(
    actions: list[tuple[str, int]], random: Any
) -> None:
    free = FreeNodes(SIZES)
    held: list[tuple[int, int]] = []
    hidden: list[tuple[int, int]] = []
    for action, node in actions:
        if action == "take" and free.free[node]:
            gpus = random.randint(1, free.free[node])
            free.take([(node, gpus)], demand(gpus))
            held.append((node, gpus))
        elif action == "give" and held:
            back = held.pop(random.randrange(len(held)))
            free.give([back], demand(back[1]))
        elif action == "withhold":
            group = random.randint(0, 2)
            free.withhold(node, group)
            hidden.append((node, group))
        elif action == "restore" and hidden:
            free.restore(*hidden.pop(random.randrange(len(hidden))))
        check(free, held, hidden)
        check(free.opened((1,)), held, [(n, g) for n, g in hidden if not only(n, 1, hidden)])


def only(node: int, group: int, hidden: list[tuple[int, int]]) -> bool:
    return all(g == group for n, g in hidden if n == node)


def check(free: FreeNodes, held: list[tuple[int, int]], hidden: list[tuple[int, int]]) -> None:
    gone = {node for node, _ in hidden}
    down = 0
    for node, size in enumerate(SIZES):
        left = size - sum(gpus for n, gpus in held if n == node)
        shown = 0 if node in gone else left
        assert free.free[node] == shown
        assert free.free_units(node) == left
        assert [count for count, nodes in enumerate(free.by_free) if nodes >> node & 1] == [shown]
        assert bool(free.empty >> node & 1) == (left == size and node not in gone)
        down += left if (node, 0) in hidden else 0
    assert free.total == sum(free.free)
    assert free.down == down


def test_a_copy_is_independent() -> None:
    free = FreeNodes(SIZES)
    free.withhold(0)
    twin = free.copy()
    twin.restore(0)
    twin.take([(0, 4)], demand(4))
    assert (free.free[0], free.hidden, twin.free[0]) == (0, {0: 4}, 0)
    free.restore(0)
    assert free.free == list(SIZES)


def test_nothing_is_placed_on_hidden_nodes() -> None:
    free = FreeNodes((4, 4))
    free.withhold(0)
    assert BestFit().place(free, demand(4)) == [(1, 4)]
    assert BestFit().place(free, demand(8)) is None
    assert not free.fits([(0, 4)], demand(4))
    assert free.opened((0,)).fits([(0, 4)], demand(4))


def test_a_pool_may_lose_what_is_held() -> None:
    free = FreePool((8,), (None,))
    free.take([(0, 6)], demand(6))
    free.withhold(0, units=4)
    assert (free.free, free.total, free.down) == ([-2], -2, 2)
    assert list(free.candidates(demand(0))) == []
    twin = free.copy()
    free.give([(0, 6)], demand(6))
    assert (free.free, free.down, twin.free) == ([4], 4, [-2])
    free.restore(0, units=4)
    assert (free.free, free.total, free.down) == ([8], 8, 0)


@pytest.mark.parametrize("pooled", [False, True])
def test_devices_are_not_free_while_withheld(*, pooled: bool) -> None:
    nodes = (DeviceNode("a", 2, cores=4000), DeviceNode("b", 2, cores=4000))
    free = FreeDevices(nodes, pooled=pooled)
    one = device_demand(nodes, gpus=1, cores=1000, pooled=pooled)
    cpu = device_demand(nodes, cores=1000, pooled=pooled)
    grant = 1000 if pooled else 0b1
    free.take([(0, grant)], one)
    free.withhold(0)
    free.withhold(0, 3)
    assert [free.fitting(node, one) for node in (0, 1)] == [0, 1]
    assert free.fitting(0, cpu) == 0
    assert not free.fits([(0, grant)], one)
    assert (free.down, free.free_units(0)) == (1000, 1000)
    other = FreeDevices(nodes, pooled=pooled)
    other.meet(free)
    assert (other.fitting(0, one), other.fitting(1, one)) == (0, 1)
    free.give([(0, grant)], one)
    assert (free.down, free.fitting(0, one)) == (2000, 0)
    twin = free.copy()
    twin.restore(0)
    assert twin.fitting(0, one) == 0
    assert twin.opened((3,)).fitting(0, one) == 1
    assert twin.opened((3,)).shown == {0}
    twin.restore(0, 3)
    assert (twin.fitting(0, one), twin.down, free.fitting(0, one)) == (1, 0, 0)
