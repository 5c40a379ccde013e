"""`SlurmChoice`: which nodes Slurm gives a job (``select/cons_tres``), of those that it may use.

The four ways: best fit of runs of neighbours (the default), the least loaded node first
(``CR_LLN``), serial jobs at the end (``pack_serial_at_end``), and by switches
(``topology/tree``).
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_jobs import SlurmJobs
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays


@cython.final
@cython.cclass
class SlurmChoice:
    """The choice of nodes.

    Args:
        jobs: what they ask for.
        count: nodes.
        settings: ``least_loaded`` (by partition), ``serial_at_end``, ``counts_memory``;
            ``switches``: (levels, nodes of each as 0/1 rows), leaves have level 0.

    Attributes:
        candidate: which nodes may be used; set before `fit`.
        preferred: which of them come first among those of equal weight.
        chosen: which nodes the last `fit` chose.
        granted: processors on each of them.
    """

    jobs: SlurmJobs
    count: cython.int
    candidate: cython.schar[::1]
    preferred: cython.schar[::1]
    chosen: cython.schar[::1]
    granted: cython.int[::1]
    given_gpus: cython.int[::1]
    avail: cython.int[::1]
    least_loaded: cython.schar[::1]
    serial_at_end: cython.bint
    counts_memory: cython.bint
    # What is still to be found.
    rest_nodes: cython.int
    rest_most: cython.int
    rest_cpus: cython.int
    rest_max_cpus: cython.int
    rest_gpus: cython.int
    # Runs of neighbours.
    num_runs: cython.int
    run_first: cython.int[::1]
    run_last: cython.int[::1]
    run_nodes: cython.int[::1]
    run_cpus: cython.longlong[::1]
    run_gpus: cython.longlong[::1]
    # Switches.
    num_switches: cython.int
    switch_level: cython.int[::1]
    switch_node: cython.schar[::1]
    switch_count: cython.int[::1]
    switch_cpus: cython.longlong[::1]

    def __init__(self, jobs: SlurmJobs, count: int, settings: Any) -> None:
        self.jobs, self.count = jobs, count
        self.candidate = numpy.zeros(max(count, 1), dtype=numpy.int8)
        self.preferred = numpy.zeros(max(count, 1), dtype=numpy.int8)
        self.chosen = numpy.zeros(max(count, 1), dtype=numpy.int8)
        self.granted = numpy.zeros(max(count, 1), dtype=numpy.int32)
        self.given_gpus = numpy.zeros(max(count, 1), dtype=numpy.int32)
        self.avail = numpy.zeros(max(count, 1), dtype=numpy.int32)
        self.run_first = numpy.zeros(count + 1, dtype=numpy.int32)
        self.run_last = numpy.zeros(count + 1, dtype=numpy.int32)
        self.run_nodes = numpy.zeros(count + 1, dtype=numpy.int32)
        self.run_cpus = numpy.zeros(count + 1, dtype=numpy.int64)
        self.run_gpus = numpy.zeros(count + 1, dtype=numpy.int64)
        self.least_loaded = numpy.array(settings["least_loaded"], dtype=numpy.int8)
        self.serial_at_end = bool(settings["serial_at_end"])
        self.counts_memory = bool(settings["counts_memory"])
        levels, rows = settings["switches"]
        self.num_switches = len(levels)
        self.switch_level = numpy.array([*levels, 0], dtype=numpy.int32)
        self.switch_node = numpy.array([*rows, [0] * count], dtype=numpy.int8).reshape(-1)
        self.switch_count = numpy.zeros(len(levels) + 1, dtype=numpy.int32)
        self.switch_cpus = numpy.zeros(len(levels) + 1, dtype=numpy.int64)

    @compiled
    def fit(self, nodes: SlurmNodes, job: cython.int, part: cython.int) -> cython.bint:
        """Choose nodes for a job among the candidates; return whether there are enough.

        Where the choice fails, nodes with few processors are left out, fewest first, and it is
        made again: a job of so many nodes may want larger ones.
        """
        if self.jobs.gpus[job] == 0:
            return self._fit_with(nodes, job, part, self.jobs.node_gpus[job])
        gpus = min(self._most_gpus(nodes), self.jobs.gpus[job])
        while gpus > 0:
            if self._fit_with(nodes, job, part, gpus):
                return True
            gpus -= 1
        return False

    @compiled
    def _most_gpus(self, nodes: SlurmNodes) -> cython.int:
        most: cython.int = 0
        for node in range(self.count):
            if self.candidate[node]:
                most = max(most, nodes.free_gpus[node])
        return most

    @compiled
    def _fit_with(
        self, nodes: SlurmNodes, job: cython.int, part: cython.int, gpus: cython.int
    ) -> cython.bint:
        """Choose among the candidates that have so many free GPUs."""
        usable: cython.int = self._look(nodes, job, gpus)
        least: cython.int = 0
        if usable < self.jobs.min_nodes[job]:
            return False
        if self._choose(nodes, job, part):
            return True
        if self.jobs.max_nodes[job] >= usable:
            return False  # all of them were tried together
        while True:
            least = self._fewest()
            if least == 0:
                return False
            usable = 0
            for node in range(self.count):
                if self.avail[node] <= least:
                    self.avail[node] = 0
                elif self.avail[node] > 0:
                    usable += 1
            if usable < self.jobs.min_nodes[job]:
                return False
            if self._choose(nodes, job, part):
                return True

    @compiled
    def _fewest(self) -> cython.int:
        least: cython.int = 0
        for node in range(self.count):
            if self.avail[node] > 0 and (least == 0 or self.avail[node] < least):
                least = self.avail[node]
        return least

    @compiled
    def _look(self, nodes: SlurmNodes, job: cython.int, gpus: cython.int) -> cython.int:
        """Write how many processors each usable node has free; return how many are usable."""
        usable: cython.int = 0
        is_exclusive: cython.bint = self.jobs.exclusive[job]
        wanted: cython.int = self.jobs.node_cpus[job]
        least: cython.int = max(wanted, 1)
        memory: cython.longlong = self.jobs.memory[job]
        per_cpu: cython.longlong = self.jobs.cpu_memory[job]
        is_beside: cython.bint = self.jobs.node_gpus[job] > 0 and wanted > 0
        for node in range(self.count):
            self.avail[node] = 0
            if not self.candidate[node]:
                continue
            free = nodes.free[node]
            if free < least or nodes.free_gpus[node] < gpus:
                continue
            if is_exclusive and nodes.users[node] > 0:
                continue
            if self.counts_memory:
                if memory < 0:
                    if nodes.users[node] > 0:
                        continue
                elif nodes.free_memory[node] < memory:
                    continue
                if per_cpu > 0:
                    free = min(free, nodes.free_memory[node] // per_cpu)
                    if free < least:
                        continue
            if is_beside:
                free = wanted  # the processors beside its GPUs, and no more
            self.avail[node] = free
            usable += 1
        return usable

    @compiled
    def _choose(self, nodes: SlurmNodes, job: cython.int, part: cython.int) -> cython.bint:
        for node in range(self.count):
            self.chosen[node] = False
            self.granted[node] = 0
            self.given_gpus[node] = 0
        self.rest_nodes = self.jobs.min_nodes[job]
        self.rest_most = self.jobs.max_nodes[job]
        self.rest_cpus = self.rest_max_cpus = self.jobs.cpus[job]
        self.rest_gpus = self.jobs.gpus[job]
        if self.least_loaded[part]:
            self._by_load(nodes, job)
        elif self.serial_at_end and self.jobs.cpus[job] == 1 and self.jobs.min_nodes[job] == 1:
            self._from_the_end(nodes, job)
        elif self.num_switches > 0:
            self._by_switches(nodes, job)
        else:
            self._by_runs(nodes, job)
        return self._is_enough()

    @compiled
    def _is_enough(self) -> cython.bint:
        return self.rest_nodes <= 0 and self.rest_cpus <= 0 and self.rest_gpus <= 0

    @compiled
    def _add(self, nodes: SlurmNodes, job: cython.int, node: cython.int) -> cython.void:
        """Choose a node, with as many processors as leave one for each node still to come."""
        cpus: cython.int = self.avail[node]
        most: cython.int = self.rest_max_cpus - max(self.rest_nodes - 1, 0)
        if not self.jobs.exclusive[job] and cpus > most:
            cpus = max(most, self.jobs.node_cpus[job])
            cpus = max(cpus, 1)
        self.chosen[node] = True
        self.granted[node] = cpus
        self.rest_nodes -= 1
        self.rest_most -= 1
        self.rest_cpus -= cpus
        self.rest_max_cpus -= cpus
        if self.jobs.gpus[job] > 0:
            self.given_gpus[node] = min(nodes.free_gpus[node], max(self.rest_gpus, 0))
            self.rest_gpus -= self.given_gpus[node]

    # Runs of neighbours of equal weight.

    @compiled
    def _weight(self, nodes: SlurmNodes, node: cython.int) -> cython.longlong:
        return 2 * nodes.weight[node] - self.preferred[node]

    @compiled
    def _find_runs(self, nodes: SlurmNodes) -> cython.void:
        run: cython.int = -1
        before: cython.int = -2
        for node in range(self.count):
            if self.avail[node] == 0:
                continue
            if before != node - 1 or self._weight(nodes, before) != self._weight(nodes, node):
                run += 1
                self.run_first[run] = node
                self.run_nodes[run] = 0
                self.run_cpus[run] = 0
                self.run_gpus[run] = 0
            self.run_last[run] = node
            self.run_nodes[run] += 1
            self.run_cpus[run] += self.avail[node]
            self.run_gpus[run] += nodes.free_gpus[node]
            before = node
        self.num_runs = run + 1

    @compiled
    def _best_run(self, nodes: SlurmNodes) -> cython.int:
        """Return the run to look at next, -1 if none is left.

        The lightest; of those one that suffices before one that does not, the fewest processors of
        the former, the most of the latter.
        """
        run: cython.int
        best: cython.int = -1
        suffices: cython.bint
        best_suffices: cython.bint = False
        weight: cython.longlong
        best_weight: cython.longlong = 0
        better: cython.bint
        for run in range(self.num_runs):
            if self.run_nodes[run] == 0:
                continue
            suffices = (
                self.run_cpus[run] >= self.rest_cpus
                and self.run_nodes[run] >= self.rest_nodes
                and self.run_gpus[run] >= self.rest_gpus
            )
            weight = self._weight(nodes, self.run_first[run])
            better = best < 0 or weight < best_weight
            if not better and weight == best_weight:
                if suffices:
                    better = not best_suffices or self.run_cpus[run] < self.run_cpus[best]
                else:
                    better = self.run_cpus[run] > self.run_cpus[best]
            if better:
                best = run
                best_suffices = suffices
                best_weight = weight
        return best

    @compiled
    def _by_runs(self, nodes: SlurmNodes, job: cython.int) -> cython.void:
        self._find_runs(nodes)
        while self.rest_most > 0:
            run = self._best_run(nodes)
            if run < 0:
                return
            if self.rest_nodes <= 1:
                best = self._best_node(nodes, self.run_first[run], self.run_last[run])
                if best >= 0:
                    self._add(nodes, job, best)
                    if self._is_enough():
                        return
                    self.run_nodes[run] = 0
                    continue
            for node in range(self.run_first[run], self.run_last[run] + 1):
                if self.rest_most <= 0 or self._is_enough():
                    break
                if self.avail[node] > 0:
                    self._add(nodes, job, node)
            if self._is_enough():
                return
            self.run_nodes[run] = 0

    @compiled
    def _best_node(self, nodes: SlurmNodes, first: cython.int, last: cython.int) -> cython.int:
        """Return the node with the fewest processors that suffice, -1 if none does."""
        best: cython.int = -1
        for node in range(first, last + 1):
            if self.avail[node] == 0 or self.avail[node] < self.rest_cpus:
                continue
            if self.rest_gpus > 0 and nodes.free_gpus[node] < self.rest_gpus:
                continue
            if best < 0 or self.avail[node] < self.avail[best]:
                best = node
        return best

    # The other ways.

    @compiled
    def _by_load(self, nodes: SlurmNodes, job: cython.int) -> cython.void:
        """Take the node with most free processors, again and again."""
        while self.rest_most > 0 and not self._is_enough():
            best = -1
            for node in range(self.count):
                if self.avail[node] == 0 or self.chosen[node]:
                    continue
                if best < 0 or self.avail[node] > self.avail[best]:
                    best = node
            if best < 0:
                return
            self._add(nodes, job, best)

    @compiled
    def _from_the_end(self, nodes: SlurmNodes, job: cython.int) -> cython.void:
        node: cython.int = self.count - 1
        while node >= 0 and self.rest_most > 0 and not self._is_enough():
            if self.avail[node] > 0:
                self._add(nodes, job, node)
            node -= 1

    @compiled
    def _best_switch(self) -> cython.int:
        """Return the lowest switch below which the job fits; of these the one with fewest nodes."""
        best: cython.int = -1
        for switch in range(self.num_switches):
            self.switch_count[switch] = 0
            self.switch_cpus[switch] = 0
            for node in range(self.count):
                if self.avail[node] > 0 and self.switch_node[switch * self.count + node]:
                    self.switch_count[switch] += 1
                    self.switch_cpus[switch] += self.avail[node]
            if self.switch_count[switch] < self.rest_nodes:
                continue
            if self.switch_cpus[switch] < self.rest_cpus:
                continue
            if (
                best < 0
                or self.switch_level[switch] < self.switch_level[best]
                or (
                    self.switch_level[switch] == self.switch_level[best]
                    and self.switch_count[switch] < self.switch_count[best]
                )
            ):
                best = switch
        return best

    @compiled
    def _by_switches(self, nodes: SlurmNodes, job: cython.int) -> cython.void:
        top: cython.int = self._best_switch()
        leaf: cython.int
        best: cython.int
        suffices: cython.bint
        best_suffices: cython.bint
        if top < 0:
            return
        while self.rest_most > 0 and not self._is_enough():
            best = -1
            best_suffices = False
            for leaf in range(self.num_switches):
                if not self._is_leaf_below(leaf, top) or self.switch_count[leaf] == 0:
                    continue
                suffices = (
                    self.switch_cpus[leaf] >= self.rest_cpus
                    and self.switch_count[leaf] >= self.rest_nodes
                )
                if (
                    best < 0
                    or (suffices and not best_suffices)
                    or (suffices and self.switch_count[leaf] < self.switch_count[best])
                    or (not suffices and self.switch_count[leaf] > self.switch_count[best])
                ):
                    best = leaf
                    best_suffices = suffices
            if best < 0:
                return
            for node in range(self.count):
                if self.rest_most <= 0 or self._is_enough():
                    break
                if self.chosen[node] or self.avail[node] == 0:
                    continue
                if self.switch_node[best * self.count + node]:
                    self._add(nodes, job, node)
            self.switch_count[best] = 0

    @compiled
    def _is_leaf_below(self, leaf: cython.int, top: cython.int) -> cython.bint:
        if self.switch_level[leaf] != 0:
            return False
        for node in range(self.count):
            if self.switch_node[leaf * self.count + node]:
                return self.switch_node[top * self.count + node]
        return False

    # What comes of it.

    @compiled
    def write(self, nodes: SlurmNodes, stays: SlurmStays, job: cython.int) -> cython.void:
        """Write the nodes chosen, and what the job gets of each, as its new stay."""
        stays.open(job)
        for node in range(self.count):
            if not self.chosen[node]:
                continue
            cpus = self.granted[node]
            if self.jobs.exclusive[job]:
                cpus = nodes.cpus[node]
            elif (
                self.jobs.node_cpus[job] > 0
                and self.jobs.max_nodes[job] == self.jobs.min_nodes[job]
            ):
                cpus = self.jobs.node_cpus[job]
            memory = self.jobs.memory[job]
            if memory < 0:
                memory = nodes.memory[node]
            if self.jobs.cpu_memory[job] > 0:
                memory = self.jobs.cpu_memory[job] * cpus
            if not self.counts_memory:
                memory = 0
            gpus = self.given_gpus[node] if self.jobs.gpus[job] > 0 else self.jobs.node_gpus[job]
            stays.add(job, node, cpus, memory, gpus)
