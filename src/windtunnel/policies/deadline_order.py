"""Earliest deadline first (Liu and Layland, JACM 1973, "deadline driven"), without preemption."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.policies.length_order import checked_by, lengths, numbers
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from windtunnel.sim.jobs import Jobs

#: The column of deadlines, s on the same clock as ``submit_time``.
DEADLINE = "deadline"


class Edf(Policy):
    """Earliest deadline first, not preemptive; strict head of line.

    Deadlines stand in the column ``deadline`` (seconds on the clock of ``submit_time``; a job
    without one comes after all that have one), or are made up: submission + slack x length.

    Args:
        slack: make deadlines up with this factor; None = the column's.
        by: with ``slack``: the column or predictor that tells a job's length. [duration]

    Raises:
        SpecError: ``slack`` is no number above 0, or ``by`` stands without it.
    """

    name = "edf"
    queueing = "strict"

    def __init__(self, slack: float | None = None, by: str | None = None) -> None:
        if slack is None and by is not None:
            raise SpecError(
                f"policy {self.name}, by",
                "tells the length that slack is a multiple of; give slack.",
            )
        known = isinstance(slack, int | float) and 0 < slack < math.inf
        if slack is not None and not known:
            message = f"found {quote(slack)}; expected a number above 0."
            raise SpecError(f"policy {self.name}, slack", message)
        self.slack = slack
        if slack is not None:
            self.by = ("duration",) if by is None else (checked_by(self.name, by),)

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the deadlines, infinite where a job has none.

        Raises:
            PolicyError: the jobs have no deadlines.
        """
        if self.slack is not None:
            made: np.ndarray = jobs.submit_time + self.slack * lengths(jobs, self)
            return made
        if DEADLINE not in jobs.table.column_names:
            raise PolicyError(
                self.label,
                f"the jobs have no column {quote(DEADLINE)}; edf:slack=2 makes deadlines of "
                "submission + 2 x duration",
            )
        deadlines = numbers(jobs, DEADLINE, self)
        known: np.ndarray = np.where(np.isnan(deadlines), math.inf, deadlines)
        return known
