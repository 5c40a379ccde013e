"""`SlurmNodes`: what is free on the nodes of a cluster under Slurm; `SlurmStays`: who has what.

Slurm counts processors, memory and GPUs of each node (``select/cons_tres``).
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer


@cython.final
@cython.cclass
class SlurmNodes:
    """What is free on each node.

    Args:
        cpus, memory, gpus: what the nodes have (memory in MB), int arrays (nodes,).
        weight: what Slurm would rather not use is heavier, int array (nodes,).

    Attributes:
        count: nodes.
        users: jobs on each node.
        completing: of those, the ones that end there.
        up: whether a node may be given to jobs at all.
    """

    count: cython.int
    cpus: cython.int[::1]
    free: cython.int[::1]
    memory: cython.longlong[::1]
    free_memory: cython.longlong[::1]
    gpus: cython.int[::1]
    free_gpus: cython.int[::1]
    weight: cython.longlong[::1]
    users: cython.int[::1]
    completing: cython.int[::1]
    up: cython.schar[::1]

    def __init__(self, cpus: Any, memory: Any, gpus: Any, weight: Any) -> None:
        self.count = len(cpus)
        self.cpus = numpy.array(cpus, dtype=numpy.int32)
        self.free = numpy.array(cpus, dtype=numpy.int32)
        self.memory = numpy.array(memory, dtype=numpy.int64)
        self.free_memory = numpy.array(memory, dtype=numpy.int64)
        self.gpus = numpy.array(gpus, dtype=numpy.int32)
        self.free_gpus = numpy.array(gpus, dtype=numpy.int32)
        self.weight = numpy.array(weight, dtype=numpy.int64)
        self.users = numpy.zeros(self.count, dtype=numpy.int32)
        self.completing = numpy.zeros(self.count, dtype=numpy.int32)
        self.up = numpy.ones(self.count, dtype=numpy.int8)

    def twin(self) -> SlurmNodes:
        """Return an equal state of the same nodes."""
        other = SlurmNodes(self.cpus, self.memory, self.gpus, self.weight)
        other.copy_from(self)
        return other

    def gpus_free(self) -> list[int]:
        """Return how many GPUs of each node nobody has."""
        free: list[int] = numpy.asarray(self.free_gpus).tolist()
        return free

    @compiled
    def copy_from(self, other: SlurmNodes) -> cython.void:
        """Become equal to another state of the same nodes; of what is up there is one truth."""
        for node in range(self.count):
            self.free[node] = other.free[node]
            self.free_memory[node] = other.free_memory[node]
            self.free_gpus[node] = other.free_gpus[node]
            self.users[node] = other.users[node]

    @compiled
    def empty(self) -> cython.void:
        """Let everything be free."""
        for node in range(self.count):
            self.free[node] = self.cpus[node]
            self.free_memory[node] = self.memory[node]
            self.free_gpus[node] = self.gpus[node]
            self.users[node] = 0

    @compiled
    def turn(self, stays: SlurmStays, job: cython.int, sign: cython.int) -> cython.void:
        """Let a job have what its stay says (1), or no longer (-1)."""
        for at in range(stays.first[job], stays.first[job] + stays.length[job]):
            node = stays.node[at]
            self.free[node] -= sign * stays.cpus[at]
            self.free_memory[node] -= sign * stays.memory[at]
            self.free_gpus[node] -= sign * stays.gpus[at]
            self.users[node] += sign


@cython.final
@cython.cclass
class SlurmStays:
    """What each job has, or had last, of which nodes.

    Attributes:
        first, length: where a job's nodes stand in the columns, and how many they are.
        node, cpus, memory, gpus: a row for each node of a job.
    """

    first: cython.longlong[::1]
    length: cython.int[::1]
    count: cython.longlong
    capacity: cython.longlong
    node: cython.int[::1]
    cpus: cython.int[::1]
    memory: cython.longlong[::1]
    gpus: cython.int[::1]

    def __init__(self, jobs: int) -> None:
        self.first = numpy.zeros(max(jobs, 1), dtype=numpy.int64)
        self.length = numpy.zeros(max(jobs, 1), dtype=numpy.int32)
        self.count = 0
        self.capacity = 64
        self.node = numpy.zeros(self.capacity, dtype=numpy.int32)
        self.cpus = numpy.zeros(self.capacity, dtype=numpy.int32)
        self.memory = numpy.zeros(self.capacity, dtype=numpy.int64)
        self.gpus = numpy.zeros(self.capacity, dtype=numpy.int32)

    def _grow(self) -> None:
        capacity = 2 * self.capacity
        self.node = longer(self.node, capacity)
        self.cpus = longer(self.cpus, capacity)
        self.memory = longer(self.memory, capacity)
        self.gpus = longer(self.gpus, capacity)
        self.capacity = capacity

    @compiled
    def open(self, job: cython.int) -> cython.void:
        """Begin a new list of nodes for a job."""
        self.first[job] = self.count
        self.length[job] = 0

    @compiled
    def add(
        self,
        job: cython.int,
        node: cython.int,
        cpus: cython.int,
        memory: cython.longlong,
        gpus: cython.int,
    ) -> cython.void:
        """Append a node to the list that was opened last."""
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.node[self.count] = node
        self.cpus[self.count] = cpus
        self.memory[self.count] = memory
        self.gpus[self.count] = gpus
        self.count += 1
        self.length[job] += 1

    @compiled
    def is_on(self, job: cython.int, marks: cython.schar[::1]) -> cython.bint:
        """Return whether a job has, or had last, any of the nodes that are marked."""
        for at in range(self.first[job], self.first[job] + self.length[job]):
            if marks[self.node[at]]:
                return True
        return False

    def put(self, job: int, rows: Any) -> None:
        """Say what a job has: (node, cpus, memory in MB, GPUs) rows."""
        self.open(job)
        for node, cpus, memory, gpus in rows:
            self.add(job, node, cpus, memory, gpus)

    def of(self, job: int) -> list[tuple[int, int, int, int]]:
        """Return what a job has, or had last, as `put` takes it."""
        rows = range(int(self.first[job]), int(self.first[job]) + int(self.length[job]))
        return [
            (int(self.node[at]), int(self.cpus[at]), int(self.memory[at]), int(self.gpus[at]))
            for at in rows
        ]
