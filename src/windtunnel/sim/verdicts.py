"""`Verdicts`: what an engine has recorded of its decisions; the words for each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.problem import Problem

#: The verdict on a waiting job after a decision, and on one that is stopped for another.
NONE, BEHIND, NO_ROOM, FIRST, WOULD_DELAY, POWER, LIMIT, CHOICE, INTERVAL, PREEMPTED = range(10)
#: Which rules there are, by what they make of a job that fits.
SCHOOLS: tuple[str, ...] = ("strict", "skip", "easy", "conservative", "limits", "choice")
_DECIDES = 3


@dataclass(frozen=True)
class Verdicts:
    """The rows that an engine has written, one a change of a job's verdict.

    Attributes:
        time: Float array (k,), s, ascending.
        point: Int array (k,), number of the decision within the run, ascending.
        row: Int array (k,), the job's row in the jobs table; ascending within a decision.
        verdict: Int8 array (k,), the codes above.
        blocker: Int array (k,), row of the job that is in the way, or that it was stopped for; -1
            where none is.
        promise: Float array (k,), the start that the job (`FIRST`, and all under conservative
            backfilling), or the one in its way, is promised, s; inf where none is.
    """

    time: np.ndarray
    point: np.ndarray
    row: np.ndarray
    verdict: np.ndarray
    blocker: np.ndarray
    promise: np.ndarray

    @classmethod
    def of(cls, problem: Problem, *columns: np.ndarray) -> Verdicts:
        """Return an engine's rows, of jobs by arrival number, in order."""
        time, point, job, verdict, blocker, promise = columns
        rows = problem.rows
        if len(rows) == 0:
            rows = np.zeros(1, dtype=np.int64)
        row = rows[job].astype(np.int64)
        # Within a decision by row; of one job, to be stopped was written first, and stays so.
        begins = (np.diff(time, prepend=-np.inf) > 0) | (np.diff(point, prepend=-1) > 0)
        order = np.argsort(np.cumsum(begins) * (int(rows.max()) + 1) + row, kind="stable")
        blocked = np.where(blocker >= 0, rows[np.maximum(blocker, 0)], -1).astype(np.int64)
        return cls(
            time[order], point[order], row[order], verdict[order].astype(np.int8),
            blocked[order], promise[order],
        )  # fmt: skip


def school_of(policy: Policy, queueing: str) -> str:
    """Return which of `SCHOOLS` a run's decisions are of."""
    if policy.in_numbers == "cohorts" and policy.cohort_order:
        # Whoever was timed out waits aside for a while, whatever is free.
        return "limits" if policy.cohort_order.timeout == math.inf else "choice"
    if policy.tier == _DECIDES:
        return "choice"
    return "easy" if queueing == "easy_sjbf" else queueing
