"""`Announced`: what capacity will come and go: planned holds and their ends, nodes that wake.

Plans (backfilling, promises) see it; nothing else does. Failures and repairs are never in it.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.power_budget import PowerBudget
from windtunnel.kernel.raised import Raised


@cython.final
@cython.cclass
class Announced:
    """Changes of capacity: at ``time[i]`` units of a node are withheld for a group, or restored.

    Attributes:
        count: changes in all, sorted by time (ends before begins).
        next: the first that lies ahead.
        num_rows: changes of the power cap that have been looked up, at ``row_time`` to ``row_cap``.
        next_row: the first of them that lies ahead.
        cap_w: the cap from the last row that does not, W; -1 = it has not changed yet.
        num_asleep: nodes that are not awake: those that were called, then those that sleep.
        raised: what Python has raised that the loop asked about caps and GPU types.
        calls: goes up whenever other nodes are, or are ready at other times.
    """

    count: cython.int
    next: cython.int
    time: cython.double[::1]
    begins: cython.char[::1]
    node: cython.int[::1]
    group: cython.int[::1]
    units: cython.longlong[::1]
    num_asleep: cython.int
    last_asleep: tuple
    calls: cython.longlong
    wake_time: cython.double
    asleep: cython.int[::1]
    ready: cython.double[::1]
    sleep_group: cython.int
    num_rows: cython.int
    next_row: cython.int
    cap_w: cython.double
    row_time: cython.double[::1]
    row_cap: cython.double[::1]
    period: cython.double
    rows: object
    raised: Raised
    in_group: cython.char[:, ::1]
    hidden: cython.int
    hidden_node: cython.int[::1]
    hidden_units: cython.longlong[::1]
    taken: cython.longlong[::1]
    peak: cython.longlong[::1]
    is_pool: cython.bint

    def __init__(
        self, num_nodes: int, access_sets: list, num_groups: int, *, is_pool: bool
    ) -> None:
        self.is_pool = is_pool
        self.raised = Raised()
        self.in_group = numpy.zeros((max(len(access_sets), 1), num_groups + 1), dtype=numpy.int8)
        for number, groups in enumerate(access_sets):
            for group in groups:
                self.in_group[number, group] = True
        self.asleep = numpy.zeros(0, dtype=numpy.int32)
        self.last_asleep = ()
        self.hidden_node = numpy.zeros(max(num_nodes, 1), dtype=numpy.int32)
        self.hidden_units = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)
        self.taken = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)
        self.peak = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)
        self.period = ENDLESS
        self.cap_w = -1.0
        self.row_time = self.row_cap = numpy.zeros(0)
        self.announce([])

    def announce(self, changes: list) -> None:
        """Say what lies ahead: (time, begins, node, group, units), sorted by time."""
        self.count = len(changes)
        self.next = 0
        self.time = numpy.array([change[0] for change in changes], dtype=numpy.float64)
        self.begins = numpy.array([change[1] for change in changes], dtype=numpy.int8)
        self.node = numpy.array([change[2] for change in changes], dtype=numpy.int32)
        self.group = numpy.array([change[3] for change in changes], dtype=numpy.int32)
        self.units = numpy.array([change[4] for change in changes], dtype=numpy.int64)

    def sleeping(self, nodes: list, times: list, wake_time: float, group: int) -> None:
        """Say which nodes are not awake.

        Args:
            nodes: those that were called, by when they are ready; then those that were not.
            times: when each is ready, s; -1 = it could be ``wake_time`` seconds after it is called.
            wake_time: s.
            group: for whom they are withheld.
        """
        if (nodes, times) != self.last_asleep:
            self.last_asleep = (nodes, times)
            self.calls += 1
        self.asleep = numpy.array(nodes, dtype=numpy.int32)
        self.ready = numpy.array(times, dtype=numpy.float64)
        self.num_asleep = len(nodes)
        self.wake_time = wake_time
        self.sleep_group = group

    @compiled
    def ready_at(self, place: cython.int, now: cython.double) -> cython.double:
        """Return when one of the nodes that are not awake could be, s."""
        return self.ready[place] if self.ready[place] >= 0.0 else now + self.wake_time

    def cap(self, rows: object, period: float) -> None:
        """Say how the power cap changes: an iterator over (time, W), after which it repeats, s."""
        self.rows = rows
        self.period = period

    def _look_up_rows(self, until: float) -> None:
        """Look up the changes of the cap until then, and one more."""
        times = list(numpy.asarray(self.row_time)[self.next_row :])
        caps = list(numpy.asarray(self.row_cap)[self.next_row :])
        time = times[len(times) - 1] if times else -ENDLESS
        while time <= until:
            found: Any = self.raised.call(next, (self.rows, (ENDLESS, ENDLESS)))
            time, cap_w = (ENDLESS, ENDLESS) if found is None else found
            times.append(time)
            caps.append(cap_w)
        self.row_time, self.row_cap = numpy.array(times), numpy.array(caps)
        self.num_rows = len(times)
        self.next_row = 0

    @compiled
    def provide_row(self, row: cython.int, last: cython.double) -> cython.int:
        """Look up changes of the cap for a period beyond ``last`` (s); return where a row is then.

        Rows beyond that are not looked at: the row behind the last is returned for them.
        """
        ahead: cython.int = row - self.next_row
        if self.period == ENDLESS:
            return self.num_rows
        if self.num_rows == 0 or self.row_time[self.num_rows - 1] <= last + self.period:
            with cython.gil:
                self._look_up_rows(last + self.period)
            row = self.next_row + ahead
        if row < self.num_rows and self.row_time[row] > last + self.period:
            return self.num_rows
        return row

    @compiled
    def is_due(self, now: cython.double) -> cython.bint:
        """Return whether something was announced for ``now`` (s) that has yet to happen.

        Events one by one may ask for decisions at an instant before what is announced for it.
        """
        if self.num_asleep > 0 and 0.0 <= self.ready[0] <= now:
            return True
        return self.next < self.count and self.time[self.next] <= now

    @compiled
    def pass_until(self, now: cython.double, happened: cython.double) -> cython.void:
        """Forget what is over.

        Args:
            now: s; which cap holds is known then, though the source may have yet to say so.
            happened: up to when the planned changes of capacity have happened, s.
        """
        while self.next < self.count and self.time[self.next] <= happened:
            self.next += 1
        if self.period < ENDLESS and (
            self.num_rows == 0 or self.row_time[self.num_rows - 1] <= now
        ):
            with cython.gil:
                self._look_up_rows(now)
        while self.next_row < self.num_rows and self.row_time[self.next_row] <= now:
            self.cap_w = self.row_cap[self.next_row]
            self.next_row += 1

    @compiled
    def cap_now(self, budget: PowerBudget) -> cython.double:
        """Return the cap that holds, W, as far as `pass_until` has come."""
        return budget.cap_w if self.cap_w < 0.0 else self.cap_w

    @compiled
    def first_begin(self) -> cython.double:
        """Return when the first hold that lies ahead begins, s."""
        for change in range(self.next, self.count):
            if self.begins[change]:
                return self.time[change]
        return ENDLESS

    @compiled
    def happen(self, change: cython.int, free: Free) -> cython.void:
        """Let a change happen to a copy of the free state."""
        if self.begins[change]:
            free.withhold(self.node[change], self.group[change], self.units[change])
        else:
            free.restore(self.node[change], self.group[change], self.units[change])

    @compiled
    def hide(
        self, free: Free, access: cython.int, now: cython.double, stop: cython.double
    ) -> cython.int:
        """Hide what others' holds take between now and ``stop``; return how many nodes that are.

        In a pool one hold may end before another begins; a node is taken whole by any of them.
        """
        self.hidden = 0
        for change in range(self.next, self.count):
            if self.time[change] >= stop:
                break
            if self.time[change] <= now or self.in_group[access, self.group[change]]:
                continue
            node = self.node[change]
            if not self.is_pool:
                if self.begins[change] and self.peak[node] == 0:
                    self.peak[node] = self.units[change]
                    self.hidden_node[self.hidden] = node
                    self.hidden += 1
                continue
            self.taken[node] += self.units[change] if self.begins[change] else -self.units[change]
            if self.taken[node] > self.peak[node]:
                if self.peak[node] == 0:
                    self.hidden_node[self.hidden] = node
                    self.hidden += 1
                self.peak[node] = self.taken[node]
        if self.is_pool:
            self._forget_taken(stop)
        for change in range(self.hidden):
            node = self.hidden_node[change]
            self.hidden_units[change] = self.peak[node]
            self.peak[node] = 0
            free.withhold(node, 0, self.hidden_units[change])
        return self.hidden

    @compiled
    def _forget_taken(self, stop: cython.double) -> cython.void:
        for change in range(self.next, self.count):
            if self.time[change] >= stop:
                break
            self.taken[self.node[change]] = 0

    @compiled
    def show(self, free: Free) -> cython.void:
        """Undo `hide`."""
        for change in range(self.hidden - 1, -1, -1):
            free.restore(self.hidden_node[change], 0, self.hidden_units[change])
        self.hidden = 0
