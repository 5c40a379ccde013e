"""The big jobs of a trace, and how often others overtook them: where starvation shows.

Averages hide starvation: shortest-first may win the mean while jobs that need many GPUs at once are
overtaken again and again (NSDI'22's simulator on real nodes shows it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.sim.metrics import size_classes

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

#: The big jobs are those of the largest size classes that together hold this share of the jobs.
BIG_SHARE = 0.01


class BigJobs(NamedTuple):
    """The big jobs.

    Attributes:
        members: bool array of shape (n,), jobs-table order.
        sizes: labels of their size classes, smallest first.
        least: GPUs of the smallest of them.
    """

    members: np.ndarray
    sizes: tuple[str, ...]
    least: float


def big_jobs(num_gpus: np.ndarray, flown: np.ndarray, share: float = BIG_SHARE) -> BigJobs:
    """Return the jobs of the largest size classes that hold at least ``share`` of the flown jobs.

    Args:
        num_gpus: GPUs of each job, shape (n,).
        flown: bool array of shape (n,): jobs that count, at least one.
        share: fraction of the flown jobs.

    >>> big_jobs(np.array([1.0, 1.0, 4.0, 8.0]), np.ones(4, dtype=bool), 0.5).sizes
    ('3-4', '5-8')
    """
    classes, labels = size_classes(num_gpus)
    counts = np.bincount(classes[flown], minlength=len(labels))
    above = np.cumsum(counts[::-1])[::-1]
    lowest = int(np.flatnonzero(above >= share * flown.sum())[-1])
    members = flown & (classes >= lowest)
    sizes = tuple(label for code, label in enumerate(labels) if code >= lowest and counts[code])
    return BigJobs(members, sizes, float(num_gpus[members].min()))


def big_measures(outcome: Outcome, big: BigJobs) -> dict[str, float | int | None]:
    """Return how the big jobs fared in a run.

    Keys: ``big_num_jobs``; ``big_avg_wait``, ``big_p99_wait``, ``big_max_wait`` (s, of those that
    started; None without any); ``big_avg_overtaken``, ``big_max_overtaken`` (jobs;
    `windtunnel.sim.observe.starvation`).
    """
    wait = (outcome.flight.start - outcome.submit_time)[big.members]
    waits = wait[~np.isnan(wait)]
    passed = outcome.overtaken()[big.members]
    some = len(waits) > 0
    return {
        "big_num_jobs": int(big.members.sum()),
        "big_avg_wait": float(waits.mean()) if some else None,
        "big_p99_wait": float(quantiles(waits, 0.99)) if some else None,
        "big_max_wait": float(waits.max()) if some else None,
        "big_avg_overtaken": float(passed.mean()),
        "big_max_overtaken": int(passed.max()),
    }
