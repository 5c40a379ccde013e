"""What is under way in a simulation: a heap by when it ends."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class EventQueue:
    """Items under way, by end, then start, then order.

    An item is a number; what it is, its user knows: an iteration, a transfer, a request.

    Attributes:
        size: how many.
        queue: the heap.
        place: where an item is in it; -1 where it is not.
        end, start: of an item, s.
        order: between items of one end and one start.
    """

    size: cython.longlong
    queue: cython.longlong[::1]
    place: cython.longlong[::1]
    end: cython.double[::1]
    start: cython.double[::1]
    order: cython.longlong[::1]

    def __init__(self, items: cython.longlong) -> None:
        self.size = 0
        self.queue = numpy.empty(items, dtype=numpy.int64)
        self.place = numpy.full(items, -1, dtype=numpy.int64)
        self.end = numpy.zeros(items)
        self.start = numpy.zeros(items)
        self.order = numpy.arange(items, dtype=numpy.int64)

    @compiled
    def before(self, a: cython.longlong, b: cython.longlong) -> cython.bint:
        """Return whether item a ends before b."""
        if self.end[a] != self.end[b]:
            return self.end[a] < self.end[b]
        if self.start[a] != self.start[b]:
            return self.start[a] < self.start[b]
        return self.order[a] < self.order[b]

    @compiled
    def push(self, item: cython.longlong, start: cython.double, end: cython.double) -> cython.void:
        """Add an item."""
        self.start[item] = start
        self.end[item] = end
        self.size += 1
        self.rise(item, self.size - 1)

    @compiled
    def hasten(
        self, item: cython.longlong, start: cython.double, end: cython.double
    ) -> cython.void:
        """Let an item end earlier."""
        self.start[item] = start
        self.end[item] = end
        self.rise(item, self.place[item])

    @compiled
    def put_off(self, item: cython.longlong, end: cython.double) -> cython.void:
        """Let an item end later."""
        self.end[item] = end
        self.sink(item, self.place[item])

    @compiled
    def rise(self, item: cython.longlong, at: cython.longlong) -> cython.void:
        """Put an item where it belongs, at ``at`` or above."""
        above: cython.longlong
        while at > 0:
            above = (at - 1) // 2
            if not self.before(item, self.queue[above]):
                break
            self.queue[at] = self.queue[above]
            self.place[self.queue[at]] = at
            at = above
        self.queue[at] = item
        self.place[item] = at

    @compiled
    def sink(self, item: cython.longlong, at: cython.longlong) -> cython.void:
        """Put an item where it belongs, at ``at`` or below."""
        below: cython.longlong
        while True:
            below = 2 * at + 1
            if below >= self.size:
                break
            if below + 1 < self.size and self.before(self.queue[below + 1], self.queue[below]):
                below += 1
            if not self.before(self.queue[below], item):
                break
            self.queue[at] = self.queue[below]
            self.place[self.queue[at]] = at
            at = below
        self.queue[at] = item
        self.place[item] = at

    @compiled
    def remove(self, item: cython.longlong) -> cython.void:
        """Take an item out."""
        at: cython.longlong = self.place[item]
        self.place[item] = -1
        self.size -= 1
        last: cython.longlong = self.queue[self.size]
        if last == item:
            return
        if at > 0 and self.before(last, self.queue[(at - 1) // 2]):
            self.rise(last, at)
        else:
            self.sink(last, at)
