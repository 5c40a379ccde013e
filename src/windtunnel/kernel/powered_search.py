"""`PoweredSearch`: when and where a job fits at the earliest, within the power cap."""

from __future__ import annotations

import cython

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.profile import Profile
from windtunnel.kernel.promise_search import PromiseSearch
from windtunnel.kernel.promises import Promises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class PoweredSearch:
    """Makes promises, and knows which power caps there will be.

    Args:
        search: looks for places.
        admission: knows what jobs draw.
    """

    search: PromiseSearch
    promises: Promises
    state: State
    profile: Profile
    admission: Admission
    announced: Announced
    found_draw: cython.longlong

    def __init__(self, search: PromiseSearch, admission: Admission) -> None:
        self.search, self.promises = search, search.promises
        self.state, self.profile = search.state, search.profile
        self.admission, self.announced = admission, admission.announced

    @compiled
    def promise(self, job: cython.int) -> cython.void:
        """Promise a job that has no promise the first start at which it delays nobody."""
        start: cython.double = self.earliest(job, ENDLESS)
        self.promises.enter(job, start)

    @compiled
    def earliest(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return the first start before ``limit`` at which a job fits; its place is noted then.

        inf = there is none. The job has no promise in the profile.
        """
        if self.state.has_quotas and self.state.quotas.binds:
            return self._earliest_bound(job, limit)
        if self.state.has_power:
            return self._earliest_powered(job, limit)
        return self.search.earliest(job, limit)

    @compiled
    def _earliest_bound(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return what `earliest` does, on the GPU types that the job's quota lets it have.

        It is bound to the one on which it starts first, the first of them in the quota's order.
        """
        kind: cython.int = self.state.kind[job]
        best: cython.double = ENDLESS
        index: cython.int = self.state.quotas.next_allowed(job, 0)
        while index >= 0:
            self.state.kind[job] = self.state.quotas.kind(job, index)
            if self.state.has_power:
                found = self._earliest_powered(job, limit)
            else:
                found = self.search.earliest(job, limit)
            if found < limit:
                limit = best = found
                kind = self.state.kind[job]
            index = self.state.quotas.next_allowed(job, index + 1)
        self.state.kind[job] = kind
        return best

    @compiled
    def is_there(self, job: cython.int, start: cython.double, stop: cython.double) -> cython.bint:
        """Return whether the place of a job without a promise is free to it for a time."""
        if self.state.has_power and self.promises.draw[job] > self._spare_from(start, stop):
            return False
        return self.promises.has_spare(job, start, stop, True)

    @compiled
    def _spare_from(self, start: cython.double, stop: cython.double) -> cython.longlong:
        """Return what a job may add to the draw from ``start`` to ``stop`` (s), nanowatts."""
        last: cython.double = self.profile.last_time()
        row: cython.int = self.announced.next_row
        row = self.announced.provide_row(row, last if last > start else start)
        cap_w: cython.double = self.announced.cap_now(self.state.budget)
        while row < self.announced.num_rows and self.announced.row_time[row] <= start:
            cap_w = self.announced.row_cap[row]
            row += 1
        return self._spare_until(self.profile.at_or_before(start), stop, cap_w, row)

    @compiled
    def _spare_until(
        self, step: cython.int, stop: cython.double, cap_w: cython.double, row: cython.int
    ) -> cython.longlong:
        """Return what a job may add to the draw from a step until ``stop`` (s), nanowatts.

        Power is needed where somebody starts: the job, and each who was promised to meanwhile.

        Args:
            step: in which the job starts.
            stop: when it is expected to end.
            cap_w: the cap that holds when it starts, W.
            row: the first change of the cap behind that; those of the profile are looked up.
        """
        spare: cython.longlong = self.state.budget.under(cap_w) - self.profile.drawn[step]
        step = self.profile.after[step]
        while step >= 0 and self.profile.time[step] < stop:
            if self.profile.begins[step] > 0:
                while (
                    row < self.announced.num_rows
                    and self.announced.row_time[row] <= self.profile.time[step]
                ):
                    cap_w = self.announced.row_cap[row]
                    row += 1
                left: cython.longlong = self.state.budget.under(cap_w) - self.profile.drawn[step]
                spare = left if left < spare else spare
            step = self.profile.after[step]
        return spare

    @compiled
    def _earliest_powered(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return what `earliest` does, where there is a power cap.

        A job may start, too, when the cap changes.
        """
        step: cython.int = self.profile.head
        time: cython.double = self.profile.time[step]
        last: cython.double = self.profile.last_time()
        row: cython.int = self.announced.provide_row(self.announced.next_row, last)
        cap_w: cython.double = self.announced.cap_now(self.state.budget)
        self.search.look_for(job)
        while time < limit:
            if self._fits_powered(job, step, time, cap_w, row):
                self.promises.draw[job] = self.found_draw
                self.promises.keep_place(
                    job, self.search.scratch.place, 0, self.search.scratch.place.count
                )
                return time
            following = self.profile.after[step]
            time = ENDLESS if following < 0 else self.profile.time[following]
            row = self.announced.provide_row(row, last)
            if row < self.announced.num_rows and self.announced.row_time[row] < time:
                time = self.announced.row_time[row]
            while row < self.announced.num_rows and self.announced.row_time[row] <= time:
                cap_w = self.announced.row_cap[row]
                row = self.announced.provide_row(row + 1, last)
            if following >= 0 and self.profile.time[following] <= time:
                step = following
        return ENDLESS

    @compiled
    def _fits_powered(
        self,
        job: cython.int,
        step: cython.int,
        time: cython.double,
        cap_w: cython.double,
        row: cython.int,
    ) -> cython.bint:
        """Return whether a job fits, with its power, from a time within a step on."""
        spare: cython.longlong = self.state.budget.under(cap_w) - self.profile.drawn[step]
        if self.profile.total[step] < self.search.units:
            return False
        if self.state.power.choices.surely(job) > spare:
            return False
        self.search.look_at_nodes(step)
        self.search.meet(time)
        if not self._fits_within(job, time, spare):
            return False
        stop = self.promises.stop_of(job, time)
        self.search.meet(stop)
        return self._fits_within(job, time, self._spare_until(step, stop, cap_w, row))

    @compiled
    def _fits_within(
        self, job: cython.int, time: cython.double, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits what steps have in common, and adds no more to the draw.

        As in `windtunnel.kernel.admission.Admission.fit_in`. ``found_draw`` has what it adds.
        """
        if not self.search.fits_as(self.search.kind, time):
            return False
        self.found_draw = self.admission.floor(self.search.scratch, job)
        if self.found_draw <= spare:
            return True
        kind = self.admission.cheap_kind(job, spare)
        if kind < 0 or not self.search.fits_as(kind, time):
            return False
        self.found_draw = self.admission.floor(self.search.scratch, job)
        return self.found_draw <= spare
