"""Tiresias and Optimus as Pollux's published simulator has them.

Tiresias: Gu et al., NSDI'19; Optimus: Peng et al., EuroSys'18; petuum/adaptdl, branch
``osdi21-artifact``, ``simulator/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.policies.pollux.clock import Trained, place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: GPU-seconds of service after which Tiresias moves a job to the second queue.
QUEUE_BOUND = 57_600.0
#: Applications that train on one GPU only.
_ALONE = frozenset({"ncf"})
#: GPUs a node that Optimus fills in its estimates, whatever the cluster's nodes have.
_FILLED = 4


class Tiresias:
    """Two queues by attained service; jobs run as they were asked for, and never come back up."""

    trains = Trained

    def __init__(self) -> None:
        self._queues: tuple[list[str], list[str]] = ([], [])
        self._executed: dict[str, float] = {}

    def __call__(
        self, active: Sequence[Trained], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each job that runs."""
        del now
        here = {job.job.name: job for job in active}
        self._requeue(here, interval)
        spare, runs = sum(free), []
        for name in (*self._queues[0], *self._queues[1]):
            if here[name].job.gpus <= spare:
                spare -= here[name].job.gpus
                runs.append(name)
        chosen = {name: here[name].nodes for name in runs if here[name].nodes}
        for nodes in chosen.values():
            for node in nodes:
                free[node] -= 1
        for name in runs:
            if name not in chosen:
                chosen[name] = place(here[name].job.gpus, free)
        return chosen

    def _requeue(self, here: Mapping[str, Trained], interval: float) -> None:
        """Take in who came, drop who left, and move down who had enough service."""
        first, second = self._queues
        for queue in self._queues:
            queue[:] = [name for name in queue if name in here]
        first += [name for name in here if name not in self._executed]
        for name, job in here.items():
            self._executed[name] = self._executed.get(name, 0.0) + interval * bool(job.nodes)
        for name in list(first):
            if self._executed[name] * here[name].job.gpus >= QUEUE_BOUND:
                first.remove(name)
                second.append(name)


class Optimus:
    """GPUs one by one to the job whose remaining time they shorten most, from true step times.

    Each gets the least that it does with first, in turn.

    Args:
        gain: the seconds that one GPU more saves a job that has so many.
    """

    trains = Trained

    def __init__(self, gain: Callable[[Any, int], float] | None = None) -> None:
        self._gain = gain or _gain

    def __call__(
        self, active: Sequence[Trained], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each job that runs."""
        del now, interval
        spare, counts = sum(free), dict[str, int]()
        for job in active:
            if job.least_gpus <= spare:
                counts[job.job.name] = job.least_gpus
                spare -= job.least_gpus
        jobs = {job.job.name: job for job in active}
        gains = {name: self._gain(jobs[name], count) for name, count in counts.items()}
        while spare and gains:
            name = max(gains, key=lambda n: gains[n])
            if gains[name] <= 0:
                break
            counts[name] += 1
            spare -= 1
            gains[name] = self._gain(jobs[name], counts[name])
        chosen = {}
        for name, count in counts.items():
            if len(jobs[name].nodes) == count:
                chosen[name] = jobs[name].nodes
                for node in jobs[name].nodes:
                    free[node] -= 1
        for name in sorted(counts, key=lambda n: counts[n]):
            if name not in chosen:
                chosen[name] = place(counts[name], free)
        return chosen


def _gain(job: Trained, gpus: int) -> float:
    """Return the seconds that one more GPU saves a job; 0 where it may not have one."""
    app, batch = job.job.application, job.job.batch
    most = 1 if app.name in _ALONE else batch // app.least_local
    if gpus >= most:
        return 0.0
    left = app.iterations_left(batch, job.epoch)
    return (_time(job, gpus) - _time(job, gpus + 1)) * left


def _time(job: Trained, gpus: int) -> float:
    """Return the true seconds of an iteration on nodes filled one after the other."""
    app = job.job.application
    local, accumulated = app.fixed_batch(job.job.batch, gpus)
    if gpus == 1 and accumulated == 0:  # published: one GPU always accumulates
        accumulated = 1
        local = -(-job.job.batch // 2)
    full, rest = divmod(gpus, _FILLED)
    placement = (_FILLED,) * full + ((rest,) if rest else ())
    return app.iteration_time(placement, local, accumulated)
