"""The scheduler of Morphling's published simulator, for ``compat="morphling"`` alone.

It is asked every tick with all submitted, unfinished jobs and what it gave them before, and gives
each a list of (node, GPUs). What it gets wrong is kept: it sees one-node throughputs only, serves
the flattest jobs first, takes all GPUs of large LLaMA jobs away and lets them win them back, and
believes that a job that it gave nothing has stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windtunnel.throughput.published import artifact_iteration_time, published_best

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.cluster.free import Where
    from windtunnel.throughput.plans import Plan
    from windtunnel.throughput.training import TrainingModel

#: GPUs of a node; the scheduler knows no others.
NODE_GPUS = 8
#: A throughput that the scheduler has no entry for.
_MISSING = -1.0
#: Jobs older than this have an enormous slope, and so go last.
_OLD = 200_000.0
_OLD_SLOPE = 1e9
#: LLaMA jobs on so many GPUs lose them each tick, if restarted less often ...
_LARGE, _RESTARTS = 32, 7
#: ... or with more guaranteed jobs than this.
_GUARANTEED = 12
#: Of a promise's throughput, a prediction need only reach one in this.
_LENIENCE = 1.5


@dataclass
class ArtifactJob:
    """A job as the scheduler knows it.

    Attributes:
        name: its id.
        model: its throughput model, one with a stored record.
        submit: s.
        guaranteed: the promise counts.
        num_gpus: asked for.
        plan: asked for.
        held: what the scheduler last gave it; empty = nothing.
        chosen: the plan that goes with it.
        restarts: changes of its placement after the first.
    """

    name: str
    model: TrainingModel
    submit: float
    guaranteed: bool
    num_gpus: int
    plan: Plan
    held: Where = field(default_factory=list)
    chosen: Plan | None = None
    restarts: int = 0

    @property
    def gpus(self) -> int:
        """GPUs that the scheduler believes it holds."""
        return sum(gpus for _, gpus in self.held)

    @property
    def is_3d(self) -> bool:
        """Whether it runs on listed placements only, each with one plan."""
        return self.model.stored is not None and bool(self.model.stored.sizes)


class ArtifactScheduler:
    """Gives jobs GPUs as the published scheduler does.

    Args:
        num_nodes: nodes of `NODE_GPUS` GPUs.
    """

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes = num_nodes
        self._speeds: dict[tuple[str, int], float] = {}

    def schedule(self, now: float, jobs: list[ArtifactJob]) -> None:
        """Set what each job holds.

        Args:
            now: the tick, s.
            jobs: the submitted, unfinished ones, in order of submission.
        """
        slopes = {job.name: self._slope(job, now) for job in jobs}
        flattest = sorted(jobs, key=lambda job: slopes[job.name])
        line = sorted(flattest, key=lambda job: not job.guaranteed)
        promised = sum(job.guaranteed for job in jobs)
        for job in line:
            often = job.restarts >= _RESTARTS and promised <= _GUARANTEED
            if "llama" in job.model.name and job.gpus >= _LARGE and not often:
                job.held, job.chosen = [], None
        for job in line:
            if job.is_3d:
                self._place(job, jobs, larger=False)
            else:
                self._fill(job, jobs)
        for node in range(self.num_nodes):
            self._leftover(node, jobs, now)
        for job in flattest:
            if job.is_3d:
                self._place(job, jobs, larger=True)

    def speed(self, model: TrainingModel, gpus: int) -> float:
        """Return the samples per second that the scheduler reads; -1 beyond one node."""
        key = (model.name, gpus)
        if key not in self._speeds:
            best = published_best(model, gpus) if 1 <= gpus <= NODE_GPUS else None
            self._speeds[key] = _MISSING if best is None else best[0]
        return self._speeds[key]

    def _slope(self, job: ArtifactJob, now: float, delta: int = 1) -> float:
        if now - job.submit > _OLD:
            return _OLD_SLOPE
        reference = job.model.global_batch_size / (job.model.reference_iteration_time or math.nan)
        held = self.speed(job.model, job.gpus) if job.gpus else 0.0
        ahead = self.speed(job.model, min(job.gpus + delta, NODE_GPUS))
        return abs(ahead - held) / reference / delta

    def _free(self, jobs: Iterable[ArtifactJob]) -> list[int]:
        free = [NODE_GPUS] * self.num_nodes
        for job in jobs:
            for node, gpus in job.held:
                free[node] -= gpus
        return free

    def _fill(self, job: ArtifactJob, jobs: list[ArtifactJob]) -> None:
        """Let a data-parallel job take all that is free on one node, rounded down."""
        free = self._free(jobs)
        own = dict(job.held)
        for node in sorted(range(self.num_nodes), key=lambda node: -free[node]):
            if own and node not in own:
                continue
            total = free[node] + own.get(node, 0)
            changes = total != own.get(node, 0)
            if job.guaranteed:
                enough = _LENIENCE * self.speed(job.model, total) >= _promise(job)
                changes = total > 0 and enough
            best = published_best(job.model, total) if changes else None
            if best is not None:
                job.held, job.chosen = [(node, best[2])], best[1]
                return

    def _leftover(self, node: int, jobs: list[ArtifactJob], now: float) -> None:
        """Give what a node has left to the steepest data-parallel job on it."""
        left = self._free(jobs)[node]
        here = [job for job in jobs if not job.is_3d and dict(job.held).get(node)]
        if left <= 0 or not here:
            return
        job = max(here, key=lambda job: self._slope(job, now, left))
        best = published_best(job.model, min(job.gpus + left, NODE_GPUS))
        if best is not None and best[2] > job.gpus:
            job.held, job.chosen = [(node, best[2])], best[1]

    def _place(self, job: ArtifactJob, jobs: list[ArtifactJob], *, larger: bool) -> None:
        """Put a 3D job on the first listed placement that fits.

        Args:
            job: the job.
            jobs: all of them.
            larger: try no size below its own, the largest first; else the listed order.
        """
        stored = job.model.stored
        assert stored is not None  # noqa: S101 - it is a 3D job
        sizes = [gpus for gpus in stored.sizes if not larger or gpus >= job.gpus]
        free = self._free(other for other in jobs if other is not job)
        for size in sorted(sizes, reverse=True) if larger else sizes:
            for placement in stored.sizes[size]:
                where = _pieces(free, sorted(map(int, placement), reverse=True))
                if where is not None:
                    job.held, job.chosen = where, stored.plans[placement]
                    return


def _pieces(free: list[int], shape: list[int]) -> Where | None:
    """Return a node for each piece, those with fewest free GPUs first; None = it does not fit."""
    where: Where = []
    used: set[int] = set()
    for gpus in shape:
        fits = [n for n, left in enumerate(free) if left >= gpus and n not in used]
        if not fits:
            return None
        node = min(fits, key=lambda node: free[node])
        used.add(node)
        where.append((node, gpus))
    return where


def _promise(job: ArtifactJob) -> float:
    """Return the samples per second of what was asked for, as if on one node."""
    seconds = artifact_iteration_time(job.model, str(job.num_gpus), job.plan)
    return job.model.global_batch_size / seconds
