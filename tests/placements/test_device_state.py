"""What is free on nodes with devices: taking, giving, refusing, and never more from less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from device_cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.cluster import ClusterSpec, NodeType
from windtunnel.cluster.devices import DeviceNode, device_demand, device_nodes, name_ranks
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.errors import SpecError
from windtunnel.placements.scored import GANGS
from windtunnel.placements.scored_catalogue import resolve_scored, scored_placements

if TYPE_CHECKING:
    from device_cases import Case

TWO = (
    DeviceNode("b", 2, "T4", cores=8000, mem=64),
    DeviceNode("a", 4, "G2", cores=None, mem=None),
    DeviceNode("c", 0, None, cores=4000, mem=32),
)


def demand(**asked: Any) -> Any:
    return device_demand(TWO, **asked)


def test_two_halves_of_two_devices_are_no_gpu() -> None:
    free = FreeDevices(TWO[:1])
    half = device_demand(TWO[:1], milli=500)
    whole = device_demand(TWO[:1], gpus=1)
    free.take([(0, 0b01)], half)
    free.take([(0, 0b10)], half)
    assert free.free_milli(0) == 1000
    assert free.fitting(0, whole) == 0
    assert free.fitting(0, half) == 1
    pooled = FreeDevices(TWO[:1], pooled=True)
    pooled.take([(0, 1000)], half)
    assert pooled.fitting(0, whole) == 1


def test_a_demand_knows_what_empty_nodes_hold() -> None:
    # b: 8 cores / 3 = 2 tasks; a: no limits, 4 devices x 2 thirds; c: no GPUs.
    gang = demand(milli=400, cores=3000, count=20)
    assert (gang.allowed, gang.largest, gang.smallest, gang.capacity) == (0b111, 8, 2, 10)
    typed = demand(gpus=1, count=3, types=frozenset({"T4"}))
    assert (typed.allowed, typed.largest, typed.capacity) == (0b001, 2, 2)
    cpu = demand(cores=4000, types=frozenset({"T4"}), count=5)
    assert (cpu.allowed, cpu.largest, cpu.smallest, cpu.capacity) == (0b111, 5, 1, 8)
    assert demand(gpus=5).capacity == 0


def test_taking_and_giving_moves_devices_cores_memory_and_tasks() -> None:
    free = FreeDevices(TWO)
    pair = demand(gpus=2, cores=1000, mem=8, count=2)
    where = [(0, 0b11), (1, 0b0101)]
    assert free.fits(where, pair)
    free.take(where, pair)
    assert free.devices == [[0, 0], [0, 1000, 0, 1000], []]
    assert (free.cores[0], free.mem[0], free.tasks) == (7000, 56, [1, 1, 0])
    assert (free.held[0][2], free.held[1][2], free.draws) == (1, 1, 1)
    assert not free.fits(where, pair)
    free.give(where, pair)
    assert vars(free) | {"draws": 0} == vars(FreeDevices(TWO))


@pytest.mark.parametrize(
    "where",
    [
        [(0, 0b1)],  # one device for a task of two
        [(0, 0b11), (0, 0b11)],  # the same twice
        [(0, 0b11), (1, 0b11), (1, 0b1100)],  # one task too many
        [(2, 0b11), (1, 0b11)],  # no such devices
        [(3, 0b11), (1, 0b11)],  # no such node
        [],
    ],
)
def test_a_choice_that_is_not_free_or_not_of_the_right_sum_is_refused(
    where: list[tuple[int, int]],
) -> None:
    assert not FreeDevices(TWO).fits(where, demand(gpus=2, count=2))


def test_a_share_is_of_one_device_and_a_pool_has_multiples() -> None:
    free = FreeDevices(TWO)
    share = demand(milli=600, count=2)
    assert free.fits([(0, 1), (0, 2)], share)
    assert not free.fits([(0, 1), (0, 1)], share)
    assert not free.fits([(0, 3)], share)
    pooled = FreeDevices(TWO, pooled=True)
    assert pooled.fits([(0, 1200)], share)
    assert not pooled.fits([(0, 1100)], share)
    assert not pooled.fits([(2, 1200)], share)
    assert pooled.fits([], demand())


def test_meeting_keeps_what_both_have() -> None:
    one, other = FreeDevices(TWO), FreeDevices(TWO)
    one.take([(0, 0b01)], demand(milli=300, cores=500))
    other.take([(0, 0b11)], demand(gpus=2, cores=100, mem=4))
    copy = one.copy()
    copy.meet(other)
    assert copy.devices[0] == [0, 0]
    assert (copy.cores[0], copy.mem[0]) == (7500, 60)
    assert one.devices[0] == [700, 1000]


def test_nodes_come_from_a_cluster_in_its_order() -> None:
    spec = ClusterSpec((NodeType(2, 8, "G2", 96, 384), NodeType(1, 0, "x", 32)))
    nodes = device_nodes(spec)
    assert nodes[1] == DeviceNode("node-0001", 8, "G2", 96_000, 393_216)
    assert nodes[2] == DeviceNode("node-0002", 0, None, 32_000, None)
    assert device_nodes(spec, ["z", "y", "x"])[0].name == "z"
    assert name_ranks(device_nodes(spec, ["z", "a10", "a9"])) == [2, 0, 1]


@pytest.mark.parametrize(
    "build",
    [
        lambda: device_nodes(ClusterSpec.pool(8)),
        lambda: device_nodes(ClusterSpec.uniform(2, 4), ["same", "same"]),
        lambda: device_nodes(ClusterSpec.uniform(1, 64)),
        lambda: demand(gpus=1, milli=500),
        lambda: demand(milli=1000),
        lambda: demand(count=0),
        lambda: demand(cores=-1),
        lambda: FreeDevices((DeviceNode("n", 63),)),
        lambda: resolve_scored("fdg"),
        lambda: resolve_scored("fgd"),
        lambda: resolve_scored("best_fit", ties="nobody"),
        lambda: resolve_scored("best_fit", scores="decimal"),
        lambda: resolve_scored("best_fit", gang="any"),
    ],
)
def test_what_makes_no_sense_is_refused(build: Any) -> None:
    with pytest.raises(SpecError, match=r"expected|unknown name|at most|needs"):
        build()


@pytest.mark.parametrize("pooled", [False, True])
@settings(max_examples=60)
@given(data=st.data(), gang=st.sampled_from(GANGS), kept=st.integers(0, 2**16))
def test_less_that_is_free_never_makes_a_placement_possible(
    pooled: bool,  # noqa: FBT001 - a parameter of the test
    data: st.DataObject,
    gang: str,
    kept: int,
) -> None:
    case: Case = data.draw(cases(pooled=pooled))
    placement = resolve_scored("best_fit", gang=gang)
    fuller, emptier = FreeDevices(case.nodes, pooled=pooled), FreeDevices(case.nodes, pooled=pooled)
    for number, kind in enumerate(event for event in case.events if event >= 0):
        wanted = case.demands[kind]
        where = placement.place(fuller, wanted)
        for asked in case.demands:
            if placement.place(fuller, asked) is not None:
                assert placement.place(emptier, asked) is not None
        if where is not None:
            fuller.take(where, wanted)
            if kept >> number & 1:
                emptier.take(where, wanted)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(scored_placements()))
@settings(max_examples=15)
@given(case=cases(), ties=st.sampled_from((None, "name", "random")), gang=st.sampled_from(GANGS))
def test_whether_a_job_fits_does_not_depend_on_the_placement(
    name: str, case: Case, ties: str | None, gang: str
) -> None:
    placement = resolve_scored(name, ties=ties, gang=gang, workload=case.workload)
    other = resolve_scored("first_fit", gang=gang)
    free = FreeDevices(case.nodes)
    for kind in (event for event in case.events if event >= 0):
        wanted = case.demands[kind]
        where = placement.place(free, wanted)
        assert (where is None) == (other.place(free, wanted) is None)
        if where is not None:
            assert free.fits(where, wanted)
            free.take(where, wanted)
