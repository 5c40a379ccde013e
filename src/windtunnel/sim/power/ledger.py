"""`PoweredLedger`: the state of a run under policies of power.

Nobody is started who would take the cluster's draw over the cap, every running job counted at the
least that it can be brought down to. So at any time: draw <= cap, once limits have been chosen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import MILLI
from windtunnel.cluster.parts import holding_types, nodes_of_types, restricted
from windtunnel.errors import SpecError, quote
from windtunnel.sim.flight import Flight, PowerRecord
from windtunnel.sim.ledger import Ledger
from windtunnel.sim.power.levels import Choice, least
from windtunnel.sim.power.plan import NANO
from windtunnel.sim.watched import WatchedLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.plan import CapPlan, PowerPlan
    from windtunnel.sim.problem import Problem

#: A cap that is met but for rounding is met.
SLACK = 1e-9
#: Cuts of one job after which it will never get anywhere.
MAX_CUTS = 10_000


class PoweredLedger(Ledger):
    """A `Ledger` that knows the cap, who waits, and which nodes are asleep; see `govern`."""

    plan: PowerPlan

    def govern(self, plan: PowerPlan) -> None:
        """Take up the policies of a run; before anything is started."""
        self.plan = plan
        #: W that the cluster may draw; W that its machines draw with no job on them.
        self.cap_w = math.inf
        self.base_w = 0.0 if plan.cap is None else plan.cap.base_w
        #: What jobs may add to that, and the least to which those that run can be brought.
        self.budget = NANO**3
        self.floors: dict[int, int] = {}
        self.floor_sum = 0
        #: Somebody waits for power alone, as far as has been tried at this instant.
        self.capped = False
        self.cuts: dict[int, int] = {}
        #: Jobs in the queue, in order of coming, and jobs not over.
        self.waiting: dict[int, None] = {}
        self.unfinished = len(self.gpus)
        #: Jobs on each node.
        self.users: dict[int, int] = {}
        #: Set where the next choice of limits may differ from the last.
        self.dirty = False
        self.held_until = [math.nan] * len(self.gpus)
        self.pauses = 0
        self.capped_time = 0.0
        self.sleeps: list[list[float]] = []
        self.wakes = 0
        #: Stay -> [(time, level)], where limits are chosen.
        self.levels: dict[int, list[tuple[float, int]]] = {}
        self.stay_of: dict[int, int] = {}
        self._walk = 0
        self._least: dict[int, int] = {}
        #: Classes that were refused, and whether for power alone.
        self._refused: dict[int, bool] = {}
        self._types: list[str | None] = list(dict.fromkeys(self.problem.types))
        self._is_uniform = len(self._types) == 1
        self._bound: dict[tuple[int, frozenset[str | None]], Any] = {}
        self._choices: dict[Any, tuple[Choice, ...]] = {}
        if plan.cap is not None:
            numbers: dict[tuple[int, int], int] = {}
            pairs = zip(self.class_of, plan.cap.kind_of, strict=True)
            self.class_of = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
            self.num_classes = len(numbers)

    # The cap.

    @property
    def cap(self) -> CapPlan:
        """The plan's cap; only asked where there is one."""
        assert self.plan.cap is not None  # noqa: S101 - a contract between the methods here
        return self.plan.cap

    def set_cap(self, cap_w: float) -> None:
        """Let another cap hold from now on."""
        self.cap_w = cap_w
        self._rebudget()

    def add_base(self, watts: float) -> None:
        """Let the machines draw more, or less, with no job on them: nodes woke or fell asleep."""
        self.base_w += watts
        self._rebudget()

    def _rebudget(self) -> None:
        self.budget = self.budget_at(self.cap_w)
        self.dirty = True
        self.given_back()

    def budget_at(self, cap_w: float) -> int:
        """Return what jobs may add under a cap, nanowatts, with the nodes awake that are now."""
        if self.plan.cap is None:
            return NANO**3
        return math.floor((cap_w / self.cap.pue * (1 + SLACK) - self.base_w) * NANO)

    def parts(self, job: int, where: Where) -> tuple[tuple[int, float], ...]:
        """Return (GPU type, GPUs) of what a job holds, or would hold."""
        held: dict[int, float] = {}
        demand = self.demand[job]
        for place, grant in where:
            kind = self.cap.type_of[place]
            held[kind] = held.get(kind, 0.0) + self._gpus_of(demand, grant)
        return tuple(held.items())

    def _gpus_of(self, demand: Any, grant: int) -> float:
        problem = self.problem
        if not problem.devices:
            return grant / problem.units
        if problem.pooled:
            return grant / MILLI
        return grant.bit_count() * (demand.milli or MILLI) / MILLI

    def choices(self, job: int, where: Where) -> tuple[Choice, ...]:
        """Return what a job adds to the draw at each of its power limits, highest first."""
        return self._of_parts(self.cap.kind_of[job], self.parts(job, where))

    def _of_parts(self, kind: int, parts: tuple[tuple[int, float], ...]) -> tuple[Choice, ...]:
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

    def floor(self, job: int, where: Where) -> int:
        """Return the least that a job can be brought to add to the draw there, nanowatts."""
        if self.plan.cap is None:
            return 0
        if self._is_uniform:
            return self._least_of(job)
        return self._floor_of(self.choices(job, where))

    def _floor_of(self, options: tuple[Choice, ...]) -> int:
        if self.cap.limits == "none":
            return options[0].draw
        return options[least(options, self.cap.limits)].draw

    def least_floor(self, job: int) -> int:
        """Return the least that a job could add on any of the cluster's GPU types, nanowatts."""
        stay = self.running.get(job)
        if stay is not None:
            return self.floors[job]
        return self._least_of(job)

    def _least_of(self, job: int) -> int:
        """Return the same of a job that waits; the most, where it must be spread over types."""
        number = self.class_of[job]
        if number not in self._least:
            problem, demand = self.problem, self.demand[job]
            whole = holding_types(demand, self.free, problem.types)
            types = range(len(self._types)) if whole is None else map(self._types.index, whole)
            found = [self._floor_on(job, kind) for kind in types]
            if not found:
                found = [max(self._floor_on(job, kind) for kind in range(len(self._types)))]
            self._least[number] = min(found) if self.gpus[job] else 0
        return self._least[number]

    def _floor_on(self, job: int, gpu_type: int) -> int:
        gpus = self.gpus[job] / self.problem.units
        return self._floor_of(self._of_parts(self.cap.kind_of[job], ((gpu_type, gpus),)))

    def affords(self, job: int, where: Where, without: Sequence[int] = ()) -> bool:
        """Return whether the draw stays within the cap if a job starts there.

        Args:
            job: a waiting job.
            where: where it would go.
            without: running jobs that would not run then.
        """
        if self.plan.cap is None:
            return True
        spared = sum(self.floors.get(other, 0) for other in without)
        return self.floor_sum - spared + self.floor(job, where) <= max(self.budget, 0)

    def fit(self, job: int) -> Where | None:
        """Return where the job would go now, or None: no room, or not enough power."""
        if self.plan.cap is None:
            return super().fit(job)
        # Long queues under a cap: a class that was refused is so until something is given back.
        number = self.class_of[job]
        if number in self._refused:
            self.capped |= self._refused[number]
            return None
        where, lacks_power = self.place_within(self.free, job, max(self.budget, 0) - self.floor_sum)
        self.capped |= lacks_power
        if where is None:
            self._refused[number] = lacks_power
        return where

    def place_within(self, free: Any, job: int, spare: int) -> tuple[Where | None, bool]:
        """Return where a job would go with so much power to spare, and whether it lacks that alone.

        Where the placement's choice draws too much, it is asked again among the GPU types on which
        the job would not.

        Args:
            free: what is free.
            job: a waiting job.
            spare: nanowatts that it may add.
        """
        where = self.placement.place(free, self.demand[job])
        if where is None or self.floor(job, where) <= spare:
            return where, False
        kinds = range(len(self._types))
        cheap = frozenset(self._types[k] for k in kinds if self._floor_on(job, k) <= spare)
        if not cheap or len(cheap) == len(self._types):
            return None, True
        where = self.placement.place(free, self._demand_on(job, cheap))
        return (None, True) if where is None or self.floor(job, where) > spare else (where, False)

    def _demand_on(self, job: int, types: frozenset[str | None]) -> Any:
        key = (int(self.problem.demand_of[job]), types)
        if key not in self._bound:
            nodes = nodes_of_types(self.problem.types, types)
            self._bound[key] = restricted(self.demand[job], self.free, nodes)
        return self._bound[key]

    def given_back(self) -> None:
        """Note that there is more room, or power, than before: whoever was refused may try."""
        self._refused.clear()

    def quota(self) -> tuple[int, dict[int, int]]:
        """Return the GPU units of all; begins a walk in which power is given out, too."""
        self._walk = self.budget
        return super().quota()

    def beyond_reserved(self, job: int, reserved: dict[int, int]) -> int:
        """Return the GPU units that a job needs; more than there are if power is used up."""
        if self.plan.cap is not None and self.least_floor(job) > max(self._walk, 0):
            self.capped = True
            return self.problem.quota + 1
        return super().beyond_reserved(job, reserved)

    def draw(self, job: int, reserved: dict[int, int]) -> None:
        """Let a chosen job use up its power."""
        super().draw(job, reserved)
        if self.plan.cap is not None:
            self._walk -= self.least_floor(job)

    # Who runs.

    def start(self, job: int, now: float, where: Where) -> None:
        """Put a waiting job on the given nodes."""
        if self.plan.cap is not None:
            self.floors[job] = self.floor(job, where)
            self.floor_sum += self.floors[job]
            self.stay_of[job] = len(self.stays)
            self.dirty = True
        self.waiting.pop(job, None)
        for node in {place for place, _ in where}:
            self.users[node] = self.users.get(node, 0) + 1
        super().start(job, now, where)

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs."""
        self._leave(job)
        super().preempt(job, now)
        self.waiting[job] = None

    def finish_next(self, now: float) -> int:
        """Complete the first job in ``ends``; return it."""
        self._leave(self.ends[0][2].job)
        self.unfinished -= 1
        return super().finish_next(now)

    def finish(self, job: int, now: float) -> None:
        """Complete a running job out of turn."""
        self._leave(job)
        self.unfinished -= 1
        super().finish(job, now)

    def _leave(self, job: int) -> None:
        self.given_back()
        for node in {place for place, _ in self.running[job].where}:
            self.users[node] -= 1
            if not self.users[node]:
                del self.users[node]
        if self.plan.cap is not None:
            self.floor_sum -= self.floors.pop(job)
            self.dirty = True

    def cut(self, job: int, now: float) -> None:
        """Take a running job off its GPUs because the cap fell.

        Raises:
            SpecError: it has been so often that it never gets anywhere.
        """
        self.cuts[job] = self.cuts.get(job, 0) + 1
        if self.cuts[job] > MAX_CUTS:
            name = quote(self.problem.jobs.job_id[self.problem.rows[job]])
            message = f"job {name} was stopped {MAX_CUTS:,} times by t={now:g} s as the cap fell"
            raise SpecError("power_cap", message)
        self.preempt(job, now)

    def note_level(self, job: int, now: float, level: int) -> None:
        """Record a running job's power limit from ``now`` (s) on."""
        told = self.levels.setdefault(self.stay_of[job], [])
        if told and told[-1][0] == now:
            told.pop()
        if not told or told[-1][1] != level:
            told.append((now, level))

    def alone_w(self, job: int) -> float:
        """Return what the building draws at least while a waiting job runs alone, W."""
        return (self.base_w + self.least_floor(job) / NANO) * self.cap.pue

    def close(self, horizon: float, points: int) -> Flight:
        """Return the run as arrays in jobs-table order; see `Ledger.close`."""
        flight = super().close(horizon, points)
        held_until = np.full(len(self.problem.jobs), math.nan)
        held_until[self.problem.rows] = self.held_until
        deadline = np.full(len(self.problem.jobs), math.nan)
        if self.plan.shift is not None:
            deadline[self.problem.rows] = self.plan.shift.deadline
        levels = [self.levels.get(n, [(s.start, 0)]) for n, s in enumerate(self.stays)]
        rows = [pair for told in levels for pair in told]
        sleeps = np.array(self.sleeps, dtype=np.float64).reshape(-1, 3)
        return flight.with_power(
            PowerRecord(
                level_offset=np.cumsum([0, *map(len, levels)], dtype=np.int64),
                level_start=np.array([time for time, _ in rows], dtype=np.float64),
                level=np.array([level for _, level in rows], dtype=np.int64),
                capped_time=self.capped_time,
                num_cuts=sum(self.cuts.values()),
                held_until=held_until,
                deadline=deadline,
                num_pauses=self.pauses,
                asleep_node=sleeps[:, 0].astype(np.int64),
                asleep_start=sleeps[:, 1],
                asleep_end=sleeps[:, 2],
                num_wakes=self.wakes,
            )
        )


class WatchedPoweredLedger(WatchedLedger, PoweredLedger):
    """A `PoweredLedger` that tells the policy who started and who stopped."""


def never_fit(problem: Problem, plan: PowerPlan) -> dict[int, str]:
    """Return which jobs could not even run alone under the highest cap: arrival number -> why.

    Args:
        problem: the jobs.
        plan: policies of power.
    """
    if plan.cap is None or not len(problem.rows):
        return {}
    ledger = PoweredLedger(problem, _Nowhere(), 0.0)
    ledger.govern(plan)
    highest = plan.cap.highest_w
    budget = max(ledger.budget_at(highest), 0)
    return {
        job: f"alone takes the cluster to {ledger.alone_w(job):,.6g} W; the highest cap is "
        f"{highest:,.6g} W"
        for job in range(len(problem.rows))
        if ledger.least_floor(job) > budget
    }


class _Nowhere:
    """The placement of a ledger that starts nobody."""

    name = "nowhere"

    def place(self, free: Any, demand: Any) -> Where | None:  # noqa: ARG002 - one contract
        """Return None."""
        return None
