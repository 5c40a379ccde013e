"""`Tables`: what jobs can choose from under a power cap, as columns of numbers for the kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.sim.power.levels import front_of, hull_of, least, place_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.power.watts import Watts

#: W of all GPUs whose nanowatts 64 bits can sum, with room to spare.
MOST_W = 2e9


class Table(NamedTuple):
    """The options of jobs of one kind of work that hold as many GPUs of each type.

    Attributes:
        draw: what each option adds to the draw, nanowatts; highest limit first.
        slow: time at the option's limit over time at the highest.
        floor: the option that a job can always be put to.
        at: the option at each of the plan's limits, then the one at the lowest limit of all.
        front: the options that no other is at least as good as in both, by rising draw.
        hull: of these the lower convex hull.
        more: what each of the hull draws beyond the one before, nanowatts.
        gain: by how much it is slower for a nanowatt: below 0, and rising.
    """

    draw: list[int]
    slow: list[float]
    floor: int
    at: list[int]
    front: list[int]
    hull: list[int]
    more: list[int]
    gain: list[float]


class Tables:
    """Makes the tables of a run.

    Attributes:
        limits: the different power limits, W, highest first.
        most_options: the most options that a table has.
        work_of: Int array (m,), kind of work of each job; kinds that draw the same are one.
        least: Int array (m,), what each job could draw at least, on any GPU type, nanowatts.

    Raises:
        SpecError: the cluster draws more than can be summed.
    """

    def __init__(self, watts: Watts) -> None:
        self.watts = watts
        problem, cap, types = watts.problem, watts.cap, range(len(watts.types))
        count = max(cap.kind_of, default=-1) + 1
        tables = [tuple(cap.draws[kind, t] for t in types) for kind in range(count)]
        rows = [row for table in tables for limits in table for row in limits]
        gpus = float(problem.sizes.sum()) / problem.units
        if gpus * max((abs(row.extra_w) for row in rows), default=0.0) > MOST_W:
            raise SpecError("power_cap", f"the cluster draws above {MOST_W:,.0f} W")
        self.limits = sorted({row.limit_w for row in rows}, reverse=True)
        self.most_options = max((len(row) for table in tables for row in table), default=1)
        seen: dict[object, int] = {}
        first = [seen.setdefault(table, kind) for kind, table in enumerate(tables)]
        self.work_of = np.array(first or [0], dtype=np.int32)[np.array(cap.kind_of, dtype=int)]
        floors, alike = watts.least_floors()
        self.least = np.array(floors, dtype=np.int64)[alike]

    def make(self, work: int, held: Sequence[float]) -> Table:
        """Return the table of a kind of work on so many GPUs of each type, below 0 = on none."""
        parts = tuple((gpu_type, gpus) for gpu_type, gpus in enumerate(held) if gpus >= 0)
        options = self.watts.of_parts(work, parts)
        front = front_of(options)
        hull = hull_of(options, front)
        more, gain = [0], [0.0]
        for here, there in pairwise(hull):
            more.append(options[there].draw - options[here].draw)
            rate = (options[there].slow - options[here].slow) / more[-1]
            # By a rounding the next step may seem the better one; it still comes right behind.
            gain.append(rate if len(gain) == 1 else max(rate, gain[-1]))
        limits = self.watts.cap.limits
        return Table(
            draw=[option.draw for option in options],
            slow=[option.slow for option in options],
            floor=0 if limits == "none" else least(options, limits),
            at=[*(place_at(options, limit) for limit in self.limits), len(options) - 1],
            front=front,
            hull=hull,
            more=more,
            gain=gain,
        )
