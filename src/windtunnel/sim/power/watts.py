"""`Watts`: what jobs add to the draw of a cluster under a power cap. Numbers alone: no run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.cluster.parts import holding_types
from windtunnel.sim.power.levels import Choice, least
from windtunnel.sim.power.plan import NANO
from windtunnel.sim.quota_books import QuotaBooks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.cohort_order import CohortQuotas
    from windtunnel.sim.power.plan import CapPlan, PowerPlan
    from windtunnel.sim.problem import Problem


class Watts:
    """What jobs draw; sums are of whole nanowatts.

    ``fixed``: a job draws the same wherever it is, unless GPU types differ; elastic jobs do not.

    Attributes:
        types: GPU types of the cluster; None = not distinguished.
        is_uniform: a job draws the same wherever it is.
    """

    def __init__(self, problem: Problem, cap: CapPlan, *, fixed: bool = True) -> None:
        self.problem, self.cap, self.kind_of = problem, cap, cap.kind_of
        self.types: list[str | None] = list(dict.fromkeys(problem.types))
        self.is_uniform = fixed and len(self.types) == 1
        self._gpus: list[int] = problem.gpus.tolist()
        self._demand_of: list[int] = problem.demand_of.tolist()
        self._free = problem.free_state()
        self._choices: dict[Any, tuple[Choice, ...]] = {}
        self._least: dict[tuple[int, int, int], int] = {}
        self._bound: dict[tuple[int, frozenset[str | None]], Any] = {}

    def choices(self, job: int, where: Where) -> tuple[Choice, ...]:
        """Return what a job adds to the draw at each of its power limits, highest first."""
        held: dict[int, float] = {}
        problem, demand = self.problem, self.problem.demands[self._demand_of[job]]
        for place, grant in where:
            kind = self.cap.type_of[place]
            held[kind] = held.get(kind, 0.0) + problem.units_of(demand, grant) / problem.units
        return self.of_parts(self.kind_of[job], tuple(held.items()))

    def floor(self, job: int, where: Where) -> int:
        """Return the least that a job can be brought to add to the draw there."""
        if self.is_uniform:
            return self.least_floor(job)
        return self._floor_of(self.choices(job, where))

    def least_floor(self, job: int, nodes: int = EVERY_NODE) -> int:
        """Return the least of any GPU type that holds it; on the cheapest GPUs, where none does.

        Only types of which there are nodes in a bitset count, if any of them holds it.
        """
        number = self._demand_of[job], self.kind_of[job], nodes
        if number not in self._least:
            demand, kinds = self.problem.demands[number[0]], self.problem.types
            whole = holding_types(demand, self._free, kinds)
            types = [*range(len(self.types))]
            if whole is not None:
                here = {kind for node, kind in enumerate(kinds) if nodes >> node & 1}
                types = [self.types.index(kind) for kind in (whole & here or whole)]
            found = min((self._floor_on(job, kind) for kind in types), default=None)
            if found is None:
                found = self._floor_spread(job)
            self._least[number] = found if self._gpus[job] else 0
        return self._least[number]

    def least_floors(self) -> tuple[list[int], np.ndarray]:
        """Return `least_floor` of jobs that ask for, and do, the same, and which of these each is.

        Returns:
            The floors, nanowatts; and each job's among them, Int array (m,).
        """
        kinds = np.array(self.kind_of, dtype=np.int64)
        pairs = self.problem.demand_of * (kinds.max(initial=0) + 1) + kinds
        _, jobs, alike = np.unique(pairs, return_index=True, return_inverse=True)
        return [self.least_floor(job) for job in jobs.tolist()], alike.reshape(-1)

    def least_of(self, job: int, gpus: float, nodes: int = EVERY_NODE) -> int:
        """Return the least that a job adds to the draw on so many GPUs of a type it accepts.

        Only types of which there are nodes in a bitset count, if it accepts any of them.
        """
        allowed = self.problem.demands[self._demand_of[job]].allowed
        allowed = allowed & nodes or allowed
        kinds = {kind for node, kind in enumerate(self.cap.type_of) if allowed >> node & 1}
        return min(self._floor_of_gpus(job, kind, gpus) for kind in kinds or {*self.cap.type_of})

    def cheap_nodes(self, job: int, gpus: float, spare: int) -> int:
        """Return the nodes on whose GPU type so many draw no more than ``spare``, as a bitset."""
        kinds = set(self.cap.type_of)
        cheap = {kind for kind in kinds if self._floor_of_gpus(job, kind, gpus) <= spare}
        return sum(1 << node for node, kind in enumerate(self.cap.type_of) if kind in cheap)

    def on_cheap_types(self, job: int, spare: int, demand: Any) -> Any:
        """Return a demand bound to the GPU types on which a whole job draws no more than ``spare``.

        None where it draws more on all of them, or on none.
        """
        kinds = range(len(self.types))
        cheap = frozenset(self.types[k] for k in kinds if self._floor_on(job, k) <= spare)
        if not cheap or len(cheap) == len(self.types):
            return None
        key = self._demand_of[job], cheap
        if key not in self._bound:
            self._bound[key] = self.problem.on_types(demand, cheap)
        return self._bound[key]

    def of_parts(self, kind: int, parts: tuple[tuple[int, float], ...]) -> tuple[Choice, ...]:
        """Return what a kind of work adds at each limit on so many GPUs of some types."""
        key = (kind, parts)
        if key not in self._choices:
            tables = [(gpus, self.cap.draws[kind, gpu_type]) for gpu_type, gpus in parts]
            depth = max((len(table) for _, table in tables), default=1)
            rows = []
            for level in range(depth):
                row = [(gpus, table[min(level, len(table) - 1)]) for gpus, table in tables]
                rows.append(
                    Choice(
                        limit_w=max((draw.limit_w for _, draw in row), default=0.0),
                        draw=sum(round(gpus * draw.extra_w * NANO) for gpus, draw in row),
                        slow=1 / min((draw.speed for _, draw in row), default=1.0),
                    )
                )
            self._choices[key] = tuple(rows)
        return self._choices[key]

    def _floor_of(self, options: tuple[Choice, ...]) -> int:
        if self.cap.limits == "none":
            return options[0].draw
        return options[least(options, self.cap.limits)].draw

    def _floor_spread(self, job: int) -> int:
        """Return the least that a job adds to the draw which no GPU type alone holds."""
        allowed = self.problem.demands[self._demand_of[job]].allowed
        room: dict[int, int] = {}
        for node, kind in enumerate(self.cap.type_of):
            if allowed >> node & 1:
                room[kind] = room.get(kind, 0) + int(self.problem.sizes[node])
        left, parts = self._gpus[job], list[tuple[int, float]]()
        for kind in sorted(room, key=lambda kind: self._floor_on(job, kind)):
            held = min(left, room[kind])
            left -= held
            parts += [(kind, held / self.problem.units)] if held else []
        return self._floor_of(self.of_parts(self.kind_of[job], tuple(parts)))

    def _floor_on(self, job: int, gpu_type: int) -> int:
        return self._floor_of_gpus(job, gpu_type, self._gpus[job] / self.problem.units)

    def _floor_of_gpus(self, job: int, gpu_type: int, gpus: float) -> int:
        return self._floor_of(self.of_parts(self.kind_of[job], ((gpu_type, float(gpus)),)))


def never_fit(
    problem: Problem,
    plan: PowerPlan,
    least: np.ndarray | None = None,
    quotas: CohortQuotas | None = None,
) -> dict[int, str]:
    """Return which jobs could not even run alone under the highest cap: arrival number -> why.

    Args:
        problem: the jobs.
        plan: policies of power.
        least: GPUs that each job does with, Float array (m,); None = what it asks for.
        quotas: which limit the GPU types that a job may be on; None = there are none.
    """
    if plan.cap is None or not len(problem.rows):
        return {}
    watts, highest = Watts(problem, plan.cap), plan.cap.highest_w
    budget = max(plan.cap.budget_at(highest, plan.cap.base_w), 0)
    if least is None and quotas is None:
        floors, alike = watts.least_floors()
    else:
        floors, alike = _floors(watts, least, quotas), np.arange(len(problem.rows))
    above = np.array([floor > budget for floor in floors])[alike]
    base_w, pue = plan.cap.base_w, plan.cap.pue
    drawn = {
        job: (base_w + floors[alike[job]] / NANO) * pue for job in np.flatnonzero(above).tolist()
    }
    return {
        job: f"alone takes the cluster to {watt:,.6g} W; the highest cap is {highest:,.6g} W"
        for job, watt in drawn.items()
    }


def _floors(watts: Watts, least: np.ndarray | None, quotas: CohortQuotas | None) -> list[int]:
    """Return what each job draws at least, as `never_fit` has it, nanowatts."""
    problem = watts.problem
    asked = (problem.gpus / problem.units if least is None else least).tolist()
    nodes = [EVERY_NODE] * len(asked) if quotas is None else _within(quotas, problem, asked)
    if least is None:
        return [watts.least_floor(job, within) for job, within in enumerate(nodes)]
    both = zip(asked, nodes, strict=True)
    return [watts.least_of(job, gpus, within) for job, (gpus, within) in enumerate(both)]


def _within(quotas: CohortQuotas, problem: Problem, asked: Sequence[float]) -> list[int]:
    """Return the nodes on which each job may have so many GPUs, whoever else runs, as bitsets."""
    books = QuotaBooks(quotas, problem, resizes=True)
    found: dict[tuple[int, float], int] = {}
    for job, alike in enumerate(zip(books.queue, asked, strict=True)):
        if alike not in found:
            found[alike] = books.nodes(job, alike[1])
    return [found[alike] for alike in zip(books.queue, asked, strict=True)]
