"""The fragmentation measure: by hand, by its formula, and on the published nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from device_cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.cluster.devices import DeviceNode, device_demand, device_nodes
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.errors import SpecError
from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.fragmentation import (
    CAUSES,
    Shape,
    fragmentation,
    node_fragments,
    target_workload,
    workload_of,
)
from windtunnel.traces.openb import read_nodes, read_openb

if TYPE_CHECKING:
    from pathlib import Path

    from device_cases import Case


def test_a_node_by_hand() -> None:
    # Free: 300 + 1000 milli, 4 cores. Of ten tasks: 5 want half a GPU (1 core), 2 want one GPU
    # (6 cores), 1 wants two GPUs (1 core), 1 has no GPU (4 cores), 1 wants a V100.
    node = DeviceNode("n", 2, "T4", cores=4000)
    workload = target_workload(
        [
            (Shape(1000, 500, 1), 5),
            (Shape(6000, 1000, 1), 2),
            (Shape(1000, 1000, 2), 1),
            (Shape(4000, 0, 0), 1),
            (Shape(0, 1000, 1, "V100|A100"), 1),
        ],
        popular=100,
    )
    free = FreeDevices((node,))
    free.take([(0, 0b01)], device_demand((node,), milli=700))
    found = dict(zip(CAUSES, fragmentation(free, workload).causes, strict=True))
    assert found == pytest.approx(
        {
            "q1": 0.0,
            "q2": 0.5 * 300 + 0.1 * 1300,
            "q3": 0.5 * 1000,
            "q4": 0.2 * 1300,
            "xl": 0.1 * 1300,
            "xr": 0.0,
            "no_access": 0.1 * 1300,
        }
    )
    measured = fragmentation(free, workload)
    assert measured.milli == pytest.approx(800.0)
    assert measured.ratio == pytest.approx(800 / 1300)
    assert measured.amount == pytest.approx(800 / 2000)


def test_the_target_workload_is_cut_at_the_first_prefix_that_reaches_95_percent() -> None:
    shapes = [Shape(cores, 0, 0) for cores in range(4)]
    found = target_workload([(shapes[0], 2), (shapes[1], 90), (shapes[2], 3), (shapes[3], 5)])
    assert found.shapes == (shapes[1], shapes[3])
    assert found.counts == (90, 5)
    tied = target_workload([(Shape(1, 0, 0), 2), (Shape(2, 0, 0), 2), (Shape(1, 5, 1), 2)])
    assert tied.shapes == (Shape(2, 0, 0), Shape(1, 5, 1), Shape(1, 0, 0))
    with pytest.raises(SpecError, match="0 tasks"):
        target_workload([])


def test_pools_have_no_fragments() -> None:
    free = FreeDevices((DeviceNode("n", 2),), pooled=True)
    with pytest.raises(SpecError, match="only devices fragment"):
        fragmentation(free, target_workload([(Shape(0, 0, 0), 1)]))


@settings(max_examples=150)
@given(
    case=cases(),
    left=st.lists(st.integers(0, 1000), max_size=4),
    cores=st.sampled_from((0, 500, 1500, 9000)),
)
def test_it_is_the_formula_of_the_paper(case: Case, left: list[int], cores: int) -> None:
    node = DeviceNode("n", len(left), "A")
    expected = 0
    for shape, count in zip(case.workload.shapes, case.workload.counts, strict=True):
        unusable = (
            shape.milli * shape.gpus == 0
            or (shape.types and "A" not in shape.types.split("|"))
            or cores < shape.cores
            or sum(r >= shape.milli for r in left) < shape.gpus
        )
        expected += count * (sum(left) if unusable else sum(r for r in left if r < shape.milli))
    assert node_fragments(node, left, cores, case.workload) == expected


@pytest.mark.data
def test_the_published_empty_cluster(data_dir: Path) -> None:
    pods = read_openb(data_dir / "openb" / "openb_pod_list_default.csv").jobs
    _, cluster = read_nodes(data_dir / "openb" / "openb_node_list_gpu_node.csv")
    workload = workload_of(device_requests(pods))
    assert len(workload.shapes) == 35
    assert workload.total / pods.num_rows == pytest.approx(0.9527, abs=1e-4)
    empty = fragmentation(FreeDevices(device_nodes(cluster)), workload)
    assert empty.idle == empty.capacity == 6_212_000
    assert empty.ratio == pytest.approx(0.139445034, abs=1e-9)
    assert empty.milli == pytest.approx(866_232.552, abs=1e-3)
    found = dict(zip(CAUSES, empty.causes, strict=True))
    assert (found["xl"] + found["xr"]) / empty.idle == pytest.approx(0.135977, abs=1e-6)
