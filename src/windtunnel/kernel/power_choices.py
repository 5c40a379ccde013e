"""`PowerChoices`: what a job adds to the cluster's draw at each of its power limits.

Jobs of one kind of work that hold as many GPUs of each type have one table of options, made when it
is first asked for (`windtunnel.sim.power.tables`). Draws are whole nanowatts.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import count_bits
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs, appended
from windtunnel.kernel.raised import Raised

#: How limits are chosen; 2 = optimised.
POWER_NONE = cython.declare(cython.int, 0)
POWER_UNIFORM = cython.declare(cython.int, 1)
#: Thousandths of a GPU.
POWER_MILLI = cython.declare(cython.longlong, 1000)


@cython.final
@cython.cclass
class PowerChoices:
    """The tables of options.

    Args:
        tables: makes them (`windtunnel.sim.power.tables.Tables`).

    Attributes:
        limits: how limits are chosen, `POWER_NONE` and so on.
        least: what each job could draw at least, on any GPU type.
        num_types: GPU types of the cluster.
        num_limits: how many different limits there are.
        width: the most options that a table has.
        raised: what making a table has raised.
        num_tables: how many tables there are; table t has, from ``t * width`` on,

            * ``depth[t]`` options, highest limit first: ``draw`` and ``slow`` (time at the limit
              over time at the highest);
            * the front: ``front_size[t]`` of ``front_option``, by rising draw;
            * the front's lower convex hull: ``hull_size[t]`` of ``hull_option``, each with what it
              draws beyond the one before (``more``) and by how much it is slower for a nanowatt
              (``gain``: below 0, and rising);

            and ``floor[t]``, the option it can always be put to, and
            ``at[t * (num_limits + 1) + l]``, its option where all have limit l, or the lowest.
    """

    limits: cython.int
    num_types: cython.int
    num_limits: cython.int
    width: cython.int
    num_tables: cython.int
    least: cython.longlong[::1]
    raised: Raised
    depth: cython.int[::1]
    floor: cython.int[::1]
    at: cython.int[::1]
    draw: cython.longlong[::1]
    slow: cython.double[::1]
    front_size: cython.int[::1]
    front_option: cython.int[::1]
    hull_size: cython.int[::1]
    hull_option: cython.int[::1]
    more: cython.longlong[::1]
    gain: cython.double[::1]

    _tables: object
    _is_uniform: cython.bint
    _by_devices: cython.bint
    _unit: cython.double
    _work_of: cython.int[::1]
    _demand_of: cython.int[::1]
    _units_of: cython.longlong[::1]
    _type_of: cython.int[::1]
    _milli_of: cython.longlong[::1]
    # GPUs of each type that the job in hand holds, -1 = it is on none; the same of each table. The
    # tables of a kind of work are a list, the newest first.
    _held: cython.double[::1]
    _held_by: cython.double[::1]
    _newest: cython.int[::1]
    _older: cython.int[::1]

    def __init__(self, tables: Any) -> None:
        problem, cap = tables.watts.problem, tables.watts.cap
        self._tables, self.raised = tables.make, Raised()
        self.limits = ("none", "uniform", "optimised").index(cap.limits)
        self.num_types = len(tables.watts.types)
        self.num_limits = len(tables.limits)
        self.width = tables.most_options
        self.least = tables.least
        self._is_uniform = tables.watts.is_uniform
        self._by_devices = bool(problem.devices) and not problem.pooled
        self._unit = float(problem.units)
        self._work_of = tables.work_of
        self._demand_of = numpy.array(problem.demand_of, dtype=numpy.int32)
        self._units_of = numpy.array(problem.gpus, dtype=numpy.int64)
        self._type_of = numpy.array(cap.type_of, dtype=numpy.int32)
        shares = [demand.milli for demand in problem.demands] if self._by_devices else []
        self._milli_of = numpy.array([milli or POWER_MILLI for milli in shares], dtype=numpy.int64)
        self._held = numpy.zeros(self.num_types)
        self._newest = numpy.full(int(tables.work_of.max(initial=0)) + 1, -1, dtype=numpy.int32)
        self.num_tables = 0
        ints = numpy.zeros(0, dtype=numpy.int32)
        self.depth = self.floor = self.at = self._older = ints
        self.front_size = self.front_option = self.hull_size = self.hull_option = ints
        self.draw = self.more = numpy.zeros(0, dtype=numpy.int64)
        self.slow = self.gain = self._held_by = numpy.zeros(0)

    @compiled
    def floor_of(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the least that a job can be brought to add to the draw on these pairs."""
        if self._is_uniform:
            return self.least[job]
        return self.least_of(self.table_of(job, pairs, begin, end))

    @compiled
    def least_of(self, table: cython.int) -> cython.longlong:
        """Return what the option adds that jobs of a table can always be put to."""
        return self.draw[table * self.width + self.floor[table]]

    @compiled
    def surely(self, job: cython.int) -> cython.longlong:
        """Return what a job adds at the least, wherever it is; 0 = that depends on where."""
        return self.least[job] if self._is_uniform else 0

    @compiled
    def floor_on(self, job: cython.int, gpu_type: cython.int) -> cython.longlong:
        """Return the same where all its GPUs are of one type."""
        self._hold_none()
        self._held[gpu_type] = cython.cast(cython.double, self._units_of[job]) / self._unit
        return self.least_of(self._find(self._work_of[job]))

    @compiled
    def table_of(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Return the table of a job on these pairs."""
        each: cython.longlong = 1
        if self._by_devices:
            each = self._milli_of[self._demand_of[job]]
        self._hold_none()
        for at in range(begin, end):
            gpu_type = self._type_of[pairs.node[at]]
            grant = pairs.grant[at]
            if self._by_devices:
                grant = count_bits(grant) * each
            if self._held[gpu_type] < 0.0:
                self._held[gpu_type] = 0.0
            self._held[gpu_type] += cython.cast(cython.double, grant) / self._unit
        return self._find(self._work_of[job])

    @compiled
    def _hold_none(self) -> cython.void:
        for gpu_type in range(self.num_types):
            self._held[gpu_type] = -1.0

    @compiled
    def _find(self, work: cython.int) -> cython.int:
        """Return the table of what the job in hand holds; make it if it is new."""
        table: cython.int = self._newest[work]
        while table >= 0 and not self._is_of(table):
            table = self._older[table]
        if table < 0:
            table = self.num_tables
            with cython.gil:
                self._make(work)
        return table

    @compiled
    def _is_of(self, table: cython.int) -> cython.bint:
        """Return whether a table is of what the job in hand holds."""
        for gpu_type in range(self.num_types):
            if self._held_by[table * self.num_types + gpu_type] != self._held[gpu_type]:
                return False
        return True

    def _make(self, work: int) -> None:
        """Make a table of what the job in hand holds; one of a single option after an error."""
        table, types = self.num_tables, self.num_types
        first = table * self.width
        held = numpy.asarray(self._held).tolist()
        made: Any = self.raised.call(self._tables, (work, held))
        if made is None:
            made = ([0], [1.0], 0, [0] * (self.num_limits + 1), [0], [0], [0], [0.0])
        draw, slow, floor, at, front, hull, more, gain = made
        self._held_by = appended(self._held_by, table * types, held)
        self._older = appended(self._older, table, [self._newest[work]])
        self._newest[work] = table
        self.depth = appended(self.depth, table, [len(draw)])
        self.floor = appended(self.floor, table, [floor])
        self.at = appended(self.at, table * (self.num_limits + 1), at)
        self.draw = appended(self.draw, first, draw)
        self.slow = appended(self.slow, first, slow)
        self.front_size = appended(self.front_size, table, [len(front)])
        self.front_option = appended(self.front_option, first, front)
        self.hull_size = appended(self.hull_size, table, [len(hull)])
        self.hull_option = appended(self.hull_option, first, hull)
        self.more = appended(self.more, first, more)
        self.gain = appended(self.gain, first, gain)
        self.num_tables += 1
