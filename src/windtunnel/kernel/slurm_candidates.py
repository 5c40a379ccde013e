"""`SlurmCandidates`: the nodes that a job may use, by partition, mask and reservation."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import SLURM_MAINTENANCE, SLURM_RESERVATION, SlurmJobs
from windtunnel.kernel.slurm_nodes import SlurmNodes


@cython.final
@cython.cclass
class SlurmCandidates:
    """The site's partitions, masks of nodes and advance reservations.

    Args:
        nodes, choice: parts of `SlurmLoops`; what is marked stands in the choice.
        site: ``part_nodes`` (rows of 0/1), ``hold_nodes``, ``hold_start``, ``hold_end``,
            ``hold_covers`` (reservations by partitions: whether all of its nodes are closed),
            ``masks``.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    choice: SlurmChoice
    parts: cython.int
    part_node: cython.schar[::1]
    masks: cython.schar[::1]
    holds: cython.int
    hold_node: cython.schar[::1]
    hold_start: cython.longlong[::1]
    hold_end: cython.longlong[::1]
    hold_covers: cython.schar[::1]

    def __init__(self, nodes: SlurmNodes, choice: SlurmChoice, site: Any) -> None:
        self.nodes, self.jobs, self.choice = nodes, choice.jobs, choice
        self.parts = len(site["part_nodes"])
        self.part_node = _rows(site["part_nodes"], nodes.count)
        self.masks = _rows(site["masks"], nodes.count)
        self.set_holds(site)

    def set_holds(self, site: Any) -> None:
        """Say which advance reservations there are."""
        self.holds = len(site["hold_start"])
        self.hold_node = _rows(site["hold_nodes"], self.nodes.count)
        self.hold_start = numpy.array([*site["hold_start"], 0], dtype=numpy.int64)
        self.hold_end = numpy.array([*site["hold_end"], 0], dtype=numpy.int64)
        self.hold_covers = _rows(site["hold_covers"], self.parts)

    @compiled
    def mark(self, job: cython.int, part: cython.int) -> cython.void:
        """Mark the nodes of a partition that are up and that a job may use."""
        row: cython.longlong = cython.cast(cython.longlong, part) * self.nodes.count
        mask: cython.longlong = cython.cast(cython.longlong, self.jobs.mask[job]) * self.nodes.count
        candidate: cython.schar[::1] = self.choice.candidate
        for node in range(self.nodes.count):
            candidate[node] = self.part_node[row + node] & self.nodes.up[node]
        if mask >= 0:
            for node in range(self.nodes.count):
                candidate[node] &= self.masks[mask + node]

    @compiled
    def apply_holds(self, job: cython.int, part: cython.int, start: cython.longlong) -> cython.int:
        """Take away the nodes that are reserved while a job would run.

        Returns:
            0, or why it cannot start then whatever nodes there are.
        """
        own: cython.int = self.jobs.hold[job]
        end: cython.longlong = start + self.jobs.limit[job]
        for hold in range(self.holds):
            if hold == own:
                if start < self.hold_start[hold] or start >= self.hold_end[hold]:
                    return SLURM_RESERVATION
                for node in range(self.nodes.count):
                    self.choice.candidate[node] &= self.hold_node[hold * self.nodes.count + node]
            elif self.hold_start[hold] < end and self.hold_end[hold] > start:
                if own < 0 and self.hold_covers[hold * self.parts + part]:
                    return SLURM_MAINTENANCE
                for node in range(self.nodes.count):
                    if self.hold_node[hold * self.nodes.count + node]:
                        self.choice.candidate[node] = False
        return 0

    @compiled
    def count(self) -> cython.int:
        """Return how many nodes are marked."""
        found: cython.int = 0
        for node in range(self.nodes.count):
            found += self.choice.candidate[node]
        return found


def _rows(rows: Any, width: int) -> numpy.ndarray:
    """Return rows of 0 and 1 as one array, one more of zeros at its end."""
    flat = numpy.zeros((len(rows) + 1, max(width, 1)), dtype=numpy.int8)
    if len(rows):
        flat[: len(rows), :width] = numpy.asarray(rows, dtype=numpy.int8).reshape(len(rows), width)
    return flat.reshape(-1)
