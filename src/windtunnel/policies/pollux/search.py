"""Pollux: a genetic search, each tick, for the GPUs that make all jobs' goodput largest.

Qiao et al., OSDI'21, section 4.2; petuum/adaptdl, branch ``osdi21-artifact``, ``simulator/``.
Its random numbers are not seeded there; here they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel import kernel
from windtunnel.policies.pollux.tuned import Tuned

if TYPE_CHECKING:
    from collections.abc import Sequence

#: States that live, and generations of them a decision, the first being what it begins with.
_SIZE, _GENERATIONS = 100, 100
#: s that a restart is taken to cost, whatever it costs.
_RESTART = 30.0


class Pollux:
    """Searches the states of the last decision on.

    Args:
        avoid: whether two jobs on several nodes may not share one.
        seed: of its random numbers.
    """

    trains = Tuned

    def __init__(self, *, avoid: bool = True, seed: int = 0) -> None:
        self._avoid, self._seed, self._ticks = avoid, seed, 0
        self._names: list[str] = []
        self._states: np.ndarray | None = None

    def __call__(
        self, active: Sequence[Tuned], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each job that runs."""
        del interval
        self._ticks += 1
        if not active or not any(free):
            return {}
        jobs = sorted(active, key=lambda job: (job.held, job.job.submit))
        num_nodes, node_gpus = len(free), max(free)
        base = np.zeros((len(jobs), num_nodes), np.int32)
        for row, job in zip(base, jobs, strict=True):
            np.add.at(row, list(job.nodes), 1)
        most = np.array([min(job.most_gpus, num_nodes * node_gpus) for job in jobs], np.int32)
        search = kernel.AllocationSearch(
            base,
            most,
            _worth(jobs, most, num_nodes, node_gpus),
            np.array([_kept(job, now) for job in jobs]),
            node_gpus,
            avoid=self._avoid,
            size=_SIZE,
            seed=(self._seed << 32) + self._ticks,
        )
        names = [job.job.name for job in jobs]
        search.begin(self._carried_over(names, base))
        search.run(_GENERATIONS - 1)
        self._states, _ = search.found()
        self._names = names
        return {
            name: tuple(np.repeat(np.arange(num_nodes), row).tolist())
            for name, row in zip(names, self._states[0], strict=True)
        }

    def _carried_over(self, names: list[str], base: np.ndarray) -> np.ndarray:
        """Return the states that none dominated in the decision before, with the jobs of now."""
        if self._states is None:
            return base[None]
        states = np.zeros((len(self._states), *base.shape), np.int32)
        before = {name: at for at, name in enumerate(self._names)}
        for at, name in enumerate(names):
            if name in before:
                states[:, at] = self._states[:, before[name]]
        return states


def _worth(jobs: Sequence[Tuned], most: np.ndarray, num_nodes: int, node_gpus: int) -> np.ndarray:
    """Return what GPUs are worth to each job, by whether they are on several nodes, and number.

    That is the goodput beside that of a fair share, which is taken to be on one node, however
    large; by nodes a GPU, as published, which matters beside what a job without GPUs has.
    """
    fair = -(-num_nodes * node_gpus // len(jobs))
    worth = np.zeros((len(jobs), 2, int(most.max()) + 1))
    for at, job in enumerate(jobs):
        own = job.speedups(max(int(most[at]), fair))
        share = own[0, fair] or own[0].max() or own.max() or 1.0
        worth[at, :, : most[at] + 1] = own[:, : most[at] + 1] / share / node_gpus
    return worth


def _kept(job: Tuned, now: float) -> float:
    """Return the part of its worth that a job keeps where it is moved."""
    age = now - job.job.submit
    return max(age - _RESTART * job.restarts, 0.0) / (age + _RESTART)
