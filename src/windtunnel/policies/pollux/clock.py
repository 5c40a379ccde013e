"""The clock of Pollux's published simulator: ticks in which jobs train, decisions between them.

A tick pays what is left of a restart first, then trains under the allocation of the decision
before; an epoch that ends in a tick ends at a whole second, half to even, and batch sizes are
chosen again. Completed jobs free their GPUs at the end of the tick.

Qiao et al., OSDI'21, section 5.3; petuum/adaptdl, branch ``osdi21-artifact``, ``simulator/``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.throughput.training_profiles import Application


@dataclass(frozen=True)
class ElasticJob:
    """A job as it was asked for.

    Attributes:
        name: its name.
        application: what it trains.
        submit: s.
        gpus: asked for.
        batch: batch size asked for, examples.
    """

    name: str
    application: Application
    submit: float
    gpus: int
    batch: int


@dataclass
class Stay:
    """A time on some GPUs.

    Attributes:
        begin: s.
        nodes: the node of each GPU.
        end: s; NaN = it goes on.
    """

    begin: float
    nodes: tuple[int, ...]
    end: float = math.nan


@dataclass
class Trained:
    """How far a job is.

    Attributes:
        job: what was asked for.
        nodes: the node of each of its GPUs, in placement order; empty = it waits.
        epoch: in which it is, from 0.
        progress: iterations at the first batch.
        delay: s of its restart to go.
        starts: times that it got other GPUs.
        held: GPU-seconds.
        first_start: s; None = never.
        end: s; None = not done.
        stays: on which nodes it was when.
    """

    job: ElasticJob
    nodes: tuple[int, ...] = ()
    epoch: int = 0
    progress: float = 0.0
    delay: float = 0.0
    starts: int = 0
    held: float = 0.0
    first_start: float | None = None
    end: float | None = None
    stays: list[Stay] = field(default_factory=list)
    #: GPUs that it does with.
    least_gpus: ClassVar[int] = 1

    @property
    def application(self) -> Application:
        """What it trains, as measured on its GPUs."""
        return self.job.application

    @property
    def speed(self) -> float:
        """Part of the measured speed that it trains with."""
        return 1.0

    @property
    def placement(self) -> tuple[int, ...]:
        """GPUs on each node, as run lengths of the nodes."""
        return tuple(len(list(run)) for _, run in groupby(self.nodes))

    @property
    def kept(self) -> Any:
        """What must change of its GPUs to cost a restart: here any of them."""
        return self.nodes

    @property
    def restart_time(self) -> float:
        """Seconds that a restart costs."""
        return self.job.application.restart_time

    def allocate(self, nodes: tuple[int, ...], now: float) -> None:
        """Give the job GPUs; other ones than before may cost a restart."""
        if nodes == self.nodes:
            return
        before = self.kept
        if self.nodes:
            self.stays[-1].end = now
        self.nodes = nodes
        if nodes:
            self.stays.append(Stay(now, nodes))
            self.first_start = now if self.first_start is None else self.first_start
            if self.kept != before:
                self.delay = self.restart_time
                self.starts += 1

    def batch_size(self) -> tuple[int, int]:
        """Return the micro-batch of each GPU and the accumulated steps: those asked for."""
        return self.job.application.fixed_batch(self.job.batch, len(self.nodes))

    def observe(self, local: int, accumulated: int) -> None:
        """Take note of what is about to be trained with; who trains as asked has no use for it."""

    def train(self, now: float, seconds: float, slowed: float) -> None:
        """Train for a tick that begins now, at a part ``slowed`` less speed."""
        if not self.nodes or self.end is not None:
            return
        app, gpus, placement = self.application, len(self.nodes), self.placement
        paid = min(self.delay, seconds)
        self.delay -= paid
        now, left = now + paid, seconds - paid
        self.held += paid * gpus
        while left > 0 and self.end is None:
            local, accumulated = self.batch_size()
            self.observe(local, accumulated)
            gain = app.gain(gpus * local * (accumulated + 1), self.epoch)
            rate = gain / app.iteration_time(placement, local, accumulated)
            rate *= self.speed * (1 - slowed)
            goal = float(app.goals[self.epoch])
            spent: float = left
            if self.progress + rate * left < goal:
                self.progress += rate * left
            else:
                spent = round((goal - self.progress) / rate)
                self.progress = goal
                self.epoch += 1
                if self.epoch >= app.epochs:
                    self.end = self.stays[-1].end = now + spent
            now, left = now + spent, left - spent
            self.held += spent * gpus


class Decider(Protocol):
    """Decides which GPUs each job has; see `rivals` and `search` beside this module."""

    @property
    def trains(self) -> Callable[[ElasticJob], Trained]:
        """As what jobs are made: who chooses their batch sizes."""

    def __call__(
        self, active: Sequence[Any], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each active job's GPUs, by name; a job that is left out waits.

        Args:
            active: jobs that came and are not done, in the workload's order.
            free: GPUs of each node, all of them.
            now: s.
            interval: s a tick.
        """


@dataclass
class Clock:
    """A run of the published simulator.

    Attributes:
        jobs: in the workload's order.
        sizes: GPUs of each node.
        interval: s a tick.
        interference: part of its speed that a job on several nodes loses where another such job
            is on one of them.
    """

    jobs: Sequence[ElasticJob]
    sizes: Sequence[int]
    interval: float = 60.0
    interference: float = 0.0
    trained: list[Trained] = field(default_factory=list)

    def run(self, decide: Decider) -> list[Trained]:
        """Return the jobs, all done."""
        now = 0.0
        self.trained = [decide.trains(job) for job in self.jobs]
        while any(job.end is None for job in self.trained):
            running = [job for job in self.trained if job.nodes and job.end is None]
            slowed = self._disturbed(running)
            for job in running:
                job.train(now, self.interval, self.interference if job.job.name in slowed else 0.0)
            now += self.interval
            here = [job for job in self.trained if job.end is None and job.job.submit <= now]
            chosen = decide(here, list(self.sizes), now, self.interval)
            for job in here:
                job.allocate(chosen.get(job.job.name, ()), now)
        return self.trained

    def _disturbed(self, running: Sequence[Trained]) -> set[str]:
        """Return the jobs on several nodes that share one with another such job."""
        if not self.interference:
            return set()
        on: dict[int, list[str]] = {}
        for job in running:
            if len(set(job.nodes)) > 1:
                for node in set(job.nodes):
                    on.setdefault(node, []).append(job.job.name)
        return {name for names in on.values() if len(names) > 1 for name in names}


def place(gpus: int, free: list[int]) -> tuple[int, ...]:
    """Take GPUs, each time as many as needed of the node with most free ones, the lowest of equals.

    Args:
        gpus: wanted; there are so many.
        free: GPUs of each node that are free; changed in place.
    """
    nodes: list[int] = []
    while len(nodes) < gpus:
        best = max(range(len(free)), key=lambda node: (free[node], -node))
        taken = min(free[best], gpus - len(nodes))
        free[best] -= taken
        nodes += [best] * taken
    return tuple(nodes)
