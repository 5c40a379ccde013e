"""The classical orders: first come first served, shortest first, shortest remaining, priority.

Ties are broken by submit time, then input order, in the engine. "Preemptive" variants rank running
jobs with the waiting ones at every instant (DESIGN, "Preemptive policies"). Textbook definitions,
e.g. Silberschatz et al., *Operating System Concepts*, ch. 5; the GPU-cluster readings are those of
the trace studies (Helios, SC'21; PAI, NSDI'22), which order whole gangs by duration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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


class Sjf(Policy):
    """Shortest job first by true duration, not preemptive; strict head of line."""

    name = "sjf"
    queueing = "strict"

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the durations."""
        return jobs.duration


class SjfEstimate(Policy):
    """Shortest job first by requested wall time, not preemptive; strict head of line."""

    name = "sjf-estimate"
    queueing = "strict"
    needs = "estimate (requested wall time)"

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the estimates; a job to fly that has none is an error of the run."""
        return jobs.estimate


class SjfPreemptive(Sjf):
    """Shortest job first by total duration, preemptive; goes on past what does not fit."""

    name = "sjf-preemptive"
    queueing = "skip"
    preemptive = True


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
    """Largest priority first, not preemptive; strict head of line. No priority counts as 0."""

    name = "priority"
    queueing = "strict"

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the negated priorities."""
        urgency: np.ndarray = np.nan_to_num(jobs.priority, nan=0.0)
        return -urgency


class PriorityPreemptive(Priority):
    """Largest priority first, preemptive; goes on past what does not fit. None counts as 0."""

    name = "priority-preemptive"
    queueing = "skip"
    preemptive = True
