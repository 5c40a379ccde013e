"""The kernel's free states do, bit for bit, what the plain Python states and placements do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from free_oracle import Oracle
from free_runs import ACCESS, Run, assert_equal, seeded

from windtunnel import kernel
from windtunnel.cluster.free import EVERY_NODE, Demand, FreeNodes, FreePool
from windtunnel.cluster.parts import restricted
from windtunnel.placements.whole import BestFit, Pool, Spread

if TYPE_CHECKING:
    import random

STEPS = 120


def demand_of(sizes: list[int], gpus: int, task: int, cpus: int, allowed: int) -> Demand:
    """Return a demand as the problem's builder makes them."""
    usable = [size - size % task if allowed >> node & 1 else 0 for node, size in enumerate(sizes)]
    positive = [size for size in usable if size]
    return Demand(
        *(gpus, task, cpus, allowed),
        largest=max(usable),
        smallest=min(positive, default=0),
        capacity=sum(usable),
    )


def nodes_problem(rng: random.Random) -> Any:
    """Return a cluster of nodes and demands, as far as a free state looks at them."""
    count = rng.choice((1, 3, 7, 70, 130))
    choices = rng.choice(([8], [4, 8], [0, 1, 2, 8], [70, 3]))
    sizes = [rng.choice(choices) for _ in range(count - 1)] + [max(choices)]
    demands = []
    for _ in range(8):
        task = rng.choice((1, 1, 1, 2, 3))
        allowed = EVERY_NODE if rng.random() < 0.6 else rng.getrandbits(count) | 1
        gpus = task * rng.choice((0, 1, 1, 2, 2, 3, 4, 8, 9, 16, 40))
        demands.append(demand_of(sizes, gpus, task, 0, allowed))
    return SimpleNamespace(sizes=sizes, cpu_limits=(None,) * count, demands=tuple(demands))


def pool_problem(rng: random.Random) -> Any:
    """Return a cluster of pools and demands."""
    count = rng.choice((1, 2, 4))
    sizes = [rng.choice((10, 25, 60)) for _ in range(count)]
    limits = tuple(rng.choice((None, 20_000)) for _ in range(count))
    demands = tuple(
        demand_of(
            sizes,
            rng.choice((0, 1, 2, 5, 11)),
            1,
            rng.choice((0, 0, 1000, 9000)),
            EVERY_NODE if rng.random() < 0.6 else rng.getrandbits(count) | 1,
        )
        for _ in range(6)
    )
    return SimpleNamespace(sizes=sizes, cpu_limits=limits, demands=demands)


def both(problem: Any, placement: Any) -> tuple[Any, Oracle]:
    """Return the kernel's state and the oracle."""
    if placement.name == "pool":
        plain = Oracle(FreePool(problem.sizes, problem.cpu_limits), placement, ACCESS)
        return kernel.FreePool(problem, placement, ACCESS), plain
    return kernel.FreeNodes(problem, placement, ACCESS), Oracle(
        FreeNodes(problem.sizes), placement, ACCESS
    )


def run(problem: Any, placement: Any, seed: int) -> Run:
    """Do many random things; return what is left."""
    mine, plain = both(problem, placement)
    course = Run(seeded(seed), mine, plain, problem.demands)
    for _ in range(STEPS):
        course.step()
    return course


def problems(seed: int) -> tuple[Any, Any]:
    rng = seeded(seed)
    if seed % 3 == 2:
        return pool_problem(rng), Pool()
    return nodes_problem(rng), BestFit() if seed % 3 else Spread()


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(24))
def test_states_agree(seed: int) -> None:
    problem, placement = problems(seed)
    run(problem, placement, seed)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_copies(seed: int) -> None:
    problem, placement = problems(seed)
    first = run(problem, placement, seed)
    second = run(problem, placement, seed + 1000)
    third = first.mine.twin()
    assert_equal(third, first.plain)
    third.become(second.mine)
    assert_equal(third, second.plain)
    assert_equal(second.mine, second.plain)


@pytest.mark.parametrize("seed", range(9))
def test_holds_while_open(seed: int) -> None:
    problem, placement = problems(seed)
    course = run(problem, placement, seed)
    mine, plain, rng = course.mine, course.plain, course.rng
    for access in range(len(ACCESS)):
        before = mine.counts()[0]
        nodes = [rng.randrange(plain.nodes) for _ in range(3)]
        mine.open(access)
        shown = plain.opened(access)
        if shown is plain.free:
            shown = shown.copy()
        for node in nodes:
            mine.withhold_node(node)
            shown.withhold(node)
            assert mine.counts()[0] == shown.total
        for kind, demand in enumerate(problem.demands):
            assert mine.fit_pairs(kind) == plain.fit(demand, access, shown)
        for node in nodes:
            mine.restore_node(node)
        mine.shut()
        assert mine.counts()[0] == before
        assert_equal(mine, plain)


@pytest.mark.parametrize("seed", range(9))
def test_kinds_added_later(seed: int) -> None:
    problem, placement = problems(seed)
    course = run(problem, placement, seed)
    twin = course.mine.twin()
    for bits in (1, 5, 2**200 - 1):
        bound = restricted(problem.demands[-1], course.plain.free, bits)
        kind = course.mine.add_kind(bound)
        assert twin.fit_pairs(kind) == course.plain.fit(bound)
        assert course.mine.fit_pairs(kind) == course.plain.fit(bound)
    with pytest.raises(IndexError):
        twin.fit_pairs(kind + 1)
    with pytest.raises(IndexError):
        twin.take_pairs(0, [(course.plain.nodes, 1)])
