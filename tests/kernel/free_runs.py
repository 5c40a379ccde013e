"""Random courses of all that can be done to a free state, the kernel's beside the plain one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parts import free_units

if TYPE_CHECKING:
    from free_oracle import Oracle

#: Access sets: none; one reservation; two; one that is never used.
ACCESS = ((), (1,), (1, 2), (3,))


def seeded(seed: int | str) -> random.Random:
    """Return a generator that draws the same in every run."""
    return random.Random(seed)  # noqa: S311 - nothing here is secret


def assert_equal(mine: Any, plain: Oracle) -> None:
    """Check all that can be seen of the two states."""
    assert mine.counts()[0] == plain.free.total
    assert mine.free_by_node().tolist() == free_units(plain.free)
    assert mine.units_down() == plain.free.down
    assert [mine.units_on(node) for node in range(plain.nodes)] == [
        plain.on(node) for node in range(plain.nodes)
    ]
    assert [mine.held_for(node) for node in range(plain.nodes)] == [
        plain.holder(node) for node in range(plain.nodes)
    ]


class Run:
    """A random sequence of all that can be done to both states."""

    def __init__(self, rng: random.Random, mine: Any, plain: Oracle, demands: Any) -> None:
        self.rng, self.mine, self.plain = rng, mine, plain
        self.demands = list(demands)
        self.jobs: list[tuple[int, Any]] = []
        self.holds: list[tuple[int, int, int]] = []
        self.kinds = range(len(self.demands))

    def step(self) -> None:
        """Do one thing."""
        does = (self.place, self.place, self.place, self.end, self.withhold, self.restore)
        self.rng.choice(does)()
        assert_equal(self.mine, self.plain)
        self.search()

    def place(self) -> None:
        kind = self.rng.choice(self.kinds)
        access = self.rng.choice((0, 0, 1, 2, 3))
        where = self.plain.fit(self.demands[kind], access)
        version, changes = self.mine.counts()[1:3]
        assert self.mine.fit_pairs(kind, access) == where
        assert self.mine.counts()[1:3] == (version, changes)
        if where is None:
            return
        assert self.mine.fits_pairs(kind, where, access)
        self.mine.take_pairs(kind, where)
        self.plain.free.take(where, self.demands[kind])
        self.jobs.append((kind, where))

    def end(self) -> None:
        if not self.jobs:
            return
        kind, where = self.jobs.pop(self.rng.randrange(len(self.jobs)))
        version = self.mine.counts()[1]
        self.mine.give_pairs(kind, where)
        assert self.mine.counts()[1] > version
        self.plain.free.give(where, self.demands[kind])

    def withhold(self) -> None:
        node = self.rng.randrange(self.plain.nodes)
        units = self.rng.choice((-1, 1, 3)) if self.plain.is_pool else -1
        hold = (node, self.rng.choice((0, 0, 1, 2, 9)), units)
        self.mine.withhold_node(*hold)
        self.plain.free.withhold(*hold[:2], None if units < 0 else units)
        self.holds.append(hold)

    def restore(self) -> None:
        if not self.holds:
            return
        hold = self.holds.pop(self.rng.randrange(len(self.holds)))
        version = self.mine.counts()[1]
        self.mine.restore_node(*hold)
        assert self.mine.counts()[1] > version
        self.plain.free.restore(*hold[:2], None if hold[2] < 0 else hold[2])

    def search(self) -> None:
        """Ask both for every kind, and about a random choice."""
        for kind in self.kinds:
            for access in range(len(ACCESS)):
                assert self.mine.fit_pairs(kind, access) == self.plain.fit(
                    self.demands[kind], access
                )
        kind = self.rng.choice(self.kinds)
        access = self.rng.choice((0, 1, 2))
        where = self.odd_choice(kind)
        assert self.mine.fits_pairs(kind, where, access) == self.plain.opened(access).fits(
            where, self.demands[kind]
        )

    def odd_choice(self, kind: int) -> Any:
        """Return (node, GPUs) pairs that may be anything."""
        odd = (-(2**40), -1, 2**31, 2**63)
        return [
            (
                self.rng.choice((*range(self.plain.nodes), *odd[:2])),
                self.rng.choice((0, 1, 2, 4, 8, *odd)),
            )
            for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]
