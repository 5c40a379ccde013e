"""The PAI simulator's node orders, gangs and pooled GPUs, job by job, node by node.

A queue of the simulator's own kind (all completions and arrivals of a second, then one walk past
whatever does not fit), on `FreeDevices` and on its twin, gives every published completion time and
every node.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.cluster.devices import DeviceNode, FreeDevices, device_demand
from windtunnel.placements.scored_catalogue import resolve_scored
from windtunnel.sim.compiled.loading import DEVICES, load_kernels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free import Where

pytestmark = pytest.mark.data

ORDERS = {
    "node_id_order": "first_fit",
    "fewest_idle_gpu_first": "least_idle",
    "most_idle_gpu_first": "most_idle",
    "lowest_utilisation_first": "lowest_utilization",
}
HETEROGENEOUS = ((16, 0, 96, "CPU"), (56, 8, 96, "MISC"), (100, 2, 96, "T4"), (160, 2, 64, "P100"))
CLUSTERS = {
    "homogeneous_3x(8gpu,96cpu)": ((3, 8, 96, None),),
    "hetero_1352gpu_380nodes": (*HETEROGENEOUS, (48, 8, 96, "V100")),
}
#: What the per-job files call the clusters.
FILES = {
    "homogeneous_3x(8gpu,96cpu)": "homogeneous_3x8gpu_96cpu",
    "hetero_1352gpu_380nodes": "hetero_1352gpu_380nodes",
}


@dataclass
class Run:
    """One run of the reference: nodes, demands, keys and arrivals of its jobs."""

    nodes: tuple[DeviceNode, ...]
    demands: list[DeviceDemand]
    keys: list[tuple[Any, ...]]
    submit: list[int]
    duration: list[int]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def cluster(name: str) -> tuple[DeviceNode, ...]:
    return tuple(
        DeviceNode(f"n{kind}-{index}", gpus, kind, cores * 1000)
        for count, gpus, cores, kind in CLUSTERS[name]
        for index in range(count)
    )


def prepare(folder: Path, about: dict[str, Any]) -> Run:
    jobs = read(folder / about["jobs_file"])
    nodes = cluster(about["cluster"])
    most_gpus = sum(node.gpus for node in nodes) * 1000
    most_cores = sum(node.cores or 0 for node in nodes)
    demands, keys = [], []
    submit = [int(job["submit_time"]) for job in jobs]
    if about["arrivals"].startswith("300 jobs"):
        order = sorted(range(len(jobs)), key=lambda j: (submit[j], int(jobs[j]["job_id"])))
        for place, job in enumerate(order):
            submit[job] = 60 * (place // 300)
    duration = [max(1, int(float(job["duration"]))) for job in jobs]
    for number, job in enumerate(jobs):
        gpus = min(round(100 * float(job["num_gpu"])) * 10, most_gpus)
        cores = min(round(100 * float(job["num_cpu"])) * 10, most_cores)
        demand = device_demand(
            nodes, gpus=gpus // 1000, milli=gpus % 1000, cores=cores,
            count=int(job["num_inst"]), pooled=True,
        )  # fmt: skip
        demands.append(restricted(demand, nodes, about["gpu_type_rule"], job["gpu_type"]))
        key = submit[number] if about["policy"] == "FIFO" else duration[number]
        keys.append((key, int(job["job_id"])))
    return Run(nodes, demands, keys, submit, duration)


def restricted(
    demand: DeviceDemand, nodes: tuple[DeviceNode, ...], rule: str | None, kind: str
) -> DeviceDemand:
    """Apply the simulator's own rule of types, which binds jobs without GPUs, too."""
    binds = {"exact_type": kind != "CPU", "v100_jobs_only_on_v100": kind == "V100"}
    if not binds.get(rule or "", False):
        return demand
    allowed = sum(1 << index for index, node in enumerate(nodes) if node.gpu_type == kind)
    return replace(demand, allowed=allowed)


def fly(
    run: Run, take: Callable[[int], Where | None], give: Callable[[int, Where], None]
) -> tuple[list[int], list[Where]]:
    """Return each job's completion time (jct) and where it ran."""
    waiting: list[int] = []
    ends: dict[int, list[int]] = {}
    where: dict[int, Where] = {}
    jct = [0] * len(run.submit)
    arrivals: dict[int, list[int]] = {}
    for job, second in enumerate(run.submit):
        arrivals.setdefault(second, []).append(job)
    times = sorted(arrivals)
    while times or ends:
        now = min([*times[:1], *ends])
        for job in ends.pop(now, []):
            give(job, where[job])
        if times and times[0] == now:
            times.pop(0)
            waiting += arrivals[now]
            waiting.sort(key=lambda job: run.keys[job])
        refused = set()
        left = []
        for job in waiting:
            demand = run.demands[job]
            found = None if demand in refused else take(job)
            if found is None:
                refused.add(demand)
                left.append(job)
                continue
            where[job] = found
            jct[job] = now + run.duration[job] - run.submit[job]
            ends.setdefault(now + run.duration[job], []).append(job)
        waiting = left
    return jct, [where[job] for job in range(len(jct))]


def plain(run: Run, name: str) -> tuple[list[int], list[Where]]:
    free = FreeDevices(run.nodes, pooled=True)
    placement = resolve_scored(name, gang="fill")

    def take(job: int) -> Where | None:
        found = placement.place(free, run.demands[job])
        if found is not None:
            free.take(found, run.demands[job])
        return found

    return fly(run, take, lambda job, where: free.give(where, run.demands[job]))


def compiled(run: Run, name: str) -> tuple[list[int], list[Where]]:
    devices, layout = (load_kernels(DEVICES)[name] for name in ("devices", "device_tables"))
    placement = resolve_scored(name, gang="fill")
    classes = list(dict.fromkeys(run.demands))
    kind = {demand: number for number, demand in enumerate(classes)}
    tables = layout.tables(run.nodes, classes, placement, pooled=True)
    nodes = np.zeros(10_000, dtype=np.int32)
    grants = np.zeros(10_000, dtype=np.int64)
    code = layout.CODES[name]

    def take(job: int) -> Where | None:
        count = devices.take(*tables, kind[run.demands[job]], code, nodes, grants, 0)
        found = zip(nodes[:count].tolist(), grants[:count].tolist(), strict=True)
        return None if count < 0 else list(found)

    def give(job: int, where: Where) -> None:
        held = [np.array(column, dtype=kind_) for column, kind_ in
                zip(zip(*where, strict=True), (np.int32, np.int64), strict=True)]  # fmt: skip
        devices.give(*tables, kind[run.demands[job]], code, *held, 0, len(where))

    return fly(run, take, give)


def published_nodes(text: str) -> Counter[int]:
    """Return node -> instances from ``3*2 5``, or ``7``."""
    found: Counter[int] = Counter()
    for part in text.split():
        node, _, times = part.partition("*")
        found[int(node)] += int(times or 1)
    return found


def instances(run: Run, job: int, where: Where) -> Counter[int]:
    found: Counter[int] = Counter()
    for node, grant in where:
        found[node] += run.demands[job].tasks(grant, pooled=True)
    return found


@pytest.mark.parametrize(
    ("cluster_name", "engine"),
    [
        ("homogeneous_3x(8gpu,96cpu)", plain),
        ("hetero_1352gpu_380nodes", compiled),
    ],
)
def test_every_completion_and_every_node_is_the_simulators(
    data_dir: Path, cluster_name: str, engine: Callable[..., Any]
) -> None:
    folder = data_dir / "pai_sim_reference"
    runs = json.loads((folder / "results.json").read_text())["runs"]
    chosen = [about for about in runs if about["cluster"] == cluster_name]
    assert len(chosen) >= 6
    for about in chosen:
        stem = about["jobs_file"].removesuffix(".csv")
        rows = read(folder / f"per_job_{stem}__{FILES[cluster_name]}.csv")
        run = prepare(folder, about)
        jct, where = engine(run, ORDERS[about["node_order"]])
        assert jct == [int(row[f"jct__{about['run']}"]) for row in rows], about["run"]
        for job, row in enumerate(rows):
            expected = published_nodes(row[f"nodes__{about['run']}"])
            assert instances(run, job, where[job]) == expected, (about["run"], job)
