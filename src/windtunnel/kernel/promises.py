"""`Promises`: what waiting jobs are promised, what running jobs hold, and who fits when.

Both are entered in a `Profile`: a job's place is taken there from its start (or from now on) until
it is expected to stop.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.node_times import NodeTimes
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.profile import PROFILE_COMMON, PROFILE_PART, Profile
from windtunnel.kernel.state import State

#: Seconds that a waiting job is expected to run at least: jobs whose estimates are used up would
#: be promised one float after the other behind one that runs on past its own.
PROMISE_LEAST = cython.declare(cython.double, 1.0)
#: What a job has in the profile.
PROMISE_NONE = cython.declare(cython.int, 0)
PROMISE_MADE = cython.declare(cython.int, 1)
PROMISE_NEVER = cython.declare(cython.int, 2)
PROMISE_KEPT = cython.declare(cython.int, 3)
#: Searches of a line that are remembered, to begin the next one later.
PROMISE_BOUNDS = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class Promises:
    """Promised starts and places by job.

    Args:
        state: the run.
        admission: knows when jobs are expected to end.
        num_nodes: nodes or pools.
        num_sets: access sets, if anything is ever withheld; else 0.

    Attributes:
        profile: what is free when.
        what: what each job has: no promise, one, one that it never starts, or it runs.
        start: promised start, s; inf = never.
        stop: when the job is then expected to end.
        span: what is left of a waiting job's estimate, s.
        draw: the least that each job can be brought to add to the draw at its place, nanowatts;
            of runs with a power cap.
        queue: jobs with a promised start.
        starts: those of them that go on one node, by node and start.
        places: place of each job, and behind it what that takes of a row.
        scratch: a free state for searches.
        num_promised: jobs with a promise, those that never start included.
        num_never: these.
        cap_w: the power cap that holds now, W; -1 = it is not known yet.
    """

    state: State
    admission: Admission
    announced: Announced
    profile: Profile
    on: NodeSteps
    scratch: Free
    queue: JobHeap
    starts: NodeTimes
    num_nodes: cython.int
    num_promised: cython.int
    num_never: cython.int
    what: cython.char[::1]
    start: cython.double[::1]
    stop: cython.double[::1]
    span: cython.double[::1]
    draw: cython.longlong[::1]
    found_draw: cython.longlong
    cap_w: cython.double
    first_step: cython.int[::1]
    last_step: cython.int[::1]
    places: Pairs
    first: cython.longlong[::1]
    size: cython.int[::1]
    room: cython.int[::1]
    foot: cython.int[::1]
    drawn: Pairs
    # The kind of job that is looked for.
    kind: cython.int
    is_single: cython.bint
    access: cython.int
    units: cython.longlong
    need: cython.longlong
    other_need: cython.longlong
    idle_need: cython.longlong
    node_step: cython.longlong[::1]
    bound_rises: cython.longlong[::1]
    bound_next: cython.int[::1]
    bound_span: cython.double[::1]
    bound_start: cython.double[::1]

    def __init__(self, state: State, admission: Admission, num_nodes: int, num_sets: int) -> None:
        self.state, self.admission = state, admission
        self.announced = admission.announced
        self.num_nodes = num_nodes
        self.cap_w = -1.0
        kinds = range(state.free.num_kinds())
        idle = [state.free.wants_idle_alone(kind) for kind in kinds]
        self.profile = Profile(
            state.free,
            num_nodes,
            num_sets,
            counts_units=state.has_power
            or not all(idle[kind] or state.free.is_single(kind) for kind in kinds),
            counts_idle=any(state.free.idle_need(kind) > 0 for kind in kinds),
        )
        self.on = self.profile.on
        self.scratch = state.free.twin()
        self.queue = JobHeap(state.num_jobs)
        self.starts = NodeTimes(num_nodes)
        count = max(state.num_jobs, 1)
        self.what = numpy.zeros(count, dtype=numpy.int8)
        self.start, self.stop = numpy.zeros(count), numpy.zeros(count)
        self.span = numpy.zeros(count)
        self.draw = numpy.zeros(count if state.has_power else 1, dtype=numpy.int64)
        self.first_step = numpy.zeros(count, dtype=numpy.int32)
        self.last_step = numpy.zeros(count, dtype=numpy.int32)
        self.places, self.drawn = Pairs(), Pairs()
        self.first = numpy.zeros(count, dtype=numpy.int64)
        self.size = numpy.zeros(count, dtype=numpy.int32)
        self.room = numpy.zeros(count, dtype=numpy.int32)
        self.foot = numpy.zeros(count, dtype=numpy.int32)
        self.node_step = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)
        lines = max(state.lines.num_lines, 1)
        self.bound_rises = numpy.full(lines, -1, dtype=numpy.int64)
        self.bound_next = numpy.zeros(lines, dtype=numpy.int32)
        self.bound_span = numpy.zeros(lines * PROMISE_BOUNDS)
        self.bound_start = numpy.zeros(lines * PROMISE_BOUNDS)

    # Places.

    @compiled
    def keep_place(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Note a job's place, and what it takes of a row."""
        at: cython.longlong
        into: cython.longlong
        size: cython.int = cython.cast(cython.int, end - begin)
        foot: cython.int
        self.drawn.count = 0
        self.state.free.footprint(self.state.kind[job], pairs, begin, end, self.drawn)
        foot = cython.cast(cython.int, self.drawn.count)
        if size + foot > self.room[job]:
            self.first[job] = self.places.count
            self.room[job] = size + foot
            self.places.extend(pairs, begin, end)
            self.places.extend(self.drawn, 0, foot)
        into = self.first[job]
        for at in range(size):
            self.places.node[into + at] = pairs.node[begin + at]
            self.places.grant[into + at] = pairs.grant[begin + at]
        into += size
        for at in range(foot):
            self.places.node[into + at] = self.drawn.node[at]
            self.places.grant[into + at] = self.drawn.grant[at]
        self.size[job] = size
        self.foot[job] = foot

    @compiled
    def _change(
        self, job: cython.int, sign: cython.int, first: cython.int, last: cython.int
    ) -> cython.void:
        """Take (-1) or give back (1) a job's place in some steps."""
        begin: cython.longlong = self.first[job] + self.size[job]
        self.profile.add(
            self.places, begin, begin + self.foot[job], self.state.units[job],
            self.draw[job] if self.state.has_power else 0, sign, first, last,
        )  # fmt: skip

    # Entering and lifting.

    @compiled
    def stop_of(self, job: cython.int, start: cython.double) -> cython.double:
        """Return when a waiting job is expected to end; at least `PROMISE_LEAST` after it."""
        stop: cython.double = start
        if self.state.resumes:
            stop = stop + self.state.owed[job]
        stop = stop + self.span[job]
        return stop if stop > start + PROMISE_LEAST else start + PROMISE_LEAST

    @compiled
    def enter(self, job: cython.int, start: cython.double) -> cython.void:
        """Promise a job its noted place from ``start`` (s) on; inf = never."""
        first: cython.int
        last: cython.int = -1
        self.num_promised += 1
        self.start[job] = start
        if start == ENDLESS:
            self.what[job] = PROMISE_NEVER
            self.num_never += 1
            self.stop[job] = ENDLESS
            return
        self.what[job] = PROMISE_MADE
        self.stop[job] = self.stop_of(job, start)
        first = self.profile.step_at(start)
        self.profile.need(first)
        if self.stop[job] < ENDLESS:
            last = self.profile.step_at(self.stop[job])
            self.profile.need(last)
        self.first_step[job] = first
        self.last_step[job] = last
        self._change(job, -1, first, last)
        self.queue.push(start, job, job)
        if self.size[job] == 1:
            self.starts.add(self.places.node[self.first[job]], start, job)

    @compiled
    def _unqueue(self, job: cython.int) -> cython.void:
        self.queue.remove(job)
        if self.size[job] == 1:
            self.starts.remove(self.places.node[self.first[job]], self.start[job], job)

    @compiled
    def lift(self, job: cython.int) -> cython.void:
        """Take a promise back; the place stays noted."""
        self.num_promised -= 1
        if self.what[job] == PROMISE_MADE:
            self._unqueue(job)
            self._lift_from_now(job, self.start[job])
        elif self.what[job] == PROMISE_NEVER:
            self.num_never -= 1
        self.what[job] = PROMISE_NONE

    def forget_all(self) -> None:
        """Take back all promises of a start, and drop the profile; the places stay noted."""
        while self.queue.count > 0:
            job = self.queue.job[0]
            self.queue.remove(job)
            self.what[job] = PROMISE_NONE
            self.num_promised -= 1
        self.starts.clear()
        self.profile.clear()

    @compiled
    def _lift_from_now(self, job: cython.int, start: cython.double) -> cython.void:
        first: cython.int = self.profile.head
        ahead: cython.bint = start > self.profile.time[first]
        if self.stop[job] <= self.profile.time[first]:
            return  # all of it is past
        if ahead:
            first = self.first_step[job]
        self._change(job, 1, first, self.last_step[job])
        if ahead:
            self.profile.release(first)
        if self.last_step[job] >= 0:
            self.profile.release(self.last_step[job])

    # Running jobs.

    @compiled
    def keep(self, job: cython.int) -> cython.void:
        """Let a promise be what a running job holds until it is expected to end."""
        self.num_promised -= 1
        self._unqueue(job)
        self.what[job] = PROMISE_KEPT

    @compiled
    def hold(self, job: cython.int, stop: cython.double, is_counted: cython.bint) -> cython.void:
        """Enter what a running job holds from now until ``stop`` (s).

        Args:
            job: it runs.
            stop: when it is expected to end; past is just after now.
            is_counted: what is free now is without what it holds: give it back from then on.
        """
        stay: cython.int = self.state.stay[job]
        last: cython.int = -1
        self.keep_place(
            job, self.state.log, self.state.stay_first[stay], self.state.stay_last(stay)
        )
        self.what[job] = PROMISE_KEPT
        if self.state.has_power:
            self.draw[job] = self.state.power.floor[job]
        self.start[job] = self.profile.time[self.profile.head]
        if stop <= self.start[job]:
            stop = nextafter(self.start[job], ENDLESS)
        self.stop[job] = stop
        if stop < ENDLESS:
            last = self.profile.step_at(stop)
            self.profile.need(last)
        self.last_step[job] = last
        if not is_counted:
            self._change(job, -1, self.profile.head, last)
        elif last >= 0:
            self._change(job, 1, last, -1)

    @compiled
    def end_hold(self, job: cython.int) -> cython.void:
        """Give back what a job held that has left."""
        self._lift_from_now(job, self.profile.time[self.profile.head])
        self.what[job] = PROMISE_NONE

    @compiled
    def move_end(self, job: cython.int, stop: cython.double) -> cython.void:
        """Let a running job be expected to end at another time; past is just after now."""
        now: cython.double = self.profile.time[self.profile.head]
        old: cython.double = self.stop[job]
        before: cython.int = self.profile.head
        last: cython.int = -1
        if stop <= now:
            stop = nextafter(now, ENDLESS)
        if old > now:
            before = self.last_step[job]
        if stop < ENDLESS:
            last = self.profile.step_at(stop)
            self.profile.need(last)
        if stop > old:
            self._change(job, -1, before, last)
        elif stop < old:
            self._change(job, 1, last, before)
        if old > now and before >= 0:
            self.profile.release(before)
        self.stop[job] = stop
        self.last_step[job] = last

    # What is there.

    @compiled
    def access_of(self, job: cython.int) -> cython.int:
        """Return a job's access set."""
        return self.state.access[job] if self.state.has_access else 0

    @compiled
    def is_there(self, job: cython.int, start: cython.double) -> cython.bint:
        """Return whether the place of a job without a promise is free to it from ``start`` on."""
        stop: cython.double = self.stop_of(job, start)
        if self.state.has_power and self.draw[job] > (
            self._budget(self._cap_at(start))
            - self.profile.most_drawn(self.profile.at_or_before(start), stop)
        ):
            return False
        return self._has_spare(job, start, stop, True)

    @compiled
    def is_overdrawn(self, job: cython.int) -> cython.bint:
        """Return whether a promise is one of too many for its place."""
        return not self._has_spare(job, self.start[job], self.stop[job], False)

    @compiled
    def _has_spare(
        self, job: cython.int, start: cython.double, stop: cython.double, is_new: cython.bint
    ) -> cython.bint:
        """Return whether a job's place has what it takes, or nothing less than 0, and is open."""
        begin: cython.longlong = self.first[job] + self.size[job]
        width: cython.int = self.profile.width
        column: cython.int
        at: cython.longlong
        step: cython.longlong
        for at in range(begin, begin + self.foot[job]):
            column = self.places.node[at]
            step = self.on.at(column // width, start)
            if self.on.least(column // width, column % width, step, stop) < (
                self.places.grant[at] if is_new else 0
            ):
                return False
        if self.profile.sets == 0:
            return True
        column = width + self.access_of(job)
        for at in range(self.first[job], begin):
            step = self.on.at(self.places.node[at], start)
            if self.on.most(self.places.node[at], column, step, stop) > 0:
                return False
        return True

    @compiled
    def look_for(self, job: cython.int) -> cython.void:
        """Let `has` and `may_have` be about jobs like one."""
        kind: cython.int = self.state.kind[job]
        self.kind = kind
        self.is_single = self.state.free.is_single(kind)
        self.access = self.state.access[job] if self.state.has_access else 0
        self.units = self.state.units[job]
        if self.is_single:
            self.need = self.state.free.need(kind, 0)
            self.other_need = self.state.free.need(kind, 1)
        else:
            self.idle_need = self.state.free.idle_need(kind) if self.profile.counts_idle else 0

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
    def promise(self, job: cython.int) -> cython.void:
        """Promise a job that has no promise the first start at which it delays nobody."""
        start: cython.double = self.earliest(job, ENDLESS)
        self.enter(job, start)

    @compiled
    def earliest(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return the first start before ``limit`` at which a job fits; its place is noted then.

        inf = there is none. The job has no promise in the profile.
        """
        if self.state.has_power:
            return self._earliest_powered(job, limit)
        line: cython.int = self.state.lines.line_of[job]
        from_time: cython.double = self._bound(line, self.planned(job))
        start: cython.double
        if from_time >= limit:
            return ENDLESS
        start = self.earliest_from(job, from_time, limit)
        if start < ENDLESS or limit == ENDLESS:
            self._note_bound(line, self.planned(job), start)
        return start

    @compiled
    def planned(self, job: cython.int) -> cython.double:
        """Return how long a waiting job is expected to take once it starts, s."""
        return self.span[job] + (self.state.owed[job] if self.state.resumes else 0.0)

    @compiled
    def earliest_from(
        self, job: cython.int, from_time: cython.double, limit: cython.double
    ) -> cython.double:
        """Return what `earliest` does, of the starts from ``from_time`` on."""
        step: cython.int = self.profile.at_or_before(from_time)
        node: cython.int
        start: cython.double
        self.look_for(job)
        if self.is_single:
            start = self._earliest_single(job, self.profile.time[step], limit)
            if start < ENDLESS:
                self.profile.rows.clear(PROFILE_COMMON)
                for node in range(self.num_nodes):
                    self.offer(job, node, start)
                self.place_on_offer(job, start)
            return start
        step = self._earliest_wide(job, step, limit)
        if step < 0:
            return ENDLESS
        self.keep_place(job, self.scratch.place, 0, self.scratch.place.count)
        return self.profile.time[step]

    @compiled
    def offer(self, job: cython.int, node: cython.int, start: cython.double) -> cython.void:
        """Write what a node has from ``start`` (s) on, if that is enough for a single kind."""
        step: cython.longlong = self.on.at(node, start)
        stop: cython.double = self.stop_of(job, start)
        column: cython.int
        later: cython.longlong = step
        while later == step or (later < self.on.behind[node] and self.on.time[later] < stop):
            if not self.has(later):
                return
            later += 1
        for column in range(self.profile.width):
            self.profile.rows.cell[node * self.profile.width + column] = self.on.least(
                node, column, step, stop
            )

    @compiled
    def place_on_offer(self, job: cython.int, start: cython.double) -> cython.bint:
        """Note where a job goes on the nodes that were offered; return False if it does not."""
        if not self._fits_as(self.kind, start):
            return False
        self.keep_place(job, self.scratch.place, 0, self.scratch.place.count)
        return True

    @compiled
    def _bound(self, line: cython.int, span: cython.double) -> cython.double:
        """Return a time before which no job of a line that is as long starts: one did not."""
        at: cython.int
        found: cython.double = self.profile.time[self.profile.head]
        if self.bound_rises[line] != self.profile.rises:
            return found
        for at in range(line * PROMISE_BOUNDS, (line + 1) * PROMISE_BOUNDS):
            if self.bound_span[at] <= span and self.bound_start[at] > found:
                found = self.bound_start[at]
        return found

    @compiled
    def _note_bound(
        self, line: cython.int, span: cython.double, start: cython.double
    ) -> cython.void:
        at: cython.int
        if self.bound_rises[line] != self.profile.rises:
            self.bound_rises[line] = self.profile.rises
            for at in range(line * PROMISE_BOUNDS, (line + 1) * PROMISE_BOUNDS):
                self.bound_span[at] = ENDLESS
        at = line * PROMISE_BOUNDS + self.bound_next[line]
        self.bound_span[at] = span
        self.bound_start[at] = start
        self.bound_next[line] = (self.bound_next[line] + 1) % PROMISE_BOUNDS

    @compiled
    def _earliest_single(
        self, job: cython.int, from_time: cython.double, limit: cython.double
    ) -> cython.double:
        """Return since when a node has room for as long as a job needs it; inf = not before."""
        node: cython.int
        step: cython.longlong
        start: cython.double
        found: cython.double = limit
        for node in range(self.num_nodes):
            if not self.state.free.allows(self.kind, node):
                continue
            step = self.on.at(node, from_time)
            start = max(self.on.time[step], from_time)
            while start < found:
                if self.has(step):
                    step = self._lack(node, step, self.stop_of(job, start))
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
        stop: cython.double
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
                stop = self.stop_of(job, self.profile.time[step])
                if behind >= 0 and self.profile.time[behind] < stop:
                    step = behind
                    break
                if self.idle_need > 0 and not self.profile.keeps_idle(step, stop, self.idle_need):
                    step = self.profile.after[step]
                    continue
                self._look_at_nodes(step)
                self._meet(nextafter(self.profile.time[step], ENDLESS))
                if self._fits_as(self.kind, self.profile.time[step]):
                    self._meet(stop)
                    if self._fits_as(self.kind, self.profile.time[step]):
                        return step
                step = self.profile.after[step]
        return -1

    @compiled
    def _look_at_nodes(self, step: cython.int) -> cython.void:
        """Note which step of each node is at a step."""
        node: cython.int
        for node in range(self.num_nodes):
            self.node_step[node] = self.on.at(node, self.profile.time[step])

    @compiled
    def _meet(self, stop: cython.double) -> cython.void:
        """Write what is free from the steps noted until ``stop`` (s)."""
        node: cython.int
        column: cython.int
        of: cython.longlong
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
    def _fits_as(self, kind: cython.int, time: cython.double) -> cython.bint:
        """Return whether a kind of job fits what steps have in common, its reserved nodes first."""
        node: cython.int
        column: cython.int
        at: cython.longlong
        shown: cython.bint = False
        self.scratch.draws = self.state.num_stays
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

    # With power.

    @compiled
    def know_cap(self) -> cython.void:
        """See which cap holds now, though it may be that the source has yet to say so."""
        row: cython.int = self.announced.provide_row(self.announced.next_row, self.state.now)
        if self.cap_w < 0.0:
            self.cap_w = self.state.cap_w
        while row < self.announced.num_rows and self.announced.row_time[row] <= self.state.now:
            self.cap_w = self.announced.row_cap[row]
            row += 1

    @compiled
    def _cap_at(self, time: cython.double) -> cython.double:
        """Return the power cap that holds at a time to come, W."""
        cap_w: cython.double = self.cap_w
        row: cython.int = self.announced.next_row
        row = self.announced.provide_row(row, time)
        while row < self.announced.num_rows and self.announced.row_time[row] <= time:
            cap_w = self.announced.row_cap[row]
            row += 1
        return cap_w

    @compiled
    def _budget(self, cap_w: cython.double) -> cython.longlong:
        """Return what jobs may add to the draw under a cap, nanowatts."""
        budget: cython.longlong = self.state.budget_at(cap_w)
        return budget if budget > 0 else 0

    @compiled
    def _earliest_powered(self, job: cython.int, limit: cython.double) -> cython.double:
        """Return what `earliest` does, where there is a power cap.

        A job may start, too, when the cap changes; what holds then must do for all of its time.
        """
        row: cython.int = self.announced.next_row
        step: cython.int = self.profile.head
        following: cython.int
        time: cython.double = self.profile.time[step]
        last: cython.double = self.profile.last_time()
        cap_w: cython.double = self.cap_w
        self.look_for(job)
        while time < limit:
            if self._fits_powered(job, step, time, self._budget(cap_w)):
                self.draw[job] = self.found_draw
                self.keep_place(job, self.scratch.place, 0, self.scratch.place.count)
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
        self, job: cython.int, step: cython.int, time: cython.double, budget: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits, with its power, from a time within a step on."""
        stop: cython.double
        if self.profile.total[step] < self.units:
            return False
        self._look_at_nodes(step)
        self._meet(time)
        if not self._fits_within(job, time, budget - self.profile.drawn[step]):
            return False
        stop = self.stop_of(job, time)
        self._meet(stop)
        return self._fits_within(job, time, budget - self.profile.most_drawn(step, stop))

    @compiled
    def _fits_within(
        self, job: cython.int, time: cython.double, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits what steps have in common, and adds no more to the draw.

        As in `windtunnel.kernel.admission.Admission.fit_in`. ``found_draw`` has what it adds.
        """
        kind: cython.int
        if not self._fits_as(self.kind, time):
            return False
        self.found_draw = self.admission.floor(self.scratch, job)
        if self.found_draw <= spare:
            return True
        kind = self.admission.cheap_kind(job, spare)
        if kind < 0 or not self._fits_as(kind, time):
            return False
        self.found_draw = self.admission.floor(self.scratch, job)
        return self.found_draw <= spare
