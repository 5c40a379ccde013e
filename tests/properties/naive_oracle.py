"""A second simulator, written from the semantics alone and as plainly as they read.

No heaps, no classes of jobs, no bitsets, nothing from `windtunnel.sim`: lists, looked through from
front to back at every instant. Slow, and easy to check by eye.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Job:
    """One job and what has happened to it; ``where`` maps node to GPUs while it runs."""

    number: int
    submit: float
    duration: float
    gpus: int
    priority: float
    task: int = 1
    left: float = 0.0
    where: dict[int, int] | None = None
    since: float = 0.0
    ends: float = 0.0
    stays: list[tuple[float, float, list[tuple[int, int]]]] = field(default_factory=list)
    preemptions: int = 0
    end: float | None = None


def layout(
    free: list[int], sizes: list[int], gpus: int, task: int = 1, *, spread: bool = False
) -> list[tuple[int, int]] | None:
    """Return (node, GPUs) of a gang under canonical best fit (or spread), None if it does not fit.

    One node if one could hold it empty: fewest free GPUs that suffice, then the lowest index.
    Else whole empty nodes, lowest index first, and the remainder on one more.
    """

    def one(gpus: int, without: list[int]) -> list[tuple[int, int]] | None:
        fitting = [n for n in range(len(sizes)) if free[n] >= gpus and n not in without]
        if not fitting:
            return None
        sign = -1 if spread else 1
        return [(min(fitting, key=lambda n: (sign * free[n], n)), gpus)]

    if gpus == 0:
        return []
    if any(size // task * task >= gpus for size in sizes):
        return one(gpus, [])
    whole: list[tuple[int, int]] = []
    for node, size in enumerate(sizes):
        usable = size // task * task
        if free[node] == size and 0 < usable <= gpus:
            whole.append((node, usable))
            gpus -= usable
    if gpus == 0:
        return whole
    rest = one(gpus, [node for node, _ in whole])
    return None if rest is None else whole + rest


class Oracle:
    """A run on nodes (``sizes``), or on a pool, which is one node as large as the cluster."""

    def __init__(
        self, jobs: list[Job], sizes: list[int], order: str, rule: str, **options: Any
    ) -> None:
        self.jobs = jobs
        self.sizes = sizes
        self.free = list(sizes)
        self.order = order
        self.rule = rule
        self.spread = options.get("spread", False)
        self.preemptive = options.get("preemptive", False)
        self.overhead = options.get("overhead", 0.0)
        self.now = 0.0
        self.points = 0

    def key(self, job: Job) -> tuple[float, float, int]:
        """Return what jobs are ranked by: policy, then submit time, then input order."""
        if self.order == "srtf":
            again = self.overhead if job.preemptions else 0.0
            value = job.ends - self.now if job.where is not None else job.left + again
        else:
            value = {"fifo": job.submit, "sjf": job.duration, "priority": -job.priority}[self.order]
        return (value, job.submit, job.number)

    def fly(self) -> None:
        """Go from instant to instant until nothing is left to happen."""
        coming = sorted(self.jobs, key=lambda job: (job.submit, job.number))
        active: list[Job] = []
        while True:
            events = [job.ends for job in active if job.where is not None]
            events += [job.submit for job in coming]
            if not events:
                return
            self.now = min(events)
            for job in [j for j in active if j.where is not None and j.ends == self.now]:
                self.stop(job)
                job.end = self.now
                active.remove(job)
            active += [job for job in coming if job.submit == self.now]
            coming = [job for job in coming if job.submit > self.now]
            self.points += 1
            ranked = sorted(active, key=self.key)
            if self.preemptive:
                self.walk(ranked)
            else:
                self.serve([job for job in ranked if job.where is None])

    def serve(self, waiting: list[Job]) -> None:
        """Start waiting jobs in order, stopping at the first that does not fit or going on."""
        for job in waiting:
            if not self.start(job) and self.rule == "strict":
                return

    def walk(self, ranked: list[Job]) -> None:
        """Give out the cluster's GPUs in rank order; preempt who gets none, start who gets some."""
        quota = sum(self.sizes)
        chosen = []
        for job in ranked:
            if job.gpus <= quota:
                quota -= job.gpus
                chosen.append(job)
            elif self.rule == "strict":
                break
        for job in ranked:
            if job.where is not None and job not in chosen:
                job.left = min(job.left, job.ends - self.now)
                job.preemptions += 1
                self.stop(job)
        for job in chosen:
            if job.where is None:
                self.start(job)

    def start(self, job: Job) -> bool:
        """Start a job if it fits now."""
        where = layout(self.free, self.sizes, job.gpus, job.task, spread=self.spread)
        if where is None:
            return False
        for node, gpus in where:
            self.free[node] -= gpus
        job.where, job.since = dict(where), self.now
        job.ends = self.now + (self.overhead if job.preemptions else 0.0) + job.left
        return True

    def stop(self, job: Job) -> None:
        """Take a job off its nodes and note its stay."""
        assert job.where is not None
        for node, gpus in job.where.items():
            self.free[node] += gpus
        job.stays.append((job.since, self.now, list(job.where.items())))
        job.where = None
