"""What an elastic run knows of each job: its iterations, its options, what a launch costs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from windtunnel.cluster.devices import CORE_UNITS

#: Seconds of a launch or reconfiguration, unless said (Morphling, artifact's simulator).
PENALTY = 260.0


class Named(Protocol):
    """An execution plan; `windtunnel.throughput.plans.Plan` is one."""

    @property
    def name(self) -> str:
        """Its published word."""


class Option(Protocol):
    """One way to run a job; `windtunnel.throughput.options.Option` is one.

    Attributes:
        shape: GPUs on each node, descending.
        num_gpus: their sum.
        num_cpus: CPU cores of the whole gang, spread over the nodes as its GPUs are.
        iteration_time: s.
        plan: the execution plan; None for a job without plans.
        nodes: bitset of the nodes that it may be on; -1 = all.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102 - see the class

    @property
    def num_gpus(self) -> int: ...  # noqa: D102 - see the class

    @property
    def num_cpus(self) -> int: ...  # noqa: D102 - see the class

    @property
    def iteration_time(self) -> float: ...  # noqa: D102 - see the class

    @property
    def plan(self) -> Named | None: ...  # noqa: D102 - see the class

    @property
    def nodes(self) -> int: ...  # noqa: D102 - see the class


@dataclass(frozen=True)
class RigidOption:
    """The only way to run a job without a throughput model: as its user asked.

    Attributes: see `Option`.
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


def plan_name(option: Option) -> str:
    """Return the word of an option's plan; empty for a job without plans."""
    return "" if option.plan is None else option.plan.name


def cores_on(option: Option, gpus: int) -> int:
    """Return the thousandths of cores that an option needs beside ``gpus`` of its GPUs."""
    return round(option.num_cpus * CORE_UNITS * gpus / option.num_gpus)
