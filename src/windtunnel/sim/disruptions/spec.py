"""`Disruptions`: the immutable description of what goes wrong, or is planned, during a run.

Times are seconds on the trace's clock, spans seconds; both may be written ``"90m"``, ``"12h"`` or
``"30d"``. Nodes are known by their index in the cluster (`windtunnel.cluster.spec`); on a pool, and
with ``placement="pool"`` on one, capacity is lost in GPUs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.time_span import Span, seconds
from windtunnel.toml_file import read_toml, struct_of

if TYPE_CHECKING:
    from pathlib import Path

#: What becomes of a job that a failure stopped.
ON_FAILURE: tuple[str, ...] = ("restart", "swap", "end")
#: What becomes of jobs that still run where a planned outage starts.
ON_START: tuple[str, ...] = ("wait", "kill", "checkpoint")
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


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the description: its spans become seconds, its words are checked."""

    def _seconds(self, *names: str, positive: bool = False, endless: bool = False) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None:
                number = seconds(name, value, positive=positive, endless=endless)
                msgspec.structs.force_setattr(self, name, number)

    def _word(self, name: str, known: tuple[str, ...]) -> None:
        if getattr(self, name) not in known:
            raise SpecError.unknown(name, getattr(self, name), known)

    def _after(self, first: str, last: str) -> None:
        start, stop = getattr(self, first), getattr(self, last)
        if stop is not None and not stop > start:
            raise SpecError(last, f"found {stop:g}; expected a time after {first} = {start:g}.")


class Checkpointing(_Part, frozen=True):
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
        """Check the spans."""
        self._seconds("interval", positive=True)
        self._seconds("cost", "restart_cost", "startup_cost")


class NodeFailure(_Part, frozen=True):
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
        """Check the times."""
        self._seconds("time", "until")
        self._after("time", "until")


class FailureModel(_Part, frozen=True):
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
        """Check spans and words."""
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


class RecordedFailures(_Part, frozen=True):
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
        """Check spans and words."""
        self._seconds("repair", positive=True)
        _statuses(self.statuses)


class JobFailures(_Part, frozen=True):
    """Failures of jobs by themselves; their nodes stay up.

    Attributes:
        rate: failures per GPU-hour held, drawn for each job by itself.
        statuses: jobs recorded with one of these fail once, when they have run for their recorded
            duration; going on, they repeat what was lost since the last checkpoint.
    """

    rate: float = 0.0
    statuses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the rate and the words."""
        if not 0 <= self.rate < math.inf:
            raise SpecError("rate", f"found {self.rate:g}; expected failures per GPU-hour >= 0.")
        _statuses(self.statuses)


class Maintenance(_Part, frozen=True):
    """A planned outage: nobody starts there from ``start - drain_before`` until ``end``.

    Attributes:
        start: s.
        end: s.
        nodes: which nodes.
        gpus: GPUs of a pool instead.
        gpu_type: of which type, where the pool has several.
        drain_before: seconds before the start from which no job starts there.
        on_start: what becomes of jobs that run there at the start: they run on (``wait``), lose
            what they did not save (``kill``), or save it all and stop (``checkpoint``).
    """

    start: Span
    end: Span
    nodes: tuple[int, ...] = ()
    gpus: int | None = None
    gpu_type: str | None = None
    drain_before: Span = 0.0
    on_start: str = "wait"

    def __post_init__(self) -> None:
        """Check times and words."""
        self._seconds("start", "end", "drain_before")
        self._after("start", "end")
        self._word("on_start", ON_START)


class CapacityChange(_Part, frozen=True):
    """Nodes that join or leave for good. The cluster lists every node there ever is.

    Attributes:
        time: s.
        add: nodes that are not there before.
        remove: nodes that are not there from then on.
        add_gpus: GPUs that a pool gets; they are part of its size.
        remove_gpus: GPUs that a pool loses.
        gpu_type: of which type, where the pool has several.
        on_start: what becomes of jobs on nodes that leave, as for `Maintenance`.
    """

    time: Span
    add: tuple[int, ...] = ()
    remove: tuple[int, ...] = ()
    add_gpus: int = 0
    remove_gpus: int = 0
    gpu_type: str | None = None
    on_start: str = "wait"

    def __post_init__(self) -> None:
        """Check the time and the word."""
        self._seconds("time")
        self._word("on_start", ON_START)
        if not (self.add or self.remove or self.add_gpus or self.remove_gpus):
            raise SpecError("capacity_changes", "expected nodes or GPUs to add or to remove.")


class Reservation(_Part, frozen=True):
    """Nodes that only some jobs may use for a time.

    Those jobs try the reserved nodes first, then every node they may use. A job belongs to it by
    any of the three lists; with all of them empty nobody does.

    Attributes:
        start: s.
        end: s.
        nodes: which nodes.
        gpus: instead: the last nodes of the cluster that together have so many GPUs.
        gpu_type: count only nodes with GPUs of this type.
        users: users whose jobs may run there.
        vcs: virtual clusters whose jobs may.
        jobs: ids of jobs that may.
        on_start: what becomes of others that run there at the start, as for `Maintenance`.
    """

    start: Span
    end: Span
    nodes: tuple[int, ...] = ()
    gpus: int | None = None
    gpu_type: str | None = None
    users: tuple[str, ...] = ()
    vcs: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    on_start: str = "wait"

    def __post_init__(self) -> None:
        """Check times and the word."""
        self._seconds("start", "end")
        self._after("start", "end")
        self._word("on_start", ON_START)


class Disruptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Failures, repair, checkpoints, maintenance, capacity changes and reservations of a run.

    Attributes:
        checkpoint: what jobs save on the way.
        on_failure: a job that a failure stops waits to go on (``restart``), or is over (``end``);
            or a gang that loses one node goes on at once with another in its place (``swap``;
            where there is none, it waits).
        node_failures: failures by their times.
        failure_models: failures drawn at random.
        recorded_failures: failures where the trace's jobs were lost to one.
        job_failures: failures of jobs by themselves.
        maintenance: planned outages.
        capacity_changes: nodes that join or leave.
        reservations: nodes held for some jobs.
        spares: so many nodes, the cluster's last with GPUs, are for nobody until a node of their
            size fails: one takes its place at once, and the failed one, repaired, is a spare.
        repair_crews: how many random failures are repaired at a time, first come first served;
            None = all of them.
        seed: of everything drawn here; None = the run's.

    >>> Disruptions(maintenance=[Maintenance(start="1h", end="2h", nodes=(0,))]).is_empty
    False
    """

    checkpoint: Checkpointing = Checkpointing()
    on_failure: str = "restart"
    node_failures: tuple[NodeFailure, ...] = ()
    failure_models: tuple[FailureModel, ...] = ()
    recorded_failures: RecordedFailures | None = None
    job_failures: JobFailures = JobFailures()
    maintenance: tuple[Maintenance, ...] = ()
    capacity_changes: tuple[CapacityChange, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    spares: int = 0
    repair_crews: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Check the word, the crews and the seed."""
        for name, least in (("repair_crews", 1), ("spares", 0)):
            number = getattr(self, name)
            if number is not None and (type(number) is not int or number < least):
                message = f"found {quote(number)}; expected a whole number, {least} or more."
                raise SpecError(name, message)
        if self.on_failure not in ON_FAILURE:
            raise SpecError.unknown("on_failure", self.on_failure, ON_FAILURE)
        if self.seed is not None and self.seed < 0:
            raise SpecError("seed", f"found {self.seed}; expected 0 or more.")
        for name in ("node_failures", "failure_models", "maintenance", "capacity_changes",
                     "reservations"):  # fmt: skip
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing happens: such a run is a plain one."""
        return self == Disruptions(seed=self.seed, on_failure=self.on_failure)

    @classmethod
    def from_toml(cls, path: str | Path) -> Disruptions:
        """Read a description from a TOML file with the fields of this class.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
        """
        return cls.from_mapping(read_toml(path), source=str(path))

    @classmethod
    def from_mapping(cls, raw: dict[str, Any], *, source: str = "$") -> Disruptions:
        """Build a description from plain data (parsed TOML or JSON).

        Raises:
            SpecError: an unknown key (the nearest is suggested), a missing one or a wrong value.
        """
        try:
            return struct_of(cls, raw, source, _TABLES)
        except SpecError as error:
            if error.path == source or error.path.startswith(f"{source}: "):
                raise
            raise SpecError(f"{source}: {error.path}", str(error).split(": ", 1)[1]) from error

    def to_mapping(self) -> dict[str, Any]:
        """Return the description as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in data.items() if value is not None}


_TABLES: dict[str, type[_Part]] = {
    "checkpoint": Checkpointing,
    "job_failures": JobFailures,
    "recorded_failures": RecordedFailures,
    "node_failures": NodeFailure,
    "failure_models": FailureModel,
    "maintenance": Maintenance,
    "capacity_changes": CapacityChange,
    "reservations": Reservation,
}
