"""The kernels' devices give bit for bit what the plain Python state and placements give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.cluster.devices import node_kinds
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.placements.scored import GANGS, SCORES, TIES
from windtunnel.placements.scored_catalogue import SCORED, resolve_scored
from windtunnel.sim.compiled.loading import DEVICES as DEVICE_KERNELS
from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.fragmentation import fragmentation

if TYPE_CHECKING:
    from device_cases import Case

    from windtunnel.cluster.free import Where
    from windtunnel.placements.scored import ScoredPlacement

DEVICES = load_kernels(DEVICE_KERNELS)["devices"]
TABLES = load_kernels(DEVICE_KERNELS)["device_tables"]
POOLABLE = sorted(name for name, placement in SCORED.items() if not placement.needs_devices)
QUICK = settings(max_examples=40)


class Twin:
    """The kernels' side of a run: tables, and one list of grants a job."""

    def __init__(self, case: Case, placement: ScoredPlacement, *, pooled: bool) -> None:
        self.tables = TABLES.tables(case.nodes, case.demands, placement, pooled=pooled)
        self.code = TABLES.CODES[placement.name]
        most = max(demand.count for demand in case.demands)
        self.nodes = np.zeros(most + 3, dtype=np.int32)
        self.gpus = np.zeros(most + 3, dtype=np.int64)

    def take(self, kind: int) -> Where | None:
        """Place a job of a class, written from entry 2 on."""
        taken = DEVICES.take(*self.tables, kind, self.code, self.nodes, self.gpus, 2)
        if taken < 0:
            return None
        grants = zip(self.nodes[2 : 2 + taken], self.gpus[2 : 2 + taken], strict=True)
        return [(int(node), int(grant)) for node, grant in grants]

    def call(self, function: str, kind: int, where: Where) -> Any:
        """Call give, take_there or is_free for a job's grants."""
        nodes = np.array([node for node, _ in where], dtype=np.int32)
        grants = np.array([grant for _, grant in where], dtype=np.int64)
        code = getattr(DEVICES, function)
        return code(*self.tables, kind, self.code, nodes, grants, 0, len(where))

    def state(self, top: int) -> dict[str, Any]:
        """What is free, as `state` of the plain side gives it."""
        node, rows, _ = self.tables
        held = int(rows[0, TABLES.HELD])
        return {
            "total": node[TABLES.TOTAL].tolist(),
            "devices": node[TABLES.DEVICES : held].T.tolist(),
            "tasks": node[TABLES.TASKS].tolist(),
            "held": node[held : held + top + 1].T.tolist(),
            "cores": np.where(node[TABLES.SIZE_CORES] >= 0, node[TABLES.CORES], -1).tolist(),
            "mem": np.where(node[TABLES.SIZE_MEM] >= 0, node[TABLES.MEM], -1).tolist(),
            "draws": int(rows[0, TABLES.DRAWS]),
        }

    def sets(self) -> list[set[int]]:
        """Nodes in use, those of them with GPUs left, and those of each kind that run nothing."""
        rows = self.tables[1]
        words = int(rows[0, TABLES.WORDS])
        kinds = int(rows[0, TABLES.KINDS])
        numbers = [
            TABLES.IN_USE,
            TABLES.WITH_GPUS,
            *range(TABLES.FIRST_KIND, TABLES.FIRST_KIND + kinds),
        ]
        found = []
        for number in numbers:
            bits = rows[TABLES.SETS, number * words : (number + 1) * words].astype("<i8")
            marked = np.unpackbits(bits.view(np.uint8), bitorder="little")
            found.append(set(np.flatnonzero(marked).tolist()))
        return found


def plain_sets(free: FreeDevices) -> list[set[int]]:
    in_use = {node for node, tasks in enumerate(free.tasks) if tasks}
    kinds = sorted(node_kinds(free.nodes), key=lambda kind: -kind.count)
    idle = [
        {node for node in range(len(free.nodes)) if kind.members >> node & 1} - in_use
        for kind in kinds
    ]
    return [in_use, {node for node in in_use if free.free_milli(node)}, *idle]


def plain_state(free: FreeDevices, width: int) -> dict[str, Any]:
    return {
        "total": [sum(devices) for devices in free.devices],
        "devices": [devices + [0] * (width - len(devices)) for devices in free.devices],
        "tasks": free.tasks,
        "held": free.held,
        "cores": [
            -1 if node.cores is None else cores
            for node, cores in zip(free.nodes, free.cores, strict=True)
        ],
        "mem": [
            -1 if node.mem is None else mem for node, mem in zip(free.nodes, free.mem, strict=True)
        ],
        "draws": free.draws,
    }


def fly_both(case: Case, placement: ScoredPlacement, *, pooled: bool) -> None:
    free = FreeDevices(case.nodes, pooled=pooled)
    twin = Twin(case, placement, pooled=pooled)
    top = max(node.gpus for node in case.nodes)
    running: list[tuple[int, Where]] = []
    for event in case.events:
        if event < 0:
            if not running:
                continue
            kind, where = running.pop((-1 - event) % len(running))
            free.give(where, case.demands[kind])
            twin.call("give", kind, where)
            assert twin.call("is_free", kind, where)
            twin.call("take_there", kind, where)
            twin.call("give", kind, where)
        else:
            demand = case.demands[event]
            where = placement.place(free, demand)
            assert twin.take(event) == where
            if where is None:
                continue
            assert free.fits(where, demand)
            free.take(where, demand)
            running.append((event, where))
            again = free.fits(where, demand)
            assert twin.call("is_free", event, where) == again
        assert twin.state(top) == plain_state(free, 1 if pooled else top)
        assert twin.sets() == plain_sets(free)


@pytest.mark.parametrize("name", sorted(SCORED))
@QUICK
@given(
    case=cases(),
    scores=st.sampled_from(SCORES),
    ties=st.sampled_from((None, *TIES)),
    gang=st.sampled_from(GANGS),
    seed=st.integers(0, 5),
)
def test_twin_and_python_place_alike(
    name: str, case: Case, scores: str, ties: str | None, gang: str, seed: int
) -> None:
    placement = resolve_scored(
        name, scores=scores, ties=ties, gang=gang, seed=seed, workload=case.workload
    )
    fly_both(case, placement, pooled=False)


@pytest.mark.parametrize("name", POOLABLE)
@QUICK
@given(case=cases(pooled=True), ties=st.sampled_from((None, *TIES)), gang=st.sampled_from(GANGS))
def test_they_place_alike_on_pooled_nodes(
    name: str, case: Case, ties: str | None, gang: str
) -> None:
    fly_both(case, resolve_scored(name, ties=ties, gang=gang, workload=case.workload), pooled=True)


@QUICK
@given(case=cases())
def test_the_arrivals_kernel_follows_fragmentation_by_cause(case: Case) -> None:
    placement = resolve_scored("fgd", workload=case.workload)
    tables = TABLES.tables(case.nodes, case.demands, placement)
    kinds = [event for event in case.events if event >= 0]
    most = max(demand.count for demand in case.demands)
    fly = load_kernels(DEVICE_KERNELS)["arrivals_kernel"].fly
    placed, used, causes, touched = fly(
        *tables, TABLES.CODES["fgd"], np.array(kinds, dtype=np.int64), most
    )
    free = FreeDevices(case.nodes)
    total = case.workload.total
    assert causes[0].tolist() == scaled(free, case)
    for job, kind in enumerate(kinds):
        where = placement.place(free, case.demands[kind])
        assert placed[job] == (where is not None)
        if where is not None:
            free.take(where, case.demands[kind])
        idle = sum(map(sum, free.devices))
        assert used[job] == sum(node.gpus for node in case.nodes) * 1000 - idle
        assert causes[job + 1].tolist() == scaled(free, case)
        assert causes[job + 1].sum() == idle * total
        busy = [i for i, tasks in enumerate(free.tasks) if tasks]
        assert touched[job].tolist() == [len(busy), sum(case.nodes[i].gpus for i in busy)]


def scaled(free: FreeDevices, case: Case) -> list[int]:
    found = fragmentation(free, case.workload)
    return [round(cause * case.workload.total) for cause in found.causes]
