"""Who dominates whom: non-dominated fronts and crowding of points with two costs.

Deb et al., *A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II*, IEEE Trans. Evol.
Comput. 6 (2002), sections III-A and III-B.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

_UNCROWDED = cython.declare(cython.double, float("inf"))


@cython.final
@cython.cclass
class Fronts:
    """Points sorted into fronts.

    Attributes:
        costs: both costs of each point, to be small; whose points it is sets them.
        rank: front of each point, 0 = dominated by none.
        crowding: distance to its neighbours on its front; 0 where another point has equal costs.
        order: points by their costs, ascending; `members` of the fronts are in this order, too.
        members: points front by front.
        begins: where each front begins in `members`, and the last ends.
        num_fronts: how many there are.
    """

    costs: cython.double[:, ::1]
    rank: cython.longlong[::1]
    crowding: cython.double[::1]
    order: cython.longlong[::1]
    members: cython.longlong[::1]
    begins: cython.longlong[::1]
    last: cython.longlong[::1]
    num_fronts: cython.longlong

    def __init__(self, most: int) -> None:
        self.costs = numpy.zeros((most, 2))
        self.rank = numpy.zeros(most, numpy.int64)
        self.crowding = numpy.zeros(most)
        self.order = numpy.zeros(most, numpy.int64)
        self.members = numpy.zeros(most, numpy.int64)
        self.begins = numpy.zeros(most + 1, numpy.int64)
        self.last = numpy.zeros(most, numpy.int64)
        self.num_fronts = 0

    @compiled
    def sort(self, points: cython.longlong[::1], count: cython.longlong) -> cython.void:
        """Sort some points into fronts, and say how crowded each is."""
        self.sort_by_costs(points, count)
        self.num_fronts = 0
        for i in range(count):
            k = 0
            while k < self.num_fronts and self.beats(self.last[k], self.order[i]):
                k += 1
            self.num_fronts += k == self.num_fronts
            self.last[k] = self.order[i]
            self.rank[self.order[i]] = k
        self.list_members(count)
        for k in range(self.num_fronts):
            self.measure_crowding(self.begins[k], self.begins[k + 1])

    @compiled
    def sort_by_costs(self, points: cython.longlong[::1], count: cython.longlong) -> cython.void:
        """Put points into order: by the first cost, then by the second."""
        for i in range(count):
            point = points[i]
            at = i
            while at > 0 and self.comes_before(point, self.order[at - 1]):
                self.order[at] = self.order[at - 1]
                at -= 1
            self.order[at] = point

    @compiled
    def comes_before(self, one: cython.longlong, other: cython.longlong) -> cython.bint:
        """Return whether a point's costs are smaller, the first before the second."""
        if self.costs[one, 0] != self.costs[other, 0]:
            return self.costs[one, 0] < self.costs[other, 0]
        return self.costs[one, 1] < self.costs[other, 1]

    @compiled
    def beats(self, one: cython.longlong, other: cython.longlong) -> cython.bint:
        """Return whether a point is nowhere worse than another, and better somewhere."""
        first: cython.double = self.costs[other, 0] - self.costs[one, 0]
        second: cython.double = self.costs[other, 1] - self.costs[one, 1]
        return first >= 0 and second >= 0 and (first > 0 or second > 0)

    @compiled
    def list_members(self, count: cython.longlong) -> cython.void:
        """List the points of each front, in order."""
        for k in range(self.num_fronts + 1):
            self.begins[k] = 0
        for i in range(count):
            self.begins[self.rank[self.order[i]] + 1] += 1
        for k in range(self.num_fronts):
            self.begins[k + 1] += self.begins[k]
            self.last[k] = self.begins[k]
        for i in range(count):
            point = self.order[i]
            k = self.rank[point]
            self.members[self.last[k]] = point
            self.last[k] += 1

    @compiled
    def measure_crowding(self, begin: cython.longlong, end: cython.longlong) -> cython.void:
        """Say how far the neighbours of each point of a front are from each other."""
        before: cython.longlong = -1
        least: cython.longlong = self.members[begin]
        most: cython.longlong = self.members[end - 1]
        wide: cython.double = self.costs[most, 0] - self.costs[least, 0]
        high: cython.double = self.costs[least, 1] - self.costs[most, 1]
        i = begin
        while i < end:
            at = self.members[i]
            i += 1
            while i < end and not self.comes_before(at, self.members[i]):
                self.crowding[self.members[i]] = 0.0
                i += 1
            after = self.members[i] if i < end else -1
            if before < 0 or after < 0:
                self.crowding[at] = _UNCROWDED
            else:
                self.crowding[at] = (self.costs[after, 0] - self.costs[before, 0]) / wide
                self.crowding[at] += (self.costs[before, 1] - self.costs[after, 1]) / high
            before = at
