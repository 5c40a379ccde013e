"""The kernel's `FreeDevices` does, bit for bit, what the plain Python state and placements do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from free_oracle import Oracle
from free_runs import ACCESS, Run, assert_equal, seeded

from windtunnel import kernel
from windtunnel.cluster.devices import UNLIMITED, DeviceNode, device_demand
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.cluster.parts import restricted
from windtunnel.placements.scored import GANGS, SCORES, TIES, TOPOLOGIES
from windtunnel.placements.scored_catalogue import resolve_scored, scored_placements
from windtunnel.sim.fragmentation import Shape, target_workload

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

NAMES = sorted(scored_placements())
SHARES = (50, 100, 250, 330, 500, 700, 999)
STEPS = 60


def cluster(rng: random.Random) -> tuple[DeviceNode, ...]:
    """Return nodes, some of them alike, in racks that are runs of nodes."""
    kinds = [
        (rng.choice((0, 1, 2, 4, 8)), rng.choice("AB"), rng.choice((None, 4000, 16000)))
        for _ in range(rng.choice((1, 2, 4)))
    ]
    count = rng.choice((1, 3, 6, 9, 70))
    each = rng.choice((2, 3, 20))
    nodes = []
    for index in range(count):
        gpus, kind, cores = rng.choice(kinds)
        name = f"{rng.choice('zxab')}{index}" if count < 9 else f"n{index:03d}"
        mem = rng.choice((None, 64)) if count < 9 else 64
        nodes.append(DeviceNode(name, gpus, kind if gpus else None, cores, mem, index // each))
    return tuple(nodes)


def demands(rng: random.Random, nodes: tuple[DeviceNode, ...], *, pooled: bool) -> list[Any]:
    """Return what some kinds of jobs ask for."""
    found = []
    for _ in range(6):
        gpus = rng.choice((0, 1, 1, 2, 3))
        milli = 0 if gpus and not pooled else rng.choice((0, *SHARES))
        found.append(
            device_demand(
                nodes,
                gpus=gpus,
                milli=milli,
                cores=rng.choice((0, 500, 1500, 4000)),
                mem=rng.choice((0, 8, 40)),
                count=rng.choice((1, 1, 1, 2, 3, 6, 20)),
                types=rng.choice((None, None, frozenset("A"), frozenset("AB"))),
                pooled=pooled,
            )
        )
    return found


def workload(rng: random.Random) -> Any:
    return target_workload(
        (
            Shape(
                rng.choice((0, 500, 4000)),
                rng.choice((0, *SHARES, 1000)),
                rng.randrange(3),
                rng.choice(("", "A", "A|B")),
            ),
            rng.randrange(1, 9),
        )
        for _ in range(rng.randrange(1, 6))
    )


def motley(rng: random.Random) -> tuple[DeviceNode, ...]:
    """Return nodes of more kinds than the kernel tells apart (32), and a few that are alike."""
    kinds = [(rng.choice((0, 1, 2, 4)), 2000 + 100 * index) for index in range(40)]
    kinds += rng.choices(kinds, k=8)
    return tuple(
        DeviceNode(f"n{index:03d}", gpus, "A" if gpus else None, cores, 64, index // 20)
        for index, (gpus, cores) in enumerate(kinds)
    )


def both(
    name: str, seed: int, draw: Callable[[random.Random], tuple[DeviceNode, ...]] = cluster
) -> tuple[Any, Oracle, Any]:
    """Return the kernel's state, the oracle, and the problem, as far as both look at it."""
    rng = seeded(f"{name} {seed}")
    pooled = rng.random() < 0.3 and not scored_placements()[name].needs_devices
    nodes = draw(rng)
    placement = resolve_scored(
        name,
        scores=rng.choice(SCORES),
        ties=rng.choice((None, *TIES)),
        gang=rng.choice(GANGS),
        topology=rng.choice(TOPOLOGIES),
        seed=rng.choice((0, 7, 2**40)),
        workload=workload(rng),
        weights="1/0.5/2" if name == "load_rate" else None,
    )
    problem = SimpleNamespace(
        devices=nodes, pooled=pooled, demands=tuple(demands(rng, nodes, pooled=pooled))
    )
    plain = Oracle(FreeDevices(nodes, pooled=pooled), placement, ACCESS)
    return kernel.FreeDevices(problem, placement, ACCESS), plain, problem


class DeviceRun(Run):
    """A random course whose odd choices are grants of devices."""

    def odd_choice(self, kind: int) -> Any:
        where = self.plain.fit(self.demands[kind]) or []
        if self.rng.random() < 0.5:
            return where
        extra = self.rng.choice((0, 1, 2, 3, 250, 1000, 2**20, 2**62, -1, 2**63))
        node = self.rng.choice((*range(self.plain.nodes), -1, 2**33))
        return [*where[1:], (node, extra)]


def same_tables(mine: Any, plain: Oracle) -> None:
    """Check devices, cores, memory and tasks."""
    tables, free = mine.tables(), plain.free
    width = tables["devices"].shape[1]
    devices = [row + [0] * (width - len(row)) for row in free.devices]
    assert tables["devices"].tolist() == devices
    assert tables["cores"].tolist() == [min(cores, UNLIMITED) for cores in free.cores]
    assert tables["mem"].tolist() == free.mem
    assert tables["tasks"].tolist() == free.tasks
    assert mine.counts()[3] == free.draws


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_states_agree(name: str, seed: int) -> None:
    mine, plain, problem = both(name, seed)
    course = DeviceRun(seeded(seed), mine, plain, problem.demands)
    for _ in range(STEPS):
        course.step()
        same_tables(mine, plain)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
def test_states_agree_where_nodes_are_of_too_many_kinds(name: str) -> None:
    mine, plain, problem = both(name, 0, motley)
    course = DeviceRun(seeded(0), mine, plain, problem.demands)
    for _ in range(STEPS):
        course.step()
        same_tables(mine, plain)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_copies(name: str, seed: int) -> None:
    mine, plain, problem = both(name, seed)
    course = DeviceRun(seeded(seed), mine, plain, problem.demands)
    for _ in range(STEPS // 2):
        course.step()
    other, _, _ = both(name, seed)
    for twin in (mine.twin(), other):
        twin.become(mine)
        twin_plain = Oracle(plain.free.copy(), plain.placement, ACCESS)
        assert_equal(twin, twin_plain)
        same_tables(twin, twin_plain)
        later = DeviceRun(seeded(seed + 1), twin, twin_plain, problem.demands)
        later.jobs, later.holds = course.jobs.copy(), course.holds.copy()
        for _ in range(STEPS // 4):
            later.step()
        assert_equal(mine, plain)


@pytest.mark.parametrize("name", ["best_fit", "fgd", "lowest_utilization"])
@pytest.mark.parametrize("seed", range(4))
def test_kinds_added_later(name: str, seed: int) -> None:
    mine, plain, problem = both(name, seed)
    course = DeviceRun(seeded(seed), mine, plain, problem.demands)
    for _ in range(STEPS // 2):
        course.step()
    twin = mine.twin()
    for number in range(12):
        demand = restricted(problem.demands[number % 6], plain.free, 0b1011 << number)
        demand = replace(demand, cores=demand.cores + number) if demand.cores else demand
        kind = mine.add_kind(demand)
        assert mine.fit_pairs(kind) == twin.fit_pairs(kind) == plain.fit(demand)
        assert mine.fit_pairs(0) == plain.fit(problem.demands[0])


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_numbers(name: str, seed: int) -> None:
    mine, plain, problem = both(name, seed)
    course = DeviceRun(seeded(seed), mine, plain, problem.demands)
    for _ in range(STEPS // 2):
        course.step()
    restored = kernel.FreeDevices(problem, plain.placement)
    restored.become_row(mine, [])
    same = Oracle(plain.free.copy(), plain.placement, ACCESS)
    for node in list(same.free.withheld):
        del same.free.withheld[node]
    same.free.draws = 0
    same_tables(restored, same)
    for kind, demand in enumerate(problem.demands):
        assert restored.fit_pairs(kind) == same.fit(demand)
    # What two states have in common, one of them without the jobs that run.
    restored.become_row(mine, course.jobs)
    gone = Oracle(same.free.copy(), plain.placement, ACCESS)
    for kind, where in course.jobs:
        gone.free.give(where, problem.demands[kind])
    same_tables(restored, gone)
    for kind, demand in enumerate(problem.demands):
        assert restored.fit_pairs(kind) == gone.fit(demand)
