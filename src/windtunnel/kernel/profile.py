"""`Profile`: what is expected to be free from now on, a step function of time.

What is free on a node stands in the node's own steps (`windtunnel.kernel.node_steps`), sums in the
steps of all. A step stands for the time until the next one. The steps of all are a chain, with an
index by time: where units are summed up one for each time at which a job begins or ends, else those
at which other nodes are empty than before. One that nobody needs any more goes.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.bits import bit_at, count_bits
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_steps import NodeSteps
from windtunnel.kernel.pairs import Pairs, longer
from windtunnel.kernel.ranked import RANKED_CAPACITY, Ranked
from windtunnel.kernel.rows import Rows

#: Rows that are no step's: scratch for what several steps have in common.
PROFILE_COMMON = cython.declare(cython.int, 0)
PROFILE_PART = cython.declare(cython.int, 1)
PROFILE_CAPACITY = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class Profile:
    """Steps from ``head`` (now) on.

    Args:
        free: any state of the cluster, for its form.
        num_nodes: nodes or pools.
        num_sets: access sets whose closed nodes are counted; 0 = nothing is ever withheld there.
        counts_units: sum up what is free; else ``total`` says nothing.
        counts_idle: count what is all free; else ``idle`` and ``idle_bits`` say nothing.

    Attributes:
        head: the step that is now.
        time: when each step begins, s.
        after, before: the steps around it; -1 = none.
        uses: for how many changes it is there.
        total: GPU units that nobody holds, withheld or not.
        drawn: nanowatts that jobs add to the draw at least.
        begins: how many are promised to start at it, if it lies ahead and units are summed up.
        idle: columns of which all is free, of those that are not 0 then: of nodes with one column
            the nodes that are empty; not of nodes that are closed to everybody.
        words: 64-bit words of a set of columns.
        idle_bits: which columns these are, (steps, words).
        full: a row of the empty cluster.
        rows: two rows for what several steps have in common.
        on: what nobody holds of each node, less units that are withheld in pools.
    """

    width: cython.int
    nodes: cython.int
    sets: cython.int
    head: cython.int
    capacity: cython.int
    spare: cython.int
    time: cython.double[::1]
    after: cython.int[::1]
    before: cython.int[::1]
    uses: cython.int[::1]
    total: cython.longlong[::1]
    drawn: cython.longlong[::1]
    begins: cython.int[::1]
    idle: cython.int[::1]
    full: cython.longlong[::1]
    rows: Rows
    words: cython.int
    idle_bits: cython.longlong[::1]
    common: cython.longlong[::1]
    counts_units: cython.bint
    counts_idle: cython.bint
    on: NodeSteps
    index: Ranked

    def __init__(
        self, free: Free, num_nodes: int, num_sets: int, *, counts_units: bool, counts_idle: bool
    ) -> None:
        self.width = free.width()
        self.nodes = num_nodes
        self.sets = num_sets
        self.counts_units, self.counts_idle = counts_units, counts_idle
        self.words = (self.width * num_nodes + 63) // 64 if counts_idle else 0
        self.idle_bits = numpy.zeros(0, dtype=numpy.int64)
        self.common = numpy.zeros(max(self.words, 1), dtype=numpy.int64)
        self.rows = Rows(self.width * num_nodes, 2)
        self.on = NodeSteps(num_nodes, self.width, num_sets)
        self.capacity = 0
        self.time = numpy.zeros(0)
        self.after = self.before = self.uses = numpy.zeros(0, dtype=numpy.int32)
        self.begins = numpy.zeros(0, dtype=numpy.int32)
        self.total = self.drawn = numpy.zeros(0, dtype=numpy.int64)
        self.idle = numpy.zeros(0, dtype=numpy.int32)
        free.store(self.rows, 0)
        self.full = numpy.array(self.rows.cell)[: self.width * num_nodes]
        self.clear()

    def clear(self) -> None:
        """Drop all steps; there must be one (`begin`) before anything else is asked."""
        self.index = Ranked()
        self.spare = -1
        capacity, self.capacity = max(self.capacity, PROFILE_CAPACITY), 0
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        kept = self.capacity
        self.time = longer(self.time, capacity)
        self.after = longer(self.after, capacity)
        self.before = longer(self.before, capacity)
        self.uses = longer(self.uses, capacity)
        self.total = longer(self.total, capacity)
        self.drawn = longer(self.drawn, capacity)
        self.begins = longer(self.begins, capacity)
        self.idle = longer(self.idle, capacity)
        self.idle_bits = longer(self.idle_bits, capacity * self.words)
        for slot in range(capacity - 1, kept - 1, -1):
            self.after[slot] = self.spare
            self.spare = slot
        self.capacity = capacity

    # Steps.

    @compiled
    def _new(self) -> cython.int:
        if self.spare < 0:
            with cython.gil:
                self._grow(2 * self.capacity)
        slot: cython.int = self.spare
        self.spare = self.after[slot]
        return slot

    @compiled
    def begin(self, now: cython.double, free: Free, drawn: cython.longlong) -> cython.void:
        """Let there be one step: what is free (withheld or not) and drawn now."""
        slot: cython.int = self._new()
        self.head = slot
        self.time[slot] = now
        self.after[slot] = -1
        self.before[slot] = -1
        self.uses[slot] = 0
        self.total[slot] = 0
        self.drawn[slot] = drawn
        self.begins[slot] = 0
        self.idle[slot] = 0
        for column in range(self.words):
            self.idle_bits[slot * self.words + column] = 0
        free.store(self.rows, PROFILE_COMMON)
        for node in range(self.nodes):
            self.total[slot] += free.free_units(node)
            at = self.on.begin(node, now) * self.on.stride
            for column in range(self.width):
                self.on.value[at + column] = self.rows.cell[node * self.width + column]
            for column in range(self.sets):
                self.on.value[at + self.width + column] = free.closings(node, column)
        if self.counts_idle:
            for column in range(self.nodes * self.width):
                node = column // self.width
                if self.rows.cell[column] == self.full[column] and not self._is_shut(
                    self.on.first[node]
                ):
                    self._set_idle(slot, column, 1)

    @compiled
    def _set_idle(self, slot: cython.int, column: cython.int, change: cython.int) -> cython.void:
        """Let a column be all free in a step (1), or not any more (-1)."""
        self.idle[slot] += change
        self.idle_bits[slot * self.words + (column >> 6)] ^= bit_at(column & 63)

    @compiled
    def at_or_before(self, time: cython.double) -> cython.int:
        """Return the step that is at a time."""
        if time <= self.time[self.head] or self.index.count == 0:
            return self.head
        self.index.find(time, 0)
        place = self.index.block[self.index.found_place]
        at = self.index.found_index
        if at == self.index.length[place]:
            return self.index.job[place * RANKED_CAPACITY + at - 1]
        entry = place * RANKED_CAPACITY + at
        if self.index.key[entry] == time:
            return self.index.job[entry]
        return self.before[self.index.job[entry]]

    @compiled
    def step_at(self, time: cython.double) -> cython.int:
        """Return the step that begins at a time, made where there is none; now for what is past."""
        earlier: cython.int = self.at_or_before(time)
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
        self.begins[slot] = 0
        self.idle[slot] = self.idle[earlier]
        for word in range(self.words):
            self.idle_bits[slot * self.words + word] = self.idle_bits[earlier * self.words + word]
        self.index.insert(time, 0, slot, 0)
        return slot

    @compiled
    def last_time(self) -> cython.double:
        """Return when the last step begins, s."""
        if self.index.count == 0:
            return self.time[self.head]
        place: cython.int = self.index.block[self.index.used - 1]
        return self.index.key[place * RANKED_CAPACITY + self.index.length[place] - 1]

    @compiled
    def need(self, slot: cython.int) -> cython.void:
        """Note that a change happens at a step."""
        self.uses[slot] += 1

    @compiled
    def release(self, slot: cython.int) -> cython.void:
        """Undo one `need`: a step at which nothing changes goes."""
        self.uses[slot] -= 1
        self._join(slot)

    @compiled
    def mark(self, time: cython.double) -> cython.void:
        """Note that a job begins or ends at a time (s); inf = never."""
        if self.counts_units and time < ENDLESS:
            self.need(self.step_at(time))

    @compiled
    def unmark(self, time: cython.double) -> cython.void:
        """Undo one `mark`, if its time is yet to come."""
        if self.counts_units and self.time[self.head] < time < ENDLESS:
            self.release(self.at_or_before(time))

    @compiled
    def count_start(self, time: cython.double, change: cython.int) -> cython.void:
        """Let one more (1) or fewer (-1) be promised to start at a marked time to come (s)."""
        if self.counts_units and self.time[self.head] < time < ENDLESS:
            self.begins[self.at_or_before(time)] += change

    @compiled
    def step_before(self, time: cython.double) -> cython.int:
        """Return the step that is just before a time to come."""
        slot: cython.int = self.at_or_before(time)
        return slot if self.time[slot] < time else self.before[slot]

    @compiled
    def _join(self, slot: cython.int) -> cython.void:
        """Drop a step that nobody needs, if the same nodes are empty as before it."""
        earlier: cython.int = self.before[slot]
        if self.uses[slot] > 0 or slot == self.head:
            return
        for word in range(self.words):
            if (
                self.idle_bits[slot * self.words + word]
                != self.idle_bits[earlier * self.words + word]
            ):
                return
        self.index.remove(self.time[slot], 0)
        self.after[self.before[slot]] = self.after[slot]
        if self.after[slot] >= 0:
            self.before[self.after[slot]] = self.before[slot]
        self._drop(slot)

    @compiled
    def _drop(self, slot: cython.int) -> cython.void:
        self.after[slot] = self.spare
        self.spare = slot

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
        self.on.forget(now)

    # Capacity.

    @compiled
    def add(
        self,
        changes: Pairs,
        begin: cython.longlong,
        end: cython.longlong,
        units: cython.longlong,
        draw: cython.longlong,
        sign: cython.int,
        since: cython.double,
        until: cython.double,
    ) -> cython.void:
        """Give back (1) or take (-1) what a job has for some time.

        Args:
            changes: (column, amount) pairs.
            begin: the first of them.
            end: behind the last of them.
            units: GPU units, all in all.
            draw: nanowatts that it adds to the draw.
            sign: whether there is more capacity, or less.
            since: when that begins, s; past is now.
            until: when it ends, s; inf = never.
        """
        for at in range(begin, end):
            self._add_column(changes.node[at], sign * changes.grant[at], since, until)
        if not self.counts_units:
            return
        slot = self.step_at(since)
        last = self.step_at(until) if until < ENDLESS else -1
        while slot != last:
            self.total[slot] += sign * units
            self.drawn[slot] -= sign * draw
            slot = self.after[slot]

    @compiled
    def _add_column(
        self,
        column: cython.int,
        change: cython.longlong,
        since: cython.double,
        until: cython.double,
    ) -> cython.void:
        """Let there be so much more of a column for some time."""
        node: cython.int = column // self.width
        full: cython.longlong = self.full[column]
        at: cython.longlong
        step: cython.longlong
        is_full: cython.bint
        if change == 0:
            return
        self.on.open(node)
        begin = self.on.cut(node, since)
        end = self.on.behind[node]
        if until < ENDLESS:
            end = self.on.cut(node, until)
        for step in range(begin, end):
            at = step * self.on.stride + column - node * self.width
            is_full = self.on.value[at] == full
            self.on.value[at] += change
            if not self.counts_idle or is_full == (self.on.value[at] == full):
                continue
            if not self._is_shut(step):
                self._count_idle(column, step, -1 if is_full else 1)
        self.on.join(node, end)
        self.on.join(node, begin)

    @compiled
    def _count_idle(
        self, column: cython.int, step: cython.longlong, change: cython.int
    ) -> cython.void:
        """Let a column be all free during a step of its node (1), or not any more (-1)."""
        first: cython.int = self.step_at(self.on.time[step])
        slot: cython.int = first
        last: cython.int = -1
        if step + 1 < self.on.behind[column // self.width]:
            last = self.step_at(self.on.time[step + 1])
        while slot != last:
            self._set_idle(slot, column, change)
            slot = self.after[slot]
        if last >= 0:
            self._join(last)
        self._join(first)

    @compiled
    def keeps_idle(
        self, slot: cython.int, stop: cython.double, count: cython.longlong
    ) -> cython.bint:
        """Return whether so many columns stay all free from a step until ``stop`` (s)."""
        kept: cython.longlong = count
        for word in range(self.words):
            self.common[word] = self.idle_bits[slot * self.words + word]
        slot = self.after[slot]
        while kept >= count and slot >= 0 and self.time[slot] < stop:
            kept = 0
            for word in range(self.words):
                self.common[word] &= self.idle_bits[slot * self.words + word]
                kept += count_bits(self.common[word])
            slot = self.after[slot]
        return kept >= count

    @compiled
    def close(
        self, node: cython.int, access: cython.int, change: cython.int, first: cython.int
    ) -> cython.void:
        """Let so many more holds of a node be unknown to an access set, from a step on."""
        step: cython.longlong
        was_shut: cython.bint
        self.on.open(node)
        begin = self.on.cut(node, self.time[first])
        for step in range(begin, self.on.behind[node]):
            was_shut = self._is_shut(step)
            self.on.value[step * self.on.stride + self.width + access] += change
            if not self.counts_idle or was_shut == self._is_shut(step):
                continue
            for column in range(self.width):
                at = step * self.on.stride + column
                if self.on.value[at] == self.full[node * self.width + column]:
                    self._count_idle(node * self.width + column, step, 1 if was_shut else -1)
        self.on.join(node, begin)

    @compiled
    def _is_shut(self, step: cython.longlong) -> cython.bint:
        """Return whether a node is closed to everybody in its step: it is idle for nobody."""
        for access in range(self.sets):
            if self.on.value[step * self.on.stride + self.width + access] <= 0:
                return False
        return self.sets > 0

    @compiled
    def withhold(self, pool: cython.int, units: cython.longlong, first: cython.int) -> cython.void:
        """Take so many units out of a pool from a step on; below 0 = give them back."""
        self.on.add(pool, 0, -units, self.time[first])

    @compiled
    def is_idle(self, node: cython.int, step: cython.longlong) -> cython.bint:
        """Return whether nobody holds anything of a node in its step, for nodes of one column."""
        return self.on.value[step * self.on.stride] == self.full[node]

    @compiled
    def is_closed(self, step: cython.longlong, access: cython.int) -> cython.bint:
        """Return whether a node is closed to an access set in its step."""
        return self.sets > 0 and self.on.value[step * self.on.stride + self.width + access] > 0
