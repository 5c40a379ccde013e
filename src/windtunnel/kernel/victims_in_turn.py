"""`VictimsInTurn`: the running jobs that are asked to give way for a job, one after the other."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.ranked import RANKED_CAPACITY, Ranked
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class VictimsInTurn:
    """Those ranked below the job at which the walk in ``ranks`` stands, the lowest rank first.

    Under quotas those of queues that use more than their nominal quota come first, each as long as
    its queue still does when its turn comes, and then those of the job's own queue.

    Args:
        state: the run.
        ranks: running jobs by rank.
        is_stopped: those that are not asked, as they are stopped, shape (jobs,).
    """

    state: State
    ranks: Ranked
    is_stopped: cython.char[::1]
    job: cython.int
    is_anybody: cython.bint
    is_at_once: cython.bint
    is_last_round: cython.bint
    place: cython.int
    index: cython.int

    def __init__(self, state: State, ranks: Ranked, is_stopped: numpy.ndarray) -> None:
        self.state, self.ranks, self.is_stopped = state, ranks, is_stopped

    @compiled
    def begin(self, job: cython.int) -> cython.void:
        """Stand before the first who is asked for a job."""
        self.begin_with_all(job)
        if self.state.has_quotas:
            self.is_anybody = False
            self.is_last_round = self.state.quotas.accounts.num_borrowing == 0

    @compiled
    def begin_at_once(self, job: cython.int) -> cython.void:
        """Stand before the first who may give way, of whatever queue: there is one round."""
        self.begin_with_all(job)
        self.is_anybody = False
        self.is_at_once = True

    @compiled
    def begin_with_all(self, job: cython.int) -> cython.void:
        """Stand before the first who is ranked lower, whatever quotas say."""
        self.job = job
        self.is_anybody = self.is_last_round = True
        self.is_at_once = False
        self._stand_behind_all()

    @compiled
    def _stand_behind_all(self) -> cython.void:
        self.place = self.ranks.used
        self.index = -1

    @compiled
    def next(self) -> cython.int:
        """Return the next one; -1 = there is none."""
        while True:
            least = self.ranks.at_index if self.place == self.ranks.at_place else 0
            while self.index >= least:
                victim = self.ranks.job[self.ranks.block[self.place] * RANKED_CAPACITY + self.index]
                self.index -= 1
                if not self.is_stopped[victim] and self._is_asked(victim):
                    return victim
            if self.place > self.ranks.at_place:
                self.place -= 1
                self.index = self.ranks.length[self.ranks.block[self.place]] - 1
            elif self.is_last_round:
                return -1
            else:
                self.is_last_round = True
                self._stand_behind_all()

    @compiled
    def _is_asked(self, victim: cython.int) -> cython.bint:
        """Return whether a running job is of those whose turn it is."""
        if self.is_anybody:
            return True
        if self.is_at_once:
            return self.state.quotas.may_give_way(self.job, victim)
        if self.state.quotas.queues[victim] == self.state.quotas.queues[self.job]:
            return self.is_last_round
        return not self.is_last_round and self.state.quotas.may_give_way(self.job, victim)
