"""The kernel's `FreeShapes` does what the elastic runs' `FreeShares` does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from free_oracle import Oracle
from free_runs import ACCESS, Run, assert_equal, seeded

from windtunnel import kernel
from windtunnel.cluster.free import EVERY_NODE, Demand
from windtunnel.cluster.topology.request import TopologyRequest
from windtunnel.placements.whole import BestFit
from windtunnel.sim.elastic.domains import Domains
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.elastic.work import RigidOption

STEPS = 80


class Shapes(Oracle):
    """The oracle: of an (option, nodes) pair, `FreeShares` itself places it."""

    def fit(self, demand: Any, access: int = 0, state: Any = None) -> Any:
        if not isinstance(demand, Option):
            return super().fit(demand, access, state)
        placement, self.placement = self.placement, self
        found = super().fit(demand, access, state)
        self.placement = placement
        return found

    def place(self, free: Any, option: Option) -> Any:
        return free.place(option, option.allowed, option.request)


class Option(RigidOption):
    """An option with the nodes that it may use, and what its job asks of the levels."""

    allowed = EVERY_NODE
    request: TopologyRequest | None = None


def option(
    shape: tuple[int, ...], num_cpus: int, allowed: int, request: TopologyRequest | None
) -> Option:
    found = Option(shape, num_cpus, 1.0)
    object.__setattr__(found, "allowed", allowed)
    object.__setattr__(found, "request", request)
    return found


def domains(rng: Any, count: int) -> Domains:
    """Blocks of racks of so many nodes, in any order."""
    order = rng.sample(range(count), count)
    racks = [tuple(sorted(order[at : at + 3])) for at in range(0, count, 3)]
    blocks = [sum(racks[at : at + 2], ()) for at in range(0, len(racks), 2)]
    return Domains([blocks, racks], ("block", "rack"))


#: What jobs ask of these levels.
REQUESTS = (
    *(None, TopologyRequest(unconstrained=True), TopologyRequest(preferred="block")),
    *(TopologyRequest(required=name) for name in ("block", "rack", "rack")),
    *(TopologyRequest(preferred="rack"),) * 2,
)


class ShapeRun(Run):
    """A random course whose odd choices are nearly what was asked for."""

    def odd_choice(self, kind: int) -> Any:
        where = self.plain.fit(self.demands[kind]) or []
        if self.rng.random() < 0.5:
            return where
        odd = (self.rng.choice((0, 1, 2, -1, 2**33)), self.rng.choice((0, 1, 2, 8, -1, 2**63)))
        return [*where[1:], odd]


class Free(FreeShares):
    """`FreeShares` whose ``fits`` knows options."""

    def fits(self, where: Any, demand: Any) -> bool:
        if isinstance(demand, Option):
            return self.has(where, demand, demand.allowed)
        return super().fits(where, demand)

    def copy(self) -> Free:
        twin = object.__new__(Free)
        twin.__dict__.update(FreeShares.copy(self).__dict__)
        return twin

    def take(self, where: Any, option: Any) -> None:
        if isinstance(option, Option):
            super().take(where, option)
        else:
            super(FreeShares, self).take(where, option)

    def give(self, where: Any, option: Any) -> None:
        if isinstance(option, Option):
            super().give(where, option)
        else:
            super(FreeShares, self).give(where, option)


def both(seed: int) -> tuple[Any, Shapes, list[Any]]:
    rng = seeded(seed)
    count = rng.choice((1, 3, 8, 70))
    sizes = [rng.choice((2, 8, 8)) for _ in range(count)]
    cores = [rng.choice((None, 16_000, 96_000)) for _ in range(count)]
    plain = [Demand(gpus, 1, 0, EVERY_NODE, max(sizes), min(sizes), sum(sizes)) for gpus in (1, 9)]
    problem = SimpleNamespace(sizes=sizes, cpu_limits=(None,) * count, demands=plain)
    levels = domains(rng, count) if rng.random() < 0.7 else None
    known = () if levels is None else levels.levels
    mine = kernel.FreeShapes(problem, BestFit(), ACCESS, cores, None, known)
    demands: list[Any] = plain.copy()
    for _ in range(6):
        pieces = sorted(
            (rng.choice((1, 2, 4, 8)) for _ in range(rng.choice((1, 2, 3)))), reverse=True
        )
        allowed = EVERY_NODE if rng.random() < 0.6 else rng.getrandbits(count) | 1
        request = rng.choice(REQUESTS) if levels else None
        demands.append(option(tuple(pieces), rng.choice((0, 3, 7, 40)), allowed, request))
        within = levels.within(request, len(pieces)) if levels else (-1, False)
        kind = mine.add_shape(pieces, demands[-1].num_cpus, allowed, (), within)
        assert kind == len(demands) - 1
    return mine, Shapes(Free(sizes, cores, None, levels), BestFit(), ACCESS), demands


def same_cores(mine: Any, plain: Shapes) -> None:
    free = plain.free
    limited = zip(free.unlimited, free.free_cores, strict=True)
    expected = [2**60 if unlimited else cores for unlimited, cores in limited]
    assert mine.cores_by_node().tolist() == expected


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(16))
def test_states_agree(seed: int) -> None:
    mine, plain, demands = both(seed)
    course = ShapeRun(seeded(seed), mine, plain, demands)
    for _ in range(STEPS):
        course.step()
        same_cores(mine, plain)


@pytest.mark.parametrize("seed", range(6))
def test_copies(seed: int) -> None:
    mine, plain, demands = both(seed)
    course = ShapeRun(seeded(seed), mine, plain, demands)
    for _ in range(STEPS // 2):
        course.step()
    twin, twin_plain = mine.twin(), Shapes(plain.free.copy(), plain.placement, ACCESS)
    later = ShapeRun(seeded(seed + 1), twin, twin_plain, demands)
    later.jobs, later.holds = course.jobs.copy(), course.holds.copy()
    for _ in range(STEPS // 2):
        later.step()
    assert_equal(mine, plain)
    same_cores(mine, plain)


def test_a_shape_is_checked() -> None:
    mine, _, _ = both(0)
    for shape in ((1, 2), (2, 0)):
        with pytest.raises(ValueError, match="largest first"):
            mine.add_shape(shape, 1)
