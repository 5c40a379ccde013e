"""Sia on the simulator of all others: sizes and GPU types from jobs' options.

Goodputs are what the options say, of each GPU type that a job's model was measured on; an option
of no type is as fast on all. A restart costs the run's penalty. Jobs grow as published: to twice
the GPUs that they had at most.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.policies.pollux.sia import Configuration, Sia, SiaRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.pollux.roaming import Machines


class SiaOnOptions(Sia):
    """Chooses a configuration for each job, among those of its options."""

    def __init__(self, machines: Machines, rules: SiaRules) -> None:
        super().__init__(machines, rules)
        self._ways: dict[str, dict[Configuration, float]] = {}

    def __call__(
        self, active: Sequence[Any], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return nodes of each job that runs: their type and shape is what was chosen."""
        for job in active:
            if job.job.name not in self._ways:
                self._ways[job.job.name] = self._ways_of(job)
        own = [self._configuration(job) for job in active if job.nodes]
        every = [way for job in active for way in self._ways[job.job.name]]
        self._choices = list(dict.fromkeys([*own, *every]))
        return super().__call__(active, self._as_counted(active, free), now, interval)

    @staticmethod
    def _as_counted(active: Sequence[Any], free: Sequence[int]) -> list[int]:
        """Return the GPUs of each node where each job holds all of its on its first node.

        A configuration is of one type, and the placement may have put the job on several.
        """
        counted = list(free)
        for job in active:
            for node in job.nodes:
                counted[node] -= 1
                counted[job.nodes[0]] += 1
        return counted

    def _configuration(self, job: Any) -> Configuration:
        """Return what a running job has."""
        shape = sorted(Counter(job.nodes).values(), reverse=True)
        return Configuration(self._machines.kinds[job.nodes[0]], tuple(shape))

    def _current(self, job: Any) -> int | None:
        return self._choices.index(self._configuration(job)) if job.nodes else None

    def _ways_of(self, job: Any) -> dict[Configuration, float]:
        """Return the throughput of each configuration: powers of two, whole nodes; else of all."""
        found: dict[Configuration, float] = {}
        for option in job.options:
            for kind in self._machines.types:
                if job.allows(option, self._machines.nodes_of(kind)):
                    way = Configuration(kind, option.shape)
                    found[way] = max(found.get(way, 0.0), 1 / option.iteration_time)
        if not found:
            message = "fits the nodes of no GPU type alone; Sia gives a job GPUs of one type."
            raise SpecError(f"job {quote(job.view.job_id)}", message)
        tidy = {way: speed for way, speed in found.items() if self._is_tidy(way)}
        return tidy or found

    def _is_tidy(self, way: Configuration) -> bool:
        sizes = {self._machines.sizes[node] for node in self._machines.nodes_of(way.kind)}
        if len(way.placement) > 1:
            return set(way.placement) <= sizes
        return way.gpus.bit_count() == 1 or way.gpus in sizes

    def _goodputs(self, job: Any) -> np.ndarray:
        ways = self._ways[job.job.name]
        most = max(job.most_gpus, min(way.gpus for way in ways))  # the smallest may be untidy
        found = np.array([ways.get(c, 0.0) if c.gpus <= most else 0.0 for c in self._choices])
        current = self._current(job)
        if current is not None and not found[current]:  # the placement has put it otherwise
            gpus = self._choices[current].gpus
            found[current] = max(1 / o.iteration_time for o in job.options if o.num_gpus == gpus)
        return found

    def _restart_time(self, job: Any) -> float:
        return float(job.restart_time)

    def _placed(
        self,
        active: Sequence[Any],
        chosen: Sequence[int | None],
        free: list[int],  # noqa: ARG002 - the run's placement looks for room
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of jobs that stay as they are; of others some of the type chosen."""
        placed: dict[str, tuple[int, ...]] = {}
        for job, at in zip(active, chosen, strict=True):
            if at is None:
                continue
            choice = self._choices[at]
            if at == self._current(job):
                placed[job.job.name] = job.nodes
                continue
            nodes = self._machines.nodes_of(choice.kind)
            wanted = zip(choice.placement, nodes, strict=False)
            placed[job.job.name] = tuple(node for gpus, node in wanted for _ in range(gpus))
        return placed
