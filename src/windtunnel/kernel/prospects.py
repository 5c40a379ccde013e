"""`Prospects`: what is known of a job's quota and place before anybody is made to give way."""

from __future__ import annotations

import cython

from windtunnel.kernel.feasible_nodes import VictimsOnNodes
from windtunnel.kernel.free import Free
from windtunnel.kernel.free_nodes import FreeNodes
from windtunnel.kernel.free_tree import FreeTree
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.known_from import KnownFrom
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.quota_prospects import QuotaProspects
from windtunnel.kernel.state import State
from windtunnel.kernel.victims_in_turn import VictimsInTurn


@cython.final
@cython.cclass
class Prospects:
    """Counts instead of tries: of nodes, where those tell, and of quotas.

    What is known of a job holds for those that rank lower, too, as long as ``stamp`` is the same.

    Args:
        state: the run.
        in_turn: who gives way; its walk stands at the job that is asked about.

    Attributes:
        has_nodes: there are nodes that tell.
        nodes: their counts.
        quotas: what quotas leave when all have given way; None = there are no quotas.
        no_place: from which rank on no place is for a kind of job with all gone that rank lower.
        gone: whose quota is lifted in a trial.
    """

    state: State
    free: Free
    in_turn: VictimsInTurn
    has_nodes: cython.bint
    nodes: VictimsOnNodes
    quotas: QuotaProspects
    no_place: KnownFrom
    gone: JobList

    def __init__(self, state: State, in_turn: VictimsInTurn) -> None:
        self.state, self.free, self.in_turn = state, state.free, in_turn
        self.has_nodes = isinstance(state.free, FreeNodes) and not isinstance(state.free, FreeTree)
        self.nodes = VictimsOnNodes(state, state.free) if self.has_nodes else None
        self.quotas = QuotaProspects(state.quotas, in_turn) if state.has_quotas else None
        self.no_place = KnownFrom(state.free.num_kinds())
        self.gone = JobList()

    @compiled
    def tells(self, job: cython.int) -> cython.bint:
        """Return whether counts of nodes are exact for a job."""
        if self.state.has_quotas and self.state.quotas.binds:
            return False  # which kind it is tried as depends on who is gone
        if not self.has_nodes or self.state.access_of(job) > 0:
            return False
        return self.nodes.tells(self.state.kind[job])

    @compiled
    def count_needed(
        self,
        job: cython.int,
        key: cython.double,
        stamp: cython.longlong,
        is_counted: cython.bint,
    ) -> cython.int:
        """Return how many must give way at least before a job has the quota, and a place.

        0 = it would have neither without all of them.

        Args:
            job: it does not fit.
            key: its key.
            stamp: rises when more may give way.
            is_counted: places are looked at.
        """
        needed: cython.int = 0
        lacks_quota: cython.bint = self.state.has_quotas and not self.state.quotas.admits(job)
        lacks_place: cython.bint = is_counted and not (
            lacks_quota and self.free.fit(self.state.kind[job])
        )
        if lacks_place:
            if self.state.has_quotas and self._has_no_place(job, key, stamp):
                return 0
            self.nodes.begin(self.state.kind[job])
        self.gone.count = 0
        self.in_turn.begin(job)
        victim = self.in_turn.next()
        while victim >= 0:
            needed += 1
            if lacks_place:
                lacks_place = not self.nodes.release(victim)
            if self.state.has_quotas:
                self.state.quotas.lift(victim)
                self.gone.add(victim)
                lacks_quota = lacks_quota and not self.state.quotas.admits(job)
            if not lacks_place and not lacks_quota:
                break
            victim = self.in_turn.next()
        for at in range(self.gone.count):
            self.state.quotas.put(self.gone.job[at])
        return needed if victim >= 0 else 0

    @compiled
    def _has_no_place(
        self, job: cython.int, key: cython.double, stamp: cython.longlong
    ) -> cython.bint:
        """Return whether a job, for which no place is, has none with all gone that rank lower.

        Whether quotas let them give way is not looked at: so it holds for all queues.
        """
        kind: cython.int = self.state.kind[job]
        if self.no_place.covers(kind, key, job, stamp):
            return True
        self.nodes.begin(kind)
        self.in_turn.begin_with_all(job)
        victim = self.in_turn.next()
        while victim >= 0:
            if self.nodes.release(victim):
                return False
            victim = self.in_turn.next()
        self.no_place.note(kind, key, job, stamp)
        return True
