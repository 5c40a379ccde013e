"""`SlurmLimits`: the limits of QOS and associations, as meters that running jobs turn; licences.

A meter is whatever has a limit of its own: a QOS, a QOS for one user or account, an association.
Each job has its list of meters, in the order in which slurmctld looks at them. It counts on all of
them; a limit is passed over where one of the same kind was stated before, by a QOS.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_jobs import SLURM_FIRST_LIMIT, SlurmJobs, joined_lists
from windtunnel.kernel.slurm_nodes import SlurmStays

#: What a meter measures: processors, memory (MB), nodes, GPUs, which are TRES, and jobs; then the
#: seconds of each TRES to come, and those that were used.
METER_CPUS = cython.declare(cython.int, 0)
METER_MEMORY = cython.declare(cython.int, 1)
METER_NODES = cython.declare(cython.int, 2)
METER_GPUS = cython.declare(cython.int, 3)
METER_JOBS = cython.declare(cython.int, 4)
METER_TRES = cython.declare(cython.int, 4)
METER_RUN_SECONDS = cython.declare(cython.int, 5)
METER_SECONDS = cython.declare(cython.int, 9)
METER_COLUMNS = cython.declare(cython.int, 13)


@cython.final
@cython.cclass
class SlurmLimits:
    """Limits and what is used of them.

    Args:
        jobs, stays: whose they are, and what those have.
        limit: Int array (meters, 13), -1 = none; columns as the METER constants.
        kind: of each meter, the row of reasons that it gives.
        nodes: how many there are.
        safe: a job may not be able to use more seconds of a TRES than there are left.

    Attributes:
        used: what is used, (meters, 13).
        node_users: jobs of each meter on each node, of meters that count nodes.
    """

    jobs: SlurmJobs
    stays: SlurmStays
    meters: cython.int
    nodes: cython.int
    limit: cython.longlong[::1]
    used: cython.longlong[::1]
    kind: cython.int[::1]
    node_row: cython.int[::1]
    node_users: cython.int[::1]
    safe: cython.bint
    want: cython.longlong[::1]

    def __init__(
        self, jobs: SlurmJobs, stays: SlurmStays, limit: Any, kind: Any, nodes: int, *, safe: bool
    ) -> None:
        limits = numpy.array(limit, dtype=numpy.int64).reshape(-1, 13)
        self.jobs, self.stays = jobs, stays
        self.meters, self.nodes, self.safe = len(limits), nodes, safe
        counting = limits[:, 2] >= 0
        rows = numpy.where(counting, numpy.cumsum(counting) - 1, -1)
        self.limit = numpy.append(limits.reshape(-1), 0)
        self.used = numpy.zeros(limits.size + 1, dtype=numpy.int64)
        self.kind = numpy.append(numpy.array(kind, dtype=numpy.int32), 0).astype(numpy.int32)
        self.node_row = numpy.append(rows, -1).astype(numpy.int32)
        self.node_users = numpy.zeros(int(counting.sum()) * nodes + 1, dtype=numpy.int32)
        self.want = numpy.zeros(13, dtype=numpy.int64)

    @compiled
    def clear(self) -> cython.void:
        """Let nothing be used."""
        for at in range(self.meters * METER_COLUMNS):
            if at % METER_COLUMNS < METER_SECONDS:
                self.used[at] = 0
        for at in range(self.node_users.shape[0]):
            self.node_users[at] = 0

    @compiled
    def admits(self, job: cython.int) -> cython.int:
        """Return why a job may not run by how many do, 0 if it may."""
        for at in range(self.jobs.first_meter[job], self.jobs.first_meter[job + 1]):
            meter = self.jobs.meters[at]
            cell = meter * METER_COLUMNS + METER_JOBS
            if self._holds(at, METER_JOBS) and self.used[cell] >= self.limit[cell]:
                return self._reason(meter, METER_JOBS)
        return 0

    @compiled
    def _holds(self, at: cython.longlong, column: cython.int) -> cython.bint:
        """Return whether there is a limit, not passed over, in a column; by place of meter."""
        if self.limit[self.jobs.meters[at] * METER_COLUMNS + column] < 0:
            return False
        return not self.jobs.passed[at] >> column & 1

    @compiled
    def _reason(self, meter: cython.int, column: cython.int) -> cython.int:
        return SLURM_FIRST_LIMIT + self.kind[meter] * METER_COLUMNS + column

    @compiled
    def admits_stay(self, job: cython.int) -> cython.int:
        """Return why a job may not have what was written as its stay, 0 if it may."""
        if not self.jobs.is_metered(job):
            return 0
        self._ask(job)
        return self._compare(job, True)

    @compiled
    def admits_request(self, job: cython.int) -> cython.int:
        """Return why a job may not have what it asked for, 0 if it may; wherever it might run."""
        if not self.jobs.is_metered(job):
            return 0
        self.want[METER_CPUS] = self.jobs.cpus[job]
        self.want[METER_MEMORY] = max(self.jobs.memory[job], 0) * self.jobs.min_nodes[job]
        self.want[METER_NODES] = self.jobs.min_nodes[job]
        self.want[METER_GPUS] = max(
            self.jobs.gpus[job], self.jobs.node_gpus[job] * self.jobs.min_nodes[job]
        )
        self._want_seconds(job)
        return self._compare(job, False)

    @compiled
    def refuses_anywhere(self, job: cython.int) -> cython.int:
        """Return why a job may run on no nodes at all, 0 if that depends on them."""
        reason: cython.int = self.admits_request(job)
        if reason and (reason - SLURM_FIRST_LIMIT) % METER_COLUMNS == METER_NODES:
            return 0
        return reason

    @compiled
    def _compare(self, job: cython.int, is_placed: cython.bint) -> cython.int:
        """Return which of a job's meters has too little left for what is wanted, 0 if none has."""
        for at in range(self.jobs.first_meter[job], self.jobs.first_meter[job + 1]):
            meter = self.jobs.meters[at]
            cell = meter * METER_COLUMNS
            reason = self._seconds_left(at)
            if reason:
                return reason
            if is_placed and self.limit[cell + METER_NODES] >= 0:
                self.want[METER_NODES] = self._new_nodes(meter, job)
            for column in range(METER_JOBS):
                if not self._holds(at, column):
                    continue
                if self.used[cell + column] + self.want[column] > self.limit[cell + column]:
                    return self._reason(meter, column)
        return 0

    @compiled
    def _seconds_left(self, at: cython.longlong) -> cython.int:
        """Return why a job has too few seconds of a TRES, 0 if enough; by place of meter."""
        meter: cython.int = self.jobs.meters[at]
        cell: cython.int = meter * METER_COLUMNS
        for column in range(METER_SECONDS, METER_COLUMNS):
            if not self._holds(at, column):
                continue
            used = self.used[cell + column]
            if used >= self.limit[cell + column]:
                return self._reason(meter, column)
            if self.safe:
                used += self._running(cell, column - METER_SECONDS)
                if used > self.limit[cell + column]:
                    return self._reason(meter, column)
        for column in range(METER_RUN_SECONDS, METER_SECONDS):
            if not self._holds(at, column):
                continue
            if self._running(cell, column - METER_RUN_SECONDS) > self.limit[cell + column]:
                return self._reason(meter, column)
        return 0

    @compiled
    def _running(self, cell: cython.int, tres: cython.int) -> cython.longlong:
        """Return what all that run might use yet of a TRES, were the job that asks among them."""
        return self.used[cell + METER_RUN_SECONDS + tres] + self.want[METER_RUN_SECONDS + tres]

    @compiled
    def _ask(self, job: cython.int) -> cython.void:
        """Sum up what a job's stay has."""
        for column in range(METER_COLUMNS):
            self.want[column] = 0
        for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
            self.want[METER_CPUS] += self.stays.cpus[at]
            self.want[METER_MEMORY] += self.stays.memory[at]
            self.want[METER_GPUS] += self.stays.gpus[at]
        self.want[METER_NODES] = self.stays.length[job]
        self._want_seconds(job)

    @compiled
    def _want_seconds(self, job: cython.int) -> cython.void:
        """Work out what a job may use of each TRES in its time, given how much it has of each."""
        self.want[METER_JOBS] = 1
        for tres in range(METER_TRES):
            self.want[METER_RUN_SECONDS + tres] = self.want[tres] * self.jobs.limit[job]

    @compiled
    def _new_nodes(self, meter: cython.int, job: cython.int) -> cython.int:
        """Return on how many nodes of a job's stay nobody of a meter is yet."""
        new: cython.int = 0
        row: cython.longlong = cython.cast(cython.longlong, self.node_row[meter]) * self.nodes
        for at in range(self.stays.first[job], self.stays.first[job] + self.stays.length[job]):
            if self.node_users[row + self.stays.node[at]] == 0:
                new += 1
        return new

    @compiled
    def mark_own(self, marks: cython.schar[::1], job: cython.int) -> cython.void:
        """Mark the nodes on which a meter of a job that counts nodes has jobs already."""
        for at in range(self.jobs.first_meter[job], self.jobs.first_meter[job + 1]):
            if self.node_row[self.jobs.meters[at]] < 0:
                continue
            row = cython.cast(cython.longlong, self.node_row[self.jobs.meters[at]]) * self.nodes
            for node in range(self.nodes):
                marks[node] = self.node_users[row + node] > 0

    @compiled
    def turn(self, job: cython.int, sign: cython.int) -> cython.void:
        """Count a job's stay (1), or no longer (-1)."""
        if not self.jobs.is_metered(job):
            return
        self._ask(job)
        for at in range(self.jobs.first_meter[job], self.jobs.first_meter[job + 1]):
            meter = self.jobs.meters[at]
            if self.node_row[meter] >= 0:
                row = cython.cast(cython.longlong, self.node_row[meter]) * self.nodes
                self.want[METER_NODES] = 0
                for place in range(
                    self.stays.first[job], self.stays.first[job] + self.stays.length[job]
                ):
                    cell = row + self.stays.node[place]
                    if sign > 0 and self.node_users[cell] == 0:
                        self.want[METER_NODES] += 1
                    self.node_users[cell] += sign
                    if sign < 0 and self.node_users[cell] == 0:
                        self.want[METER_NODES] += 1
            for column in range(METER_SECONDS):
                self.used[meter * METER_COLUMNS + column] += sign * self.want[column]

    def use_seconds(self, meter: int, tres: int, seconds: float) -> None:
        """Say how many seconds of a TRES a meter has used."""
        self.used[meter * METER_COLUMNS + METER_SECONDS + tres] = int(seconds)

    def run_on(self, meter: int, tres: int, seconds: int) -> None:
        """Say that jobs of a meter that run may use so many seconds of a TRES less than before."""
        self.used[meter * METER_COLUMNS + METER_RUN_SECONDS + tres] -= seconds


@cython.final
@cython.cclass
class SlurmLicenses:
    """Licences: nothing is reserved, so whoever comes while there are enough has them.

    Args:
        total: how many there are, of each kind.
        asked: by job: (kind, how many) of each kind it needs.

    Attributes:
        held: how many the running jobs hold, of each kind.
    """

    total: cython.longlong[::1]
    held: cython.longlong[::1]
    first: cython.int[::1]
    kind: cython.int[::1]
    amount: cython.longlong[::1]

    def __init__(self, total: list[int], asked: Any) -> None:
        self.total = numpy.array([*total, 0], dtype=numpy.int64)
        self.first, self.kind = joined_lists([[kind for kind, _ in of] for of in asked])
        amounts = [amount for of in asked for _, amount in of]
        self.amount = numpy.array([*amounts, 0], dtype=numpy.int64)
        self.clear()

    def clear(self) -> None:
        """Let nobody hold any."""
        self.held = numpy.zeros(len(self.total), dtype=numpy.int64)

    @compiled
    def are_short(self, job: cython.int) -> cython.bint:
        """Return whether there are too few left for a job."""
        for at in range(self.first[job], self.first[job + 1]):
            if self.held[self.kind[at]] + self.amount[at] > self.total[self.kind[at]]:
                return True
        return False

    @compiled
    def turn(self, job: cython.int, sign: cython.int) -> cython.void:
        """Let a job hold what it needs (1), or no longer (-1)."""
        for at in range(self.first[job], self.first[job + 1]):
            self.held[self.kind[at]] += sign * self.amount[at]
