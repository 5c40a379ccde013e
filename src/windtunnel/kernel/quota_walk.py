"""`QuotaWalk`: preemption that gives out the cluster's GPUs in rank order as a quota.

A job within what is left of the quota is chosen; past one that is not, skip goes on and strict
stops. Running jobs that are not chosen are preempted, chosen ones stay where they are, chosen
waiting jobs are placed in rank order; one that fragmentation keeps out waits, its quota unused at
this decision. A job's own reservations are used up before the quota.

Facts that make it fast (skip; Q = GPUs that are up):

* Running jobs alone are within Q, so none is dropped before a waiting one is chosen.
* In a line, what the head is refused the others are refused, too.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.announced import Announced
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.preemption import Preemption
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class QuotaWalk(Preemption):
    """The quota walk.

    Args:
        announced: says who may use which reservations.
        num_nodes: nodes or pools.

    Attributes:
        quota: GPU units of the cluster.
        reserved: GPU units that each reservation has left in this walk.
    """

    announced: Announced
    nodes: cython.int
    groups: cython.int
    quota: cython.longlong
    reserved: cython.longlong[::1]

    def __init__(
        self,
        state: State,
        admission: Admission,
        announced: Announced,
        *,
        quota: int,
        num_nodes: int,
        by_remaining: bool = False,
        weight: numpy.ndarray | None = None,
    ) -> None:
        Preemption.__init__(self, state, admission, by_remaining=by_remaining, weight=weight)
        self.announced = announced
        self.quota = quota
        self.nodes = num_nodes
        self.groups = announced.in_group.shape[1] - 1
        self.reserved = numpy.zeros(self.groups + 1, dtype=numpy.int64)

    @compiled
    def walk(self, past_refused: cython.bint) -> cython.int:
        """Choose who runs, and let it be so; see `Preemption.walk`."""
        if self.lines.count == 0:
            return -1
        self.begin_walk()
        quota = self.quota - self.free.down()  # sleeping nodes are not down
        if self.groups > 0 or self.state.has_power:
            self.see_ranks()
            self._walk_all(past_refused, quota)
        elif self.ranks.units + self._waiting_units() <= quota:
            self._choose_all()
        else:
            self.see_ranks()
            self._walk_plain(past_refused, quota)
        self._carry_out()
        self.lines.reopen()
        return -1

    @compiled
    def _waiting_units(self) -> cython.longlong:
        """Return the GPU units that all waiting jobs ask for; those of a line ask for as many."""
        found: cython.longlong = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            found += self.lines.length[line] * self.state.units[self.lines.head(line)]
        return found

    @compiled
    def _choose_all(self) -> cython.void:
        """Choose all that wait: they are within the quota beside those that run."""
        while self.lines.num_tops > 0:
            self.chosen.add(self.lines.pop(self.lines.tops[0]))

    @compiled
    def _walk_plain(self, past_refused: cython.bint, quota: cython.longlong) -> cython.void:
        """Walk where no job has reservations: running jobs within it are passed in blocks."""
        line: cython.int
        job: cython.int
        over: cython.bint
        given: cython.longlong = 0  # units of chosen waiting jobs less those of dropped ones
        self.ranks.begin_walk(self.shift())
        while True:
            line = self.lines.tops[0] if self.lines.num_tops > 0 else -1
            over = self.ranks.units > quota - given and self.ranks.look_beyond(quota - given)
            if line < 0 and not over:
                return
            if over and line >= 0:
                job = self.lines.head(line)
                over = self.ranks.comes_before(self.ranks.over_entry(), self.lines.key[job], job)
            if over:
                entry = self.ranks.over_entry()
                self.drop(self.ranks.job[entry])
                given -= self.ranks.unit[entry]
                self.ranks.go_beyond()
                self.ranks.step()
            else:
                job = self.lines.head(line)
                self.ranks.pass_before(self.lines.key[job], job)
                if self.ranks.passed + given + self.state.units[job] <= quota:
                    given += self.state.units[job]
                    self.chosen.add(job)
                    self.lines.pop(line)
                    continue
                self.lines.close(line)
            if not past_refused:
                self._drop_rest()
                return

    @compiled
    def _drop_rest(self) -> cython.void:
        while not self.ranks.at_end():
            self.drop(self.ranks.job[self.ranks.at_entry()])
            self.ranks.step()

    @compiled
    def _carry_out(self) -> cython.void:
        """Preempt those dropped, and start those chosen who fit."""
        for index in range(self.dropped.count):
            job = self.dropped.job[index]
            if self.state.records and self.chosen.count > 0:
                self.state.verdicts.causer[job] = self.chosen.job[0]
            self.stop(job)
            self.lines.add(job)
        kept_out: cython.int = 0
        for index in range(self.chosen.count):
            job = self.chosen.job[index]
            if self.admission.fit(job):
                self.state.begin(job, self.admission.kind)
            else:
                self.chosen.job[kept_out] = job
                kept_out += 1
        for index in range(kept_out):
            self.lines.add(self.chosen.job[index])

    # Reservations, and power.

    @compiled
    def _walk_all(self, past_refused: cython.bint, quota: cython.longlong) -> cython.void:
        """Walk where reservations are used before the quota, and power is given out, too."""
        lacks_power: cython.bint
        needed: cython.longlong
        draw: cython.longlong = 0
        power: cython.longlong = self.state.budget.now if self.state.has_power else 0
        quota = quota - self._count_reserved()
        self.ranks.begin_walk(self.shift())
        while self.lines.num_tops > 0 or not self.ranks.at_end():
            line = self.lines.tops[0] if self.lines.num_tops > 0 else -1
            waits = self.ranks.at_end()
            if line >= 0 and not waits:
                job = self.lines.head(line)
                waits = not self.ranks.comes_before(self.ranks.at_entry(), self.lines.key[job], job)
            job = self.lines.head(line) if waits else self.ranks.job[self.ranks.at_entry()]
            needed = self._beyond_reserved(job, False)
            if self.state.has_power:
                draw = self.state.power.floor[job]
                if waits:
                    draw = self.state.power.choices.least[job]
            lacks_power = draw > (power if power > 0 else 0)
            if lacks_power and needed <= quota:
                self.admission.capped = True
            if needed <= quota and not lacks_power:
                quota -= needed
                power -= draw
                self._beyond_reserved(job, True)
                if waits:
                    self.chosen.add(job)
                    self.lines.pop(line)
                else:
                    self.ranks.step()
                continue
            if not past_refused:
                self._drop_rest()
                return
            if waits:
                self.lines.close(line)
            else:
                self.drop(job)
                self.ranks.step()

    @compiled
    def _count_reserved(self) -> cython.longlong:
        """Count what each reservation has, free or held by its own jobs; return the sum."""
        job: cython.int = self.state.first_running
        found: cython.longlong = 0
        for group in range(self.groups + 1):
            self.reserved[group] = 0
        for node in range(self.nodes):
            group = self.free.holder(node)
            if group > 0:
                self.reserved[group] += self.free.free_units(node)
        while job >= 0:
            for pair in range(
                self.state.stays.first[self.state.stay[job]],
                self.state.stays.last(self.state.stay[job]),
            ):
                group = self.free.holder(self.state.stays.pairs.node[pair])
                if group > 0 and self.announced.in_group[self.state.access_of(job), group]:
                    self.reserved[group] += self.free.granted(
                        self.state.held_kind[job], self.state.stays.pairs.grant[pair]
                    )
            job = self.state.following[job]
        for group in range(1, self.groups + 1):
            found += self.reserved[group]
        return found

    @compiled
    def _beyond_reserved(self, job: cython.int, uses: cython.bint) -> cython.longlong:
        """Return the GPU units that a job needs besides what its reservations have left.

        Args:
            job: which.
            uses: it is chosen, and uses those up.
        """
        needed: cython.longlong = self.state.units[job]
        access: cython.int = self.state.access_of(job)
        for group in range(1, self.groups + 1):
            if self.announced.in_group[access, group]:
                used = min(self.reserved[group], needed)
                needed -= used
                if uses:
                    self.reserved[group] -= used
        return needed
