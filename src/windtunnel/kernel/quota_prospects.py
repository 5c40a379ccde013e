"""`QuotaProspects`: whether a job has the quota once all have given way who may."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.known_from import KnownFrom
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.quota_limits import QuotaLimits
from windtunnel.kernel.victims_in_turn import VictimsInTurn


@cython.final
@cython.cclass
class QuotaProspects:
    """What queues may use at most, as it was found for one of their jobs.

    Of those that rank lower fewer give way, so that it is as much for them at most, until others
    may give way, or less is used. ``stamp`` rises then.

    Attributes:
        known: for whom it was found, of each queue.
        most: millionths of GPUs of each flavor, by account.
    """

    quotas: QuotaLimits
    in_turn: VictimsInTurn
    known: KnownFrom
    most: cython.longlong[::1]
    gone: JobList

    def __init__(self, quotas: QuotaLimits, in_turn: VictimsInTurn) -> None:
        self.quotas, self.in_turn = quotas, in_turn
        queues, flavors = quotas.accounts.queues, quotas.accounts.flavors
        self.known = KnownFrom(queues)
        self.most = numpy.zeros(queues * flavors, dtype=numpy.int64)
        self.gone = JobList()

    @compiled
    def is_known_over(
        self, job: cython.int, key: cython.double, stamp: cython.longlong
    ) -> cython.bint:
        """Return whether it is known that a job's quota does not suffice, whoever gives way."""
        return self.known.covers(self.quotas.queues[job], key, job, stamp) and self._asks_for_more(
            job
        )

    @compiled
    def is_over(self, job: cython.int, key: cython.double, stamp: cython.longlong) -> cython.bint:
        """Return whether a job's quota does not suffice though all who may have given way.

        Those are looked at for whom the walk of ``in_turn`` stands at the job.
        """
        queue: cython.int = self.quotas.queues[job]
        self.gone.count = 0
        self.in_turn.begin_at_once(job)
        victim = self.in_turn.next()
        while victim >= 0:
            self.gone.add(victim)
            self.quotas.lift(victim)
            victim = self.in_turn.next()
        for at in range(self.quotas.accounts.flavors):
            cell = self.quotas.accounts.cell(queue, at)
            self.most[cell] = self.quotas.accounts.available(queue, at)
        for at in range(self.gone.count):
            self.quotas.put(self.gone.job[at])
        self.known.note(queue, key, job, stamp)
        return self._asks_for_more(job)

    @compiled
    def _asks_for_more(self, job: cython.int) -> cython.bint:
        """Return whether a job asks for more than was found of each flavor that it may have."""
        first: cython.int = self.quotas.lines[job] * self.quotas.accounts.flavors
        if self.quotas.accounts.amount[job] == 0:
            return False
        for at in range(self.quotas.accounts.flavors):
            flavor = self.quotas.flavor[first + at]
            if flavor < 0:
                break
            cell = self.quotas.accounts.cell(self.quotas.queues[job], flavor)
            if (
                self.quotas.accounts.has[cell]
                and self.quotas.accounts.amount[job] <= self.most[cell]
            ):
                return False
        return True
