"""`SlurmVictims`: whose place a job may take under Slurm, and whose it takes.

By QOS (``preempt/qos``) or by the partitions' tiers (``preempt/partition_prio``). Candidates are
taken away one after another until the job fits, in order of their worth; the last one that it
needed comes first then, and so on, to spare the others (``preempt_reorder_count``).
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import SlurmJobs
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays

#: More nodes than that count for no more in the worth of a candidate.
VICTIMS_NODES = cython.declare(cython.longlong, 0xFFFF)


@cython.final
@cython.cclass
class SlurmVictims:
    """Candidates for preemption, and the victims of one job.

    Args:
        nodes, stays, choice: parts of `SlurmLoops`.
        rules: ``rank`` (by partition or QOS: which partition's or QOS' jobs it may preempt, rows
            of 0/1), ``worth`` (by partition or QOS), ``may_go`` (ditto: its jobs may be stopped),
            ``exempt`` (ditto: s for which they may not), ``grace`` (ditto: s between the notice
            and the end), ``by_qos``, ``youngest_first``, ``reorder_count``, ``patience`` (s for
            which a job waits for those stopped before it has others stopped).

    Attributes:
        count: how many candidates there are; 0 = the job can take nobody's place.
        listed: those, in the order in which they are taken away.
        chosen: the victims of the last `pick` that succeeded.
    """

    nodes: SlurmNodes
    rest: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    choice: SlurmChoice
    kinds: cython.int
    rank: cython.schar[::1]
    worth: cython.longlong[::1]
    may_go: cython.schar[::1]
    exempt: cython.longlong[::1]
    grace: cython.longlong[::1]
    patience: cython.longlong
    any_rule: cython.bint
    by_qos: cython.bint
    youngest_first: cython.bint
    reorders: cython.int
    count: cython.int
    listed: cython.int[::1]
    key: cython.longlong[::1]
    is_listed: cython.schar[::1]
    chosen: JobList

    def __init__(
        self, nodes: SlurmNodes, stays: SlurmStays, choice: SlurmChoice, rules: Any
    ) -> None:
        self.nodes, self.stays, self.choice, self.jobs = nodes, stays, choice, choice.jobs
        self.rest = nodes.twin()
        self.kinds = len(rules["rank"])
        self.any_rule = any(any(row) for row in rules["rank"])
        flat = [one for row in rules["rank"] for one in row]
        self.rank = numpy.array([*flat, 0], dtype=numpy.int8)
        self.worth = numpy.array([*rules["worth"], 0], dtype=numpy.int64)
        self.may_go = numpy.array([*rules["may_go"], 0], dtype=numpy.int8)
        self.exempt = numpy.array([*rules["exempt"], 0], dtype=numpy.int64)
        self.grace = numpy.array([*rules["grace"], 0], dtype=numpy.int64)
        self.patience = rules["patience"]
        self.by_qos = bool(rules["by_qos"])
        self.youngest_first = bool(rules["youngest_first"])
        self.reorders = rules["reorder_count"]
        capacity = max(self.jobs.count, 1)
        self.listed = numpy.zeros(capacity, dtype=numpy.int32)
        self.key = numpy.zeros(capacity, dtype=numpy.int64)
        self.is_listed = numpy.zeros(capacity, dtype=numpy.int8)
        self.chosen = JobList()
        self.count = 0

    @compiled
    def may_preempt(
        self, job: cython.int, part: cython.int, other: cython.int, other_part: cython.int
    ) -> cython.bint:
        """Return whether a job in a partition may take the place of another in its own."""
        if not self.any_rule:
            return False
        if self.by_qos:
            return self.rank[self.jobs.qos[job] * self.kinds + self.jobs.qos[other]] != 0
        return self.rank[part * self.kinds + other_part] != 0

    @compiled
    def find(
        self,
        job: cython.int,
        part: cython.int,
        now: cython.longlong,
        running: cython.int[::1],
        num_running: cython.int,
    ) -> cython.int:
        """List the candidates of a job, those that go first in front; return how many they are.

        Of equal ones the first submitted goes first.
        """
        self.count = 0
        if not self.any_rule:
            return 0
        for at in range(num_running):
            other = running[at]
            if not self.may_preempt(job, part, other, self.jobs.part[other]):
                continue
            kind = self.jobs.qos[other] if self.by_qos else self.jobs.part[other]
            if not self.may_go[kind] or now < self.jobs.start[other] + self.exempt[kind]:
                continue
            if self.jobs.is_ending[other]:
                continue
            self._list(other, kind)
        return self.count

    @compiled
    def grace_of(self, job: cython.int) -> cython.longlong:
        """Return how long a job may go on after it was asked to end, s."""
        return self.grace[self.jobs.qos[job] if self.by_qos else self.jobs.part[job]]

    @compiled
    def _list(self, job: cython.int, kind: cython.int) -> cython.void:
        """Put a job among the candidates."""
        at: cython.int = self.count
        key: cython.longlong
        if self.youngest_first:
            key = -self.jobs.start[job]
        else:
            key = (self.worth[kind] << 16) + min(
                cython.cast(cython.longlong, self.stays.length[job]), VICTIMS_NODES
            )
        while at > 0 and (
            self.key[at - 1] > key or (self.key[at - 1] == key and self.listed[at - 1] > job)
        ):
            self.listed[at] = self.listed[at - 1]
            self.key[at] = self.key[at - 1]
            at -= 1
        self.listed[at] = job
        self.key[at] = key
        self.count += 1

    @compiled
    def without_all(self, nodes: SlurmNodes) -> cython.void:
        """Let a copy of the nodes' state be without all candidates, and mark who they are."""
        for at in range(self.count):
            nodes.turn(self.stays, self.listed[at], -1)
            self.is_listed[self.listed[at]] = True

    @compiled
    def unmark(self) -> cython.void:
        """Forget the marks of `without_all`."""
        for at in range(self.count):
            self.is_listed[self.listed[at]] = False

    @compiled
    def pick(self, job: cython.int, part: cython.int) -> cython.bint:
        """Find out whom a job needs gone to start on the candidate nodes; return whether it can.

        The choice of nodes is then the one without them.
        """
        last: cython.int = 0
        passes: cython.int = 0
        total: cython.int = self.count
        while True:
            self.rest.copy_from(self.nodes)
            last = -1
            for at in range(self.count):
                self.rest.turn(self.stays, self.listed[at], -1)
                if self.choice.fit(self.rest, job, part):
                    last = at
                    break
            if last < 0:
                return False
            passes += 1
            if passes > self.reorders + 1 or total <= passes:
                break
            self._to_front(last)
        self.chosen.count = 0
        for at in range(last + 1):
            if self.stays.is_on(self.listed[at], self.choice.chosen):
                self.chosen.add(self.listed[at])
        return True

    @compiled
    def _to_front(self, last: cython.int) -> cython.void:
        job: cython.int = self.listed[last]
        while last > 0:
            self.listed[last] = self.listed[last - 1]
            last -= 1
        self.listed[0] = job
