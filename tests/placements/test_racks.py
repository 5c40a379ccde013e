"""Racks: worked by hand, and against a search over all racks."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.cluster.devices import device_demand, device_nodes
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.placements.scored import GANGS, TOPOLOGIES
from windtunnel.placements.scored_catalogue import resolve_scored

if TYPE_CHECKING:
    from windtunnel.cluster.devices import DeviceDemand

#: Racks (0, 1, 2), (3, 4, 5) and (6, 7), nodes of four GPUs.
CLUSTER = wt.ClusterSpec.uniform(8, 4, nodes_per_rack=3)


def after(*taken: tuple[int, int], cluster: wt.ClusterSpec = CLUSTER) -> FreeDevices:
    """The cluster with (node, whole GPUs) taken."""
    nodes = device_nodes(cluster)
    free = FreeDevices(nodes)
    for node, gpus in taken:
        free.take([(node, (1 << gpus) - 1)], device_demand(nodes, gpus=gpus))
    return free


def gang(free: FreeDevices, tasks: int, gpus: int = 1) -> DeviceDemand:
    return device_demand(free.nodes, count=tasks, gpus=gpus)


def counted(where: list[tuple[int, int]] | None) -> list[tuple[int, int]] | None:
    """(node, GPUs) in placement order."""
    return where and [(node, grant.bit_count()) for node, grant in where]


def test_the_rack_with_the_fewest_free_gpus_that_suffices() -> None:
    free = after((0, 1), (3, 4))
    place = resolve_scored("best_fit", topology="rack").place
    # Eight GPUs: rack 0 has 11 free, rack 1 and rack 2 have 8: the lower index.
    assert counted(place(free, gang(free, 8))) == [(4, 4), (5, 4)]
    # Ten GPUs: rack 0 alone.
    assert counted(place(free, gang(free, 10))) == [(1, 4), (2, 4), (0, 2)]
    # Without racks the lowest empty nodes.
    plain = resolve_scored("best_fit").place
    assert counted(plain(free, gang(free, 8))) == [(1, 4), (2, 4)]
    # A job that fits one node goes to one, whatever the racks.
    assert counted(place(free, gang(free, 3))) == [(0, 3)]


def test_free_gpus_that_the_job_may_not_use_do_not_count() -> None:
    free = after((3, 4))
    free.withhold(0)
    free.withhold(1)
    # Rack 0 has 4 GPUs that may be used, rack 1 and rack 2 have 8; nobody holds 12, 8 and 8.
    place = resolve_scored("best_fit", gang="fill", topology="rack").place
    assert counted(place(free, gang(free, 4))) == [(2, 4)]


def test_enough_free_gpus_in_pieces_do_not_suffice() -> None:
    # Rack 0 has 9 free GPUs but one empty node: five on it and one more node have no room.
    free = after((0, 1), (1, 2), (6, 1), (7, 1), (4, 1))
    place = resolve_scored("best_fit", topology="rack").place
    assert counted(place(free, gang(free, 8))) == [(3, 4), (5, 4)]


def test_over_several_racks_or_not_at_all() -> None:
    free = after((0, 4), (6, 4))
    demand = gang(free, 24)
    # Rack 1 has three empty nodes, rack 0 two, rack 2 one.
    spill = resolve_scored("best_fit", topology="rack").place(free, demand)
    assert counted(spill) == [(3, 4), (4, 4), (5, 4), (1, 4), (2, 4), (7, 4)]
    assert resolve_scored("best_fit", topology="rack-only").place(free, demand) is None
    # The remainder stays in a rack in use: node 1 (rack 0) rather than the fuller node 6.
    free = after((0, 4), (1, 1), (2, 4), (6, 2), (7, 4))
    spill = resolve_scored("best_fit", topology="rack").place(free, gang(free, 14))
    assert counted(spill) == [(3, 4), (4, 4), (5, 4), (6, 2)]
    free = after((0, 4), (1, 1), (6, 2), (7, 4))
    spill = resolve_scored("best_fit", topology="rack").place(free, gang(free, 18))
    assert counted(spill) == [(3, 4), (4, 4), (5, 4), (2, 4), (1, 2)]


def test_filling_within_a_rack() -> None:
    # Four tasks of a GPU fit node 0 and 1 of rack 0 (2 + 3 free), all else is freer.
    free = after((0, 2), (1, 1), (2, 4))
    place = resolve_scored("best_fit", gang="fill", topology="rack").place
    assert place(free, gang(free, 4)) == [(0, 0b1100), (1, 0b0110)]
    # 6: rack 0 has 5; rack 2 has 8 free, rack 1 has 12.
    assert counted(place(free, gang(free, 6))) == [(6, 4), (7, 2)]
    # 22: all racks, those with the most room first.
    assert counted(place(free, gang(free, 22))) == [
        *((3, 4), (4, 4), (5, 4), (6, 4), (7, 4)),
        (0, 2),
    ]


def test_runs_keep_to_racks_and_say_so() -> None:
    jobs = {"submit_time": [0.0, 0.0], "duration": [5.0, 5.0], "num_gpus": [4.0, 8.0]}
    cluster = wt.ClusterSpec.uniform(4, 4, nodes_per_rack=2)
    out = wt.simulate(jobs, cluster, placement="best_fit:topology=rack")
    assert out.table["nodes"].to_pylist() == [[0], [2, 3]]
    assert out.settings["engine"] == "compiled"
    assert out.settings["placement"] == "best_fit:topology=rack"
    # Three racks of two nodes: 12 GPUs fit no rack.
    three = {"submit_time": [0.0], "duration": [5.0], "num_gpus": [12.0]}
    spilt = wt.simulate(three, cluster, placement="best_fit:topology=rack")
    assert spilt.table["nodes"].to_pylist() == [[0, 1, 2]]
    with pytest.raises(wt.SchemaError, match="in racks of 2"):
        wt.simulate(three, cluster, placement="best_fit:topology=rack-only")
    out = wt.simulate(three, cluster, placement="best_fit:topology=rack-only", oversize="reject")
    assert out.table["status"].to_pylist() == ["rejected"]
    # It waits for a rack rather than go over two.
    jobs = {"submit_time": [0.0, 0.0, 1.0], "duration": [9.0, 7.0, 5.0], "num_gpus": [4.0, 1, 8]}
    jobs["gpu_type"] = ["A", "B", None]
    mixed = wt.ClusterSpec(
        (wt.NodeType(2, 4, "A", nodes_per_rack=2), wt.NodeType(2, 4, "B", nodes_per_rack=2))
    )
    waits = wt.simulate(jobs, mixed, placement="best_fit:topology=rack-only")
    assert waits.table["start_time"].to_pylist() == [0, 0, 7]
    goes = wt.simulate(jobs, mixed, placement="best_fit:topology=rack")
    assert goes.table["start_time"].to_pylist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("cluster", "placement", "message"),
    [
        (wt.ClusterSpec.uniform(4, 4), "best_fit:topology=rack", "there are none in 16 GPUs"),
        (wt.ClusterSpec.pool(4), "best_fit:topology=rack", "there are none in 4 GPUs"),
        (CLUSTER, "pool:topology=rack", "keeps jobs within racks"),
        (CLUSTER, "best_fit:topology=rak", "unknown name 'rak'. Did you mean 'rack'?"),
    ],
)
def test_racks_that_are_not_there(cluster: wt.ClusterSpec, placement: str, message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        wt.simulate(
            {"submit_time": [0], "duration": [1], "num_gpus": [1]}, cluster, placement=placement
        )
    assert message in str(error.value)


@st.composite
def states(draw: st.DrawFn) -> tuple[FreeDevices, DeviceDemand]:
    """Clusters with racks, partly full, and a gang."""
    kinds = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=3))
    per_rack = draw(st.integers(1, 3))
    types = [wt.NodeType(count, gpus, nodes_per_rack=per_rack) for count, gpus in kinds]
    cluster = wt.ClusterSpec((*types, wt.NodeType(1, 2, nodes_per_rack=1)))
    nodes = device_nodes(cluster)
    taken = [(i, draw(st.integers(0, n.gpus))) for i, n in enumerate(nodes)]
    free = after(*((node, gpus) for node, gpus in taken if gpus), cluster=cluster)
    return free, gang(free, draw(st.integers(1, 12)), draw(st.sampled_from((1, 1, 2))))


@settings(max_examples=300)
@given(states(), st.sampled_from(("best_fit", "worst_fit", "first_fit")), st.sampled_from(GANGS))
def test_a_rack_is_used_if_and_only_if_one_suffices(
    state: tuple[FreeDevices, DeviceDemand], name: str, gang_option: str
) -> None:
    free, demand = state
    how: dict[str, Any] = {"gang": gang_option}
    rack_of = {node: rack for rack, nodes in enumerate(free.racks) for node in nodes}
    one = gang_option == "node" and demand.count <= demand.largest
    plain = resolve_scored(name, **how)
    spill = resolve_scored(name, topology="rack", **how).place(free, demand)
    only = resolve_scored(name, topology="rack-only", **how).place(free, demand)
    # Whether it can be placed at all does not depend on racks.
    assert (spill is None) == (plain.place(free, demand) is None)
    # Racks in which the layout succeeds, by hiding all other nodes from the plain placement.
    suffices = []
    for rack, nodes in enumerate(free.racks):
        hidden = free.copy()
        for node in itertools.chain.from_iterable(r for r in free.racks if r != nodes):
            hidden.devices[node] = [0] * len(hidden.devices[node])
        if plain.place(hidden, demand) is not None:
            suffices.append((sum(map(free.free_milli, nodes)), rack))
    assert (only is None) == (not suffices)
    for where in (spill, only):
        if where is None:
            continue
        assert free.fits(where, demand)
        racks = {rack_of[node] for node, _ in where}
        if one:
            assert where == plain.place(free, demand)
        elif suffices:
            assert racks == {min(suffices)[1]}
        else:
            assert len(racks) > 1


@settings(max_examples=200)
@given(states(), st.sampled_from(TOPOLOGIES[1:]), st.sampled_from(GANGS), st.integers(0, 20))
def test_less_that_is_free_never_makes_a_layout_possible(
    state: tuple[FreeDevices, DeviceDemand], topology: str, gang_option: str, pick: int
) -> None:
    free, demand = state
    placement = resolve_scored("best_fit", topology=topology, gang=gang_option)
    node = pick % len(free.nodes)
    if placement.place(free, demand) is None and free.idle(node):
        device = free.devices[node].index(1000)
        free.take([(node, 1 << device)], device_demand(free.nodes, gpus=1))
        assert placement.place(free, demand) is None
