"""The classical orders: first come first served, shortest remaining, priority.

Ties are broken by submit time, then input order, in the engine. "Preemptive" variants rank running
jobs with the waiting ones at every instant (DESIGN, "Preemptive policies"). Textbook definitions,
e.g. Silberschatz et al., *Operating System Concepts*, ch. 5; the GPU-cluster readings are those of
the trace studies (Helios, SC'21; PAI, NSDI'22). For shortest first see
`windtunnel.policies.length_order`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.aging import aged, checked_aging
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from windtunnel.sim.jobs import Jobs, JobView


class Fifo(Policy):
    """First in, first out (first come, first served): by submit time; strict head of line."""

    name = "fifo"
    queueing = "strict"

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the submit times."""
        return jobs.submit_time


class Srtf(Policy):
    """Shortest remaining time first, preemptive; goes on past what does not fit."""

    name = "srtf"
    queueing = "skip"
    preemptive = True
    by_remaining = True

    def key(self, job: JobView, now: float) -> float:  # noqa: ARG002 - the view is of this instant
        """Return the work left, in seconds."""
        return job.remaining


class Priority(Policy):
    """Largest priority first, not preemptive; strict head of line. No priority counts as 0.

    Args:
        aging: seconds of waiting that make up for one level of priority
            (`windtunnel.policies.aging`); None = low priorities may be overtaken for ever.

    Raises:
        SpecError: ``aging`` is no time span.
    """

    name = "priority"
    queueing = "strict"

    def __init__(self, aging: float | str | None = None) -> None:
        self.aging = checked_aging(self.name, aging)

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the negated priorities, with aging where asked for."""
        urgency: np.ndarray = np.nan_to_num(jobs.priority, nan=0.0)
        return aged(-urgency, jobs.submit_time, self.aging)


class PriorityPreemptive(Priority):
    """Largest priority first, preemptive; goes on past what does not fit. None counts as 0."""

    name = "priority-preemptive"
    queueing = "skip"
    preemptive = True
