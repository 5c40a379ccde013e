"""Reserving-and-packing: high-end GPUs are kept for the tasks that make use of them.

What Alibaba's PAI deployed, as far as it is public (Weng et al., "MLaaS in the Wild", NSDI 2022):
a task whose efficiency score is above a threshold is a *high-GPU* task. Each task has an ordered
list of plans, a GPU type each; a plan is tried for some time before the next one is, too. High-GPU
tasks are tried first and have the strong types first; the others have the reverse order, so that
they pack on the weak ones. Neither the score nor the threshold nor the times were published: all of
them are parameters here, and the outcome's settings have them.

Within a GPU type the run's placement decides. PAI balances the load there: ``load_rate``
(`windtunnel.placements.load`), or ``spread`` where nothing but whole GPUs is modelled.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.parts import holding_types
from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.policies.described import PerRun
from windtunnel.sim.contract import Policy, Start, Wake
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem

#: Peak memory bandwidth, GB/s, as in the makers' data sheets: the default order of strength.
BANDWIDTH: dict[str, float] = {
    "H200": 4800,
    "H100": 3350,
    "H800": 3350,
    "A100": 1555,
    "A800": 1555,
    "V100": 900,
    "V100M16": 900,
    "V100M32": 900,
    "P100": 732,
    "A10": 600,
    "K80": 480,
    "P40": 346,
    "T4": 320,
    "L4": 300,
}
HIGH, LOW = 0, 1


class ReservingPacking(PerRun):
    """High-GPU tasks first and on strong GPU types first, the others on weak ones first.

    Args:
        score: the efficiency score: a numeric column of the jobs table; the default is the GPUs
            that the job asks for, all tasks together (its parallelism). Unknown counts as low.
        threshold: a job whose score is above it is a high-GPU job.
        types: GPU types from strong to weak, joined by ``/`` or as a sequence; None = by peak
            memory bandwidth (`BANDWIDTH`), for the types that are in that table. A cluster that
            tells no types apart has one, and nothing to rank.
        attempt: seconds for which a plan is tried before the next one is, too, counted from when
            the job arrives; one number, or one a step (the last one holds for all further steps).

    Raises:
        SpecError: a parameter is wrong.
    """

    name = "reserving-packing"

    def __init__(
        self,
        score: str = "num_gpus",
        threshold: float = 1.0,
        types: str | Sequence[str] | None = None,
        attempt: float | str | Sequence[float | str] = 60.0,
    ) -> None:
        self.score = str(score)
        self.threshold = _number("threshold", threshold)
        self.types = tuple(types.split("/")) if isinstance(types, str) else types
        if self.types is not None and (not self.types or len(set(self.types)) < len(self.types)):
            raise SpecError("types", f"found {quote(types)}; expected GPU types, each once.")
        steps = attempt if isinstance(attempt, tuple | list) else str(attempt).split("/")
        self.attempts = tuple(seconds("attempt", step) for step in steps)
        if not self.attempts:
            raise SpecError("attempt", f"found {quote(attempt)}; expected seconds >= 0.")

    def for_run(self, problem: Problem) -> Policy:
        """Return the policy at work on these jobs.

        Raises:
            PolicyError: the cluster has types whose strength is not known or not given, or some
                GPUs without a type beside others, or the jobs have no such column of numbers.
        """
        return _Packing(self, self._order(problem), self._scores(problem), problem)

    def opens(self, step: int) -> float:
        """Return the seconds after arrival at which a job's plan of this number is open."""
        last = len(self.attempts) - 1
        return float(sum(self.attempts[min(k, last)] for k in range(step)))

    def _order(self, problem: Problem) -> tuple[str | None, ...]:
        """Return the cluster's GPU types from strong to weak; GPUs without a type are of one.

        Raises:
            PolicyError: how strong a type is, is not known, or not given.
        """
        present = dict.fromkeys(
            kind for kind, size in zip(problem.types, problem.sizes.tolist(), strict=True) if size
        )
        named = [kind for kind in present if kind is not None]
        if not named:
            return (None,)
        if None in present:
            message = (
                f"how strong are the GPUs without a type, beside {'/'.join(named)}? Name the types "
                "of all, as in 8x8:V100,8x8:T4"
            )
            raise PolicyError(self.label, message)
        if self.types is None:
            unknown = [kind for kind in named if kind not in BANDWIDTH]
            if unknown:
                message = (
                    f"how strong is GPU type {quote(unknown[0])}? Give the cluster's types from "
                    f"strong to weak: types={'/'.join(named)} (in the right order)"
                )
                raise PolicyError(self.label, message)
            return tuple(sorted(named, key=lambda kind: -BANDWIDTH[kind]))
        for kind in named:
            if kind not in self.types:
                message = f"types={'/'.join(self.types)} lacks the cluster's {quote(kind)}"
                raise PolicyError(self.label, message)
        return tuple(kind for kind in self.types if kind in present)

    def _scores(self, problem: Problem) -> np.ndarray:
        try:
            values = np.asarray(getattr(problem.jobs, self.score), dtype=np.float64)
        except (AttributeError, TypeError, ValueError) as error:
            message = f"score={self.score} is no column of numbers: {error}"
            raise PolicyError(self.label, message) from error
        return values


class _Packing(Policy):
    """The policy at work: one run's waiting jobs.

    Args:
        policy: the parameters.
        order: the cluster's GPU types from strong to weak; None = the one it does not name.
        scores: Float array (n,), efficiency score of each job of the table; NaN = unknown.
        problem: the run.
    """

    def __init__(
        self,
        policy: ReservingPacking,
        order: tuple[str | None, ...],
        scores: np.ndarray,
        problem: Problem,
    ) -> None:
        self.name = policy.label  # type: ignore[misc] # two settings have two labels
        self._policy, self._problem = policy, problem
        free = problem.free_state()
        #: GPU types that hold jobs of each demand class, each alone; None = it needs no GPU.
        self._types_of = [holding_types(demand, free, problem.types) for demand in problem.demands]
        #: GPU types to try, in order, for high-GPU jobs and others, by demand class.
        self._plans = {
            kind: [
                None if held is None else [t for t in types if t in held] for held in self._types_of
            ]
            for kind, types in ((HIGH, order), (LOW, order[::-1]))
        }
        self._most_steps = len(order)
        self._scores = scores
        self._waiting: dict[tuple[int, int], list[tuple[int, JobView]]] = {}
        self._demand_of: list[int] = problem.demand_of.tolist()
        #: HIGH or LOW, for every job that has arrived.
        self._kind_of: dict[int, int] = {}
        self.parameters = {
            "score": policy.score,
            "threshold": policy.threshold,
            "types": "/".join(kind for kind in order if kind is not None),
            "attempt": "/".join(f"{step:g}" for step in policy.attempts),
        }

    def too_large(self) -> dict[int, str]:
        """Return the jobs that no GPU type alone can hold, with why, by arrival number."""
        jobs, rows = self._problem.jobs, self._problem.rows
        return {
            job: (
                f"asks for {jobs.num_gpus[rows[job]]:g} GPUs; a plan has one GPU type, and no type "
                "that it accepts has so many"
            )
            for job, kind in enumerate(self._demand_of)
            if self._types_of[kind] == frozenset()
        }

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override] # known after the run
        """What a reader of the numbers must know."""
        low = sum(self._kind_of.values())
        high = len(self._kind_of) - low
        given = self.parameters
        jobs = (
            f"{self.label}: {high:,} high-GPU jobs ({given['score']} above {given['threshold']:g}) "
            f"and {low:,} others"
        )
        types = "the cluster tells no GPU types apart, so all GPUs are alike to it."
        if given["types"]:
            types = (
                f"GPU types from strong to weak {given['types']}, each tried for "
                f"{given['attempt']} s before the next."
            )
        return (f"{jobs}; {types}",)

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Start | Wake]:
        """Yield who starts: high-GPU jobs first, then by arrival; who does not fit is passed by."""
        for job in queue.arrived:
            kind = HIGH if self._scores[job.row] > self._policy.threshold else LOW
            self._kind_of[job.number] = kind
            line = self._waiting.setdefault((kind, cluster.demand_class(job)), [])
            heapq.heappush(line, (job.number, job))
        # Of equal demands the first has the most plans open: if it does not fit, none of them does.
        heads = [(kind, *line[0], key) for (kind, key), line in self._waiting.items() if line]
        heapq.heapify(heads)
        while heads:
            kind, _, job, key = heapq.heappop(heads)
            where = self._place(job, kind, now, cluster)
            if where is None:
                alarm = self._next_opening(job, now)
                if alarm < math.inf:
                    yield Wake(alarm)
                continue
            line = self._waiting[kind, key]
            heapq.heappop(line)
            yield Start(job, where)
            if line:
                heapq.heappush(heads, (kind, *line[0], key))

    def _place(self, job: JobView, kind: int, now: float, cluster: Any) -> Where | None:
        found: Where | None
        plan = self._plans[kind][self._demand_of[job.number]]
        if plan is None:
            found = cluster.fit(job)
            return found
        for step, gpu_type in enumerate(plan):
            if job.submit_time + self._policy.opens(step) > now:
                return None
            found = cluster.fit(job, (gpu_type,))
            if found is not None:
                return found
        return None

    def _next_opening(self, job: JobView, after: float) -> float:
        """Return when a further plan of the job opens, inf if none does."""
        openings = (
            job.submit_time + self._policy.opens(step) for step in range(1, self._most_steps)
        )
        return min((at for at in openings if at > after), default=math.inf)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not -math.inf < number < math.inf:
        raise SpecError(name, f"found {quote(value)}; expected a number.")
    return number
