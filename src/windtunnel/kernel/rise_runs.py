"""`RiseRuns`: times around a rise in which jobs of a kind are suited all along."""

from __future__ import annotations

import cython

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.profile import Profile
from windtunnel.kernel.promise_search import PromiseSearch
from windtunnel.kernel.promises import PROMISE_MADE, Promises
from windtunnel.kernel.rises import RISES_WIDE, Rises


@cython.final
@cython.cclass
class RiseRuns:
    """Goes from run to run of a rise.

    Args:
        search: looks for places.
        rises: where there is more.

    Attributes:
        has_run: there is a run at hand.
        begin, end: since when and until when it is, s.
        following: where to look for the next one.
    """

    search: PromiseSearch
    promises: Promises
    profile: Profile
    on: NodeSteps
    rises: Rises
    has_run: cython.bint
    begin: cython.double
    end: cython.double
    following: cython.longlong

    def __init__(self, search: PromiseSearch, rises: Rises) -> None:
        self.search, self.promises = search, search.promises
        self.profile, self.on = search.profile, search.on
        self.rises = rises

    # A place in time is a step of the profile; for one node it is a step of that.

    @compiled
    def place_at(self, rise: cython.int) -> cython.longlong:
        """Return where a rise begins."""
        if self.rises.node[rise] == RISES_WIDE:
            return self.profile.at_or_before(self.rises.begin[rise])
        return self.on.at(self.rises.node[rise], self.rises.begin[rise])

    @compiled
    def _later(self, rise: cython.int, place: cython.longlong) -> cython.longlong:
        if self.rises.node[rise] == RISES_WIDE:
            return self.profile.after[place]
        return place + 1 if place + 1 < self.on.behind[self.rises.node[rise]] else -1

    @compiled
    def _earlier(self, rise: cython.int, place: cython.longlong) -> cython.longlong:
        if self.rises.node[rise] == RISES_WIDE:
            return self.profile.before[place]
        return place - 1 if place > self.on.first[self.rises.node[rise]] else -1

    @compiled
    def _time(self, rise: cython.int, place: cython.longlong) -> cython.double:
        if self.rises.node[rise] == RISES_WIDE:
            return self.profile.time[place]
        return self.on.time[place]

    @compiled
    def _suits(self, rise: cython.int, place: cython.longlong) -> cython.bint:
        if self.rises.node[rise] == RISES_WIDE:
            return self.search.may_have(cython.cast(cython.int, place))
        return self.search.has(place)

    @compiled
    def first(self, rise: cython.int, place: cython.longlong, job: cython.int) -> cython.void:
        """Find the first run of a rise for jobs like one; ``has_run`` says if there is one.

        Args:
            rise: in which.
            place: where it begins.
            job: for which.
        """
        self.search.look_for(job)
        if not self._suits(rise, place):
            self.following = self._later(rise, place)
            self.next(rise)
            return
        self._go_along(rise, place)
        earlier = self._earlier(rise, place)
        while earlier >= 0 and self._suits(rise, earlier):
            place = earlier
            earlier = self._earlier(rise, place)
        self.begin = self._time(rise, place)

    @compiled
    def next(self, rise: cython.int) -> cython.void:
        """Find the next run of a rise."""
        place: cython.longlong = self.following
        self.has_run = False
        while place >= 0 and self._time(rise, place) < self.rises.end[rise]:
            if self._suits(rise, place):
                self._go_along(rise, place)
                return
            place = self._later(rise, place)

    @compiled
    def _go_along(self, rise: cython.int, place: cython.longlong) -> cython.void:
        """Let a run begin at a place, and see where it ends."""
        self.has_run = True
        self.begin = self._time(rise, place)
        while place >= 0 and self._suits(rise, place):
            place = self._later(rise, place)
        self.following = place
        self.end = ENDLESS if place < 0 else self._time(rise, place)

    @compiled
    def is_behind(self, rise: cython.int, job: cython.int) -> cython.bint:
        """Return whether a rise is beside a job's own place, and there may be room just before."""
        return (
            self.promises.what[job] == PROMISE_MADE
            and self.promises.start[job] < self.rises.end[rise]
            and self.promises.stop[job] > self.rises.begin[rise]
            and self.promises.start[job] > self.promises.state.now
            and self.search.may_have(self.profile.step_before(self.promises.start[job]))
        )

    @compiled
    def begin_behind(self, job: cython.int) -> cython.double:
        """Return since when there may be room just before a job's own place."""
        step: cython.int = self.profile.step_before(self.promises.start[job])
        while self.profile.before[step] >= 0 and self.search.may_have(self.profile.before[step]):
            step = self.profile.before[step]
        return self.profile.time[step]

    @compiled
    def is_enough(self, job: cython.int, is_wide: cython.bint) -> cython.bint:
        """Return whether the run at hand is long enough for a job, or may reach up to its place."""
        if not self.promises.is_promised(job):
            return False
        return self.promises.stop_of(job, self.begin) <= self.end or (
            is_wide and self.promises.start[job] <= self.end
        )

    @compiled
    def is_beside(self, job: cython.int, rise: cython.int) -> cython.bint:
        """Return whether a job has its place on the node of the run at hand, in the run."""
        return (
            self.promises.what[job] == PROMISE_MADE
            and self.promises.start[job] <= self.end
            and self.promises.places.node[self.promises.first[job]] == self.rises.node[rise]
        )

    @compiled
    def narrow(self, rise: cython.int) -> cython.bint:
        """Cut a rise down to when it may have emptied a node; return False if it never did."""
        begin: cython.double = ENDLESS
        end: cython.double = -ENDLESS
        if self.rises.node[rise] != RISES_WIDE or self.rises.many[rise] == 0:
            return True
        for one in range(rise - self.rises.many[rise], rise):
            place = self.place_at(one)
            while place >= 0 and self._time(one, place) < self.rises.end[one]:
                if self.profile.is_idle(self.rises.node[one], place):
                    begin = min(begin, max(self._time(one, place), self.rises.begin[one]))
                    place = self._later(one, place)
                    end = max(end, self.rises.end[one] if place < 0 else self._time(one, place))
                else:
                    place = self._later(one, place)
        self.rises.begin[rise] = begin
        self.rises.end[rise] = min(end, self.rises.end[rise])
        return begin < end
