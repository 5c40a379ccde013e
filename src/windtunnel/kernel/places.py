"""`Search`: where jobs of a policy that decides itself would go, and whether its own choice does.

What was found last is the *offer*: nothing has changed since, so it still fits.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_views import view_pairs
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.state import STATE_RUNNING, State


@cython.final
@cython.cclass
class Search:
    """Where jobs would go.

    Args:
        state: the run.
        admission: whether jobs may start.
        class_of: class of each job: what one of them is refused, all are until more is free.

    Attributes:
        job: for which job there is an offer, in ``free.place``; -1 = for none, or not any more.
        offer: the same as the policy has it.
        offered: for which job it has it; -1 = for none.
        is_plain: it is the placement's choice, not bound to some GPU types.
        spare: a copy of the free state, to look what would be without some jobs.
        given: a policy's own choice.
        kind: as what the job that was looked at last is to be taken.
        spared: what the jobs left out of ``spare`` add to the draw at least, nanowatts.
    """

    state: State
    free: Free
    spare: Free
    admission: Admission
    class_of: cython.int[::1]
    refused_at: cython.longlong[::1]
    offer: object
    offered: cython.int
    job: cython.int
    is_plain: cython.bint
    given: Pairs
    kind: cython.int
    spared: cython.longlong

    def __init__(self, state: State, admission: Admission, class_of: numpy.ndarray) -> None:
        self.state, self.free, self.admission = state, state.free, admission
        self.class_of = class_of
        self.refused_at = numpy.full(int(class_of.max(initial=0)) + 1, -1, dtype=numpy.int64)
        self.offer = None
        self.job = self.offered = -1
        self.is_plain = False
        self.spare = None
        self.given = Pairs()

    @compiled
    def fits(self, job: cython.int) -> cython.bint:
        """Return whether a waiting job may start now; ``free.place`` has where."""
        kind: cython.int = self.class_of[job]
        if self.refused_at[kind] == self.free.version:
            return False
        if self.admission.fit(job):
            return True
        self.refused_at[kind] = self.free.version
        return False

    @compiled
    def is_known(self, job: cython.int) -> cython.bint:
        """Return whether the placement's choice for a job is in ``free.place``."""
        return self.job == job and self.is_plain

    @compiled
    def looks_for(self, job: cython.int) -> cython.bint:
        """Return whether a waiting job may start now; it is the offer's then."""
        if self.is_known(job):
            return True
        self.job = -1
        if not self.fits(job):
            return False
        self.job = job
        self.is_plain = True
        self.kind = self.admission.kind
        return True

    @compiled
    def forget(self) -> cython.void:
        """Withdraw the offer: something has changed."""
        self.job = self.offered = -1

    @cython.cfunc
    def is_offered(self, job: cython.int, where: object) -> cython.bint:
        """Return whether a place is the offer, unchanged, and a job would still go there."""
        if where is not self.offer or self.offered != job or self.job != job:
            return False
        return where == view_pairs(self.free.place, 0, self.free.place.count)

    @cython.cfunc
    def find(self, job: cython.int) -> object:
        """Return where a job goes, None if it does not fit; it is the offer."""
        if not self.looks_for(job):
            return None
        return self._make_offer(job)

    @cython.cfunc
    def find_as(self, job: cython.int, kind: cython.int) -> object:
        """Return where a job goes that asks for what a kind does; it is the offer."""
        self.forget()
        if not self.fit_as(self.free, job, kind):
            return None
        self.job = job
        self.is_plain = False
        return self._make_offer(job)

    @cython.cfunc
    def _make_offer(self, job: cython.int) -> object:
        self.offer = view_pairs(self.free.place, 0, self.free.place.count)
        self.offered = job
        return self.offer

    @compiled
    def fit_as(self, free: Free, job: cython.int, kind: cython.int) -> cython.bint:
        """Return whether a job fits a free state if it asks for what a kind does.

        The power of those that `without` left out last counts as free in its copy.
        """
        self.kind = kind
        opened: cython.bint = self.state.open_for(free, job)
        free.draws = self.state.stays.count
        found: cython.bint = free.fit(kind)
        if opened:
            free.close()
        return found and self._may_have(free, job, free.place)

    @compiled
    def given_fits(self, free: Free, job: cython.int, kind: cython.int) -> cython.bint:
        """Return whether ``given`` is free for a job, well formed, and what the kind asks for."""
        self.kind = kind
        opened: cython.bint = self.state.open_for(free, job)
        found: cython.bint = free.fits(kind, self.given)
        if opened:
            free.close()
        return found and self._may_have(free, job, self.given)

    @compiled
    def _may_have(self, free: Free, job: cython.int, where: Pairs) -> cython.bint:
        """Return whether power and quota suffice for a job on a place, as ``kind``."""
        if self.state.has_power:
            spare = self.state.spare() + (0 if free is self.free else self.spared)
            if self.state.power.choices.floor_of(job, where, 0, where.count) > spare:
                return False
        return self.state.allows(free, job, self.kind, where)

    @compiled
    def take_given(self) -> cython.void:
        """Let ``given`` be where the next job begins."""
        self.free.place.count = 0
        self.free.place.extend(self.given, 0, self.given.count)

    def without(self, jobs: list) -> Free:
        """Return what is free without some running jobs; a place that others share is not."""
        job: cython.int
        mate: cython.int
        if self.spare is None:
            self.spare = self.free.twin()
        self.spare.copy_from(self.free)
        self.spared = 0
        gone = dict.fromkeys(jobs)
        for number in gone:
            job = number
            if self.state.status[job] != STATE_RUNNING:
                continue
            if self.state.has_quotas:
                self.spare.quotas.lift(job)
            mate = self.state.mate[job] if self.state.has_mates else -1
            if mate >= 0 and mate in gone:
                if self.state.has_power:
                    self.spared += self.state.power.floor[job]
                if mate > job:
                    self.state.give_place(self.spare, job)
                continue
            if self.state.has_power:
                self.spared += self.state.power.spared(job)
            if mate < 0:
                self.state.give_place(self.spare, job)
        return self.spare
