"""Filling a cluster on the kernel is, after each arrival, what plain Python's filling is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from device_cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.placements.scored import GANGS
from windtunnel.placements.scored_catalogue import resolve_scored
from windtunnel.sim.fragmentation import fragmentation
from windtunnel.study.filling import fill

if TYPE_CHECKING:
    from device_cases import Case


def has_gpus(case: Case) -> bool:
    return any(node.gpus for node in case.nodes)


@pytest.mark.parametrize("name", ["fgd", "best_fit", "random"])
@settings(max_examples=60)
@given(case=cases().filter(has_gpus), gang=st.sampled_from(GANGS))
def test_every_arrival_is_followed_to_the_last_digit(name: str, case: Case, gang: str) -> None:
    placement = resolve_scored(name, gang=gang, workload=case.workload)
    kinds = [event for event in case.events if event >= 0]
    filling = fill(case.nodes, case.demands, np.array(kinds, dtype=np.int64), placement)
    causes, (nodes, gpus) = filling.causes(case.workload), filling.touched()
    assert len(filling.placed) == len(causes) == len(nodes) == len(gpus) == len(kinds)
    free = FreeDevices(case.nodes)
    total = case.workload.total
    for job, kind in enumerate(kinds):
        where = placement.place(free, case.demands[kind])
        assert filling.placed[job] == (where is not None)
        if where is not None:
            free.take(where, case.demands[kind])
            mine, devices = filling.held.stay == job, filling.held.devices
            assert devices is not None
            assert list(zip(filling.held.node[mine], devices[mine], strict=True)) == where
        found = fragmentation(free, case.workload)
        assert causes[job].tolist() == [round(cause * total) for cause in found.causes]
        assert causes[job].sum() == found.idle * total
        busy = [index for index, tasks in enumerate(free.tasks) if tasks]
        assert nodes[job] == len(busy)
        assert gpus[job] == sum(case.nodes[index].gpus for index in busy)
