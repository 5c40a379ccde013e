"""What an elastic run knows of each job: its iterations, its options, what a launch costs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from windtunnel.cluster.devices import CORE_UNITS
from windtunnel.throughput.options import Option as MeasuredOption

#: Seconds of a launch or reconfiguration, unless given (Morphling, artifact's simulator).
PENALTY = 260.0


@dataclass(frozen=True)
class RigidOption:
    """The only way to run a job without a throughput model: as its user asked.

    Attributes: see `windtunnel.throughput.options.Option`.
    """

    shape: tuple[int, ...]
    num_cpus: int
    iteration_time: float
    plan: None = None
    nodes: int = -1

    @property
    def num_gpus(self) -> int:
        """GPUs in all."""
        return sum(self.shape)


#: One way to run a job.
Option: TypeAlias = MeasuredOption | RigidOption


@dataclass(frozen=True)
class Work:
    """One job of an elastic run.

    Attributes:
        iterations: how many it has to run.
        requested: what its user asked for; its throughput is what a guaranteed job is promised.
        options: every way in which it can run on this cluster, ``requested`` among them, fewest
            GPUs first.
        penalty: seconds that each launch or change costs.
        guaranteed: the promise counts; else the job is best-effort.
        model: what it trains; empty where there is no throughput model.
        expected: work that policies expect it to have over what it has; None = they know.
    """

    iterations: float
    requested: Option
    options: tuple[Option, ...]
    penalty: float = PENALTY
    guaranteed: bool = False
    model: str = ""
    expected: float | None = None

    def usable(self, *, promises: bool) -> tuple[Option, ...]:
        """Return its options; ``promises``: those that keep its promise, where it has one."""
        slowest = self.requested.iteration_time if promises and self.guaranteed else math.inf
        return tuple(o for o in self.options if o.iteration_time <= slowest)


def plan_name(option: Option) -> str:
    """Return the word of an option's plan; empty for a job without plans."""
    return "" if option.plan is None else option.plan.name


def cores_on(option: Option, gpus: int) -> int:
    """Return the thousandths of cores that an option needs beside ``gpus`` of its GPUs."""
    return round(option.num_cpus * CORE_UNITS * gpus / option.num_gpus)
