"""`Recorder`: looks at the queue after every decision, and writes whose verdict has changed.

It changes nothing but its log: a run is the same with and without. What each verdict means is
specified in `windtunnel.sim.reference.recorder`. Jobs of one line share a verdict, but for the
first in the queue; so a decision costs what has changed, and not the length of the queue.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.conservative import ConservativeRule
from windtunnel.kernel.easy import EasyRule
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.promises import PROMISE_NONE
from windtunnel.kernel.state import STATE_WAITING, State
from windtunnel.kernel.verdicts import (
    VERDICT_BEHIND,
    VERDICT_CHOICE,
    VERDICT_FIRST,
    VERDICT_INTERVAL,
    VERDICT_LIMIT,
    VERDICT_NO_ROOM,
    VERDICT_NONE,
    VERDICT_POWER,
    VERDICT_WOULD_DELAY,
    Verdicts,
)

#: What decides.
RECORDER_STRICT = cython.declare(cython.int, 0)
RECORDER_SKIP = cython.declare(cython.int, 1)
RECORDER_EASY = cython.declare(cython.int, 2)
RECORDER_CONSERVATIVE = cython.declare(cython.int, 3)
RECORDER_LIMITS = cython.declare(cython.int, 4)
RECORDER_CHOICE = cython.declare(cython.int, 5)


@cython.final
@cython.cclass
class Recorder:
    """The flight recorder of a run.

    Args:
        state: the run.
        rule: what decides.
        school: which of the rules it is, as the words of `windtunnel.sim.verdicts.SCHOOLS`.

    Attributes:
        head: who was first in the queue after the last decision; -1 = nobody that matters.
        of_line: the verdict that a line's jobs have.
        seen: the version of the free state for which a line's jobs did not fit.
    """

    state: State
    lines: Lines
    admission: Admission
    log: Verdicts
    easy: EasyRule
    conservative: ConservativeRule
    school: cython.int
    head: cython.int
    of_line: cython.char[::1]
    seen: cython.longlong[::1]

    def __init__(self, state: State, rule: object, school: int) -> None:
        self.state, self.lines, self.log = state, state.lines, state.verdicts
        self.school = school
        self.admission = rule.admission_of() if school != RECORDER_CHOICE else None
        self.easy = rule if school == RECORDER_EASY else None
        self.conservative = rule if school == RECORDER_CONSERVATIVE else None
        self.head = -1
        lines = max(self.lines.num_lines, 1)
        self.of_line = numpy.zeros(lines, dtype=numpy.int8)
        self.seen = numpy.full(lines, -1, dtype=numpy.int64)

    @compiled
    def decided(self, point: cython.longlong) -> cython.void:
        """Write what a decision has changed."""
        if self.school == RECORDER_CHOICE:
            self._note_fresh_as(VERDICT_CHOICE)
        elif (
            self.school == RECORDER_SKIP and not self.state.has_power and not self.state.has_quotas
        ):
            self._note_fresh_as(VERDICT_NO_ROOM)
        else:
            capped = self.admission.capped
            if self.school == RECORDER_STRICT and not self.state.has_quotas:
                self._strict()
            else:
                self._by_line()
            self.admission.capped = capped
        self.log.fresh.count = 0
        self.log.point = point

    @compiled
    def undecided(self) -> cython.void:
        """Note who came at this instant, at which nothing was decided."""
        for at in range(self.log.fresh.count):
            job = self.log.fresh.job[at]
            if self.state.status[job] == STATE_WAITING and self.log.last[job] == VERDICT_NONE:
                self._note(job, VERDICT_INTERVAL, -1, ENDLESS)

    @compiled
    def _note(
        self, job: cython.int, verdict: cython.int, blocker: cython.int, promise: cython.double
    ) -> cython.void:
        self.log.add(self.state.now, job, verdict, blocker, promise)

    @compiled
    def _waits(self, job: cython.int) -> cython.bint:
        return self.state.status[job] == STATE_WAITING

    @compiled
    def _note_fresh_as(self, verdict: cython.int) -> cython.void:
        for at in range(self.log.fresh.count):
            if self._waits(self.log.fresh.job[at]):
                self._note(self.log.fresh.job[at], verdict, -1, ENDLESS)

    # Strict.

    @compiled
    def _strict(self) -> cython.void:
        """The first job does not fit; all others stand behind it."""
        old: cython.int = self.head
        verdict: cython.int = VERDICT_FIRST
        self.head = self.lines.head(self.lines.tops[0]) if self.lines.num_tops > 0 else -1
        if old >= 0 and old != self.head and self._waits(old):
            self._note(old, VERDICT_BEHIND, self.head, ENDLESS)
        for at in range(self.log.fresh.count):
            job = self.log.fresh.job[at]
            if job != self.head and self._waits(job):
                self._note(job, VERDICT_BEHIND, self.head, ENDLESS)
        if self.head >= 0:
            if self.state.has_power and self._refusal(self.head) == VERDICT_POWER:
                verdict = VERDICT_POWER
            self._note(self.head, verdict, -1, ENDLESS)

    @compiled
    def _refusal(self, job: cython.int) -> cython.int:
        """Return why a job does not start, as far as places and power say; NONE = they do not."""
        if self.admission.fit(job):
            return VERDICT_NONE
        if self.admission.lacks_power and self.state.has_power:
            return VERDICT_POWER
        if self.admission.is_over(job):
            return VERDICT_LIMIT
        return VERDICT_NO_ROOM

    # All other rules.

    @compiled
    def _by_line(self) -> cython.void:
        """Jobs of a line fit alike, unless what is announced tells them apart."""
        old: cython.int = self.head
        alone: cython.bint = self.admission.plans and (
            self.admission.announced.next < self.admission.announced.count
        )
        self.head = self._head()
        for top in range(self.lines.num_tops):
            self._see(self.lines.tops[top], alone)
        for top in range(self.lines.num_closed):
            self._see(self.lines.closed[top], alone)
        for at in range(0 if alone else self.log.fresh.count):
            job = self.log.fresh.job[at]
            line = self.lines.line_of[job]
            if job != self.head and self._waits(job):
                self._note_shared(job, self.of_line[line])
        if self.head != old and old >= 0 and self._waits(old):
            self._note_shared(old, self._alone(old))
        if self.head >= 0:
            self._note_head(old)

    @compiled
    def _head(self) -> cython.int:
        """Return who holds up the others; -1 = nobody. Who waits for quota does not."""
        first: cython.int = -1
        if self.school == RECORDER_EASY:
            return self.easy.head
        if self.school != RECORDER_STRICT:
            return -1
        for top in range(self.lines.num_tops + self.lines.num_closed):
            job = self.lines.head(
                self.lines.tops[top]
                if top < self.lines.num_tops
                else self.lines.closed[top - self.lines.num_tops]
            )
            if (first < 0 or self.lines.before(job, first)) and not self.admission.is_over(job):
                first = job
        return first

    @compiled
    def _see(self, line: cython.int, alone: cython.bint) -> cython.void:
        """Write the verdict of a line's jobs, if it is another than it was."""
        verdict: cython.int = VERDICT_NONE
        begin: cython.longlong = self.lines.begin[line]
        job: cython.int = self.lines.slab[begin]
        if job == self.head:
            if self.lines.length[line] == 1:
                return
            job = self.lines.slab[begin + 1]
        if not alone:
            if (
                self.of_line[line] == VERDICT_NO_ROOM
                and self.seen[line] == self.state.free.version
                and self.school != RECORDER_LIMITS
                and not self.state.has_power
                and not self.state.has_quotas
            ):
                return
            verdict = self._alone(job)
            self.seen[line] = self.state.free.version
            if verdict == self.of_line[line]:
                return
            self.of_line[line] = cython.cast(cython.char, verdict)
        for cell in range(begin, begin + self.lines.length[line]):
            job = self.lines.slab[cell]
            if job != self.head:
                if alone:
                    verdict = self._alone(job)
                self._note_shared(job, verdict)

    @compiled
    def _alone(self, job: cython.int) -> cython.int:
        """Return a job's verdict by itself: whether it has room, and what else keeps it."""
        verdict: cython.int = self._refusal(job)
        if self.school == RECORDER_STRICT:
            return verdict if verdict == VERDICT_LIMIT else VERDICT_BEHIND
        if verdict != VERDICT_NONE:
            return verdict
        if self.school == RECORDER_LIMITS or self.school == RECORDER_SKIP:
            return VERDICT_LIMIT
        return VERDICT_WOULD_DELAY

    @compiled
    def _note_shared(self, job: cython.int, verdict: cython.int) -> cython.void:
        """Write the verdict of a job that is not first, with whom it would delay."""
        if self.log.last[job] == verdict:
            return
        if self.school == RECORDER_EASY and verdict == VERDICT_WOULD_DELAY and self.head >= 0:
            self._note(job, verdict, self.head, self.easy.promise())
        elif self.school == RECORDER_STRICT and verdict == VERDICT_BEHIND:
            self._note(job, verdict, self.head, ENDLESS)
        elif (
            self.school == RECORDER_CONSERVATIVE
            and self.conservative.promises.what[job] != PROMISE_NONE
        ):
            self._note(
                job,
                verdict,
                self._promised_first(job) if verdict == VERDICT_WOULD_DELAY else -1,
                self.conservative.promises.start[job],
            )
        else:
            self._note(job, verdict, -1, ENDLESS)

    @compiled
    def _promised_first(self, job: cython.int) -> cython.int:
        """Return who is promised the soonest start; -1 = the job itself, or nobody."""
        first: cython.int = self.conservative.plan.head
        if self.conservative.promises.queue.count > 0:
            other: cython.int = self.conservative.promises.queue.job[0]
            soon: cython.double = self.conservative.promises.queue.time[0]
            start: cython.double = (
                self.conservative.promises.start[first] if first >= 0 else ENDLESS
            )
            if soon < start or (soon == start and other < first):
                first = other
        return -1 if first == job else first

    @compiled
    def _note_head(self, old: cython.int) -> cython.void:
        """Write that a job is first in the queue, and what it is promised."""
        verdict: cython.int = VERDICT_FIRST
        if self.state.has_power and self._refusal(self.head) == VERDICT_POWER:
            verdict = VERDICT_POWER
        if self.log.last[self.head] != verdict:
            promise = self.easy.promise() if self.school == RECORDER_EASY else ENDLESS
            self._note(self.head, verdict, -1, promise)
