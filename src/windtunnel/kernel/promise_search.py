"""`PromiseSearch`: when and where a job fits at the earliest without delaying anybody."""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.profile import PROFILE_COMMON, PROFILE_PART, Profile
from windtunnel.kernel.promises import Promises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class PromiseSearch:
    """Looks along the profile for places.

    Args:
        promises: what jobs are promised, and the profile.
        num_nodes: nodes or pools.

    Attributes:
        kind: that of the jobs that are looked for.
        is_single: it goes on one node whole.
        scratch: a free state, to fit jobs in.
        single_of: whether each kind is single.
    """

    promises: Promises
    state: State
    profile: Profile
    on: NodeSteps
    scratch: Free
    num_nodes: cython.int
    single_of: cython.char[::1]
    need_of: cython.longlong[:, ::1]
    idle_need_of: cython.longlong[::1]
    kind: cython.int
    is_single: cython.bint
    access: cython.int
    units: cython.longlong
    need: cython.longlong
    other_need: cython.longlong
    idle_need: cython.longlong
    node_step: cython.longlong[::1]

    def __init__(self, promises: Promises, num_nodes: int) -> None:
        self.promises, self.state = promises, promises.state
        self.profile, self.on = promises.profile, promises.on
        self.num_nodes = num_nodes
        free = promises.state.free
        self.scratch = free.twin()
        kinds = range(free.num_kinds())
        self.single_of = numpy.array([free.is_single(kind) for kind in kinds], dtype=numpy.int8)
        needs = [(free.need(kind, 0), free.need(kind, 1)) for kind in kinds]
        self.need_of = numpy.array(needs, dtype=numpy.int64).reshape(-1, 2)
        self.idle_need_of = numpy.array([free.idle_need(kind) for kind in kinds], dtype=numpy.int64)
        self.node_step = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)

    # What is there.

    @compiled
    def look_for(self, job: cython.int) -> cython.void:
        """Let `has` and `may_have` be about jobs like one."""
        kind: cython.int = self.state.kind[job]
        self.kind = kind
        self.is_single = self.single_of[kind]
        self.access = self.state.access[job] if self.state.has_access else 0
        self.units = self.state.units[job]
        if self.is_single:
            self.need = self.need_of[kind, 0]
            self.other_need = self.need_of[kind, 1]
        else:
            self.idle_need = self.idle_need_of[kind]

    @compiled
    def has(self, step: cython.longlong) -> cython.bint:
        """Return whether an acceptable node has room in its step, for a single kind."""
        at: cython.longlong = step * self.on.stride
        if self.on.value[at] < self.need:
            return False
        if self.profile.width > 1 and self.on.value[at + 1] < self.other_need:
            return False
        return self.profile.sets == 0 or not self.profile.is_closed(step, self.access)

    @compiled
    def may_have(self, step: cython.int) -> cython.bint:
        """Return whether sums allow that there is room at a step, for a kind that is not single."""
        if self.profile.idle[step] < self.idle_need:
            return False
        return not self.profile.counts_units or self.profile.total[step] >= self.units

    # Searching.

    @compiled
    def earliest(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return the first start before ``limit`` at which a job fits; its place is noted then.

        inf = there is none. The job has no promise in the profile.
        """
        return self.earliest_from(job, self.profile.time[self.profile.head], limit)

    @compiled
    def earliest_from(
        self, job: cython.int, from_time: cython.double, limit: cython.double
    ) -> cython.double:
        """Return what `earliest` does, of the starts from ``from_time`` on."""
        self.look_for(job)
        if self.is_single:
            start = self._earliest_single(job, from_time, limit)
            if start < ENDLESS:
                self.profile.rows.clear(PROFILE_COMMON)
                for node in range(self.num_nodes):
                    self.offer(job, node, start)
                self.place_on_offer(job, start)
            return start
        step = self._earliest_wide(job, self.profile.at_or_before(from_time), limit)
        if step < 0:
            return ENDLESS
        self.promises.keep_place(job, self.scratch.place, 0, self.scratch.place.count)
        return self.profile.time[step]

    @compiled
    def offer(self, job: cython.int, node: cython.int, start: cython.double) -> cython.void:
        """Write what a node has from ``start`` (s) on, if that is enough for a single kind."""
        step: cython.longlong = self.on.at(node, start)
        stop: cython.double = self.promises.stop_of(job, start)
        if not self.stays_free(node, step, stop):
            return
        for column in range(self.profile.width):
            self.profile.rows.cell[node * self.profile.width + column] = self.on.least(
                node, column, step, stop
            )

    @compiled
    def stays_free(
        self, node: cython.int, step: cython.longlong, stop: cython.double
    ) -> cython.bint:
        """Return whether a node has room, for a single kind, from a step of its own to a time."""
        return self.has(step) and self._lack(node, step, stop) < 0

    @compiled
    def place_on_offer(self, job: cython.int, start: cython.double) -> cython.bint:
        """Note where a job goes on the nodes that were offered; return False if it does not."""
        if not self.fits_as(self.kind, start):
            return False
        self.promises.keep_place(job, self.scratch.place, 0, self.scratch.place.count)
        return True

    @compiled
    def _earliest_single(
        self, job: cython.int, from_time: cython.double, limit: cython.double
    ) -> cython.double:
        """Return since when a node has room for as long as a job needs it; inf = not before."""
        found: cython.double = limit
        for node in range(self.num_nodes):
            if not self.state.free.allows(self.kind, node):
                continue
            step = self.on.at(node, from_time)
            start = max(self.on.time[step], from_time)
            while start < found:
                if self.has(step):
                    step = self._lack(node, step, self.promises.stop_of(job, start))
                    if step < 0:
                        found = start
                        break
                step += 1
                start = self.on.time[step] if step < self.on.behind[node] else ENDLESS
        return found if found < limit else ENDLESS

    @compiled
    def _lack(
        self, node: cython.int, step: cython.longlong, stop: cython.double
    ) -> cython.longlong:
        """Return the first step behind one, before ``stop`` (s), without room; -1 = none."""
        step += 1
        while step < self.on.behind[node] and self.on.time[step] < stop:
            if not self.has(step):
                return step
            step += 1
        return -1

    @compiled
    def _earliest_wide(self, job: cython.int, step: cython.int, limit: cython.double) -> cython.int:
        """Return the first step from which a job of any kind fits for as long as it needs."""
        behind: cython.int = -1
        while step >= 0 and self.profile.time[step] < limit:
            if not self.may_have(step):
                step = self.profile.after[step]
                continue
            # There may be room until before ``behind``.
            behind = self.profile.after[step]
            while behind >= 0 and self.may_have(behind):
                behind = self.profile.after[behind]
            while step != behind and self.profile.time[step] < limit:
                stop = self.promises.stop_of(job, self.profile.time[step])
                if behind >= 0 and self.profile.time[behind] < stop:
                    step = behind
                    break
                if self.idle_need > 0 and not self.profile.keeps_idle(step, stop, self.idle_need):
                    step = self.profile.after[step]
                    continue
                self.look_at_nodes(step)
                self.meet(nextafter(self.profile.time[step], ENDLESS))
                if self.fits_as(self.kind, self.profile.time[step]):
                    self.meet(stop)
                    if self.fits_as(self.kind, self.profile.time[step]):
                        return step
                step = self.profile.after[step]
        return -1

    @compiled
    def look_at_nodes(self, step: cython.int) -> cython.void:
        """Note which step of each node is at a step."""
        for node in range(self.num_nodes):
            self.node_step[node] = self.on.at(node, self.profile.time[step])

    @compiled
    def meet(self, stop: cython.double) -> cython.void:
        """Write what is free from the steps noted until ``stop`` (s)."""
        at: cython.longlong = 0
        for node in range(self.num_nodes):
            of = self.node_step[node]
            is_open: cython.bint = self.profile.sets == 0 or (
                self.on.most(node, self.profile.width + self.access, of, stop) <= 0
            )
            for column in range(self.profile.width):
                self.profile.rows.cell[at] = self.on.least(node, column, of, stop) if is_open else 0
                at += 1

    @compiled
    def fits_as(self, kind: cython.int, time: cython.double) -> cython.bint:
        """Return whether a kind of job fits what steps have in common, its reserved nodes first."""
        shown: cython.bint = False
        self.scratch.draws = self.state.stays.count
        if self.access > 0 and self.profile.sets > 0:
            self.profile.rows.copy(PROFILE_PART, PROFILE_COMMON)
            for node in range(self.num_nodes):
                at = self.on.at(node, time)
                if self.profile.is_closed(at, 0):
                    shown = shown or not self.profile.is_closed(at, self.access)
                    continue
                at = PROFILE_PART * self.profile.rows.columns + node * self.profile.width
                for column in range(self.profile.width):
                    self.profile.rows.cell[at + column] = 0
            if shown:
                self.scratch.load(self.profile.rows, PROFILE_PART)
                if self.scratch.fit(kind):
                    return True
        self.scratch.load(self.profile.rows, PROFILE_COMMON)
        return self.scratch.fit(kind)
