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
#: A node that a job's kind may not use.
PROMISE_BARRED = cython.declare(cython.int, -2)


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
    run: cython.int[::1]
    idle: cython.int[::1]
    bound_rises: cython.longlong[::1]
    bound_next: cython.int[::1]
    bound_span: cython.double[::1]
    bound_start: cython.double[::1]

    def __init__(self, state: State, admission: Admission, num_nodes: int, num_sets: int) -> None:
        self.state, self.admission = state, admission
        self.announced = admission.announced
        self.num_nodes = num_nodes
        self.cap_w = -1.0
        self.profile = Profile(state.free, num_nodes, num_sets)
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
        self.run = numpy.zeros(max(num_nodes, 1), dtype=numpy.int32)
        self.idle = numpy.zeros(max(num_nodes * self.profile.width, 1), dtype=numpy.int32)
        lines = max(state.lines.num_lines, 1)
        self.bound_rises = numpy.full(lines, -1, dtype=numpy.int64)
        self.bound_next = numpy.zeros(lines, dtype=numpy.int32)
        self.bound_span = numpy.zeros(lines * PROMISE_BOUNDS)
        self.bound_start = numpy.zeros(lines * PROMISE_BOUNDS)

    # Places.

    @compiled
    def _keep_place(
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
        self._keep_place(
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
        step: cython.int = self.profile.at_or_before(start)
        if self.state.has_power and self.draw[job] > (
            self._budget(self._cap_at(start)) - self.profile.most_drawn(step, stop)
        ):
            return False
        begin: cython.longlong = self.first[job] + self.size[job]
        access: cython.int = self.access_of(job)
        at: cython.longlong
        while step >= 0 and (self.profile.time[step] < stop or step == self.profile.head):
            for at in range(begin, begin + self.foot[job]):
                if (
                    self.profile.rows.cell[step * self.profile.rows.columns + self.places.node[at]]
                    < self.places.grant[at]
                ):
                    return False
            for at in range(self.first[job], begin):
                if self.profile.is_closed(step, self.places.node[at], access):
                    return False
            step = self.profile.after[step]
        return True

    @compiled
    def is_overdrawn(self, job: cython.int) -> cython.bint:
        """Return whether a promise is one of too many for its place."""
        step: cython.int = self.profile.at_or_before(self.start[job])
        begin: cython.longlong = self.first[job] + self.size[job]
        access: cython.int = self.access_of(job)
        at: cython.longlong
        while step >= 0 and self.profile.time[step] < self.stop[job]:
            for at in range(begin, begin + self.foot[job]):
                if (
                    self.profile.rows.cell[step * self.profile.rows.columns + self.places.node[at]]
                    < 0
                ):
                    return True
            for at in range(self.first[job], begin):
                if self.profile.is_closed(step, self.places.node[at], access):
                    return True
            step = self.profile.after[step]
        return False

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
            self.idle_need = self.state.free.idle_need(kind)

    @compiled
    def has(self, step: cython.int, node: cython.int) -> cython.bint:
        """Return whether a node that is acceptable has room at a step, for a single kind."""
        at: cython.longlong = step * self.profile.rows.columns + node * self.profile.width
        if self.profile.rows.cell[at] < self.need:
            return False
        if self.profile.width > 1 and self.profile.rows.cell[at + 1] < self.other_need:
            return False
        return self.profile.sets == 0 or not self.profile.is_closed(step, node, self.access)

    @compiled
    def may_have(self, step: cython.int) -> cython.bint:
        """Return whether sums allow that there is room at a step, for a kind that is not single."""
        return self.profile.total[step] >= self.units and self.profile.idle[step] >= self.idle_need

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
        found: cython.int = self.profile.at_or_before(from_time)
        self.look_for(job)
        if self.is_single:
            found = self._earliest_single(job, found, limit)
            if found >= 0:
                self._place_at(job, found)
        else:
            found = self._earliest_wide(job, found, limit)
        if found < 0:
            return ENDLESS
        self._keep_place(job, self.scratch.place, 0, self.scratch.place.count)
        return self.profile.time[found]

    @compiled
    def place_at(self, job: cython.int, start: cython.double) -> cython.bint:
        """Note where a job of a single kind goes that fits from ``start`` (s) on."""
        self.look_for(job)
        if not self._place_at(job, self.profile.at_or_before(start)):
            return False
        self._keep_place(job, self.scratch.place, 0, self.scratch.place.count)
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
        self, job: cython.int, step: cython.int, limit: cython.double
    ) -> cython.int:
        """Return the first step from which a node has room for as long as a job needs it."""
        node: cython.int
        active: cython.int = 0
        oldest: cython.int = -1
        lost: cython.bint
        for node in range(self.num_nodes):
            self.run[node] = -1 if self.state.free.allows(self.kind, node) else PROMISE_BARRED
        while step >= 0:
            if active > 0:
                if self.profile.time[step] >= self.stop_of(job, self.profile.time[oldest]):
                    return oldest
            elif self.profile.time[step] >= limit:
                return -1
            if self.profile.total[step] < self.units:
                if active > 0:
                    for node in range(self.num_nodes):
                        if self.run[node] >= 0:
                            self.run[node] = -1
                    active = 0
                step = self.profile.after[step]
                continue
            lost = False
            for node in range(self.num_nodes):
                if self.has(step, node):
                    if self.run[node] == -1 and self.profile.time[step] < limit:
                        self.run[node] = step
                        active += 1
                        if active == 1:
                            oldest = step
                elif self.run[node] >= 0:
                    lost = lost or self.run[node] == oldest
                    self.run[node] = -1
                    active -= 1
            if lost and active > 0:
                oldest = self._oldest()
            step = self.profile.after[step]
        return oldest if active > 0 else -1

    @compiled
    def _oldest(self) -> cython.int:
        node: cython.int
        found: cython.int = -1
        for node in range(self.num_nodes):
            if self.run[node] >= 0 and (
                found < 0 or self.profile.time[self.run[node]] < self.profile.time[found]
            ):
                found = self.run[node]
        return found

    @compiled
    def _place_at(self, job: cython.int, step: cython.int) -> cython.bint:
        """Return whether a job of a single kind fits from a step on; ``scratch`` has where."""
        node: cython.int
        later: cython.int
        at: cython.longlong
        of: cython.longlong
        stop: cython.double = self.stop_of(job, self.profile.time[step])
        self.profile.rows.clear(PROFILE_COMMON)
        for node in range(self.num_nodes):
            if not self.has(step, node):
                continue
            at = PROFILE_COMMON * self.profile.rows.columns + node * self.profile.width
            of = step * self.profile.rows.columns + node * self.profile.width
            self.profile.rows.cell[at] = self.profile.rows.cell[of]
            if self.profile.width > 1:
                self.profile.rows.cell[at + 1] = self.profile.rows.cell[of + 1]
            later = self.profile.after[step]
            while later >= 0 and self.profile.time[later] < stop:
                if not self.has(later, node):
                    self._blank_node(PROFILE_COMMON, node)
                    break
                of = later * self.profile.rows.columns + node * self.profile.width
                self.profile.rows.cell[at] = min(
                    self.profile.rows.cell[at], self.profile.rows.cell[of]
                )
                if self.profile.width > 1:
                    self.profile.rows.cell[at + 1] = min(
                        self.profile.rows.cell[at + 1], self.profile.rows.cell[of + 1]
                    )
                later = self.profile.after[later]
        return self._fits_common(step)

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
                if not self._keeps_idle(step, stop):
                    step = self.profile.after[step]
                    continue
                self._meet(step, nextafter(self.profile.time[step], ENDLESS))
                if self._fits_common(step):
                    self._meet(step, stop)
                    if self._fits_common(step):
                        return step
                step = self.profile.after[step]
        return -1

    @compiled
    def _keeps_idle(self, step: cython.int, stop: cython.double) -> cython.bint:
        """Return whether as many columns as the job needs stay all free until ``stop`` (s)."""
        column: cython.int
        at: cython.int
        count: cython.int = 0
        kept: cython.int
        row: cython.longlong = step * self.profile.rows.columns
        if self.idle_need == 0:
            return True
        for column in range(self.num_nodes * self.profile.width):
            if self.profile.rows.cell[row + column] == self.profile.full[column]:
                self.idle[count] = column
                count += 1
        step = self.profile.after[step]
        while count >= self.idle_need and step >= 0 and self.profile.time[step] < stop:
            row = step * self.profile.rows.columns
            kept = 0
            for at in range(count):
                column = self.idle[at]
                if self.profile.rows.cell[row + column] == self.profile.full[column]:
                    self.idle[kept] = column
                    kept += 1
            count = kept
            step = self.profile.after[step]
        return count >= self.idle_need

    @compiled
    def _meet(self, step: cython.int, stop: cython.double) -> cython.void:
        """Write what is free in all steps from one until ``stop`` (s)."""
        later: cython.int = self.profile.after[step]
        self.profile.rows.copy(PROFILE_COMMON, step)
        self._blank(step)
        while later >= 0 and self.profile.time[later] < stop:
            self.profile.rows.meet(PROFILE_COMMON, later)
            self._blank(later)
            later = self.profile.after[later]

    @compiled
    def _blank(self, step: cython.int) -> cython.void:
        """Let nothing be free where a step has nodes closed."""
        node: cython.int
        if self.profile.sets == 0:
            return
        for node in range(self.num_nodes):
            if self.profile.is_closed(step, node, self.access):
                self._blank_node(PROFILE_COMMON, node)

    @compiled
    def _blank_node(self, row: cython.int, node: cython.int) -> cython.void:
        column: cython.int
        at: cython.longlong = row * self.profile.rows.columns + node * self.profile.width
        for column in range(self.profile.width):
            self.profile.rows.cell[at + column] = 0

    @compiled
    def _fits_common(self, step: cython.int) -> cython.bint:
        """Return whether a job fits what steps have in common, its reserved nodes first."""
        return self._fits_as(self.kind, step)

    @compiled
    def _fits_as(self, kind: cython.int, step: cython.int) -> cython.bint:
        """Return whether what a kind of job asks for fits there."""
        node: cython.int
        shown: cython.bint = False
        self.scratch.draws = self.state.num_stays
        if self.access > 0 and self.profile.sets > 0:
            self.profile.rows.copy(PROFILE_PART, PROFILE_COMMON)
            for node in range(self.num_nodes):
                if self.profile.is_closed(step, node, 0):
                    shown = shown or not self.profile.is_closed(step, node, self.access)
                else:
                    self._blank_node(PROFILE_PART, node)
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
                self._keep_place(job, self.scratch.place, 0, self.scratch.place.count)
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
        self._meet(step, time)
        if not self._fits_within(job, step, budget - self.profile.drawn[step]):
            return False
        stop = self.stop_of(job, time)
        self._meet(step, stop)
        return self._fits_within(job, step, budget - self.profile.most_drawn(step, stop))

    @compiled
    def _fits_within(
        self, job: cython.int, step: cython.int, spare: cython.longlong
    ) -> cython.bint:
        """Return whether a job fits what steps have in common, and adds no more to the draw.

        As in `windtunnel.kernel.admission.Admission.fit_in`. ``found_draw`` has what it adds.
        """
        kind: cython.int
        if not self._fits_as(self.kind, step):
            return False
        self.found_draw = self.admission.floor(self.scratch, job)
        if self.found_draw <= spare:
            return True
        kind = self.admission.cheap_kind(job, spare)
        if kind < 0 or not self._fits_as(kind, step):
            return False
        self.found_draw = self.admission.floor(self.scratch, job)
        return self.found_draw <= spare
