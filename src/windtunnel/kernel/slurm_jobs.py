"""`SlurmJobs`: what jobs asked Slurm for, and where they stand."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Where a job stands.
SLURM_ABSENT = cython.declare(cython.int, 0)
SLURM_PENDING = cython.declare(cython.int, 1)
SLURM_RUNNING = cython.declare(cython.int, 2)
SLURM_OVER = cython.declare(cython.int, 3)

#: Why a job waits; the texts are in `windtunnel.sim.slurm.meters`.
SLURM_NO_REASON = cython.declare(cython.int, 0)
SLURM_PRIORITY = cython.declare(cython.int, 1)
SLURM_RESOURCES = cython.declare(cython.int, 2)
SLURM_NOT_AVAILABLE = cython.declare(cython.int, 3)
SLURM_MAINTENANCE = cython.declare(cython.int, 4)
SLURM_ARRAY_LIMIT = cython.declare(cython.int, 5)
SLURM_RESERVATION = cython.declare(cython.int, 6)
SLURM_TIME_LIMIT = cython.declare(cython.int, 7)
SLURM_NODE_LIMIT = cython.declare(cython.int, 8)
SLURM_PARTITION = cython.declare(cython.int, 9)
SLURM_LICENSES = cython.declare(cython.int, 10)
#: From here on: of the limits, by `windtunnel.kernel.slurm_limits`.
SLURM_FIRST_LIMIT = cython.declare(cython.int, 16)


@cython.final
@cython.cclass
class SlurmJobs:
    """The jobs as Slurm sees them, a column for each thing it looks at.

    Args:
        columns: the columns by name, each of (jobs,); those left out are 0.
        parts: the partitions each job may run in, as lists one after another.
        meters: the limits each job counts against, ditto, in the order in which they are tested.
        passed: of each of these the columns, as bits, whose limit does not hold for the job.

    Attributes:
        min_nodes, max_nodes: nodes asked for.
        cpus: processors asked for in all.
        node_cpus: processors asked for on each node; 0 = any.
        gpus, node_gpus: GPUs asked for in all, or on each node.
        memory, cpu_memory: MB asked for on each node, or for each processor; -1 = all there is.
        exclusive: whether nodes are taken whole.
        limit: s, whole minutes.
        submitted: s; of requeued jobs when that was. Equal priorities are ordered by it, and by
        identity: Slurm's job id; of tasks the array's.
        array, task: number of the job's array, -1 = none, and its place there.
        mask: row of the masks of `SlurmCandidates`: the nodes it may use at all; -1 = any.
        hold: the advance reservation it is in; -1 = none.
        part: where it runs.
        start, end: of running jobs: start, and start + limit, s; of those asked to end, by when.
        noticed: of running jobs: whether they were asked to end for another.
        is_ending: whether a job has ended, but its nodes are still completing.
        first_part, parts: where a job's partitions begin in the column of all; likewise its meters,
            and beside each of these the columns passed over.
        preempts_since: since when a waiting job has others stopped, s; -1 = it has not.
        is_preempting: whether it does so in this run of a loop.
    """

    count: cython.int
    status: cython.int[::1]
    reason: cython.int[::1]
    min_nodes: cython.int[::1]
    max_nodes: cython.int[::1]
    cpus: cython.int[::1]
    node_cpus: cython.int[::1]
    gpus: cython.int[::1]
    node_gpus: cython.int[::1]
    exclusive: cython.int[::1]
    limit: cython.int[::1]
    identity: cython.int[::1]
    array: cython.int[::1]
    task: cython.int[::1]
    mask: cython.int[::1]
    hold: cython.int[::1]
    part: cython.int[::1]
    qos: cython.int[::1]
    user: cython.int[::1]
    first_part: cython.int[::1]
    first_meter: cython.int[::1]
    memory: cython.longlong[::1]
    cpu_memory: cython.longlong[::1]
    priority: cython.longlong[::1]
    start: cython.longlong[::1]
    end: cython.longlong[::1]
    submitted: cython.longlong[::1]
    noticed: cython.schar[::1]
    is_ending: cython.schar[::1]
    preempts_since: cython.longlong[::1]
    is_preempting: cython.schar[::1]
    parts: cython.int[::1]
    meters: cython.int[::1]
    passed: cython.int[::1]

    def __init__(self, columns: Any, parts: Any, meters: Any, passed: Any) -> None:
        self.count = len(columns["identity"])
        self.status = _column(columns, "status", self.count)
        self.reason = _column(columns, "reason", self.count)
        self.min_nodes = _column(columns, "min_nodes", self.count)
        self.max_nodes = _column(columns, "max_nodes", self.count)
        self.cpus = _column(columns, "cpus", self.count)
        self.node_cpus = _column(columns, "node_cpus", self.count)
        self.gpus = _column(columns, "gpus", self.count)
        self.node_gpus = _column(columns, "node_gpus", self.count)
        self.exclusive = _column(columns, "exclusive", self.count)
        self.limit = _column(columns, "limit", self.count)
        self.identity = _column(columns, "identity", self.count)
        self.array = _column(columns, "array", self.count)
        self.task = _column(columns, "task", self.count)
        self.mask = _column(columns, "mask", self.count)
        self.hold = _column(columns, "hold", self.count)
        self.part = _column(columns, "part", self.count)
        self.qos = _column(columns, "qos", self.count)
        self.user = _column(columns, "user", self.count)
        self.memory = _column(columns, "memory", self.count, numpy.int64)
        self.cpu_memory = _column(columns, "cpu_memory", self.count, numpy.int64)
        self.priority = _column(columns, "priority", self.count, numpy.int64)
        self.start = _column(columns, "start", self.count, numpy.int64)
        self.end = _column(columns, "end", self.count, numpy.int64)
        self.submitted = _column(columns, "submitted", self.count, numpy.int64)
        self.noticed = _column(columns, "noticed", self.count, numpy.int8)
        self.is_ending = _column(columns, "is_ending", self.count, numpy.int8)
        self.is_preempting = _column(columns, "is_preempting", self.count, numpy.int8)
        self.preempts_since = numpy.full(max(self.count, 1), -1, dtype=numpy.int64)
        self.first_part, self.parts = _lists(parts)
        self.first_meter, self.meters = _lists(meters)
        self.passed = _lists(passed)[1]

    @compiled
    def is_metered(self, job: cython.int) -> cython.bint:
        """Return whether a job counts against any limit."""
        return self.first_meter[job] < self.first_meter[job + 1]

    def set_priority(self, job: int, priority: int) -> None:
        """Give a job its priority; the queue is put in order by `SlurmQueue.reorder`."""
        self.priority[job] = priority

    def set_submitted(self, job: int, now: int) -> None:
        """Say when a job was submitted or requeued, s."""
        self.submitted[job] = now

    def set_hold(self, job: int, hold: int) -> None:
        """Say which advance reservation a job is in; -1 = none."""
        self.hold[job] = hold

    def set_reason(self, job: int, reason: int) -> None:
        """Say why a job waits."""
        self.reason[job] = reason

    def qos_of(self, job: int) -> int:
        """Return the number of a job's QOS."""
        return int(self.qos[job])

    def part_of(self, job: int) -> int:
        """Return the number of the partition where a job runs, or ran last."""
        return int(self.part[job])

    def set_preempting(self, job: int, since: int) -> None:
        """Say since when a waiting job has others stopped, s; -1 = it has not."""
        self.preempts_since[job] = since

    def preempting_since(self, job: int) -> int:
        """Return since when a waiting job has others stopped, s; -1 = it has not."""
        return int(self.preempts_since[job])

    def reasons(self) -> list[int]:
        """Return why each job waits, or waited last."""
        found: list[int] = numpy.asarray(self.reason[: self.count]).tolist()
        return found

    def reason_of(self, job: int) -> int:
        """Return why a job waits, or waited last, as far as a loop has looked at it."""
        return int(self.reason[job])


def _column(columns: Any, name: str, count: int, dtype: Any = numpy.int32) -> numpy.ndarray:
    """Return a column of whole numbers, its own memory; one that is left out is 0."""
    values = numpy.zeros(max(count, 1), dtype=dtype)
    if name in columns:
        values[:count] = columns[name]
    return values


def _lists(lists: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return where each list begins, and at last where all end, and all one after another."""
    first = numpy.cumsum([0, *(len(items) for items in lists)]).astype(numpy.int32)
    joined = numpy.array([item for items in lists for item in items] or [0], dtype=numpy.int32)
    return first, joined
