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

#: The columns of jobs, by type.
SLURM_COLUMNS: dict[str, tuple[str, ...]] = {
    "int32": (
        *("status", "reason", "min_nodes", "max_nodes", "cpus", "node_cpus", "gpus", "node_gpus"),
        *("exclusive", "limit", "identity", "array", "task", "mask", "hold", "part", "qos", "user"),
    ),
    "int64": ("memory", "cpu_memory", "priority", "start", "end", "submitted", "preempts_since"),
    "int8": ("noticed", "is_ending", "is_preempting"),
}


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
        columns: the columns by name, as arrays, for Python to read and to write; of these each is
            an attribute, too.
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

    columns = cython.declare(dict, visibility="readonly")
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
        self.columns = table = {
            name: numpy.zeros(max(self.count, 1), dtype=dtype)
            for dtype, names in SLURM_COLUMNS.items()
            for name in names
        }
        for name in columns:
            table[name][: self.count] = columns[name]
        table["preempts_since"][:] = -1
        self.status, self.reason, self.identity = (
            table["status"],
            table["reason"],
            table["identity"],
        )
        self.min_nodes, self.max_nodes = table["min_nodes"], table["max_nodes"]
        self.cpus, self.node_cpus = table["cpus"], table["node_cpus"]
        self.gpus, self.node_gpus = table["gpus"], table["node_gpus"]
        self.memory, self.cpu_memory = table["memory"], table["cpu_memory"]
        self.exclusive, self.limit = table["exclusive"], table["limit"]
        self.array, self.task = table["array"], table["task"]
        self.mask, self.hold, self.part = table["mask"], table["hold"], table["part"]
        self.qos, self.user = table["qos"], table["user"]
        self.priority, self.submitted = table["priority"], table["submitted"]
        self.start, self.end = table["start"], table["end"]
        self.noticed, self.is_ending = table["noticed"], table["is_ending"]
        self.is_preempting, self.preempts_since = table["is_preempting"], table["preempts_since"]
        self.first_part, self.parts = joined_lists(parts)
        self.first_meter, self.meters = joined_lists(meters)
        self.passed = joined_lists(passed)[1]

    @compiled
    def is_metered(self, job: cython.int) -> cython.bint:
        """Return whether a job counts against any limit."""
        return self.first_meter[job] < self.first_meter[job + 1]


def joined_lists(lists: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return where each list begins, and at last where all end, and all one after another."""
    first = numpy.cumsum([0, *(len(items) for items in lists)]).astype(numpy.int32)
    joined = numpy.array([item for items in lists for item in items] or [0], dtype=numpy.int32)
    return first, joined
