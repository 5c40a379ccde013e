"""`Profile`: what is expected to be free from now on, a step function of time.

Each step has a row (`windtunnel.kernel.rows`) of what nobody holds then, and counts of who must not
use a node: how many holds on it an access set does not know. A step stands for the time until the
next one. Steps are a chain, with an index by time; one that nobody needs any more goes.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_times import NodeTimes
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.ranked import RANKED_ROOM, Ranked
from windtunnel.kernel.rows import Rows

#: Rows that are no step's: scratch for what several steps have in common.
PROFILE_COMMON = cython.declare(cython.int, 0)
PROFILE_PART = cython.declare(cython.int, 1)
PROFILE_ROOM = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class Profile:
    """Steps from ``head`` (now) on.

    Args:
        free: any state of the cluster, for its form.
        num_nodes: nodes or pools.
        num_sets: access sets whose closed nodes are counted; 0 = nothing is ever withheld there.

    Attributes:
        head: the step that is now.
        time: when each step begins, s.
        after, before: the steps around it; -1 = none.
        uses: for how many changes it is there.
        total: GPU units that nobody holds, withheld or not.
        drawn: nanowatts that jobs add to the draw at least.
        idle: columns of which all is free, of those that are not 0 then: of nodes with one column
            the nodes that are empty.
        full: a row of the empty cluster.
        rows: what nobody holds, less units that are withheld in pools.
        closed: holds of each node that an access set does not know, (steps, nodes, sets).
        rises: goes up whenever there is more room somewhere.
        turns: of each node the steps at which something changes there, and maybe others.
        is_turn: whether a step is among those of a node, (steps, nodes).
    """

    width: cython.int
    nodes: cython.int
    sets: cython.int
    head: cython.int
    num_steps: cython.int
    room: cython.int
    spare: cython.int
    time: cython.double[::1]
    after: cython.int[::1]
    before: cython.int[::1]
    uses: cython.int[::1]
    total: cython.longlong[::1]
    drawn: cython.longlong[::1]
    idle: cython.int[::1]
    full: cython.longlong[::1]
    rows: Rows
    closed: cython.int[::1]
    index: Ranked
    rises: cython.longlong
    turns: NodeTimes
    is_turn: cython.char[::1]

    def __init__(self, free: Free, num_nodes: int, num_sets: int) -> None:
        self.width = free.width()
        self.nodes = num_nodes
        self.sets = num_sets
        self.rows = Rows(self.width * num_nodes, 0)
        self.turns = NodeTimes(num_nodes)
        self.is_turn = numpy.zeros(0, dtype=numpy.int8)
        self.room = 0
        self.time = numpy.zeros(0)
        self.after = self.before = self.uses = numpy.zeros(0, dtype=numpy.int32)
        self.closed = numpy.zeros(1, dtype=numpy.int32)
        self.total = self.drawn = numpy.zeros(0, dtype=numpy.int64)
        self.idle = numpy.zeros(0, dtype=numpy.int32)
        self.rows.grow(2)
        free.store(self.rows, 0)
        self.full = numpy.array(self.rows.cell)[: self.width * num_nodes]
        self.clear()

    def clear(self) -> None:
        """Drop all steps; there must be one (`begin`) before anything else is asked."""
        self.index = Ranked()
        self.turns.clear()
        self.is_turn = numpy.zeros(0, dtype=numpy.int8)
        self.spare = -1
        room, self.room = max(self.room, PROFILE_ROOM), 2
        self._grow(room)
        self.num_steps = 0
        self.rises = self.rises + 1

    def _grow(self, room: int) -> None:
        kept = self.room
        self.rows.grow(max(room, self.rows.room))
        self.time = _profile_longer(self.time, room, numpy.float64)
        self.after = _profile_longer(self.after, room, numpy.int32)
        self.before = _profile_longer(self.before, room, numpy.int32)
        self.uses = _profile_longer(self.uses, room, numpy.int32)
        self.total = _profile_longer(self.total, room, numpy.int64)
        self.drawn = _profile_longer(self.drawn, room, numpy.int64)
        self.idle = _profile_longer(self.idle, room, numpy.int32)
        self.is_turn = _profile_longer(self.is_turn, room * self.nodes, numpy.int8)
        if self.sets:
            self.closed = _profile_longer(self.closed, room * self.nodes * self.sets, numpy.int32)
        for slot in range(room - 1, kept - 1, -1):
            self.after[slot] = self.spare
            self.spare = slot
        self.room = room

    # Steps.

    @compiled
    def _new(self) -> cython.int:
        if self.spare < 0:
            with cython.gil:
                self._grow(2 * self.room)
        slot: cython.int = self.spare
        self.spare = self.after[slot]
        self.num_steps += 1
        return slot

    @compiled
    def begin(self, now: cython.double, free: Free, drawn: cython.longlong) -> cython.void:
        """Let there be one step: what is free (withheld or not) and drawn now."""
        node: cython.int
        access: cython.int
        slot: cython.int = self._new()
        self.head = slot
        self.time[slot] = now
        self.after[slot] = -1
        self.before[slot] = -1
        self.uses[slot] = 0
        free.store(self.rows, slot)
        self.total[slot] = 0
        self.drawn[slot] = drawn
        self.idle[slot] = 0
        for node in range(self.nodes * self.width):
            if self.rows.cell[slot * self.rows.columns + node] == self.full[node]:
                self.idle[slot] += 1
        for node in range(self.nodes):
            self.total[slot] += free.free_units(node)
            for access in range(self.sets):
                self.closed[(slot * self.nodes + node) * self.sets + access] = free.closings(
                    node, access
                )

    @compiled
    def at_or_before(self, time: cython.double) -> cython.int:
        """Return the step that is at a time."""
        place: cython.int
        at: cython.int
        entry: cython.int
        if time <= self.time[self.head] or self.index.count == 0:
            return self.head
        self.index.find(time, 0)
        place = self.index.block[self.index.found_place]
        at = self.index.found_index
        if at == self.index.length[place]:
            return self.index.job[place * RANKED_ROOM + at - 1]
        entry = place * RANKED_ROOM + at
        if self.index.key[entry] == time:
            return self.index.job[entry]
        return self.before[self.index.job[entry]]

    @compiled
    def step_at(self, time: cython.double) -> cython.int:
        """Return the step that begins at a time, made where there is none; now for what is past."""
        earlier: cython.int = self.at_or_before(time)
        slot: cython.int
        cell: cython.longlong
        if earlier == self.head and time <= self.time[earlier]:
            return earlier
        if self.time[earlier] == time:
            return earlier
        slot = self._new()
        self.time[slot] = time
        self.uses[slot] = 0
        self.before[slot] = earlier
        self.after[slot] = self.after[earlier]
        if self.after[earlier] >= 0:
            self.before[self.after[earlier]] = slot
        self.after[earlier] = slot
        self.total[slot] = self.total[earlier]
        self.drawn[slot] = self.drawn[earlier]
        self.idle[slot] = self.idle[earlier]
        self.rows.copy(slot, earlier)
        if self.sets > 0:
            many: cython.longlong = self.nodes * self.sets
            for cell in range(many):
                self.closed[slot * many + cell] = self.closed[earlier * many + cell]
        self.index.insert(time, 0, slot, 0)
        return slot

    @compiled
    def last_time(self) -> cython.double:
        """Return when the last step begins, s."""
        if self.index.count == 0:
            return self.time[self.head]
        place: cython.int = self.index.block[self.index.used - 1]
        return self.index.key[place * RANKED_ROOM + self.index.length[place] - 1]

    @compiled
    def need(self, slot: cython.int) -> cython.void:
        """Note that a change happens at a step."""
        self.uses[slot] += 1

    @compiled
    def release(self, slot: cython.int) -> cython.void:
        """Undo one `need`: a step at which nothing changes goes."""
        self.uses[slot] -= 1
        if self.uses[slot] > 0 or slot == self.head:
            return
        self.index.remove(self.time[slot], 0)
        self.after[self.before[slot]] = self.after[slot]
        if self.after[slot] >= 0:
            self.before[self.after[slot]] = self.before[slot]
        self._drop(slot)

    @compiled
    def _drop(self, slot: cython.int) -> cython.void:
        node: cython.int
        for node in range(self.nodes):
            if self.is_turn[slot * self.nodes + node]:
                self.is_turn[slot * self.nodes + node] = False
                self.turns.remove(node, self.time[slot], slot)
        self.after[slot] = self.spare
        self.spare = slot
        self.num_steps -= 1

    @compiled
    def forget(self, now: cython.double) -> cython.void:
        """Drop what lies before now."""
        following: cython.int = self.after[self.head]
        while following >= 0 and self.time[following] <= now:
            self.index.remove(self.time[following], 0)
            self._drop(self.head)
            self.head = following
            self.before[following] = -1
            following = self.after[following]
        self.time[self.head] = now

    @compiled
    def _turn(self, node: cython.int, slot: cython.int) -> cython.void:
        """Note that something changes on a node at a step, or did, or will again."""
        if slot >= 0 and not self.is_turn[slot * self.nodes + node]:
            self.is_turn[slot * self.nodes + node] = True
            self.turns.add(node, self.time[slot], slot)

    # Room.

    @compiled
    def add(
        self,
        changes: Pairs,
        begin: cython.longlong,
        end: cython.longlong,
        units: cython.longlong,
        draw: cython.longlong,
        sign: cython.int,
        first: cython.int,
        last: cython.int,
    ) -> cython.void:
        """Give back (1) or take (-1) what a job has in the steps from ``first`` until ``last``.

        Args:
            changes: (column, amount) pairs.
            begin: the first of them.
            end: behind the last of them.
            units: GPU units, all in all.
            draw: nanowatts that it adds to the draw.
            sign: whether there is more room, or less.
            first: the first step.
            last: the step from which nothing changes; -1 = there is none.
        """
        at: cython.longlong
        row: cython.longlong
        amount: cython.longlong
        full: cython.longlong
        if sign > 0:
            self.rises += 1
        for at in range(begin, end):
            self._turn(changes.node[at] // self.width, first)
            self._turn(changes.node[at] // self.width, last)
        while first != last:
            row = first * self.rows.columns
            for at in range(begin, end):
                amount = self.rows.cell[row + changes.node[at]]
                full = self.full[changes.node[at]]
                if amount == full:
                    self.idle[first] -= 1
                amount += sign * changes.grant[at]
                if amount == full:
                    self.idle[first] += 1
                self.rows.cell[row + changes.node[at]] = amount
            self.total[first] += sign * units
            self.drawn[first] -= sign * draw
            first = self.after[first]

    @compiled
    def close(
        self, node: cython.int, access: cython.int, change: cython.int, first: cython.int
    ) -> cython.void:
        """Let so many more holds of a node be unknown to an access set, from a step on."""
        if change < 0:
            self.rises += 1
        self._turn(node, first)
        while first >= 0:
            self.closed[(first * self.nodes + node) * self.sets + access] += change
            first = self.after[first]

    @compiled
    def withhold(self, pool: cython.int, units: cython.longlong, first: cython.int) -> cython.void:
        """Take so many units out of a pool from a step on; below 0 = give them back."""
        if units < 0:
            self.rises += 1
        self._turn(pool, first)
        while first >= 0:
            self.rows.cell[first * self.rows.columns + pool * self.width] -= units
            first = self.after[first]

    @compiled
    def most_drawn(self, step: cython.int, stop: cython.double) -> cython.longlong:
        """Return the most that is drawn from a step until ``stop`` (s), nanowatts."""
        most: cython.longlong = self.drawn[step]
        step = self.after[step]
        while step >= 0 and self.time[step] < stop:
            if self.drawn[step] > most:
                most = self.drawn[step]
            step = self.after[step]
        return most

    @compiled
    def is_idle(self, step: cython.int, node: cython.int) -> cython.bint:
        """Return whether nobody holds anything of a node, for nodes of one column."""
        return self.rows.cell[step * self.rows.columns + node] == self.full[node]

    @compiled
    def is_closed(self, step: cython.int, node: cython.int, access: cython.int) -> cython.bint:
        """Return whether a node is closed to an access set."""
        if self.sets == 0:
            return False
        return self.closed[(step * self.nodes + node) * self.sets + access] > 0


def _profile_longer(array: object, length: int, kind: object) -> numpy.ndarray:
    new = numpy.zeros(max(length, 1), dtype=kind)
    old = numpy.asarray(array)[:length]
    new[: len(old)] = old
    return new
