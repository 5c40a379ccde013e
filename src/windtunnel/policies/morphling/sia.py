"""A Sia-like scheduler: each round, one size for every job, by an integer program of goodput.

Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling",
SOSP'23. Like Sia in its program, its discount for restarts and its rounds; on one GPU type, with
goodput = throughput, as the batch of these jobs is fixed.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.policies.morphling.draft import Draft
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


class Sia(Policy):
    r"""Choose x to maximise sum_j sum_c x_jc (r_jc s_jc)^power over at most one size c a job.

    s_jc is the throughput of job j at size c over that at its smallest size, and all sizes chosen
    come to no more GPUs than there are. A size that is not the job's own costs a restart: with age
    a and k launches before, r_jc = max(0, a - k p) / (a + p), p the penalty; 1 where it keeps its
    size, and before its first launch.

    Args:
        every: seconds between rounds; nothing is decided in between.
        power: above 0, at most 1: lower is fairer.
    """

    name = "sia"
    elastic = True

    def __init__(self, *, every: float = 300.0, power: float = 0.5) -> None:
        if not isinstance(power, int | float) or not 0 < power <= 1:
            raise SpecError("sia.power", f"found {power!r}; expected above 0, at most 1.")
        if not isinstance(every, int | float) or not 0 < every < math.inf:
            raise SpecError("sia.every", f"found {every!r}; expected seconds > 0.")
        self.every = float(every)
        self.power = float(power)
        self.parameters = MappingProxyType({"every": self.every, "power": self.power})

    def for_run(self, problem: Any) -> Sia:  # noqa: ARG002 - the contract's
        """Return a copy that counts launches."""
        twin = Sia(every=self.every or math.nan, power=self.power)
        twin.name = self.name  # type: ignore[misc] # parameters stand in it
        twin._launches = {}
        return twin

    _launches: dict[int, int]

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Solve the program if anything came, went or waits, and place what it chose."""
        if not len(queue) and not cluster.finished:
            return
        draft = Draft(now, cluster)
        jobs = [held.job for held in draft.held.values()] + list(queue)
        chosen = self._sizes(draft, jobs)
        moved = []
        for number, held in list(draft.before.items()):
            if chosen.get(number) != held.option.num_gpus:
                draft.drop(held.job)
                if number in chosen:
                    moved.append(held.job)
        moved += [job for job in queue if job.number in chosen]
        for job in sorted(moved, key=lambda job: (-chosen[job.number], job.number)):
            self._place(draft, job, chosen[job.number])
        for number, held in draft.held.items():
            if draft.changed(held):
                self._launches[number] = self._launches.get(number, 0) + 1
        yield from draft.decisions()

    def _place(self, draft: Draft, job: JobView, size: int) -> None:
        """Put a job at its size, else back where it was, else nowhere."""
        same = [o for o in draft.cluster.options(job) if o.num_gpus == size]
        for option in sorted(same, key=lambda o: (len(o.shape), o.iteration_time, o.num_cpus)):
            where = draft.fit(job, option)
            if where is not None:
                draft.put(job, option, where)
                return
        before = draft.before.get(job.number)
        if before is not None and draft.free.has(before.where, before.option):
            draft.restore(before)

    def _sizes(self, draft: Draft, jobs: list[JobView]) -> dict[int, int]:
        """Return the GPUs of each job that gets any, by its number."""
        from windtunnel.optimize.linear_program import LinearProgram

        program = LinearProgram("sia", maximize=True)
        once = program.add_rows("job", [job.job_id for job in jobs], upper=1)
        total = program.add_rows("cluster", ["GPUs"], upper=draft.cluster.num_gpus)
        entries: list[tuple[JobView, int]] = []
        for at, job in enumerate(jobs):
            sizes = fastest_by_size(draft.cluster.options(job))
            least = next(iter(sizes.values())).iteration_time
            gains = [
                (self._discount(draft, job, gpus) * least / option.iteration_time) ** self.power
                for gpus, option in sizes.items()
            ]
            columns = program.add_columns("size", list(sizes), upper=1.0, cost=gains, integer=True)
            program.add_coefficients(once[at], columns, 1.0)
            program.add_coefficients(total, columns, list(map(float, sizes)))
            entries += [(job, gpus) for gpus in sizes]
        values = program.solve().values
        return {
            job.number: gpus
            for (job, gpus), value in zip(entries, values.tolist(), strict=True)
            if value > 0.5  # noqa: PLR2004 - 0 or 1, up to rounding
        }

    def _discount(self, draft: Draft, job: JobView, gpus: int) -> float:
        held = draft.held.get(job.number)
        launches = self._launches.get(job.number, 0)
        if launches == 0 or (held is not None and held.option.num_gpus == gpus):
            return 1.0
        age = draft.now - job.submit_time
        penalty = draft.cluster.work(job).penalty
        if age + penalty == 0:
            return 1.0
        return float(max(0.0, age - launches * penalty) / (age + penalty))


def fastest_by_size(options: Iterable[Option]) -> dict[int, Option]:
    """Return the fastest option of each number of GPUs, fewest GPUs first."""
    best: dict[int, Option] = {}
    for option in options:
        size = option.num_gpus
        if size not in best or option.iteration_time < best[size].iteration_time:
            best[size] = option
    return dict(sorted(best.items()))
