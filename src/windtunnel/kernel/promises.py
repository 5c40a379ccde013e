"""`Promises`: what waiting jobs are promised, and what running jobs hold.

Both are entered in a `Profile`: a job's place is taken there from its start (or from now on) until
it is expected to stop.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import nextafter

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.node_times import NodeTimes
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.profile import Profile
from windtunnel.kernel.state import State

#: Seconds that a waiting job is expected to run at least: jobs whose estimates are used up would
#: be promised one float after the other behind one that runs on past its own.
PROMISE_LEAST = cython.declare(cython.double, 1.0)
#: What a job has in the profile.
PROMISE_NONE = cython.declare(cython.int, 0)
PROMISE_MADE = cython.declare(cython.int, 1)
PROMISE_NEVER = cython.declare(cython.int, 2)
PROMISE_KEPT = cython.declare(cython.int, 3)
PROMISE_PLANNED = cython.declare(cython.int, 4)


@cython.final
@cython.cclass
class Promises:
    """Promised starts and places by job.

    Args:
        state: the run.
        num_nodes: nodes or pools.
        num_sets: access sets, if anything is ever withheld; else 0.

    Attributes:
        profile: what is free when.
        what: what each job has: no promise, one, one that it never starts, or it runs; or it is the
            head of the queue, with a plan of its own (`windtunnel.kernel.head_plan`).
        start: promised start, s; inf = never.
        stop: when the job is then expected to end.
        span: what is left of a waiting job's estimate, with checkpoints, s.
        draw: the least that each job can be brought to add to the draw at its place, nanowatts;
            of runs with a power cap.
        queue: jobs with a promised start.
        starts: those of them that go on one node, by node and start.
        places: place of each job, and behind it what that takes of a row.
        promised_in: jobs of each line with a promise, those that never start included.
        num_never: these, of all lines.
    """

    state: State
    profile: Profile
    on: NodeSteps
    queue: JobHeap
    starts: NodeTimes
    promised_in: cython.int[::1]
    num_never: cython.int
    what: cython.char[::1]
    start: cython.double[::1]
    stop: cython.double[::1]
    span: cython.double[::1]
    draw: cython.longlong[::1]
    places: Pairs
    first: cython.longlong[::1]
    size: cython.int[::1]
    capacity: cython.int[::1]
    foot: cython.int[::1]
    drawn: Pairs

    def __init__(self, state: State, num_nodes: int, num_sets: int) -> None:
        self.state = state
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
        self.queue = JobHeap(state.num_jobs)
        self.starts = NodeTimes(num_nodes)
        count = max(state.num_jobs, 1)
        self.promised_in = numpy.zeros(max(state.lines.num_lines, 1), dtype=numpy.int32)
        self.what = numpy.zeros(count, dtype=numpy.int8)
        self.start, self.stop = numpy.zeros(count), numpy.zeros(count)
        self.span = numpy.zeros(count)
        self.draw = numpy.zeros(count if state.has_power else 1, dtype=numpy.int64)
        self.places, self.drawn = Pairs(), Pairs()
        self.first = numpy.zeros(count, dtype=numpy.int64)
        self.size = numpy.zeros(count, dtype=numpy.int32)
        self.capacity = numpy.zeros(count, dtype=numpy.int32)
        self.foot = numpy.zeros(count, dtype=numpy.int32)

    # Places.

    @compiled
    def keep_place(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Note a job's place, and what it takes of a row."""
        at: cython.longlong
        size: cython.int = cython.cast(cython.int, end - begin)
        self.drawn.count = 0
        self.state.free.footprint(self.state.kind[job], pairs, begin, end, self.drawn)
        foot = cython.cast(cython.int, self.drawn.count)
        if size + foot > self.capacity[job]:
            self.first[job] = self.places.count
            self.capacity[job] = size + foot
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
        self, job: cython.int, sign: cython.int, since: cython.double, until: cython.double
    ) -> cython.void:
        """Take (-1) or give back (1) a job's place for some time."""
        begin: cython.longlong = self.first[job] + self.size[job]
        self.profile.add(
            self.places, begin, begin + self.foot[job], self.state.units[job],
            self.draw[job] if self.state.has_power else 0, sign, since, until,
        )  # fmt: skip

    # Entering and lifting.

    @compiled
    def stop_of(self, job: cython.int, start: cython.double) -> cython.double:
        """Return when a waiting job is expected to end; at least `PROMISE_LEAST` after its start.

        Who is to start just after now, behind a job that is past its expected end, is expected to
        end as if it started now: else rounding would say whether that is before another's promise.
        """
        now: cython.double = self.profile.time[self.profile.head]
        if start == nextafter(now, ENDLESS):
            start = now
        stop = start
        if self.state.resumes:
            stop = stop + self.state.start_overhead[job]
        stop = stop + self.span[job]
        return stop if stop > start + PROMISE_LEAST else start + PROMISE_LEAST

    @compiled
    def planned(self, job: cython.int) -> cython.double:
        """Return how long a waiting job is expected to take once it starts, s."""
        return self.span[job] + (self.state.start_overhead[job] if self.state.resumes else 0.0)

    @compiled
    def enter(self, job: cython.int, start: cython.double) -> cython.void:
        """Promise a job its noted place from ``start`` (s) on; inf = never."""
        self.enter_until(job, start, self.stop_of(job, start))

    @compiled
    def enter_until(
        self, job: cython.int, start: cython.double, stop: cython.double
    ) -> cython.void:
        """Promise a job its noted place from ``start`` to ``stop`` (s)."""
        self.promised_in[self.state.lines.line_of[job]] += 1
        self.start[job] = start
        self.stop[job] = stop
        if start == ENDLESS:
            self.what[job] = PROMISE_NEVER
            self.num_never += 1
            return
        self.what[job] = PROMISE_MADE
        self._take_from(job, start)
        self.queue.push(start, job, job)
        if self.size[job] == 1:
            self.starts.add(self.places.node[self.first[job]], start, job)

    @compiled
    def enter_plan(self, job: cython.int, start: cython.double) -> cython.void:
        """Let the head of the queue have its noted place from ``start`` (s) on."""
        self.promised_in[self.state.lines.line_of[job]] += 1
        self.start[job], self.stop[job] = start, self.stop_of(job, start)
        self.what[job] = PROMISE_PLANNED
        self._take_from(job, start)

    @compiled
    def _take_from(self, job: cython.int, start: cython.double) -> cython.void:
        """Take a job's place from its start (s) until it is expected to end."""
        self.profile.mark(start)
        self.profile.count_start(start, 1)
        self.profile.mark(self.stop[job])
        self._change(job, -1, start, self.stop[job])

    @compiled
    def _unqueue(self, job: cython.int) -> cython.void:
        self.queue.remove(job)
        if self.size[job] == 1:
            self.starts.remove(self.places.node[self.first[job]], self.start[job], job)

    @compiled
    def lift(self, job: cython.int) -> cython.void:
        """Take a promise, or a plan, back; the place stays noted."""
        self.promised_in[self.state.lines.line_of[job]] -= 1
        if self.what[job] == PROMISE_MADE:
            self._unqueue(job)
        if self.what[job] == PROMISE_MADE or self.what[job] == PROMISE_PLANNED:
            self.profile.count_start(self.start[job], -1)
            self._lift_from_now(job)
        elif self.what[job] == PROMISE_NEVER:
            self.num_never -= 1
        self.what[job] = PROMISE_NONE

    def forget_all(self) -> None:
        """Take back all promises of a start, and drop the profile; the places stay noted."""
        while self.queue.count > 0:
            job = self.queue.job[0]
            self.queue.remove(job)
            self.what[job] = PROMISE_NONE
            self.promised_in[self.state.lines.line_of[job]] -= 1
        self.starts.clear()
        self.profile.clear()

    @compiled
    def _lift_from_now(self, job: cython.int) -> cython.void:
        if self.stop[job] <= self.profile.time[self.profile.head]:
            return  # all of it is past
        self._change(job, 1, self.start[job], self.stop[job])
        self.profile.unmark(self.start[job])
        self.profile.unmark(self.stop[job])

    # Running jobs.

    @compiled
    def keep(self, job: cython.int) -> cython.void:
        """Let a promise be what a running job holds until it is expected to end."""
        self.promised_in[self.state.lines.line_of[job]] -= 1
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
        self.keep_place(
            job, self.state.stays.pairs, self.state.stays.first[stay], self.state.stays.last(stay)
        )
        self.what[job] = PROMISE_KEPT
        if self.state.has_power:
            self.draw[job] = self.state.power.floor[job]
        self.start[job] = self.profile.time[self.profile.head]
        if stop <= self.start[job]:
            stop = nextafter(self.start[job], ENDLESS)
        self.stop[job] = stop
        self.profile.mark(stop)
        if not is_counted:
            self._change(job, -1, self.start[job], stop)
        elif stop < ENDLESS:
            self._change(job, 1, stop, ENDLESS)

    @compiled
    def end_hold(self, job: cython.int) -> cython.void:
        """Give back what a job held that has left."""
        self._lift_from_now(job)
        self.what[job] = PROMISE_NONE

    @compiled
    def move_end(self, job: cython.int, stop: cython.double) -> cython.void:
        """Let a running job be expected to end at another time; past is just after now."""
        now: cython.double = self.profile.time[self.profile.head]
        old: cython.double = self.stop[job]
        if stop <= now:
            stop = nextafter(now, ENDLESS)
        self.profile.mark(stop)
        if stop > old:
            self._change(job, -1, old, stop)
        elif stop < old:
            self._change(job, 1, stop, old)
        self.profile.unmark(old)
        self.stop[job] = stop

    # What is there.

    @compiled
    def is_promised(self, job: cython.int) -> cython.bint:
        """Return whether a job is promised a start, or that it never starts."""
        return self.what[job] == PROMISE_MADE or self.what[job] == PROMISE_NEVER

    def promise_of(self, job: int) -> tuple:
        """Return when a job is promised to start, s, and on which nodes."""
        first, size = self.first[job], self.size[job]
        return self.start[job], [self.places.node[at] for at in range(first, first + size)]

    @compiled
    def access_of(self, job: cython.int) -> cython.int:
        """Return a job's access set."""
        return self.state.access[job] if self.state.has_access else 0

    @compiled
    def is_overdrawn(self, job: cython.int) -> cython.bint:
        """Return whether a promise is one of too many for its place."""
        return not self.has_spare(job, self.start[job], self.stop[job], False)

    @compiled
    def has_spare(
        self, job: cython.int, start: cython.double, stop: cython.double, is_new: cython.bint
    ) -> cython.bint:
        """Return whether a job's place has what it takes, or nothing less than 0, and is open."""
        begin: cython.longlong = self.first[job] + self.size[job]
        width: cython.int = self.profile.width
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
