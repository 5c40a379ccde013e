"""`Risen`: where there is more capacity than before, and whom that lets start earlier.

Promising everybody anew until nothing moves is done here by looking only at those whom it can help.
When nobody could move before, a job can move only into a time in which capacity rose since it was
tried. A *rise* is such a time on a node. A job that goes on one node whole (`Free.is_single`)
starts earlier by a rise at exactly the first step of the longest time around it in which the node
suits the job, if that time is long enough, or if it reaches up to where the job has the node.
The other jobs are tried where the sums allow it.

Jobs are looked at in rounds, each in the queue's order, from the place at which the capacity rose
until that place in the next round: as if everybody were tried.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.line_blocks import LineBlocks
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.pairs import longer
from windtunnel.kernel.profile import PROFILE_COMMON, Profile
from windtunnel.kernel.promise_search import PromiseSearch
from windtunnel.kernel.promises import PROMISE_MADE, Promises
from windtunnel.kernel.rise_heap import RiseHeap
from windtunnel.kernel.rise_runs import RiseRuns
from windtunnel.kernel.rises import RISES_WIDE, Rises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class Risen:
    """Promises jobs an earlier start where rises let them have one.

    Args:
        search: looks for places, and has the promises.

    Attributes:
        rises: where there is more capacity.
        runs: for how long there is.
        blocks: the waiting jobs.
        heap: for each rise and line the first job that may start earlier by it.
        wants_idle: jobs that do not go on one node whole go on empty nodes alone.
    """

    search: PromiseSearch
    promises: Promises
    profile: Profile
    on: NodeSteps
    state: State
    lines: Lines
    blocks: LineBlocks
    heap: RiseHeap
    rises: Rises
    runs: RiseRuns
    wants_idle: cython.bint
    num_popped: cython.int
    popped_capacity: cython.int
    popped_rise: cython.int[::1]
    popped_line: cython.int[::1]
    found_job: cython.int
    found_round: cython.int

    def __init__(self, search: PromiseSearch) -> None:
        self.search, self.promises = search, search.promises
        self.profile, self.state = search.profile, search.state
        self.lines, self.on = search.state.lines, search.on
        self.blocks = LineBlocks(search.promises)
        self.heap = RiseHeap(search.state.lines)
        self.rises = Rises(search.promises)
        self.runs = RiseRuns(search, self.rises)
        self.popped_capacity = 0
        self.popped_rise = self.popped_line = numpy.zeros(0, dtype=numpy.int32)

    def _grow_popped(self) -> None:
        capacity = 2 * self.popped_capacity + 64
        self.popped_rise = longer(self.popped_rise, capacity)
        self.popped_line = longer(self.popped_line, capacity)
        self.popped_capacity = capacity

    # Who may start earlier.

    @compiled
    def improve(self) -> cython.void:
        """Let everybody start earlier who can, in the queue's order, until nobody can."""
        self.rises.round = 1
        self.heap.count = 0
        self.blocks.survey()
        self._look_at_kinds()
        for rise in range(self.rises.count):
            self.rises.born[rise] = 1
            self._look_from(rise)
        while self.heap.count > 0:
            job = self.heap.job[0]
            self.rises.round = self.heap.round[0]
            self._pop_all(job)
            self._try(job)

    @compiled
    def _look_at_kinds(self) -> cython.void:
        """See whether all who wait and do not go on one node whole go on empty nodes alone."""
        self.wants_idle = True
        for top in range(self.lines.num_tops):
            kind = self.state.kind[self.lines.head(self.lines.tops[top])]
            self.wants_idle = self.wants_idle and (
                self.search.single_of[kind] or self.state.free.wants_idle_alone(kind)
            )

    @compiled
    def _look_from(self, rise: cython.int) -> cython.void:
        """Find for each line the first job that may start earlier by a rise."""
        if self.wants_idle and not self.runs.narrow(rise):
            return
        place: cython.longlong = self.runs.place_at(rise)
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.promises.promised_in[line] > 0 and self._is_for(rise, line):
                self._seek(rise, place, line, self.rises.origin[rise])

    @compiled
    def _is_for(self, rise: cython.int, line: cython.int) -> cython.bint:
        """Return whether a rise is one for the jobs of a line."""
        kind: cython.int = self.state.kind[self.lines.head(line)]
        if self.rises.node[rise] == RISES_WIDE:
            return not self.search.single_of[kind]
        return self.search.single_of[kind] and self.state.free.allows(kind, self.rises.node[rise])

    @compiled
    def _seek(
        self, rise: cython.int, place: cython.longlong, line: cython.int, after: cython.int
    ) -> cython.void:
        """Push the first job of a line behind ``after`` that may start earlier by a rise."""
        if self._find(rise, place, line, after):
            self.heap.push(rise, line, self.found_job, self.found_round)

    @compiled
    def _find(
        self, rise: cython.int, place: cython.longlong, line: cython.int, after: cython.int
    ) -> cython.bint:
        """Find the first job of a line behind ``after`` that may start earlier by a rise.

        Sets ``found_job``, ``found_round``.

        Args:
            rise: by which.
            place: where it begins.
            line: of whom.
            after: who was tried last; -1 = nobody.
        """
        in_round: cython.int = self.rises.round
        begin: cython.longlong = self.lines.begin[line]
        cell: cython.longlong = self.blocks.cell_behind(line, after)
        stop: cython.longlong = begin + self.lines.length[line]
        next_stop: cython.longlong = begin
        if in_round > self.rises.born[rise]:
            stop = self.blocks.cell_behind(line, self.rises.origin[rise])
        elif after == self.rises.origin[rise]:
            next_stop = cell
        elif self.rises.origin[rise] >= 0:
            next_stop = self.blocks.cell_behind(line, self.rises.origin[rise])
        found, next_found = stop, next_stop
        self.runs.first(rise, place, self.lines.slab[begin])
        while self.runs.has_run:
            found = self._first_in(line, rise, cell, found)
            if found == stop and next_stop > begin:
                next_found = self._first_in(line, rise, begin, next_found)
            self.runs.next(rise)
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
    def _first_in(
        self, line: cython.int, rise: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell from one on whose job may start earlier in the run at hand."""
        is_wide: cython.bint = self.rises.node[rise] == RISES_WIDE
        longest: cython.double = self.blocks.longest_in(self.runs.begin, self.runs.end)
        until: cython.double = self.runs.end if is_wide else -ENDLESS
        found: cython.longlong = self.blocks.first_in(
            line, cell, end, self.runs.begin, longest, until
        )
        while found < end and not self.runs.is_enough(self.lines.slab[found], is_wide):
            found = self.blocks.first_in(line, found + 1, end, self.runs.begin, longest, until)
        return found if is_wide else self._first_beside(line, rise, cell, found)

    @compiled
    def _first_beside(
        self, line: cython.int, rise: cython.int, begin: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell whose job has its place on the node of a run, in the run."""
        at: cython.longlong = self.rises.node[rise] * self.promises.starts.capacity
        last: cython.longlong = at + self.promises.starts.length[self.rises.node[rise]]
        at += self.promises.starts.count_until(self.rises.node[rise], self.runs.begin)
        while at < last and self.promises.starts.time[at] <= self.runs.end:
            job = self.promises.starts.item[at]
            if self.lines.line_of[job] == line:
                cell = self.blocks.cell_of[job]
                if begin <= cell < end:
                    end = cell
            at += 1
        return end

    @compiled
    def _first_behind(
        self, line: cython.int, rise: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the first cell whose job may start earlier as a rise is beside its own place.

        A job that does not go on one node whole may keep some of its nodes for the time that it has
        them, and get others besides for all of its time.
        """
        if self.rises.node[rise] != RISES_WIDE:
            return end
        cell = self.blocks.first_around(
            line, cell, end, self.rises.begin[rise], self.rises.end[rise]
        )
        while cell < end and not self.runs.is_behind(rise, self.lines.slab[cell]):
            cell = self.blocks.first_around(
                line, cell + 1, end, self.rises.begin[rise], self.rises.end[rise]
            )
        return cell

    # Moves.

    @compiled
    def _try(self, job: cython.int) -> cython.void:
        """Let a job start earlier by the rises that were taken off the heap, if it can."""
        begin: cython.double = ENDLESS
        end: cython.double = 0.0
        old: cython.double = self.promises.start[job]
        stop: cython.double = self.promises.stop[job]
        first_rise: cython.int = self.rises.count
        for at in range(self.num_popped):
            rise = self.popped_rise[at]
            if self.rises.end[rise] > end:
                end = self.rises.end[rise]
            self.runs.first(rise, self.runs.place_at(rise), job)
            while self.runs.has_run:
                if self.runs.begin < min(begin, old) and (
                    self.runs.is_enough(job, self.rises.node[rise] == RISES_WIDE)
                    or self.runs.is_beside(job, rise)
                ):
                    begin = self.runs.begin
                self.runs.next(rise)
            if self.rises.node[rise] == RISES_WIDE and self.runs.is_behind(rise, job):
                begin = min(begin, self.runs.begin_behind(job))
        if begin < ENDLESS:
            self._move(job, begin, end, old, stop)
        for at in range(self.num_popped):
            rise = self.popped_rise[at]
            self._seek(rise, self.runs.place_at(rise), self.popped_line[at], job)
        for rise in range(first_rise, self.rises.count):
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
        was_made: cython.bint = self.promises.what[job] == PROMISE_MADE
        is_single: cython.bint = self.search.single_of[self.state.kind[job]]
        node: cython.int = -1
        first_rise: cython.int = self.rises.count
        if was_made:
            self.rises.note(job, old, stop, job)
            if is_single:
                node = self.promises.places.node[self.promises.first[job]]
        self.promises.lift(job)
        if is_single:
            found = begin if self._is_placed(job, begin, node) else old
        else:
            found = self.search.earliest_from(job, begin, min(old, end))
        if found < old:
            self.promises.enter(job, found)
            self.blocks.move_cell(self.lines.line_of[job], self.blocks.cell_of[job])
            if node >= 0 and self.promises.places.node[self.promises.first[job]] == node:
                self.rises.begin_later(first_rise, self.promises.stop[job])
        else:
            self.rises.count = first_rise
            self.promises.enter_until(job, old, stop)

    @compiled
    def _is_placed(self, job: cython.int, begin: cython.double, node: cython.int) -> cython.bint:
        """Return whether a job of a single kind fits from ``begin`` on; its place is noted then.

        It could not before the rises, so that their nodes are all that there is to choose from.
        Where that is the node of its promise alone the place stays what it is.

        Args:
            job: it has no promise in the profile.
            begin: s.
            node: that of its promise; -1 = it had none.
        """
        is_other: cython.bint = False
        for at in range(self.num_popped):
            is_other = is_other or self.rises.node[self.popped_rise[at]] != node
        if not is_other:
            return self.search.stays_free(
                node, self.on.at(node, begin), self.promises.stop_of(job, begin)
            )
        self.profile.rows.clear(PROFILE_COMMON)
        for at in range(self.num_popped):
            if self.rises.node[self.popped_rise[at]] != RISES_WIDE:
                self.search.offer(job, self.rises.node[self.popped_rise[at]], begin)
        return self.search.place_on_offer(job, begin)

    @compiled
    def _pop_all(self, job: cython.int) -> cython.void:
        """Take all entries of a job in the present round off the heap."""
        self.num_popped = 0
        while (
            self.heap.count > 0
            and self.heap.job[0] == job
            and self.heap.round[0] == self.rises.round
        ):
            if self.num_popped == self.popped_capacity:
                with cython.gil:
                    self._grow_popped()
            self.popped_rise[self.num_popped] = self.heap.rise[0]
            self.popped_line[self.num_popped] = self.heap.line[0]
            self.num_popped += 1
            self.heap.pop()
