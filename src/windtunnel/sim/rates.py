"""Progress at rates that change while a job runs: the exact integral, piece by piece.

Between two changes a rate is constant, so a job with ``left`` seconds of work at full speed ends at
``now + owed + left / rate``, ``owed`` being what it still pays for resuming (nothing is gained
then). Rates are brought up to date once an instant, when all that happens at it has happened.
Where every rate is 1 no end ever moves, and the run is bit for bit the one without a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.ledger import Ledger, Stay
    from windtunnel.sim.problem import Problem


class Pace(Protocol):
    """What decides how fast jobs are: their neighbours (`windtunnel.sim.neighbours`), or power."""

    @property
    def problem(self) -> Problem:
        """The jobs."""

    def enter(self, job: int, where: Where) -> None:
        """Note that a job has started."""

    def leave(self, job: int) -> None:
        """Note that a job has left its nodes."""

    def touched(self) -> list[int]:
        """Return the running jobs whose rate may have changed since the last call, in order."""

    def rate(self, job: int) -> float:
        """Return the rate of a running job."""


class Rates:
    """The rates of running jobs, and what they cost.

    Args:
        neighbours: who runs beside whom, and what that means.
    """

    def __init__(self, neighbours: Pace) -> None:
        count = len(neighbours.problem.rows)
        self.neighbours = neighbours
        self._rate = [1.0] * count
        #: When the rate last changed, or the stay began; and when paying for it was done.
        self._since = [0.0] * count
        self._resumed = [0.0] * count
        self._lost = [0.0] * count

    def started(self, job: int, now: float, owed: float, stay: Stay) -> None:
        """Note that a job starts.

        Args:
            job: the job; as yet at rate 1.
            now: when, s.
            owed: seconds without progress that its stay begins with.
            stay: where it is.
        """
        self._rate[job] = 1.0
        self._since[job] = now
        self._resumed[job] = now + owed
        self.neighbours.enter(job, stay.where)

    def stopped(self, job: int, now: float) -> None:
        """Note that a job leaves its GPUs, for whatever reason."""
        self._book(job, now)
        self.neighbours.leave(job)

    def settle(self, ledger: Ledger, now: float) -> None:
        """Give every job the rate that its neighbours now leave it."""
        for job in self.neighbours.touched():
            rate = self.neighbours.rate(job)
            if rate == self._rate[job]:
                continue
            left = self.work_left(ledger, job, now)
            self._book(job, now)
            ledger.remaining[job] = left
            self._rate[job] = rate
            ledger.move_end(job, now + max(self._resumed[job] - now, 0.0) + left / rate)

    def work_left(self, ledger: Ledger, job: int, now: float) -> float:
        """Return a running job's work left, s at full speed."""
        ahead = (ledger.projected_end[job] - now) * self._rate[job]
        return min(ledger.remaining[job], ahead)

    def time_left(self, ledger: Ledger, job: int, now: float) -> float:
        """Return the same with what the job still owes for resuming."""
        if self._rate[job] == 1.0:
            return ledger.projected_end[job] - now
        return self.work_left(ledger, job, now) + max(self._resumed[job] - now, 0.0)

    def lost(self, ledger: Ledger, horizon: float) -> np.ndarray:
        """Return the seconds that each job lost so far, shape (m,); negative = it was faster.

        Args:
            ledger: the run.
            horizon: where it was cut, s.
        """
        for job in ledger.running:
            self._book(job, horizon)
        return np.array(self._lost)

    def _book(self, job: int, now: float) -> None:
        """Book what was lost since the rate last changed."""
        worked = now - max(self._since[job], self._resumed[job])
        if worked > 0:
            self._lost[job] += worked * (1.0 - self._rate[job])
        self._since[job] = now
