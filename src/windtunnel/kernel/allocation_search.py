"""A genetic search for the GPUs that each job gets on each node.

Qiao et al., OSDI'21, section 4.2, as petuum/adaptdl, branch ``osdi21-artifact``, does it with
NSGA-II (Deb et al., 2002): two costs keep variety; what is taken is the best by the first.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.draws import MIX_GAMMA, MIX_MASK, MIX_SECOND, mixed
from windtunnel.kernel.fronts import Fronts
from windtunnel.kernel.marks import compiled

#: Added to what a job's GPUs are worth to it: a job without any costs much, not without end.
_LEAST_WORTH = cython.declare(cython.double, 1e-3)
#: Chance that a pair is crossed; that a row goes back; that of a row parts are taken, and each.
_CROSSED = cython.declare(cython.double, 0.9)
_PUT_BACK = cython.declare(cython.double, 0.1)
_THINNED = cython.declare(cython.double, 0.1)
#: Rounds of pairs that may go by until a generation is full of states that are new.
_ROUNDS = cython.declare(cython.longlong, 4)


@cython.final
@cython.cclass
class AllocationSearch:
    """States (GPUs of each job on each node) that mate, change and are selected.

    Attributes:
        jobs: number of jobs, in the order in which they keep GPUs that others want, too.
        nodes: number of nodes.
        node_gpus: GPUs of a node.
        size: states that live on.
        avoid: whether two jobs on several nodes may not share one.
        base: state in force, GPUs by job and node.
        most: GPUs that a job may have.
        worth: by job, whether on several nodes, and number of GPUs.
        kept: part of a job's worth that is left where its GPUs change.
        rows: the states, by place.
        marks: by place, equal where two states are.
        alive: places of the states that live, then of their offspring, then free ones.
        count: how many live.
        made: how many offspring there are.
    """

    jobs: cython.longlong
    nodes: cython.longlong
    node_gpus: cython.int
    size: cython.longlong
    avoid: cython.bint
    word: cython.ulonglong
    base: cython.int[:, ::1]
    most: cython.int[::1]
    worth: cython.double[:, :, ::1]
    kept: cython.double[::1]
    rows: cython.int[:, :, ::1]
    marks: cython.ulonglong[::1]
    alive: cython.longlong[::1]
    moved: cython.longlong[::1]
    turn: cython.longlong[::1]
    turned: cython.longlong
    count: cython.longlong
    made: cython.longlong
    used: cython.int[::1]
    shuffled: cython.longlong[::1]
    fronts: Fronts

    def __init__(
        self,
        base: cython.int[:, ::1],
        most: cython.int[::1],
        worth: cython.double[:, :, ::1],
        kept: cython.double[::1],
        node_gpus: int,
        *,
        avoid: bool,
        size: int,
        seed: int,
    ) -> None:
        self.base, self.most, self.worth, self.kept = base, most, worth, kept
        self.jobs, self.nodes, self.node_gpus = base.shape[0], base.shape[1], node_gpus
        self.avoid, self.size, self.word = avoid, size, seed
        places: cython.longlong = 2 * size
        self.rows = numpy.zeros((places, self.jobs, self.nodes), numpy.int32)
        self.marks = numpy.zeros(places, numpy.uint64)
        self.alive = numpy.arange(places)
        self.moved = numpy.zeros(places, numpy.int64)
        self.turn = numpy.zeros(size, numpy.int64)
        self.turned = self.count = self.made = 0
        self.used = numpy.zeros(self.nodes, numpy.int32)
        self.shuffled = numpy.arange(self.nodes)
        self.fronts = Fronts(places)

    def begin(self, states: cython.int[:, :, ::1]) -> None:
        """Begin with some states; those that cannot be are made so."""
        i: cython.longlong
        for i in range(min(states.shape[0], self.size)):
            self.rows[self.alive[self.count]] = states[i]
            self.repair(self.alive[self.count])
            self.mark(self.alive[self.count])
            if self.is_new(self.alive[self.count], self.count):
                self.weigh(self.alive[self.count])
                self.count += 1
        self.fronts.sort(self.alive, self.count)

    def run(self, generations: cython.longlong) -> None:
        """Let generations come and go, as long as there are new states."""
        _generation: cython.longlong
        for _generation in range(generations):
            self.breed()
            if self.made == 0:
                break
            self.select()

    def found(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the states that none dominates, the best by the first cost first."""
        best = [place for place in self.alive[: self.count] if self.fronts.rank[place] == 0]
        best.sort(key=lambda place: self.fronts.costs[place, 0])
        costs = numpy.asarray(self.fronts.costs)[best]
        return numpy.asarray(self.rows)[best], costs

    @compiled
    def draw(self) -> cython.double:
        """Return a number, 0 to 1."""
        word: cython.ulonglong = mixed(self.word)
        self.word = (self.word + MIX_GAMMA) & MIX_MASK
        return (word >> 11) * (1.0 / 9007199254740992.0)

    @compiled
    def below(self, limit: cython.longlong) -> cython.longlong:
        """Return a whole number, 0 to limit - 1."""
        return cython.cast(cython.longlong, self.draw() * limit)

    @compiled
    def breed(self) -> cython.void:
        """Make as many new states of those that live as live on, or as there are."""
        self.made = 0
        self.turned = self.count
        for _round in range(_ROUNDS):
            pairs = (self.size - self.made + 1) // 2
            for _pair in range(pairs):
                one = self.winner()
                other = self.winner()
                self.cross(one, other)
            if self.made == self.size:
                break

    @compiled
    def winner(self) -> cython.longlong:
        """Return the better of two states whose turn it is."""
        one: cython.longlong = self.next_in_turn()
        other: cython.longlong = self.next_in_turn()
        if self.fronts.beats(one, other):
            return one
        if self.fronts.beats(other, one):
            return other
        if self.fronts.crowding[one] != self.fronts.crowding[other]:
            return one if self.fronts.crowding[one] > self.fronts.crowding[other] else other
        return one if self.draw() < 0.5 else other

    @compiled
    def next_in_turn(self) -> cython.longlong:
        """Return the next of the living states, each in turn, in an order that is drawn."""
        if self.turned == self.count:
            for i in range(self.count):
                at = self.below(i + 1)
                self.turn[i] = self.turn[at]
                self.turn[at] = self.alive[i]
            self.turned = 0
        self.turned += 1
        return self.turn[self.turned - 1]

    @compiled
    def cross(self, one: cython.longlong, other: cython.longlong) -> cython.void:
        """Make two states of two: jobs before one from the one, others from the other."""
        child: cython.longlong
        before: cython.longlong = self.jobs
        if self.draw() < _CROSSED:
            before = self.below(self.jobs)
        for child in range(2):
            if self.made == self.size:
                return
            place = self.alive[self.count + self.made]
            for j in range(self.jobs):
                parent = one if (j < before) == (child == 0) else other
                for m in range(self.nodes):
                    self.rows[place, j, m] = self.rows[parent, j, m]
            self.mutate(place)
            self.repair(place)
            self.mark(place)
            if self.is_new(place, self.count + self.made):
                self.weigh(place)
                self.made += 1

    @compiled
    def mutate(self, place: cython.longlong) -> cython.void:
        """Change a state: rows go back, lose GPUs, and take what may be free.

        On a node with a free GPU each job takes some with the chance of one of all jobs, and
        each that is there with the chance of one of those there.
        """
        j: cython.longlong
        m: cython.longlong
        on: cython.longlong
        some: cython.double = 1.0 / self.jobs
        own: cython.double
        for m in range(self.nodes):
            self.used[m] = 0
        for j in range(self.jobs):
            if self.draw() < _PUT_BACK:
                for m in range(self.nodes):
                    self.rows[place, j, m] = self.base[j, m]
            if self.draw() < _THINNED:
                for m in range(self.nodes):
                    if self.rows[place, j, m] and self.draw() < _THINNED:
                        self.rows[place, j, m] = 0
            for m in range(self.nodes):
                self.used[m] += self.rows[place, j, m]
        for m in range(self.nodes):
            if self.used[m] >= self.node_gpus:
                continue
            on = 0
            for j in range(self.jobs):
                on += self.rows[place, j, m] > 0
            own = some + (1.0 - some) / on if on else some
            for j in range(self.jobs):
                if self.draw() < (own if self.rows[place, j, m] else some):
                    self.rows[place, j, m] += self.below(
                        self.node_gpus - self.rows[place, j, m] + 1
                    )

    @compiled
    def repair(self, place: cython.longlong) -> cython.void:
        """Make a state one that can be: few enough GPUs a job and a node."""
        j: cython.longlong
        m: cython.longlong
        on: cython.longlong
        total: cython.int
        for m in range(self.nodes):
            self.used[m] = 0
        for j in range(self.jobs):
            on = 0
            total = 0
            for m in range(self.nodes):
                on += self.rows[place, j, m] > 0
            for m in range(self.nodes):
                if self.avoid and on > 1 and self.rows[place, j, m]:
                    if self.used[m]:
                        self.rows[place, j, m] = 0
                    self.used[m] = 1
                total += self.rows[place, j, m]
            if total > self.most[j]:
                self.cut(place, j)
        for m in range(self.nodes):
            self.used[m] = self.node_gpus
        for j in range(self.jobs):
            for m in range(self.nodes):
                if self.rows[place, j, m] > self.used[m]:
                    self.rows[place, j, m] = self.used[m]
                self.used[m] -= self.rows[place, j, m]

    @compiled
    def cut(self, place: cython.longlong, j: cython.longlong) -> cython.void:
        """Leave a job as many GPUs as it may have, on nodes in an order that is drawn."""
        left: cython.int = self.most[j]
        for i in range(self.nodes):
            at = i + self.below(self.nodes - i)
            m = self.shuffled[at]
            self.shuffled[at] = self.shuffled[i]
            self.shuffled[i] = m
            if self.rows[place, j, m] > left:
                self.rows[place, j, m] = left
            left -= self.rows[place, j, m]

    @compiled
    def mark(self, place: cython.longlong) -> cython.void:
        """Say which states are equal."""
        word: cython.ulonglong = 0
        for j in range(self.jobs):
            for m in range(self.nodes):
                word = (word * MIX_SECOND + self.rows[place, j, m] + 1) & MIX_MASK
        self.marks[place] = word

    @compiled
    def is_new(self, place: cython.longlong, count: cython.longlong) -> cython.bint:
        """Return whether none of the first states is equal to one."""
        new: cython.bint = True
        for i in range(count):
            if self.marks[self.alive[i]] == self.marks[place]:
                new = False
                break
        return new

    @compiled
    def weigh(self, place: cython.longlong) -> cython.void:
        """Work out what a state costs: the harmonic mean of what it is worth, and its use."""
        j: cython.longlong
        m: cython.longlong
        on: cython.longlong
        gpus: cython.longlong
        held: cython.longlong = 0
        worth: cython.double
        inverse: cython.double = 0.0
        total: cython.double = 0.0
        for m in range(self.nodes):
            self.used[m] = 0
        for j in range(self.jobs):
            on = 0
            gpus = 0
            same = True
            for m in range(self.nodes):
                if self.rows[place, j, m]:
                    on += 1
                    gpus += self.rows[place, j, m]
                    self.used[m] = 1
                if self.rows[place, j, m] != self.base[j, m]:
                    same = False
            worth = self.worth[j, 1 if on > 1 else 0, gpus]
            total += worth
            if not same:
                worth *= self.kept[j]
            inverse += 1.0 / (worth + _LEAST_WORTH)
        for m in range(self.nodes):
            held += self.used[m] * self.node_gpus
        self.fronts.costs[place, 0] = -self.jobs / inverse
        self.fronts.costs[place, 1] = -total / held if held else 0.0

    @compiled
    def select(self) -> cython.void:
        """Let the best live on: whole fronts; of the one that fits in part the least crowded."""
        total: cython.longlong = self.count + self.made
        wanted: cython.longlong = total if total < self.size else self.size
        self.fronts.sort(self.alive, total)
        for i in range(total):
            self.moved[i] = self.fronts.members[i]
        for k in range(self.fronts.num_fronts):
            if self.fronts.begins[k + 1] > wanted:
                self.sort_by_crowding(self.fronts.begins[k], self.fronts.begins[k + 1])
                break
        for i in range(total):
            self.alive[i] = self.moved[i]
        self.count = wanted

    @compiled
    def sort_by_crowding(self, begin: cython.longlong, end: cython.longlong) -> cython.void:
        """Put the least crowded first."""
        for i in range(begin, end):
            place = self.moved[i]
            at = i
            while (
                at > begin
                and self.fronts.crowding[self.moved[at - 1]] < self.fronts.crowding[place]
            ):
                self.moved[at] = self.moved[at - 1]
                at -= 1
            self.moved[at] = place
