"""`Feasible`: preemption that stops nobody for a job that then does not start.

In rank order, a job that does not fit is tried without the running jobs ranked below it, lowest
first, until it really fits; then those it does not need have their places back, highest first. All
of it is tentative until the walk is over: a stopped job is considered again at its own rank, and
one that has its place back was never stopped. See `windtunnel.sim.reference.preemption`.

Facts that make it fast:

* What a job is refused the later ones of its line are refused, too.
* What a job may get is what is free and what jobs ranked below it hold. That shrinks by itself:
  only where a job leaves, is stopped or gets another key, or where more capacity comes, need a job
  that was refused be tried again. ``stamp`` rises then.
* A job that asks for more than all that could be free in sum does not fit.

Under quotas jobs of the same queue give way, and those of queues that use more than their nominal
quota: these first, until their queue does so no more. A job that waits for quota although all of
them were gone is passed over, or holds up those behind it (``blocking_limits``). ``stamp`` rises,
too, when a queue begins to borrow more, as more of its jobs may give way then. Not all give way for
everybody: whenever a turn has raised it, those refused before are tried again.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.preemption import Preemption
from windtunnel.kernel.prospects import Prospects
from windtunnel.kernel.state import State
from windtunnel.kernel.victims_in_turn import VictimsInTurn

#: Of a stopped job: it is chosen for another place than it had.
ELSEWHERE = cython.declare(cython.char, 2)


@cython.final
@cython.cclass
class Feasible(Preemption):
    """Feasible preemption.

    Args:
        sums_hold: no job fits that asks for more units than are free in sum; not so in pools of
            which something is withheld.

    Attributes:
        halted: jobs that this walk has stopped, by rank; those that ``is_stopped`` has still are,
            with `ELSEWHERE` if they are chosen for another place.
        next_halted: the first of them whose turn has not come.
        in_turn: who is asked to give way.
        prospects: what is known of a job before anybody is.
        given: running jobs that have given their places for the job at hand.
        places: where chosen jobs go, from ``place_begin`` of each on, as ``place_kind``.
        needed: how many must be given back at least before a job fits.
        spare: nanowatts that a job may add to the draw.
        refused: job of each line that was refused when ``stamp`` was ``refused_stamp``.
        out: number of the last walk in which a line was refused.
        seen_starts: stays begun before the last walk.
        has_dropped: that walk has stopped somebody.
    """

    sums_hold: cython.bint
    in_turn: VictimsInTurn
    prospects: Prospects
    is_stopped: cython.char[::1]
    halted: JobList
    next_halted: cython.int
    given: JobList
    places: Pairs
    place_begin: cython.longlong[::1]
    place_kind: cython.int[::1]
    needed: cython.int
    spare: cython.longlong
    stamp: cython.longlong
    refused: cython.int[::1]
    refused_stamp: cython.longlong[::1]
    out: cython.longlong[::1]
    walks: cython.longlong
    version: cython.longlong
    seen_starts: cython.int
    has_dropped: cython.bint

    def __init__(
        self,
        state: State,
        admission: Admission,
        *,
        sums_hold: bool = False,
        by_remaining: bool = False,
        weight: numpy.ndarray | None = None,
    ) -> None:
        Preemption.__init__(self, state, admission, by_remaining=by_remaining, weight=weight)
        self.sums_hold = sums_hold
        jobs = max(state.num_jobs, 1)
        self.is_stopped = numpy.zeros(jobs, dtype=numpy.int8)
        self.place_begin = numpy.zeros(jobs, dtype=numpy.int64)
        self.place_kind = numpy.zeros(jobs, dtype=numpy.int32)
        self.halted, self.given = JobList(), JobList()
        self.places = Pairs()
        self.in_turn = VictimsInTurn(state, self.ranks, self.is_stopped)
        self.prospects = Prospects(state, self.in_turn)
        lines = max(self.lines.num_lines, 1)
        self.refused = numpy.full(lines, -1, dtype=numpy.int32)
        self.refused_stamp = numpy.full(lines, -1, dtype=numpy.int64)
        self.out = numpy.full(lines, -1, dtype=numpy.int64)
        self.version = -1

    # The walk.

    @compiled
    def walk(self, past_refused: cython.bint) -> cython.int:
        """Choose who runs, and let it be so; see `Preemption.walk`."""
        if self.lines.count == 0:
            self.end_walk()
            return -1
        self.begin_walk()
        if self._may_have_changed():
            self.stamp += 1
        self.seen_starts = self.state.stays.count
        self.walks += 1
        self.halted.count = 0
        self.next_halted = 0
        self.places.count = 0
        self.spare = self.state.spare() if self.state.has_power else 0
        version = self.free.version
        first = self._consider_all(past_refused)
        self._undo()
        self.free.version = version
        self._carry_out()
        self._remember()
        self.version = self.free.version
        self.has_dropped = self.dropped.count > 0
        self.end_walk()
        return first

    @compiled
    def _may_have_changed(self) -> cython.bint:
        """Return whether a job that was refused may fit now."""
        if not self.steady or self.version != self.free.version or self.has_leapt():
            return True
        if self.state.has_quotas and self._may_lend_more():
            return True
        return not self._is_about_places()

    @compiled
    def _may_lend_more(self) -> cython.bint:
        """Return whether quotas may let somebody give way who did not, or use less.

        So it is where a queue borrows of which a job has started since the last walk, or where
        that walk stopped one.
        """
        if self.has_dropped:
            return True
        for stay in range(self.seen_starts, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.state.quotas.borrows(job, self.state.quotas.accounts.flavor_of[job]):
                return True
        return False

    @compiled
    def _is_about_places(self) -> cython.bint:
        """Return whether neither power decides, nor holds that are announced."""
        if self.state.has_power:
            return False
        return not self.admission.plans or self.admission.announced.next >= (
            self.admission.announced.count
        )

    @compiled
    def _is_counted(self, job: cython.int) -> cython.bint:
        """Return whether it can be counted who must go at least before a job fits.

        Not where it may fit already: it was refused for power, or for a hold to come.
        """
        if not self.admission.is_plain and (self.admission.lacks_power or self.admission.by_job):
            return False
        return self.prospects.tells(job)

    @compiled
    def _remember(self) -> cython.void:
        """Note the heads of refused lines, and let the lines be open again."""
        for closed in range(self.lines.num_closed):
            line = self.lines.closed[closed]
            self.refused[line] = self.lines.head(line)
            self.refused_stamp[line] = self.stamp
        self.lines.reopen()

    @compiled
    def _consider_all(self, past_refused: cython.bint) -> cython.int:
        """Consider waiting and stopped jobs by rank; return the first that ends the walk, or -1."""
        while True:
            stamp = self.stamp
            job = self._next_stopped()
            line = self.lines.tops[0] if self.lines.num_tops > 0 else -1
            if line >= 0 and (job < 0 or self._head_is_first(line)):
                job = self.lines.head(line)
                key = self.lines.key[job]
                if self._is_refused(line, job) or not self._consider(job):
                    self.lines.close(line)
                else:
                    self.lines.pop(line)
                    self._try_again(stamp)
                    continue
            elif job >= 0:
                key = self._halted_key(self.next_halted)
                self.next_halted += 1
                line = self.lines.line_of[job]
                if self._consider_stopped(line, job):
                    self._try_again(stamp)
                    continue
                if self.lines.at[line] >= 0 and not self.lines.is_closed[line]:
                    self.lines.close(line)
            else:
                return -1
            is_over = self.state.has_quotas and self._is_over(line, job, key, past_refused)
            self.out[line] = self.walks
            if is_over and self.state.quotas.blocks:
                return -1
            if not past_refused and not is_over:
                return job

    @compiled
    def _try_again(self, stamp: cython.longlong) -> cython.void:
        """Let those who were refused have a turn again, if the last turn lets more give way.

        Args:
            stamp: as it was before that.
        """
        kept: cython.int = 0
        if not self.state.has_quotas or self.stamp == stamp:
            return
        for index in range(self.halted.count):
            if self.is_stopped[self.halted.job[index]]:
                self.halted.job[kept] = self.halted.job[index]
                kept += 1
        self.halted.count = kept
        self.next_halted = 0
        self.lines.reopen()
        self.walks += 1

    @compiled
    def _is_over(
        self, line: cython.int, job: cython.int, key: cython.double, past_refused: cython.bint
    ) -> cython.bint:
        """Return whether a refused job would wait for quota though all gave way that may."""
        if past_refused and not self.state.quotas.blocks:
            return False  # which makes no difference then
        if self.out[line] == self.walks and not past_refused:
            return True  # as the one before it in its line
        return self._lacks_quota(job, key)

    @compiled
    def _lacks_quota(self, job: cython.int, key: cython.double) -> cython.bint:
        """Return whether a job's quota does not suffice without all who may give way as it is."""
        if not self.state.has_quotas or self.state.quotas.admits(job):
            return False
        if self.prospects.quotas.is_known_over(job, key, self.stamp):
            return True
        self._stand_at(job, key)
        return self.prospects.quotas.is_over(job, key, self.stamp)

    @compiled
    def _stand_at(self, job: cython.int, key: cython.double) -> cython.void:
        """Let the walk in ``ranks`` stand before those ranked below a job."""
        self.see_ranks()
        self.ranks.begin_walk(self.shift())
        self.ranks.pass_before(key, job)

    @compiled
    def _next_stopped(self) -> cython.int:
        while self.next_halted < self.halted.count:
            if self.is_stopped[self.halted.job[self.next_halted]] == 1:
                return self.halted.job[self.next_halted]
            self.next_halted += 1
        return -1

    @compiled
    def _head_is_first(self, line: cython.int) -> cython.bint:
        """Return whether a line's head comes before the next stopped job."""
        head: cython.int = self.lines.head(line)
        key: cython.double = self._halted_key(self.next_halted)
        return self.lines.key[head] < key or (
            self.lines.key[head] == key and head < self.halted.job[self.next_halted]
        )

    @compiled
    def _is_refused(self, line: cython.int, job: cython.int) -> cython.bint:
        """Return whether a line's head is known not to fit."""
        if self.out[line] == self.walks:
            return True
        return self.refused[line] == job and self.refused_stamp[line] == self.stamp

    @compiled
    def _consider(self, job: cython.int) -> cython.bint:
        """Choose a waiting job if it gets a place."""
        if not self._fit_by_stopping(job, self.lines.key[job]):
            return False
        self._take_place(job)
        return True

    @compiled
    def _consider_stopped(self, line: cython.int, job: cython.int) -> cython.bint:
        """Choose a stopped job if it has its place back, or gets another."""
        if self._is_place_free(job):
            self._resume(job)
            return True
        if self.out[line] == self.walks or not self._fit_by_stopping(
            job, self._halted_key(self.next_halted - 1)
        ):
            return False
        if self._is_place_free(job):
            self._resume(job)
        else:
            self._take_place(job)
            self.is_stopped[job] = ELSEWHERE
        return True

    @compiled
    def _resume(self, job: cython.int) -> cython.void:
        """Let a stopped job have its place back."""
        self._take_back(job)
        self.is_stopped[job] = False

    @compiled
    def _take_place(self, job: cython.int) -> cython.void:
        """Choose a job for where ``free.place`` says."""
        begin: cython.longlong = self.places.count
        self.place_begin[job] = begin
        self.place_kind[job] = self.admission.kind
        if self.state.has_power:
            self.spare -= self.admission.floor(self.free, job)
        self.chosen.add(job)
        self.places.extend(self.free.place, 0, self.free.place.count)
        self.state.try_out(
            self.free, job, self.admission.kind, self.places, begin, self.places.count, 1
        )
        if self.state.has_quotas and self.state.quotas.borrows(
            job, self.state.quotas.flavor_on(self.places, begin, self.places.count)
        ):
            self.stamp += 1  # others of its queue may give way now

    @compiled
    def _is_place_free(self, job: cython.int) -> cython.bint:
        """Return whether the place that a stopped job had is free."""
        stay: cython.int = self.state.stay[job]
        opened: cython.bint
        if self.state.has_power and self.state.power.floor[job] > self.spare:
            return False
        if self.state.has_quotas and not self.state.quotas.allows_again(job):
            return False
        opened = self.state.open_for(self.free, job)
        found = self.free.is_free(
            self.state.held_kind[job], self.state.stays.pairs, self.state.stays.first[stay],
            self.state.stays.last(stay),
        )  # fmt: skip
        if opened:
            self.free.close()
        return found

    # A place for one job.

    @compiled
    def _fits(self, job: cython.int) -> cython.bint:
        if self.admission.is_plain:
            self.free.draws = self.state.stays.count
            self.admission.kind = self.state.kind[job]
            return self.free.fit(self.admission.kind)
        if self.admission.fit_in(self.free, job, self.state.now, self.spare):
            return True
        self.admission.capped = self.admission.capped or self.admission.lacks_power
        return False

    @compiled
    def _fit_by_stopping(self, job: cython.int, key: cython.double) -> cython.bint:
        """Stop whom a job needs gone; ``free.place`` has where it goes. False = all as before."""
        if self._fits(job):
            return True
        if self._is_beyond_all(job) or self._lacks_quota(job, key):
            return False
        self._stand_at(job, key)
        if self.ranks.at_end() or self._is_beyond_sums(job):
            return False
        is_counted = self._is_counted(job)
        self.needed = 0
        if is_counted or self.state.has_quotas:
            self.needed = self.prospects.count_needed(job, key, self.stamp, is_counted)
            if self.needed == 0:
                return False
        if not (is_counted and self._is_about_places()) and not self._may_fit(job):
            return False
        if not self._give_until_fit(job):
            return False
        self._take_back_unneeded(job, key)
        return self._fits(job)

    @compiled
    def _is_beyond_all(self, job: cython.int) -> cython.bint:
        """Return whether a job asks for more than is free and held by all."""
        if not self.sums_hold or self.state.access_of(job) > 0:
            return False
        return self.state.units[job] > self.free.total + self.ranks.units

    @compiled
    def _is_beyond_sums(self, job: cython.int) -> cython.bint:
        """Return whether a job asks for more than is free and held by those ranked below it."""
        if not self.sums_hold or self.state.access_of(job) > 0:
            return False
        return self.state.units[job] > self.free.total + self.ranks.units - self.ranks.passed

    @compiled
    def _may_fit(self, job: cython.int) -> cython.bint:
        """Return whether a job fits with all gone that are ranked below it and may give way.

        True, too, where GPU types may draw unlike watts: if more are gone it may go to dearer ones.
        """
        if self.state.has_power and self.state.power.choices.num_types > 1:
            return True
        self.given.count = 0
        self.in_turn.begin(job)
        victim = self.in_turn.next()
        while victim >= 0:
            self._give(victim)
            self.given.add(victim)
            victim = self.in_turn.next()
        found = self._fits(job)
        self._take_all_back()
        return found

    @compiled
    def _take_all_back(self) -> cython.void:
        """Let all have their places back who have given them."""
        while self.given.count > 0:
            self.given.count -= 1
            self._take_back(self.given.job[self.given.count])

    @compiled
    def _give_until_fit(self, job: cython.int) -> cython.bint:
        """Give places back, one after the other, until a job fits; False = it does not.

        It fits nowhere as things are.
        """
        self.given.count = 0
        self.in_turn.begin(job)
        victim = self.in_turn.next()
        while victim >= 0:
            self._give(victim)
            self.given.add(victim)
            if self.given.count >= self.needed and self._fits(job):
                return True
            victim = self.in_turn.next()
        self._take_all_back()
        return False

    @compiled
    def _take_back_unneeded(self, job: cython.int, key: cython.double) -> cython.void:
        """Let those have their places back, highest rank first, without whom a job fits still."""
        for given in range(self.given.count - 1, -1, -1):
            victim = self.given.job[given]
            self._take_back(victim)
            if not self._fits(job):
                self._give(victim)
                self._halt(victim)
                if self.state.records:
                    self.state.verdicts.causer[victim] = job

    @compiled
    def _halt(self, job: cython.int) -> cython.void:
        """Note that a running job is stopped, at its rank among those."""
        place: cython.int = self.halted.count
        key: cython.double = self.stored[job] - self.shift()
        self.halted.add(job)
        while place > self.next_halted and (
            self._halted_key(place - 1) > key
            or (self._halted_key(place - 1) == key and self.halted.job[place - 1] > job)
        ):
            self.halted.job[place] = self.halted.job[place - 1]
            place -= 1
        self.halted.job[place] = job
        self.is_stopped[job] = True
        self.stamp += 1

    @compiled
    def _halted_key(self, place: cython.int) -> cython.double:
        """Return the key of a job that this walk has stopped."""
        return self.stored[self.halted.job[place]] - self.shift()

    @compiled
    def _give(self, job: cython.int) -> cython.void:
        self.state.give_all(self.free, job)
        if self.state.has_power:
            self.spare += self.state.power.floor[job]

    @compiled
    def _take_back(self, job: cython.int) -> cython.void:
        self.state.take_all(self.free, job)
        if self.state.has_power:
            self.spare -= self.state.power.floor[job]

    # What comes of it.

    @compiled
    def _undo(self) -> cython.void:
        """Let the free state be as it was before the walk."""
        end: cython.longlong = self.places.count
        for index in range(self.chosen.count - 1, -1, -1):
            job = self.chosen.job[index]
            begin = self.place_begin[job]
            self.state.try_out(self.free, job, self.place_kind[job], self.places, begin, end, -1)
            end = begin
        for index in range(self.halted.count):
            if self.is_stopped[self.halted.job[index]]:
                self._take_back(self.halted.job[index])
        self.free.draws = self.state.stays.count

    @compiled
    def _carry_out(self) -> cython.void:
        """Preempt the stopped jobs, and start the chosen ones where they go."""
        for index in range(self.halted.count):
            if self.is_stopped[self.halted.job[index]]:
                self.drop(self.halted.job[index])
        for index in range(self.dropped.count):
            self.stop(self.dropped.job[index])
        for index in range(self.chosen.count):
            job = self.chosen.job[index]
            self.is_stopped[job] = False
            begin = self.place_begin[job]
            end = self.places.count
            if index + 1 < self.chosen.count:
                end = self.place_begin[self.chosen.job[index + 1]]
            self.free.place.count = 0
            self.free.place.extend(self.places, begin, end)
            self.state.begin(job, self.place_kind[job])
        for index in range(self.dropped.count):
            job = self.dropped.job[index]
            if self.is_stopped[job]:
                self.is_stopped[job] = False
                self.lines.add(job)
