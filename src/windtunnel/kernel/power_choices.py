"""`PowerChoices`: what a job adds to the cluster's draw at each of its power limits.

The twin of `windtunnel.sim.power.watts.Watts`, bit for bit. Jobs of one kind of
work that hold as many GPUs of each type have one table of options, made when it is first asked for.
Draws are whole nanowatts.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.cluster.parts import holding_types
from windtunnel.errors import SpecError
from windtunnel.kernel.bits import count_bits
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs, with_capacity
from windtunnel.kernel.rounding import half_even

#: How limits are chosen.
POWER_NONE = cython.declare(cython.int, 0)
POWER_UNIFORM = cython.declare(cython.int, 1)
POWER_OPTIMISED = cython.declare(cython.int, 2)
#: Nanowatts of a watt.
POWER_NANO = cython.declare(cython.double, 1e9)
#: W of all GPUs whose nanowatts 64 bits can sum, with room to spare.
POWER_MOST = cython.declare(cython.double, 2e9)
#: Thousandths of a GPU.
POWER_MILLI = cython.declare(cython.longlong, 1000)


@cython.final
@cython.cclass
class PowerChoices:
    """The tables of options.

    Args:
        problem: the `Problem`.
        cap: its `CapPlan`.
        fixed: a job draws the same wherever it is, unless GPU types differ; elastic jobs do not.

    Attributes:
        limits: how limits are chosen, `POWER_NONE` and so on.
        work_of: kind of work of each job; kinds that draw the same are one.
        demand_of: demand class of each job; may be written before the job is asked for.
        least: what each job could draw at least, on any GPU type.
        num_limits: how many different limits there are.
        limit: these, highest first.
        most_options: the most options that a table has.
        num_tables: how many tables there are; a table has

            * options ``first[t]`` to ``first[t] + depth[t] - 1``, highest limit first: ``draw`` and
              ``slow`` (time at the limit over time at the highest);
            * ``floor[t]``, the option it can always be put to;
            * ``at[t * (num_limits + 1) + l]``, its option where all have limit l, or the lowest;
            * the front: entries ``front_first[t]`` on, ``front_size[t]`` of ``front_option``, by
              rising draw;
            * the front's lower convex hull: entries ``hull_first[t]`` on, ``hull_size[t]`` of
              ``hull_option``, each with what it draws beyond the one before (``more``) and by how
              much it is slower for a nanowatt (``gain``: below 0, and rising).
    """

    limits: cython.int
    num_limits: cython.int
    most_options: cython.int
    num_tables: cython.int
    work_of: cython.int[::1]
    demand_of: cython.int[::1]
    least: cython.longlong[::1]
    limit: cython.double[::1]
    first: cython.int[::1]
    depth: cython.int[::1]
    floor: cython.int[::1]
    at: cython.int[::1]
    draw: cython.longlong[::1]
    slow: cython.double[::1]
    front_first: cython.int[::1]
    front_size: cython.int[::1]
    front_option: cython.int[::1]
    hull_first: cython.int[::1]
    hull_size: cython.int[::1]
    hull_option: cython.int[::1]
    hull_table: cython.int[::1]
    more: cython.longlong[::1]
    gain: cython.double[::1]

    _is_uniform: cython.bint
    _by_devices: cython.bint
    _unit: cython.double
    _types: cython.int
    _units_of: cython.longlong[::1]
    _type_of: cython.int[::1]
    _milli_of: cython.longlong[::1]
    # Rows of the plan's tables: of (work, type) they begin at ``row_first``.
    _row_first: cython.int[::1]
    _row_count: cython.int[::1]
    _row_limit: cython.double[::1]
    _row_extra: cython.double[::1]
    _row_speed: cython.double[::1]
    # What the job in hand holds of each type, and which types those are, ascending.
    _serial: cython.longlong
    _seen: cython.longlong[::1]
    _gpus: cython.double[::1]
    _parts: cython.int[::1]
    _num_parts: cython.int
    # What each table is of; and the hash table of the tables.
    _key_work: cython.int[::1]
    _key_first: cython.int[::1]
    _key_size: cython.int[::1]
    _key_type: cython.int[::1]
    _key_gpus: cython.double[::1]
    _num_keys: cython.int
    _slot: cython.int[::1]
    _slots: cython.longlong
    _num_options: cython.int
    _num_front: cython.int
    _num_hull: cython.int
    _wide: cython.double[::1]

    def __init__(self, problem: Any, cap: Any, *, fixed: bool = True) -> None:
        jobs = len(problem.rows)
        self.limits = ("none", "uniform", "optimised").index(cap.limits)
        types = list(dict.fromkeys(problem.types))
        self._types = len(types)
        self._is_uniform = fixed and self._types == 1
        self._by_devices = bool(problem.devices) and not problem.pooled
        self._unit = float(POWER_MILLI) if problem.devices else float(problem.units)
        self.demand_of = numpy.array(problem.demand_of, dtype=numpy.int32)
        self._units_of = numpy.array(problem.gpus, dtype=numpy.int64)
        self._type_of = numpy.array(cap.type_of, dtype=numpy.int32)
        shares = [demand.milli for demand in problem.demands] if self._by_devices else []
        self._milli_of = numpy.array([milli or POWER_MILLI for milli in shares], dtype=numpy.int64)
        self._take_rows(cap)
        gpus = float(problem.sizes.sum()) / problem.units
        if gpus * float(numpy.abs(self._row_extra).max(initial=0.0)) > POWER_MOST:
            raise SpecError("power_cap", f"the cluster draws above {POWER_MOST:,.0f} W")
        self._seen = numpy.zeros(self._types, dtype=numpy.int64)
        self._gpus = numpy.zeros(self._types)
        self._parts = numpy.zeros(self._types, dtype=numpy.int32)
        self._serial = self._num_parts = self._num_keys = self.num_tables = 0
        self._num_options = self._num_front = self._num_hull = 0
        self._empty()
        self.least = numpy.zeros(jobs, dtype=numpy.int64)
        self._find_least(problem, types)

    def _take_rows(self, cap: Any) -> None:
        """Take over the plan's tables; kinds of work with the same become one."""
        kinds: dict[Any, int] = {}
        count = max(cap.kind_of, default=-1) + 1
        tables = [tuple(cap.draws[kind, t] for t in range(self._types)) for kind in range(count)]
        works = numpy.array([kinds.setdefault(table, len(kinds)) for table in tables] or [0])
        self.work_of = works[numpy.array(cap.kind_of, dtype=numpy.int64)].astype(numpy.int32)
        each = [rows for table in kinds for rows in table]
        rows = [row for some in each for row in some]
        sizes = numpy.array([len(some) for some in each], dtype=numpy.int32)
        self._row_count = sizes
        self._row_first = (numpy.cumsum(sizes) - sizes).astype(numpy.int32)
        self._row_limit = numpy.array([row.limit_w for row in rows], dtype=numpy.float64)
        self._row_extra = numpy.array([row.extra_w for row in rows], dtype=numpy.float64)
        self._row_speed = numpy.array([row.speed for row in rows], dtype=numpy.float64)
        self.limit = numpy.array(
            sorted({row.limit_w for row in rows}, reverse=True), dtype=numpy.float64
        )
        self.num_limits = len(self.limit)
        self.most_options = max((len(some) for some in each), default=1)
        self._wide = numpy.zeros(max(self.most_options, 1))

    def _empty(self) -> None:
        ints = numpy.zeros(0, dtype=numpy.int32)
        longs = numpy.zeros(0, dtype=numpy.int64)
        self.first = self.depth = self.floor = self.at = ints
        self.front_first = self.front_size = self.front_option = ints
        self.hull_first = self.hull_size = self.hull_option = self.hull_table = ints
        self._key_work = self._key_first = self._key_size = self._key_type = ints
        self.draw = self.more = longs
        self.slow = self.gain = self._key_gpus = numpy.zeros(0)
        self._slots = 64
        self._slot = numpy.full(self._slots, -1, dtype=numpy.int32)

    def _find_least(self, problem: Any, types: list[Any]) -> None:
        """Find what jobs could draw at least: one by one where the demand or the work differs."""
        works = numpy.asarray(self.work_of)
        demands = numpy.asarray(self.demand_of).astype(numpy.int64)
        pairs = demands * (works.max(initial=0) + 1) + works
        _, jobs, pair_of = numpy.unique(pairs, return_index=True, return_inverse=True)
        free = problem.free_state()
        held: dict[int, list[int]] = {}
        found = numpy.zeros(len(jobs), dtype=numpy.int64)
        for number, job in enumerate(jobs.tolist()):
            kind = self.demand_of[job]
            if kind not in held:
                whole = None
                if self._types > 1:
                    whole = holding_types(problem.demands[kind], free, problem.types)
                held[kind] = [t for t, name in enumerate(types) if whole is None or name in whole]
            floors = [self.floor_on(job, t) for t in held[kind] or range(len(types))]
            if self._units_of[job]:
                found[number] = min(floors) if held[kind] else max(floors)
        self.least = found[pair_of]

    @compiled
    def floor_of(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return the least that a job can be brought to add to the draw on these pairs."""
        if self._is_uniform:
            return self.least[job]
        table = self.table_of(job, pairs, begin, end)
        return self.draw[self.first[table] + self.floor[table]]

    @compiled
    def floor_on(self, job: cython.int, gpu_type: cython.int) -> cython.longlong:
        """Return the same where all its GPUs are of one type."""
        self._parts[0] = gpu_type
        self._num_parts = 1
        self._gpus[gpu_type] = cython.cast(cython.double, self._units_of[job]) / self._unit
        table = self._find(self.work_of[job])
        return self.draw[self.first[table] + self.floor[table]]

    @compiled
    def table_of(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Return the table of a job on these pairs."""
        each: cython.longlong = 1
        if self._by_devices:
            each = self._milli_of[self.demand_of[job]]
        self._serial += 1
        self._num_parts = 0
        for at in range(begin, end):
            kind = self._type_of[pairs.node[at]]
            grant = pairs.grant[at]
            if self._by_devices:
                grant = count_bits(grant) * each
            gpus = cython.cast(cython.double, grant) / self._unit
            if self._seen[kind] != self._serial:
                self._seen[kind] = self._serial
                self._gpus[kind] = 0.0
                place = self._num_parts
                while place > 0 and self._parts[place - 1] > kind:
                    self._parts[place] = self._parts[place - 1]
                    place -= 1
                self._parts[place] = kind
                self._num_parts += 1
            self._gpus[kind] += gpus
        return self._find(self.work_of[job])

    @compiled
    def _find(self, work: cython.int) -> cython.int:
        """Return the table of what the job in hand holds; make it if it is new."""
        place: cython.longlong = self._hash(work)
        while self._slot[place] >= 0:
            table = self._slot[place]
            if self._key_work[table] == work and self._key_size[table] == self._num_parts:
                first = self._key_first[table]
                equal: cython.bint = True
                for part in range(self._num_parts):
                    kind = self._parts[part]
                    if (
                        self._key_type[first + part] != kind
                        or self._key_gpus[first + part] != self._gpus[kind]
                    ):
                        equal = False
                if equal:
                    return table
            place = (place + 1) & (self._slots - 1)
        return self._make(work)

    @compiled
    def _hash(self, work: cython.int) -> cython.longlong:
        mixed: cython.ulonglong = cython.cast(cython.ulonglong, work)
        for part in range(self._num_parts):
            kind = self._parts[part]
            mixed = mixed * 1000003 + cython.cast(cython.ulonglong, kind) + 1
            mixed = mixed * 1000003 + cython.cast(cython.ulonglong, self._gpus[kind] * 1000 + 0.5)
        mixed = mixed * 1640531527
        return cython.cast(cython.longlong, (mixed >> 20) & (self._slots - 1))

    @compiled
    def _make(self, work: cython.int) -> cython.int:
        """Make a table of what the job in hand holds."""
        table = self.num_tables
        with cython.gil:
            self._provide()
        self._key_work[table] = work
        self._key_first[table] = self._num_keys
        self._key_size[table] = self._num_parts
        for part in range(self._num_parts):
            kind = self._parts[part]
            self._key_type[self._num_keys] = kind
            self._key_gpus[self._num_keys] = self._gpus[kind]
            self._num_keys += 1
        self.num_tables += 1
        place: cython.longlong = self._hash(work)
        while self._slot[place] >= 0:
            place = (place + 1) & (self._slots - 1)
        self._slot[place] = table
        self._make_options(table, work)
        self._make_front(table)
        self._make_hull(table)
        return table

    @compiled
    def _make_options(self, table: cython.int, work: cython.int) -> cython.void:
        first = self._num_options
        depth: cython.int = 0
        for part in range(self._num_parts):
            count = self._row_count[work * self._types + self._parts[part]]
            if count > depth:
                depth = count
        if self._num_parts == 0:
            depth = 1
        self.first[table] = first
        self.depth[table] = depth
        self._num_options += depth
        for level in range(depth):
            widest: cython.double = 0.0
            speed: cython.double = 1.0
            drawn: cython.longlong = 0
            for part in range(self._num_parts):
                kind = self._parts[part]
                place = level
                if place >= self._row_count[work * self._types + kind]:
                    place = self._row_count[work * self._types + kind] - 1
                place += self._row_first[work * self._types + kind]
                if part == 0 or self._row_limit[place] > widest:
                    widest = self._row_limit[place]
                if part == 0 or self._row_speed[place] < speed:
                    speed = self._row_speed[place]
                drawn += half_even(self._gpus[kind] * self._row_extra[place] * POWER_NANO)
            self._wide[level] = widest
            self.draw[first + level] = drawn
            self.slow[first + level] = 1.0 / speed
        self.floor[table] = 0
        if self.limits == POWER_UNIFORM:
            self.floor[table] = depth - 1
        if self.limits == POWER_OPTIMISED:
            for level in range(1, depth):
                if self._comes_before(first + level, first + self.floor[table]):
                    self.floor[table] = level
        for place in range(self.num_limits + 1):
            level = 0
            while level < depth - 1 and (
                place == self.num_limits or self._wide[level] > self.limit[place]
            ):
                level += 1
            self.at[table * (self.num_limits + 1) + place] = level

    @compiled
    def _comes_before(self, one: cython.int, other: cython.int) -> cython.bint:
        """Return whether an option draws less than another; of equals, is less slow."""
        return self.draw[one] < self.draw[other] or (
            self.draw[one] == self.draw[other] and self.slow[one] < self.slow[other]
        )

    @compiled
    def _make_front(self, table: cython.int) -> cython.void:
        """Keep the options no other is at least as good as in both, by rising draw."""
        first = self.first[table]
        begin = self._num_front
        size: cython.int = 0
        for level in range(self.depth[table]):
            place = begin + level
            while place > begin and self._comes_before(
                first + level, first + self.front_option[place - 1]
            ):
                self.front_option[place] = self.front_option[place - 1]
                place -= 1
            self.front_option[place] = level
        for level in range(self.depth[table]):
            place = self.front_option[begin + level]
            if (
                size == 0
                or self.slow[first + place] < self.slow[first + self.front_option[begin + size - 1]]
            ):
                self.front_option[begin + size] = place
                size += 1
        self.front_first[table] = begin
        self.front_size[table] = size
        self._num_front += size

    @compiled
    def _make_hull(self, table: cython.int) -> cython.void:
        """Keep of the front the lower convex hull."""
        first = self.first[table]
        begin = self._num_hull
        size: cython.int = 0
        for at in range(self.front_size[table]):
            option = first + self.front_option[self.front_first[table] + at]
            while size > 1 and not self._bends(
                first + self.hull_option[begin + size - 2],
                first + self.hull_option[begin + size - 1],
                option,
            ):
                size -= 1
            self.hull_option[begin + size] = option - first
            size += 1
        self.hull_first[table] = begin
        self.hull_size[table] = size
        self._num_hull += size
        self.more[begin] = 0
        self.gain[begin] = 0.0
        self.hull_table[begin] = table
        for at in range(begin + 1, begin + size):
            here = first + self.hull_option[at - 1]
            there = first + self.hull_option[at]
            self.hull_table[at] = table
            self.more[at] = self.draw[there] - self.draw[here]
            self.gain[at] = (self.slow[there] - self.slow[here]) / cython.cast(
                cython.double, self.more[at]
            )
            # By a rounding the next step may seem the better one; it still comes right behind.
            if at > begin + 1 and self.gain[at] < self.gain[at - 1]:
                self.gain[at] = self.gain[at - 1]

    @compiled
    def _bends(self, a: cython.int, b: cython.int, c: cython.int) -> cython.bint:
        """Return whether the middle one of three options is below the line of the others."""
        first = cython.cast(cython.double, self.draw[b] - self.draw[a])
        second = cython.cast(cython.double, self.draw[c] - self.draw[b])
        return (self.slow[b] - self.slow[a]) * second < (self.slow[c] - self.slow[b]) * first

    def _provide(self) -> None:
        """Make the tables long enough for one more."""
        tables = self.num_tables + 1
        self.first = with_capacity(self.first, tables)
        self.depth = with_capacity(self.depth, tables)
        self.floor = with_capacity(self.floor, tables)
        self.at = with_capacity(self.at, tables * (self.num_limits + 1))
        self.front_first = with_capacity(self.front_first, tables)
        self.front_size = with_capacity(self.front_size, tables)
        self.hull_first = with_capacity(self.hull_first, tables)
        self.hull_size = with_capacity(self.hull_size, tables)
        self._key_work = with_capacity(self._key_work, tables)
        self._key_first = with_capacity(self._key_first, tables)
        self._key_size = with_capacity(self._key_size, tables)
        keys = self._num_keys + self._types
        self._key_type = with_capacity(self._key_type, keys)
        self._key_gpus = with_capacity(self._key_gpus, keys)
        options = self._num_options + self.most_options + 1
        self.draw = with_capacity(self.draw, options)
        self.slow = with_capacity(self.slow, options)
        self.front_option = with_capacity(self.front_option, options)
        self.hull_option = with_capacity(self.hull_option, options)
        self.hull_table = with_capacity(self.hull_table, options)
        self.more = with_capacity(self.more, options)
        self.gain = with_capacity(self.gain, options)
        if 2 * tables > self._slots:
            self._rehash()

    def _rehash(self) -> None:
        self._slots *= 4
        old = numpy.asarray(self._slot)
        self._slot = numpy.zeros(self._slots, dtype=numpy.int32) - 1
        parts, count = numpy.array(self._parts), self._num_parts
        gpus = numpy.array(self._gpus)
        for table in old[old >= 0].tolist():
            first = self._key_first[table]
            self._num_parts = self._key_size[table]
            for part in range(self._num_parts):
                self._parts[part] = self._key_type[first + part]
                self._gpus[self._parts[part]] = self._key_gpus[first + part]
            place = self._hash(self._key_work[table])
            while self._slot[place] >= 0:
                place = (place + 1) & (self._slots - 1)
            self._slot[place] = table
        self._parts, self._num_parts, self._gpus = parts, count, gpus

    # From Python, for tests and to look into a run.

    def options(self, job: int, nodes: Any, grants: Any) -> list[tuple[int, float]]:
        """Return (draw, slow) of a job's options on some pairs."""
        pairs = Pairs()
        for node, grant in zip(nodes, grants, strict=True):
            pairs.add(node, grant)
        table = self.table_of(job, pairs, 0, pairs.count)
        first = self.first[table]
        return [(self.draw[first + i], self.slow[first + i]) for i in range(self.depth[table])]
