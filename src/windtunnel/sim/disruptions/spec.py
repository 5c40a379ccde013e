"""`Disruptions`: the immutable description of what goes wrong, or is planned, during a run.

Times are seconds on the trace's clock, spans seconds; both may be written ``"90m"``, ``"12h"`` or
``"30d"``. Nodes are known by their index in the cluster (`windtunnel.cluster.spec`); on a pool, and
with ``placement="pool"`` on one, capacity is lost in GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.failures import (
    Checkpointing,
    FailureModel,
    JobFailures,
    NodeFailure,
    Part,
    RecordedFailures,
)
from windtunnel.time_span import Span  # noqa: TC001 (msgspec reads it)
from windtunnel.toml_file import read_toml, struct_of

if TYPE_CHECKING:
    from pathlib import Path

#: What becomes of a job that a failure stopped.
ON_FAILURE: tuple[str, ...] = ("restart", "swap", "end")
#: What becomes of jobs that still run where a planned outage starts.
ON_START: tuple[str, ...] = ("wait", "kill", "checkpoint")


class Maintenance(Part, frozen=True):
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
        self._seconds("start", "end", "drain_before")
        self._after("start", "end")
        self._word("on_start", ON_START)


class CapacityChange(Part, frozen=True):
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
        self._seconds("time")
        self._word("on_start", ON_START)
        if not (self.add or self.remove or self.add_gpus or self.remove_gpus):
            raise SpecError("capacity_changes", "expected nodes or GPUs to add or to remove.")


class Reservation(Part, frozen=True):
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
            return struct_of(cls, raw, source)
        except SpecError as error:
            if error.path == source or error.path.startswith(f"{source}: "):
                raise
            raise SpecError(f"{source}: {error.path}", str(error).split(": ", 1)[1]) from error

    def to_mapping(self) -> dict[str, Any]:
        """Return the description as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in data.items() if value is not None}
