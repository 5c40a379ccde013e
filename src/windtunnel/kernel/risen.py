"""`Risen`: where there is more room than before, and whom that lets start earlier.

Promising everybody anew until nothing moves is done here by looking only at those whom it can help.
When nobody could move before, a job can move only into a time in which room has risen since it was
tried. A *rise* is such a time on a node. A job that goes on one node whole (`Free.is_single`)
starts earlier by a rise at exactly the first step of the longest time around it in which the node
suits the job, if that time is long enough, or if it reaches up to where the job has the node.
The other jobs are tried where the sums allow it.

Jobs are looked at in rounds, each in the queue's order, from the place at which the room rose until
that place in the next round: as if everybody were tried.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import fabs

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.profile import PROFILE_COMMON, Profile
from windtunnel.kernel.promises import PROMISE_LEAST, PROMISE_MADE, PROMISE_NONE, Promises
from windtunnel.kernel.state import State

#: Two to these powers are jobs of a line that are looked at together before each by itself, and
#: blocks of them likewise.
RISEN_BLOCK = cython.declare(cython.int, 4)
RISEN_REACH = cython.declare(cython.int, 8)
#: What roundings may make of a time, as a part of it.
RISEN_SLACK = cython.declare(cython.double, 1e-12)
#: The node of a rise for jobs that do not go on one node whole.
RISEN_WIDE = cython.declare(cython.int, -1)


@cython.final
@cython.cclass
class Risen:
    """The rises since the last decision.

    Entries of the heap are a rise, a line, and the first job of the line that may start earlier by
    it, by (round, key, job).

    Args:
        promises: what jobs are promised.

    Attributes:
        count: rises.
        everywhere: there may be more room anywhere: rises do not tell.
        node: of each rise.
        begin, end: when, s.
        origin: the job whose move it was, -1 = nobody's; it is looked at until there in the round
            after ``born``.
        many: of a rise for jobs that do not go on one node whole how many rises of nodes, which
            stand before it, are the same; 0 = it is not known where it is.
        cell_of: where each waiting job stands in its line.
        start_at: promised start of the job in each cell, s.
        span_at: what it is expected to take, s; inf = it has no promise.
        first_block: of each line; a block is 2^`RISEN_BLOCK` jobs of a line in order.
        first_reach: of each line; a reach is 2^`RISEN_REACH` jobs of a line in order. Reaches have
            their numbers behind those of the blocks.
        most_span: what the longest of a line's jobs is expected to take, s.
        wants_idle: jobs that do not go on one node whole go on empty nodes alone.
        least_span: what the shortest of a block's or reach's jobs is expected to take, s.
        first_start, last_start: between when all promised starts of one are, s.
    """

    promises: Promises
    profile: Profile
    on: NodeSteps
    state: State
    lines: Lines
    count: cython.int
    room: cython.int
    everywhere: cython.bint
    node: cython.int[::1]
    begin: cython.double[::1]
    end: cython.double[::1]
    origin: cython.int[::1]
    born: cython.int[::1]
    many: cython.int[::1]
    cell_of: cython.longlong[::1]
    start_at: cython.double[::1]
    span_at: cython.double[::1]
    first_block: cython.int[::1]
    first_reach: cython.int[::1]
    most_span: cython.double[::1]
    wants_idle: cython.bint
    blocks_room: cython.longlong
    least_span: cython.double[::1]
    first_start: cython.double[::1]
    last_start: cython.double[::1]
    num_heap: cython.int
    heap_room: cython.int
    heap_rise: cython.int[::1]
    heap_line: cython.int[::1]
    heap_job: cython.int[::1]
    heap_round: cython.int[::1]
    num_popped: cython.int
    popped_room: cython.int
    popped_rise: cython.int[::1]
    popped_line: cython.int[::1]
    round: cython.int
    # What a look at a rise found.
    has_run: cython.bint
    run_begin: cython.double
    run_end: cython.double
    run_next: cython.longlong
    enough: cython.double
    # Where the rise is that was looked at last.
    placed_rise: cython.int
    placed_rises: cython.longlong
    placed: cython.longlong
    found_job: cython.int
    found_round: cython.int

    def __init__(self, promises: Promises) -> None:
        self.promises = promises
        self.profile, self.state = promises.profile, promises.state
        self.lines, self.on = promises.state.lines, promises.on
        self.room = self.heap_room = self.popped_room = 0
        self.node = self.origin = self.born = self.many = numpy.zeros(0, dtype=numpy.int32)
        self.begin = self.end = numpy.zeros(0)
        self.heap_rise = self.heap_line = numpy.zeros(0, dtype=numpy.int32)
        self.heap_job = self.heap_round = numpy.zeros(0, dtype=numpy.int32)
        self.popped_rise = self.popped_line = numpy.zeros(0, dtype=numpy.int32)
        self.cell_of = numpy.zeros(max(promises.state.num_jobs, 1), dtype=numpy.int64)
        self.start_at, self.span_at = numpy.zeros(0), numpy.zeros(0)
        self.first_block = numpy.zeros(max(self.lines.num_lines, 1), dtype=numpy.int32)
        self.first_reach = numpy.zeros(max(self.lines.num_lines, 1), dtype=numpy.int32)
        self.most_span = numpy.zeros(max(self.lines.num_lines, 1))
        self._grow_blocks(64)

    def _grow(self) -> None:
        self.room = 2 * self.room + 64
        self.node = numpy.resize(numpy.asarray(self.node), self.room)
        self.begin = numpy.resize(numpy.asarray(self.begin), self.room)
        self.end = numpy.resize(numpy.asarray(self.end), self.room)
        self.origin = numpy.resize(numpy.asarray(self.origin), self.room)
        self.born = numpy.resize(numpy.asarray(self.born), self.room)
        self.many = numpy.resize(numpy.asarray(self.many), self.room)

    def _grow_heap(self) -> None:
        self.heap_room = 2 * self.heap_room + 64
        self.heap_rise = numpy.resize(numpy.asarray(self.heap_rise), self.heap_room)
        self.heap_line = numpy.resize(numpy.asarray(self.heap_line), self.heap_room)
        self.heap_job = numpy.resize(numpy.asarray(self.heap_job), self.heap_room)
        self.heap_round = numpy.resize(numpy.asarray(self.heap_round), self.heap_room)

    def _grow_popped(self) -> None:
        self.popped_room = 2 * self.popped_room + 64
        self.popped_rise = numpy.resize(numpy.asarray(self.popped_rise), self.popped_room)
        self.popped_line = numpy.resize(numpy.asarray(self.popped_line), self.popped_room)

    def _grow_blocks(self, room: int) -> None:
        self.blocks_room = 2 * room
        self.least_span = numpy.zeros(2 * room)
        self.first_start = numpy.zeros(2 * room)
        self.last_start = numpy.zeros(2 * room)

    def _grow_cells(self) -> None:
        self.start_at = numpy.zeros(self.lines.slab.shape[0])
        self.span_at = numpy.zeros(self.lines.slab.shape[0])

    # Noting rises.

    @compiled
    def clear(self) -> cython.void:
        """Forget all rises."""
        self.count = 0
        self.num_heap = 0
        self.everywhere = False
        self.round = 0

    @compiled
    def note(self, job: cython.int, begin: cython.double, end: cython.double) -> cython.void:
        """Note that there is more room where a job has its place, from ``begin`` until ``end``."""
        self._note_place(job, begin, end, -1)

    @compiled
    def note_node(self, node: cython.int, begin: cython.double, end: cython.double) -> cython.void:
        """Note that there is more room on a node."""
        self._add(node, begin, end, -1)
        self._add(RISEN_WIDE, begin, end, -1)

    @compiled
    def _note_place(
        self, job: cython.int, begin: cython.double, end: cython.double, origin: cython.int
    ) -> cython.void:
        at: cython.longlong
        if begin < self.state.now:
            begin = self.state.now
        if end <= begin:
            return
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            self._add(self.promises.places.node[at], begin, end, origin)
        self._add(RISEN_WIDE, begin, end, origin)
        self.many[self.count - 1] = self.promises.size[job]

    @compiled
    def _add(
        self, node: cython.int, begin: cython.double, end: cython.double, origin: cython.int
    ) -> cython.void:
        if self.count == self.room:
            with cython.gil:
                self._grow()
        self.node[self.count] = node
        self.begin[self.count] = begin
        self.end[self.count] = end
        self.origin[self.count] = origin
        self.born[self.count] = self.round
        self.many[self.count] = 0
        self.count += 1

    # Who may start earlier.

    @compiled
    def improve(self) -> cython.void:
        """Let everybody start earlier who can, in the queue's order, until nobody can."""
        rise: cython.int
        job: cython.int
        self.round = 1
        self.num_heap = 0
        self.placed_rise = -1
        self._survey()
        for rise in range(self.count):
            self.born[rise] = 1
            self._look_from(rise)
        while self.num_heap > 0:
            job = self.heap_job[0]
            self.round = self.heap_round[0]
            self._pop_all(job)
            self._try(job)

    @compiled
    def _survey(self) -> cython.void:
        """Note what the jobs of each block are like; the lines do not change until all is done."""
        top: cython.int
        line: cython.int
        cell: cython.longlong
        at: cython.longlong
        job: cython.int
        block: cython.int = -1
        reach: cython.int
        most: cython.longlong = (self.lines.count >> RISEN_BLOCK) + self.lines.num_tops
        reaches: cython.longlong = (self.lines.count >> RISEN_REACH) + self.lines.num_tops
        if most + reaches > self.blocks_room:
            with cython.gil:
                self._grow_blocks(most + reaches)
        if self.start_at.shape[0] < self.lines.slab.shape[0]:
            with cython.gil:
                self._grow_cells()
        reach = cython.cast(cython.int, most) - 1
        self.wants_idle = True
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.first_block[line] = block + 1
            self.first_reach[line] = reach + 1
            self.most_span[line] = PROMISE_LEAST
            job = self.lines.head(line)
            self.wants_idle = self.wants_idle and (
                self.state.free.is_single(self.state.kind[job])
                or self.state.free.wants_idle_alone(self.state.kind[job])
            )
            for at in range(self.lines.length[line]):
                if at & ((1 << RISEN_BLOCK) - 1) == 0:
                    block += 1
                    self._begin_group(block)
                if at & ((1 << RISEN_REACH) - 1) == 0:
                    reach += 1
                    self._begin_group(reach)
                cell = self.lines.begin[line] + at
                job = self.lines.slab[cell]
                self.cell_of[job] = cell
                self.span_at[cell] = ENDLESS
                self.start_at[cell] = -ENDLESS
                if self.promises.what[job] != PROMISE_NONE:
                    self.span_at[cell] = self.promises.planned(job)
                    self.start_at[cell] = self.promises.start[job]
                    self.most_span[line] = max(self.most_span[line], self.span_at[cell])
                    self._add_to_group(block, cell)
                    self._add_to_group(reach, cell)

    @compiled
    def _begin_group(self, group: cython.int) -> cython.void:
        """Let a block or reach have no jobs."""
        self.least_span[group] = ENDLESS
        self.first_start[group] = ENDLESS
        self.last_start[group] = -ENDLESS

    @compiled
    def _add_to_group(self, group: cython.int, cell: cython.longlong) -> cython.void:
        """Note what the job of a cell is like, of a block or reach."""
        self.least_span[group] = min(self.least_span[group], self.span_at[cell])
        self.first_start[group] = min(self.first_start[group], self.start_at[cell])
        self.last_start[group] = max(self.last_start[group], self.start_at[cell])

    @compiled
    def _move_cell(self, line: cython.int, cell: cython.longlong) -> cython.void:
        """Note that the job of a cell starts earlier now."""
        old: cython.double = self.start_at[cell]
        first: cython.longlong = self.lines.begin[line]
        length: cython.longlong = self.lines.length[line]
        block: cython.int = self._block_of(line, cell)
        reach: cython.int = self._reach_of(line, cell)
        at: cython.longlong = (cell - first) >> RISEN_BLOCK << RISEN_BLOCK
        end: cython.longlong = min(at + (1 << RISEN_BLOCK), length)
        other: cython.int
        last: cython.int
        self.start_at[cell] = self.promises.start[self.lines.slab[cell]]
        self.first_start[block] = min(self.first_start[block], self.start_at[cell])
        self.first_start[reach] = min(self.first_start[reach], self.start_at[cell])
        if old < self.last_start[block]:
            return
        self.last_start[block] = -ENDLESS
        while at < end:
            self.last_start[block] = max(self.last_start[block], self.start_at[first + at])
            at += 1
        if old < self.last_start[reach]:
            return
        self.last_start[reach] = -ENDLESS
        at = (cell - first) >> RISEN_REACH << RISEN_REACH
        end = min(at + (1 << RISEN_REACH), length)
        other = self._block_of(line, first + at)
        last = self._block_of(line, first + end - 1) + 1
        while other < last:
            self.last_start[reach] = max(self.last_start[reach], self.last_start[other])
            other += 1

    @compiled
    def _block_of(self, line: cython.int, cell: cython.longlong) -> cython.int:
        return self.first_block[line] + cython.cast(
            cython.int, (cell - self.lines.begin[line]) >> RISEN_BLOCK
        )

    @compiled
    def _reach_of(self, line: cython.int, cell: cython.longlong) -> cython.int:
        return self.first_reach[line] + cython.cast(
            cython.int, (cell - self.lines.begin[line]) >> RISEN_REACH
        )

    @compiled
    def _begins_reach(self, line: cython.int, cell: cython.longlong) -> cython.bint:
        return (cell - self.lines.begin[line]) & ((1 << RISEN_REACH) - 1) == 0

    @compiled
    def _block_end(
        self, line: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return where the block of a cell ends, or the search does."""
        begin: cython.longlong = self.lines.begin[line]
        return min(end, begin + ((((cell - begin) >> RISEN_BLOCK) + 1) << RISEN_BLOCK))

    @compiled
    def _is_in_vain(self, block: cython.int, is_wide: cython.bint) -> cython.bint:
        """Return whether the run at hand is long enough for no job of a block or reach."""
        stop: cython.double = self.run_begin + self.least_span[block]
        if self.last_start[block] <= self.run_begin:
            return True
        return (not is_wide or self.first_start[block] > self.run_end) and (
            stop - RISEN_SLACK * fabs(stop) > self.run_end
        )

    @compiled
    def _look_from(self, rise: cython.int) -> cython.void:
        """Find for each line the first job that may start earlier by a rise."""
        top: cython.int
        line: cython.int
        if self.wants_idle and not self._narrow(rise):
            return
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self._is_for(rise, line):
                self._seek(rise, line, self.round, self.origin[rise])

    @compiled
    def _is_for(self, rise: cython.int, line: cython.int) -> cython.bint:
        """Return whether a rise is one for the jobs of a line."""
        kind: cython.int = self.state.kind[self.lines.head(line)]
        if self.node[rise] == RISEN_WIDE:
            return not self.state.free.is_single(kind)
        return self.state.free.is_single(kind) and self.state.free.allows(kind, self.node[rise])

    @compiled
    def _narrow(self, rise: cython.int) -> cython.bint:
        """Cut a rise down to when it may have emptied a node; return False if it never did."""
        one: cython.int
        place: cython.longlong
        begin: cython.double = ENDLESS
        end: cython.double = -ENDLESS
        if self.node[rise] != RISEN_WIDE or self.many[rise] == 0:
            return True
        for one in range(rise - self.many[rise], rise):
            place = self._place_at(one)
            while place >= 0 and self._time(one, place) < self.end[one]:
                if self.profile.is_idle(self.node[one], place):
                    begin = min(begin, max(self._time(one, place), self.begin[one]))
                    place = self._later(one, place)
                    end = max(end, self.end[one] if place < 0 else self._time(one, place))
                else:
                    place = self._later(one, place)
        self.begin[rise] = begin
        self.end[rise] = min(end, self.end[rise])
        return begin < end

    @compiled
    def _seek(
        self, rise: cython.int, line: cython.int, in_round: cython.int, after: cython.int
    ) -> cython.void:
        """Push the first job of a line behind ``after`` that may start earlier by a rise."""
        if self._find(rise, line, in_round, after):
            self._push(rise, line, self.found_job, self.found_round)

    @compiled
    def _find(
        self, rise: cython.int, line: cython.int, in_round: cython.int, after: cython.int
    ) -> cython.bint:
        """Find the first job of a line behind ``after`` that may start earlier by a rise.

        Sets ``found_job``, ``found_round``.
        """
        begin: cython.longlong = self.lines.begin[line]
        cell: cython.longlong = self._cell_behind(line, after)
        stop: cython.longlong = begin + self.lines.length[line]
        found: cython.longlong
        next_stop: cython.longlong = begin
        next_found: cython.longlong
        if in_round > self.born[rise]:
            stop = self._cell_behind(line, self.origin[rise])
        elif self.origin[rise] >= 0:
            next_stop = self._cell_behind(line, self.origin[rise])
        found, next_found = stop, next_stop
        self._first_run(rise, self.lines.slab[begin])
        while self.has_run:
            found = self._first_in(line, rise, cell, found)
            if found == stop and next_stop > begin:
                next_found = self._first_in(line, rise, begin, next_found)
            self._next_run(rise)
        found = self._first_behind(line, rise, cell, found)
        if found < stop:
            self.found_job = self.lines.slab[found]
            self.found_round = in_round
            return True
        next_found = self._first_behind(line, rise, begin, next_found)
        if next_found == next_stop:
            return False
        self.found_job = self.lines.slab[next_found]
        self.found_round = in_round + 1
        return True

    @compiled
    def _cell_behind(self, line: cython.int, job: cython.int) -> cython.longlong:
        """Return where in a line those stand who are behind a job; -1 = behind nobody."""
        if job < 0:
            return self.lines.begin[line]
        if self.lines.line_of[job] == line:
            return self.cell_of[job] + 1
        return self.lines.place_of(line, job)

    @compiled
    def _first_in(
        self, line: cython.int, rise: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell from one on whose job may start earlier in the run at hand."""
        job: cython.int
        last: cython.longlong
        begin: cython.longlong = cell
        is_wide: cython.bint = self.node[rise] == RISEN_WIDE
        least: cython.double = self.run_end + RISEN_SLACK * fabs(self.run_end)
        while cell < end:
            if self._begins_reach(line, cell) and self._is_in_vain(
                self._reach_of(line, cell), is_wide
            ):
                cell = min(cell + (1 << RISEN_REACH), end)
                continue
            last = self._block_end(line, cell, end)
            if self._is_in_vain(self._block_of(line, cell), is_wide):
                cell = last
            while cell < last:
                if self.start_at[cell] > self.run_begin and (
                    self.run_begin + self.span_at[cell] <= least
                    or (is_wide and self.start_at[cell] <= self.run_end)
                ):
                    job = self.lines.slab[cell]
                    if self._may(job, is_wide):
                        return cell if is_wide else self._first_beside(line, rise, begin, cell)
                cell += 1
        return end if is_wide else self._first_beside(line, rise, begin, end)

    @compiled
    def _first_beside(
        self, line: cython.int, rise: cython.int, begin: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell whose job has its place on the node of a run, in the run."""
        job: cython.int
        cell: cython.longlong
        at: cython.longlong = self.node[rise] * self.promises.starts.room
        last: cython.longlong = at + self.promises.starts.length[self.node[rise]]
        at += self.promises.starts.count_until(self.node[rise], self.run_begin)
        while at < last and self.promises.starts.time[at] <= self.run_end:
            job = self.promises.starts.item[at]
            if self.lines.line_of[job] == line:
                cell = self.cell_of[job]
                if begin <= cell < end:
                    end = cell
            at += 1
        return end

    @compiled
    def _may(self, job: cython.int, is_wide: cython.bint) -> cython.bint:
        """Return whether the run at hand is long enough for a job, or may reach up to its place."""
        if self.promises.what[job] == PROMISE_NONE:
            return False
        return self.promises.stop_of(job, self.run_begin) <= self.run_end or (
            is_wide and self.promises.start[job] <= self.run_end
        )

    @compiled
    def _is_beside(self, job: cython.int, rise: cython.int) -> cython.bint:
        """Return whether a job has its place on the node of the run at hand, in the run."""
        return (
            self.promises.what[job] == PROMISE_MADE
            and self.promises.start[job] <= self.run_end
            and self.promises.places.node[self.promises.first[job]] == self.node[rise]
        )

    @compiled
    def _first_behind(
        self, line: cython.int, rise: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell whose job may start earlier as a rise is beside its own place.

        A job that does not go on one node whole may keep some of its nodes for the time that it has
        them, and get others besides for all of its time.
        """
        last: cython.longlong
        if self.node[rise] != RISEN_WIDE:
            return end
        while cell < end:
            if (
                self._begins_reach(line, cell)
                and self.first_start[self._reach_of(line, cell)] >= self.end[rise]
            ):
                cell = min(cell + (1 << RISEN_REACH), end)
                continue
            last = self._block_end(line, cell, end)
            if self.first_start[self._block_of(line, cell)] >= self.end[rise]:
                cell = last
            while cell < last:
                if self._is_behind(rise, self.lines.slab[cell]):
                    return cell
                cell += 1
        return end

    @compiled
    def _is_behind(self, rise: cython.int, job: cython.int) -> cython.bint:
        """Return whether a rise is beside a job's own place, and there may be room just before."""
        return (
            self.promises.what[job] == PROMISE_MADE
            and self.promises.start[job] < self.end[rise]
            and self.promises.stop[job] > self.begin[rise]
            and self.promises.start[job] > self.state.now
            and self.promises.may_have(self.profile.before[self.promises.first_step[job]])
        )

    @compiled
    def _begin_behind(self, job: cython.int) -> cython.double:
        """Return since when there may be room just before a job's own place."""
        step: cython.int = self.promises.first_step[job]
        while self.profile.before[step] >= 0 and self.promises.may_have(self.profile.before[step]):
            step = self.profile.before[step]
        return self.profile.time[step]

    # Runs: times around a rise in which a job is suited all along.

    # A place in time is a step of the profile; for one node it is a step of that.

    @compiled
    def _place_at(self, rise: cython.int) -> cython.longlong:
        if self.node[rise] == RISEN_WIDE:
            return self.profile.at_or_before(self.begin[rise])
        if rise != self.placed_rise or self.profile.rises != self.placed_rises:
            self.placed_rise, self.placed_rises = rise, self.profile.rises
            self.placed = self.on.at(self.node[rise], self.begin[rise])
        return self.placed

    @compiled
    def _later(self, rise: cython.int, place: cython.longlong) -> cython.longlong:
        if self.node[rise] == RISEN_WIDE:
            return self.profile.after[place]
        return place + 1 if place + 1 < self.on.behind[self.node[rise]] else -1

    @compiled
    def _earlier(self, rise: cython.int, place: cython.longlong) -> cython.longlong:
        if self.node[rise] == RISEN_WIDE:
            return self.profile.before[place]
        return place - 1 if place > self.on.first[self.node[rise]] else -1

    @compiled
    def _time(self, rise: cython.int, place: cython.longlong) -> cython.double:
        if self.node[rise] == RISEN_WIDE:
            return self.profile.time[place]
        return self.on.time[place]

    @compiled
    def _suits(self, rise: cython.int, place: cython.longlong) -> cython.bint:
        if self.node[rise] == RISEN_WIDE:
            return self.promises.may_have(cython.cast(cython.int, place))
        return self.promises.has(place)

    @compiled
    def _first_run(self, rise: cython.int, job: cython.int) -> cython.void:
        """Find the first run of a rise for jobs like one; ``has_run`` says if there is one."""
        place: cython.longlong = self._place_at(rise)
        earlier: cython.longlong
        self.promises.look_for(job)
        self.enough = self.most_span[self.lines.line_of[job]]
        if not self._suits(rise, place):
            self.run_next = self._later(rise, place)
            self._next_run(rise)
            return
        self._go_along(rise, place)
        earlier = self._earlier(rise, place)
        while earlier >= 0 and self._suits(rise, earlier):
            place = earlier
            earlier = self._earlier(rise, place)
        self.run_begin = self._time(rise, place)

    @compiled
    def _next_run(self, rise: cython.int) -> cython.void:
        """Find the next run of a rise."""
        place: cython.longlong = self.run_next
        self.has_run = False
        while place >= 0 and self._time(rise, place) < self.end[rise]:
            if self._suits(rise, place):
                self._go_along(rise, place)
                return
            place = self._later(rise, place)

    @compiled
    def _go_along(self, rise: cython.int, place: cython.longlong) -> cython.void:
        """Let a run begin at a place, and see where it ends.

        Of one that is long enough for every job of the line no more is looked at, and of no later
        one: whoever could start in that can start in this one.
        """
        stop: cython.double
        self.has_run = True
        self.run_begin = self._time(rise, place)
        stop = self.run_begin + self.enough
        stop += RISEN_SLACK * fabs(stop)
        place = self._later(rise, place)
        while place >= 0 and self._suits(rise, place):
            if self._time(rise, place) > stop:
                self.run_end = self._time(rise, place)
                self.run_next = -1
                return
            place = self._later(rise, place)
        self.run_next = place
        self.run_end = ENDLESS if place < 0 else self._time(rise, place)

    # Moves.

    @compiled
    def _try(self, job: cython.int) -> cython.void:
        """Let a job start earlier by the rises that were taken off the heap, if it can."""
        at: cython.int
        begin: cython.double = ENDLESS
        end: cython.double = 0.0
        old: cython.double = self.promises.start[job]
        stop: cython.double = self.promises.stop[job]
        rise: cython.int
        first_rise: cython.int = self.count
        for at in range(self.num_popped):
            rise = self.popped_rise[at]
            if self.end[rise] > end:
                end = self.end[rise]
            self._first_run(rise, job)
            while self.has_run:
                if self.run_begin < min(begin, old) and (
                    self._may(job, self.node[rise] == RISEN_WIDE) or self._is_beside(job, rise)
                ):
                    begin = self.run_begin
                self._next_run(rise)
            if self.node[rise] == RISEN_WIDE and self._is_behind(rise, job):
                begin = min(begin, self._begin_behind(job))
        if begin < ENDLESS:
            self._move(job, begin, end, old, stop)
        for at in range(self.num_popped):
            self._seek(self.popped_rise[at], self.popped_line[at], self.round, job)
        for rise in range(first_rise, self.count):
            self._look_from(rise)

    @compiled
    def _move(
        self,
        job: cython.int,
        begin: cython.double,
        end: cython.double,
        old: cython.double,
        stop: cython.double,
    ) -> cython.void:
        """Promise a job anew from ``begin`` on at the earliest, if that is before ``old``.

        Args:
            job: it starts at ``begin`` exactly if it is of a single kind.
            begin: s.
            end: no start from then on has to do with a rise, s.
            old: its promised start, s.
            stop: its expected end, s.
        """
        found: cython.double
        was_made: cython.bint = self.promises.what[job] == PROMISE_MADE
        first_rise: cython.int = self.count
        if was_made:
            self._note_place(job, old, stop, job)
        self.promises.lift(job)
        if self.state.free.is_single(self.state.kind[job]):
            found = begin if self._is_placed(job, begin) else old
        else:
            found = self.promises.earliest_from(job, begin, min(old, end))
        if found < old:
            self.promises.enter(job, found)
            self._move_cell(self.lines.line_of[job], self.cell_of[job])
        else:
            self.count = first_rise
            self.promises.enter(job, old)

    @compiled
    def _is_placed(self, job: cython.int, begin: cython.double) -> cython.bint:
        """Return whether a job of a single kind fits from ``begin`` on; its place is noted then.

        It could not before the rises, so that their nodes are all that there is to choose from.
        """
        at: cython.int
        self.profile.rows.clear(PROFILE_COMMON)
        for at in range(self.num_popped):
            if self.node[self.popped_rise[at]] != RISEN_WIDE:
                self.promises.offer(job, self.node[self.popped_rise[at]], begin)
        return self.promises.place_on_offer(job, begin)

    # The heap.

    @compiled
    def _is_before(self, round_: cython.int, job: cython.int, entry: cython.int) -> cython.bint:
        if round_ != self.heap_round[entry]:
            return round_ < self.heap_round[entry]
        return self.lines.before(job, self.heap_job[entry])

    @compiled
    def _put(
        self, hole: cython.int, rise: cython.int, line: cython.int, job: cython.int,
        round_: cython.int,
    ) -> cython.void:  # fmt: skip
        self.heap_rise[hole] = rise
        self.heap_line[hole] = line
        self.heap_job[hole] = job
        self.heap_round[hole] = round_

    @compiled
    def _shift(self, source: cython.int, hole: cython.int) -> cython.void:
        self._put(
            hole, self.heap_rise[source], self.heap_line[source], self.heap_job[source],
            self.heap_round[source],
        )  # fmt: skip

    @compiled
    def _push(
        self, rise: cython.int, line: cython.int, job: cython.int, round_: cython.int
    ) -> cython.void:
        hole: cython.int = self.num_heap
        parent: cython.int
        if self.num_heap == self.heap_room:
            with cython.gil:
                self._grow_heap()
        self.num_heap += 1
        while hole > 0:
            parent = (hole - 1) >> 1
            if not self._is_before(round_, job, parent):
                break
            self._shift(parent, hole)
            hole = parent
        self._put(hole, rise, line, job, round_)

    @compiled
    def _pop(self) -> cython.void:
        """Take the first entry off the heap."""
        hole: cython.int = 0
        child: cython.int = 1
        self.num_heap -= 1
        last: cython.int = self.num_heap
        job: cython.int = self.heap_job[last]
        round_: cython.int = self.heap_round[last]
        while child < last:
            if child + 1 < last and self._is_before(
                self.heap_round[child + 1], self.heap_job[child + 1], child
            ):
                child += 1
            if not self._is_before(self.heap_round[child], self.heap_job[child], last):
                break
            self._shift(child, hole)
            hole = child
            child = 2 * hole + 1
        self._put(hole, self.heap_rise[last], self.heap_line[last], job, round_)

    @compiled
    def _pop_all(self, job: cython.int) -> cython.void:
        """Take all entries of a job in the present round off the heap."""
        self.num_popped = 0
        while self.num_heap > 0 and self.heap_job[0] == job and self.heap_round[0] == self.round:
            if self.num_popped == self.popped_room:
                with cython.gil:
                    self._grow_popped()
            self.popped_rise[self.num_popped] = self.heap_rise[0]
            self.popped_line[self.num_popped] = self.heap_line[0]
            self.num_popped += 1
            self._pop()
