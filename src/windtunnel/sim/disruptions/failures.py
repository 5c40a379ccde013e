"""What goes wrong in a run, in words that `windtunnel.sim.disruptions.spec` puts together."""

from __future__ import annotations

import math

import msgspec

from windtunnel.errors import SpecError
from windtunnel.time_span import Span, seconds

#: How times to failure are distributed.
DISTRIBUTIONS: tuple[str, ...] = ("exponential", "weibull")
#: Least of Weibull's k: below, most times to failure are too short for a clock to tell, and a node
#: fails as it comes back, before any job starts there.
LEAST_SHAPE = 0.1
#: How long a repair takes: always the mean, or exponentially distributed around it.
REPAIRS: tuple[str, ...] = ("exponential", "fixed")
#: Statuses of the record that say that a job failed.
FAILED_STATUSES: tuple[str, ...] = ("failed", "node_fail", "out_of_memory", "timeout")


def _statuses(given: tuple[str, ...]) -> None:
    for status in given:
        if status not in FAILED_STATUSES:
            raise SpecError.unknown("statuses", status, FAILED_STATUSES)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the description: its spans become seconds, its words are checked."""

    def _seconds(self, *names: str, positive: bool = False) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None:
                number = seconds(name, value, positive=positive)
                msgspec.structs.force_setattr(self, name, number)

    def _word(self, name: str, known: tuple[str, ...]) -> None:
        if getattr(self, name) not in known:
            raise SpecError.unknown(name, getattr(self, name), known)

    def _after(self, first: str, last: str) -> None:
        start, stop = getattr(self, first), getattr(self, last)
        if stop is not None and not stop > start:
            raise SpecError(last, f"found {stop:g}; expected a time after {first} = {start:g}.")


class Checkpointing(Part, frozen=True):
    """What jobs save on the way, and what starting again costs.

    Attributes:
        interval: seconds of work between checkpoints, counted from each start; None = none, so
            that a failure undoes all work since the job was last started.
        cost: seconds that writing one takes; the job holds its GPUs and makes no progress.
        restart_cost: seconds a job pays when it goes on after a failure, before any work.
        startup_cost: seconds that a job's first start takes, before any work.
    """

    interval: Span | None = None
    cost: Span = 0.0
    restart_cost: Span = 0.0
    startup_cost: Span = 0.0

    def __post_init__(self) -> None:
        self._seconds("interval", positive=True)
        self._seconds("cost", "restart_cost", "startup_cost")


class NodeFailure(Part, frozen=True):
    """One failure that is known by its time; the run does not know it in advance.

    Attributes:
        time: when, s.
        node: which node; on a pool, leave it out and give ``gpus``.
        gpus: GPUs that a pool loses.
        gpu_type: of which type, where the pool has several.
        until: when it is back, s; None = never.
        cause: what failed, in words, by which stops are counted.
    """

    time: Span
    node: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    until: Span | None = None
    cause: str = "node"

    def __post_init__(self) -> None:
        self._seconds("time", "until")
        self._after("time", "until")


class FailureModel(Part, frozen=True):
    """Failures drawn at random, for each node by itself, or for each domain of a level.

    Every node of the model fails after a time to failure, is repaired, fails again after another.
    The first clock starts at the first submit. Draws are the node's own: adding a node changes no
    other node's failures.

    Attributes:
        mtbf: mean time between a node's repair and its next failure, s.
        mttr: mean time to repair, s.
        gpu_type: nodes with GPUs of this type only.
        nodes: these nodes only.
        level: its domains fail and come back as one, such as racks; None = each node by itself.
        distribution: of the times to failure.
        shape: Weibull's k, at least 0.1; below 1 the hazard falls, above 1 it rises.
        repair: ``fixed`` or ``exponential``.
        cause: what fails, in words, by which stops are counted.
        causes: cause -> its share of the failures, in any unit; drawn for each one, in place of
            ``cause``.
        lemons: share of the nodes (or domains) that fail ``lemon_factor`` times as often, 0 to 1;
            which ones is drawn for each by itself.
        lemon_factor: see ``lemons``.
        speed: 0 = a failed node is down; above it the node stays up, and its jobs go so fast, at
            the pace of their slowest node, until it is repaired (a straggler).
        found_after: seconds until a failure is found: until then its node works on, and then the
            jobs that ran there go back to their last checkpoint before it (a silent error).
    """

    mtbf: Span
    mttr: Span
    gpu_type: str | None = None
    nodes: tuple[int, ...] | None = None
    level: str | None = None
    distribution: str = "exponential"
    shape: float = 1.0
    repair: str = "exponential"
    cause: str = "node"
    causes: dict[str, float] = {}
    lemons: float = 0.0
    lemon_factor: float = 10.0
    speed: float = 0.0
    found_after: Span = 0.0

    def __post_init__(self) -> None:
        self._seconds("mtbf", "mttr", positive=True)
        self._seconds("found_after")
        if not 0 <= self.speed < 1:
            raise SpecError("speed", f"found {self.speed:g}; expected it from 0 to below 1.")
        if self.speed and self.found_after:
            raise SpecError("found_after", "a slow node undoes no work; leave out one of the two.")
        self._word("distribution", DISTRIBUTIONS)
        self._word("repair", REPAIRS)
        if not LEAST_SHAPE <= self.shape < math.inf:
            message = f"found {self.shape:g}; expected a number from {LEAST_SHAPE:g} up."
            raise SpecError("shape", message)
        if not 0 <= self.lemons <= 1:
            raise SpecError("lemons", f"found {self.lemons:g}; expected a share from 0 to 1.")
        if not 0 < self.lemon_factor < math.inf:
            raise SpecError("lemon_factor", f"found {self.lemon_factor:g}; expected it above 0.")
        if self.causes and not (
            all(0 <= share < math.inf for share in self.causes.values())
            and sum(self.causes.values()) > 0
        ):
            raise SpecError("causes", "expected shares of 0 or more, and one above 0.")
        if self.shape != 1.0 and self.distribution != "weibull":
            raise SpecError("shape", "only distribution = 'weibull' has one.")


class RecordedFailures(Part, frozen=True):
    """Node failures at the times at which the trace's jobs were lost to one.

    Every distinct recorded end of a job with one of the statuses is one failure. Which of its nodes
    failed is not known: one is drawn among the nodes of an acceptable GPU type.

    Attributes:
        repair: how long the node is down, s.
        statuses: recorded statuses that count.
    """

    repair: Span
    statuses: tuple[str, ...] = ("node_fail",)

    def __post_init__(self) -> None:
        self._seconds("repair", positive=True)
        _statuses(self.statuses)


class JobFailures(Part, frozen=True):
    """Failures of jobs by themselves; their nodes stay up.

    Attributes:
        rate: failures per GPU-hour held, drawn for each job by itself.
        statuses: jobs recorded with one of these fail once, when they have run for their recorded
            duration; going on, they repeat what was lost since the last checkpoint.
    """

    rate: float = 0.0
    statuses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf:
            raise SpecError("rate", f"found {self.rate:g}; expected failures per GPU-hour >= 0.")
        _statuses(self.statuses)
