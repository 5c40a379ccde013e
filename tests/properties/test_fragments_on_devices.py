"""Fragmentation along runs that model devices is the measure of the devices that were free."""

from __future__ import annotations

import math

from flight_cases import Case, device_cases
from hypothesis import given, settings

from windtunnel.cluster.devices import device_nodes
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.sim.fragmentation import CAUSES, Shape, fragmentation, target_workload
from windtunnel.sim.observe.holdings import can_fragment

WORKLOAD = target_workload(
    [(Shape(500, 400, 1), 5), (Shape(1500, 1000, 2, "A|C"), 2), (Shape(1000, 0, 0), 1)],
    popular=100,
)


@settings(max_examples=100)
@given(device_cases())
def test_it_is_the_measure_at_every_instant(case: Case) -> None:
    out = case.fly("compiled")
    if out.settings["sharing"] != "devices" or not can_fragment(out):
        return
    nodes = device_nodes(case.cluster)
    segments = out.segments.to_pylist()
    num_cpus = out.jobs["num_cpus"].to_pylist()
    for row in out.fragmentation(WORKLOAD, cores=True).to_pylist():
        free = FreeDevices(nodes)
        for s in segments:
            if not s["start"] <= row["time"] < (math.inf if s["end"] is None else s["end"]):
                continue
            tasks = sum(s["node_tasks"])
            for at, node in enumerate(s["nodes"]):
                held = s["devices"][at]
                for device in held:
                    free.devices[node][device] -= round(s["node_gpus"][at] * 1000) // len(held)
                each = round((num_cpus[s["row"]] or 0) / tasks * 1000)
                free.cores[node] -= each * s["node_tasks"][at]
            assert min(map(min, filter(None, free.devices)), default=0) >= 0
        expected = fragmentation(free, WORKLOAD)
        assert row["idle_gpus"] == expected.idle / 1000
        found = [row[cause] for cause in CAUSES]
        assert all(
            math.isclose(f, c / 1000, abs_tol=1e-9)
            for f, c in zip(found, expected.causes, strict=True)
        )
