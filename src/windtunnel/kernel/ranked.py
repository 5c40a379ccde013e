"""`Ranked`: a sorted list of jobs in blocks, with the units of each block summed.

Entries are (key, order, job, units), ascending (key, order). Blocks hold up to 64 of them, so that
an insertion moves few, and a walk in order can pass whole blocks by their sums.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer

RANKED_CAPACITY = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class Ranked:
    """Jobs in order of a key.

    The entries of the block at ``place`` of the order are ``block[place] * 64 + index`` in the
    arrays of entries, index from 0 to ``length[block[place]] - 1``.

    Attributes:
        count: entries in all.
        units: GPU units of all entries.
        used: blocks in the order.
        block: number of the block at each place of the order.
        length: entries of each block.
        total: GPU units of each block.
        key: of each entry.
        order: of each entry.
        job: of each entry.
        unit: GPU units of each entry.
        shift: what a walk subtracts from keys: times become times to go.
        at_place, at_index: the entry at which a walk stands.
        passed: GPU units of the entries before that one.
        over_place, over_index, over_passed: the same of what `look_beyond` found.
    """

    count: cython.longlong
    units: cython.longlong
    used: cython.int
    spares: cython.int
    blocks: cython.int
    block: cython.int[::1]
    spare: cython.int[::1]
    length: cython.int[::1]
    total: cython.longlong[::1]
    key: cython.double[::1]
    order: cython.int[::1]
    job: cython.int[::1]
    unit: cython.longlong[::1]
    found_place: cython.int
    found_index: cython.int
    shift: cython.double
    at_place: cython.int
    at_index: cython.int
    passed: cython.longlong
    over_place: cython.int
    over_index: cython.int
    over_passed: cython.longlong

    def __init__(self) -> None:
        self.count = 0
        self.units = 0
        self.used = 0
        self.spares = 0
        self.blocks = 0
        self.block = numpy.empty(0, dtype=numpy.int32)
        self.spare = numpy.empty(0, dtype=numpy.int32)
        self.length = numpy.empty(0, dtype=numpy.int32)
        self.total = numpy.empty(0, dtype=numpy.int64)
        self.key = numpy.empty(0)
        self.order = numpy.empty(0, dtype=numpy.int32)
        self.job = numpy.empty(0, dtype=numpy.int32)
        self.unit = numpy.empty(0, dtype=numpy.int64)
        self._grow()

    def _grow(self) -> None:
        """Allocate twice as many blocks."""
        before = self.blocks
        blocks = max(2 * before, 8)
        entries = blocks * RANKED_CAPACITY
        self.block = longer(self.block, blocks)
        self.spare = longer(self.spare, blocks)
        self.length = longer(self.length, blocks)
        self.total = longer(self.total, blocks)
        self.key = longer(self.key, entries)
        self.order = longer(self.order, entries)
        self.job = longer(self.job, entries)
        self.unit = longer(self.unit, entries)
        for number in range(blocks - 1, before - 1, -1):
            self.spare[self.spares] = number
            self.spares += 1
        self.blocks = blocks

    @compiled
    def _open(self, place: cython.int) -> cython.int:
        """Put an unused block at ``place`` of the order; return its number."""
        if self.spares == 0:
            with cython.gil:
                self._grow()
        self.spares -= 1
        number: cython.int = self.spare[self.spares]
        for later in range(self.used, place, -1):
            self.block[later] = self.block[later - 1]
        self.block[place] = number
        self.used += 1
        self.length[number] = 0
        self.total[number] = 0
        return number

    @compiled
    def _close(self, place: cython.int) -> cython.void:
        """Take the block at ``place`` out of the order."""
        self.spare[self.spares] = self.block[place]
        self.spares += 1
        self.used -= 1
        for later in range(place, self.used):
            self.block[later] = self.block[later + 1]

    @compiled
    def _before(self, entry: cython.int, key: cython.double, order: cython.int) -> cython.bint:
        return self.key[entry] < key or (self.key[entry] == key and self.order[entry] < order)

    @compiled
    def find(self, key: cython.double, order: cython.int) -> cython.void:
        """Find the first entry that is not before (key, order): `found_place`, `found_index`.

        The place is the last block where every entry is before it.
        """
        low: cython.int = 0
        high: cython.int = self.used - 1
        while low < high:
            middle = (low + high) >> 1
            number = self.block[middle]
            if self._before(number * RANKED_CAPACITY + self.length[number] - 1, key, order):
                low = middle + 1
            else:
                high = middle
        number = self.block[low]
        left: cython.int = 0
        right: cython.int = self.length[number]
        while left < right:
            middle = (left + right) >> 1
            if self._before(number * RANKED_CAPACITY + middle, key, order):
                left = middle + 1
            else:
                right = middle
        self.found_place = low
        self.found_index = left

    @compiled
    def _shift(self, source: cython.int, target: cython.int, many: cython.int) -> cython.void:
        """Move entries; the ranges may overlap."""
        if target > source:
            for entry in range(many - 1, -1, -1):
                self._move(source + entry, target + entry)
        else:
            for entry in range(many):
                self._move(source + entry, target + entry)

    @compiled
    def _move(self, source: cython.int, target: cython.int) -> cython.void:
        self.key[target] = self.key[source]
        self.order[target] = self.order[source]
        self.job[target] = self.job[source]
        self.unit[target] = self.unit[source]

    @compiled
    def insert(
        self, key: cython.double, order: cython.int, job: cython.int, units: cython.longlong
    ) -> cython.void:
        """Add an entry."""
        place: cython.int = 0
        index: cython.int = 0
        if self.used == 0:
            self._open(0)
        else:
            self.find(key, order)
            place = self.found_place
            index = self.found_index
        number: cython.int = self.block[place]
        if self.length[number] == RANKED_CAPACITY:
            self._split(place)
            if index > RANKED_CAPACITY // 2:
                index -= RANKED_CAPACITY // 2
                number = self.block[place + 1]
        first: cython.int = number * RANKED_CAPACITY
        self._shift(first + index, first + index + 1, self.length[number] - index)
        self.key[first + index] = key
        self.order[first + index] = order
        self.job[first + index] = job
        self.unit[first + index] = units
        self.length[number] += 1
        self.total[number] += units
        self.units += units
        self.count += 1

    @compiled
    def _split(self, place: cython.int) -> cython.void:
        """Move the upper half of a full block into a new one behind it."""
        upper: cython.int = self._open(place + 1)
        number: cython.int = self.block[place]
        half: cython.int = RANKED_CAPACITY // 2
        self._shift(
            number * RANKED_CAPACITY + half, upper * RANKED_CAPACITY, RANKED_CAPACITY - half
        )
        moved: cython.longlong = 0
        for entry in range(RANKED_CAPACITY - half):
            moved += self.unit[upper * RANKED_CAPACITY + entry]
        self.length[upper] = RANKED_CAPACITY - half
        self.length[number] = half
        self.total[upper] = moved
        self.total[number] -= moved

    @compiled
    def remove(self, key: cython.double, order: cython.int) -> cython.void:
        """Remove the entry (key, order), which must be there."""
        self.find(key, order)
        place: cython.int = self.found_place
        number: cython.int = self.block[place]
        entry: cython.int = number * RANKED_CAPACITY + self.found_index
        units: cython.longlong = self.unit[entry]
        self.length[number] -= 1
        self._shift(entry + 1, entry, self.length[number] - self.found_index)
        self.total[number] -= units
        self.units -= units
        self.count -= 1
        if self.length[number] == 0:
            self._close(place)
            return
        if place + 1 < self.used:
            self._merge(place)
        if place > 0:
            self._merge(place - 1)

    @compiled
    def _merge(self, place: cython.int) -> cython.void:
        """Move the entries of the block after ``place`` into the one there, if both are small."""
        number: cython.int = self.block[place]
        other: cython.int = self.block[place + 1]
        length: cython.int = self.length[number]
        if length + self.length[other] > RANKED_CAPACITY // 2:
            return
        self._shift(other * RANKED_CAPACITY, number * RANKED_CAPACITY + length, self.length[other])
        self.length[number] += self.length[other]
        self.total[number] += self.total[other]
        self._close(place + 1)

    # All at once.

    @compiled
    def clear(self) -> cython.void:
        """Remove all entries."""
        while self.used > 0:
            self._close(self.used - 1)
        self.count = 0
        self.units = 0

    @compiled
    def append(
        self, key: cython.double, order: cython.int, job: cython.int, units: cython.longlong
    ) -> cython.void:
        """Add an entry behind all others."""
        if self.used == 0 or self.length[self.block[self.used - 1]] == 3 * RANKED_CAPACITY // 4:
            self._open(self.used)
        number: cython.int = self.block[self.used - 1]
        entry: cython.int = number * RANKED_CAPACITY + self.length[number]
        self.key[entry] = key
        self.order[entry] = order
        self.job[entry] = job
        self.unit[entry] = units
        self.length[number] += 1
        self.total[number] += units
        self.units += units
        self.count += 1

    # Walks.

    @compiled
    def begin_walk(self, shift: cython.double) -> cython.void:
        """Stand before the first entry."""
        self.shift = shift
        self.at_place = 0
        self.at_index = 0
        self.passed = 0

    @compiled
    def at_end(self) -> cython.bint:
        """Return whether all entries are passed."""
        return self.at_place == self.used

    @compiled
    def at_entry(self) -> cython.int:
        """Return the entry at which the walk stands."""
        return self.block[self.at_place] * RANKED_CAPACITY + self.at_index

    @compiled
    def step(self) -> cython.void:
        """Pass the entry at which the walk stands."""
        self.passed += self.unit[self.at_entry()]
        self.at_index += 1
        if self.at_index == self.length[self.block[self.at_place]]:
            self.at_place += 1
            self.at_index = 0

    @compiled
    def comes_before(self, entry: cython.int, key: cython.double, order: cython.int) -> cython.bint:
        """Return whether an entry's key, less the shift, and number are less than these."""
        own: cython.double = self.key[entry] - self.shift
        return own < key or (own == key and self.order[entry] < order)

    @compiled
    def pass_before(self, key: cython.double, order: cython.int) -> cython.void:
        """Walk on to the first entry that is not before (key, order)."""
        while self.at_place < self.used:
            number = self.block[self.at_place]
            first = number * RANKED_CAPACITY
            if self.at_index == 0 and self.comes_before(
                first + self.length[number] - 1, key, order
            ):
                self.passed += self.total[number]
                self.at_place += 1
                continue
            while self.at_index < self.length[number]:
                if not self.comes_before(first + self.at_index, key, order):
                    return
                self.passed += self.unit[first + self.at_index]
                self.at_index += 1
            self.at_place += 1
            self.at_index = 0

    @compiled
    def look_beyond(self, limit: cython.longlong) -> cython.bint:
        """Look for the first entry from here whose units bring ``passed`` above a limit."""
        place: cython.int = self.at_place
        index: cython.int = self.at_index
        passed: cython.longlong = self.passed
        while place < self.used:
            number = self.block[place]
            if index == 0 and passed + self.total[number] <= limit:
                passed += self.total[number]
                place += 1
                continue
            while index < self.length[number]:
                if passed + self.unit[number * RANKED_CAPACITY + index] > limit:
                    self.over_place = place
                    self.over_index = index
                    self.over_passed = passed
                    return True
                passed += self.unit[number * RANKED_CAPACITY + index]
                index += 1
            place += 1
            index = 0
        return False

    @compiled
    def over_entry(self) -> cython.int:
        """Return the entry that `look_beyond` found."""
        return self.block[self.over_place] * RANKED_CAPACITY + self.over_index

    @compiled
    def go_beyond(self) -> cython.void:
        """Walk to the entry that `look_beyond` found."""
        self.at_place = self.over_place
        self.at_index = self.over_index
        self.passed = self.over_passed
