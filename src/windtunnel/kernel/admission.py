"""`Admission`: where a job would go now, by what it may use, announcements, power and quotas."""

from __future__ import annotations

from typing import Any

import cython

from windtunnel.kernel.announced import Announced
from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.state import STATE_RUNNING, State


@cython.final
@cython.cclass
class Admission:
    """Whether jobs may start.

    Attributes:
        is_plain: nothing but places decides.
        plans: jobs are not started where a planned hold would come before their planned stop.
        kind: as what the last job that fits is to be taken.
        capped: somebody was refused for power alone at this decision.
        by_job: the last refusal holds for that job alone, and not for all of its line.
        lacks_power: the last refusal was for power alone.
        narrow: Python's (kind, set of GPU types as bits) -> kind bound to these.
    """

    state: State
    free: Free
    announced: Announced
    is_plain: cython.bint
    plans: cython.bint
    capped: cython.bint
    kind: cython.int
    by_job: cython.bint
    lacks_power: cython.bint
    narrow: object

    def __init__(
        self, state: State, announced: Announced, narrow: object, *, is_plain: bool, plans: bool
    ) -> None:
        self.state = state
        self.free = state.free
        self.announced = announced
        self.is_plain = is_plain
        self.plans = plans
        self.narrow = narrow

    @compiled
    def begin(self) -> cython.void:
        """Begin a decision: who lacked power alone at the last one is looked at again."""
        if self.capped:
            self.free.version += 1
        self.capped = False

    @compiled
    def fit(self, job: cython.int) -> cython.bint:
        """Return whether a job may start; ``free.place`` and ``kind`` have where, and as what."""
        self.kind = self.state.kind[job]
        if self.is_plain:
            return self.free.fit(self.kind)
        if self.fit_in(
            self.free, job, self.state.now, self.state.spare() if self.state.has_power else 0
        ):
            return True
        self.capped = self.capped or self.lacks_power
        return False

    @compiled
    def stop_of(self, job: cython.int, start: cython.double) -> cython.double:
        """Return when a job that starts then is expected to end; one that runs, if it resumes."""
        if self.state.status[job] == STATE_RUNNING:
            if self.state.resumes:
                start = start + self.state.resume_cost[job]
            return start + self.state.expected.span(job, self.state.work_left(job))
        if self.state.resumes:
            start = start + self.state.start_overhead[job]
        return start + self.state.expected.span(job, self.state.left[job])

    @compiled
    def fit_in(
        self, free: Free, job: cython.int, start: cython.double, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits a free state at ``start``, by what is announced then.

        Args:
            free: what is free.
            job: a waiting job.
            start: s.
            spare: nanowatts that it may add to the draw.
        """
        version: cython.longlong = free.version
        hidden: cython.int = 0
        opened: cython.bint
        self.by_job = self.lacks_power = False
        self.kind = self.state.kind[job]
        free.draws = self.state.stays.count
        if self.plans and self.announced.next < self.announced.count:
            access = self.state.access_of(job)
            hidden = self.announced.hide(free, access, start, self.stop_of(job, start))
            self.by_job = hidden > 0
        opened = self.state.open_for(free, job)
        if self.state.has_quotas:
            found = self._fits_quota(free, job, spare)
        else:
            found = self._fits_as(free, job, self.kind, spare)
        if opened:
            free.close()
        if hidden > 0:
            self.announced.show(free)
            free.version = version
        return found

    @compiled
    def _fits_quota(self, free: Free, job: cython.int, spare: cython.longlong) -> cython.bint:
        """Return whether a job fits on a GPU type of which its queue has the quota.

        The types are tried in the order of the quota, each for places and power.
        """
        if not free.quotas.binds:
            return (
                (free.quotas.resizes or free.quotas.admits(job))
                and self._fits_as(free, job, self.kind, spare)
                and self.state.allows(free, job, self.kind, free.place)
            )
        index = free.quotas.next_allowed(job, 0)
        while index >= 0:
            if self._fits_as(free, job, free.quotas.kind(job, index), spare):
                return True
            index = free.quotas.next_allowed(job, index + 1)
        return False

    @compiled
    def fit_as(
        self, free: Free, job: cython.int, kind: cython.int, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits a free state as a kind, whatever quotas say; see `fit_in`."""
        opened: cython.bint = self.state.open_for(free, job)
        free.draws = self.state.stays.count
        found: cython.bint = self._fits_as(free, job, kind, spare)
        if opened:
            free.close()
        return found

    @compiled
    def _fits_as(
        self, free: Free, job: cython.int, kind: cython.int, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits as a kind, and draws little enough there, or elsewhere.

        Where the placement's choice draws too much, it is asked again among the GPU types on which
        the whole job would not.
        """
        self.kind = kind
        if not free.fit(kind):
            return False
        self.lacks_power = self.state.has_power and self.floor(free, job) > spare
        if self.lacks_power and kind == self.state.kind[job]:
            self.kind = self.cheap_kind(job, spare)
            self.lacks_power = (
                self.kind < 0 or not free.fit(self.kind) or self.floor(free, job) > spare
            )
        return not self.lacks_power

    @compiled
    def is_over(self, job: cython.int) -> cython.bint:
        """Return whether a job, which does not fit, has to wait for quota."""
        return self.state.has_quotas and not self.state.quotas.admits(job)

    @compiled
    def blocks(self) -> cython.bint:
        """Return whether a job that has to wait for quota holds up those behind it."""
        return self.state.has_quotas and self.state.quotas.blocks

    @compiled
    def cheap_kind(self, job: cython.int, spare: cython.longlong) -> cython.int:
        """Return a job's kind on the GPU types on which all of it draws no more than ``spare``.

        -1 where it draws more on all of them, or on none; or where its quota binds it to one.
        """
        kind: cython.int
        cheap: cython.longlong = 0
        many: cython.int = 0
        if self.state.has_quotas and self.state.quotas.binds:
            return -1
        for gpu_type in range(self.state.power.choices.num_types):
            if self.state.power.choices.floor_on(job, gpu_type) <= spare:
                cheap |= cython.cast(cython.longlong, 1) << gpu_type
                many += 1
        if many == 0 or many == self.state.power.choices.num_types:
            return -1
        with cython.gil:
            kind = self._narrowed(self.state.kind[job], cheap)
        return kind

    def _narrowed(self, kind: int, cheap: int) -> int:
        """Return a kind bound to some GPU types; -1 after something was raised."""
        found: Any = self.announced.raised.call(self.narrow, (kind, cheap))
        return -1 if found is None else found

    @compiled
    def floor(self, free: Free, job: cython.int) -> cython.longlong:
        """Return the least that a job can be brought to draw where ``place`` says, nanowatts."""
        return self.state.power.choices.floor_of(job, free.place, 0, free.place.count)

    def look_in(
        self, free: Free, job: int, takes: bool, kind: cython.int
    ) -> list[tuple[int, int]] | None:
        """Return what a job would get now in another free state; None = it would not start there.

        Args:
            free: the other state.
            job: a waiting job.
            takes: it is taken there.
            kind: as what it would start; -1 = as it was asked for.
        """
        spare: cython.longlong = self.state.spare() if self.state.has_power else 0
        fits: cython.bint
        if kind < 0:
            fits = self.fit_in(free, job, self.state.now, spare)
        else:
            fits = self.fit_as(free, job, kind, spare)
            fits = fits and self.state.allows(free, job, kind, free.place)
        if not fits:
            return None
        found: Pairs = Pairs(free.place.count)
        found.extend(free.place, 0, free.place.count)
        if takes:
            self.state.try_out(free, job, self.kind, found, 0, found.count, 1)
        return list(zip(found.nodes().tolist(), found.grants().tolist(), strict=True))
