"""`Unpromised`: the waiting jobs that are to be promised a start, in the queue's order."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.line_merge import LineMerge
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.promise_limits import PromiseLimits
from windtunnel.kernel.promises import PROMISE_NONE, Promises
from windtunnel.kernel.quota_limits import QuotaLimits
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class Unpromised:
    """Jobs without a promise, as far as quotas let them have one, and it matters.

    Each start uses quota, and whose quota does not suffice then loses the promise. So while those
    of the line's jobs are gone through, quotas are counted as those leave them who are to start
    now; once nobody who is to come has the quota then, promises would be made for nothing.

    Args:
        limits: who may be promised a start.

    Attributes:
        lacking: jobs of each line without a promise that have yet to be passed.
        ahead: the quotas as those leave them who are to start now, of those passed.
        has_ahead: whether they suffice for the jobs of a line.
        num_ahead: jobs yet to be passed for which they do.
        due: promised to start by now before; the first ``num_due`` of them are passed.
        is_over: nobody else matters.
    """

    limits: PromiseLimits
    promises: Promises
    state: State
    lines: Lines
    merge: LineMerge
    lacking: cython.int[::1]
    ahead: QuotaLimits
    has_ahead: cython.char[::1]
    num_ahead: cython.longlong
    due: JobList
    num_due: cython.int
    is_over: cython.bint

    def __init__(self, limits: PromiseLimits) -> None:
        self.limits, self.promises = limits, limits.promises
        self.state, self.lines = limits.state, limits.lines
        self.merge = LineMerge(self.lines)
        count = max(self.lines.num_lines, 1)
        self.lacking = numpy.zeros(count, dtype=numpy.int32)
        self.has_ahead = numpy.zeros(count, dtype=numpy.int8)
        self.due = JobList()
        self.ahead = self.state.quotas.twin() if self.state.has_quotas else None

    @compiled
    def begin(self) -> cython.void:
        """Stand before the first of them."""
        self.merge.count = 0
        self.is_over = False
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.lacking[line] = self.lines.length[line] - self.promises.promised_in[line]
            if self.lacking[line] > 0 and self.limits.admits_line(line):
                self.merge.place[line] = 0
                self._offer(line)
        if self.state.has_quotas and self.merge.count > 0:
            self._look_ahead()

    @compiled
    def _offer(self, line: cython.int) -> cython.void:
        """Let the next job without a promise of a line have its turn, if it may have one."""
        if self.lacking[line] == 0:
            return
        while self.promises.what[self.merge.next_of(line)] != PROMISE_NONE:
            self.merge.place[line] += 1
        if not self.limits.is_held_up(self.merge.next_of(line)):
            self.merge.push(line)

    @compiled
    def goes_on(self) -> cython.bint:
        """Return whether anybody is to come."""
        if self.merge.count == 0 or self.is_over:
            return False
        if not self.state.has_quotas:
            return True
        self._pass_due(self.merge.next_of(self.merge.heap[0]))
        return self.num_ahead > 0 or self.state.quotas.blocks

    @compiled
    def pass_first(self) -> cython.int:
        """Pass the first job, and return it."""
        line: cython.int = self.merge.heap[0]
        job: cython.int = self.merge.next_of(line)
        self.merge.pop()
        self.merge.place[line] += 1
        self.lacking[line] -= 1
        if self.has_ahead[line]:
            self.num_ahead -= 1
        self._offer(line)
        return job

    # Quotas.

    @compiled
    def _look_ahead(self) -> cython.void:
        """Gather who is due; nobody is passed."""
        self.ahead.copy_from(self.state.quotas)
        self.due.count = 0
        self.num_due = 0
        for at in range(self.promises.queue.count):
            if self.promises.queue.time[at] <= self.state.now:
                self.due.add(self.promises.queue.job[at])
        self.due.sort(self.lines)
        self._count_ahead()

    @compiled
    def _count_ahead(self) -> cython.void:
        """Count who is to come and has the quota that those passed leave."""
        self.num_ahead = 0
        for at in range(self.merge.count):
            line = self.merge.heap[at]
            self.has_ahead[line] = self.ahead.admits(self.merge.next_of(line))
            if self.has_ahead[line]:
                self.num_ahead += self.lacking[line]

    @compiled
    def _pass_due(self, job: cython.int) -> cython.void:
        """Pass those who are due and stand before a job."""
        while self.num_due < self.due.count and self.lines.before(self.due.job[self.num_due], job):
            self._start(self.due.job[self.num_due])
            self.num_due += 1

    @compiled
    def note_promise(self, job: cython.int) -> cython.void:
        """Note that the job that was passed last has been promised a start."""
        if not self.state.has_quotas:
            return
        if not self.ahead.admits(job):
            self.is_over = self.ahead.blocks  # it holds up all that are to come
        elif self.promises.start[job] <= self.state.now:
            self._start(job)

    @compiled
    def _start(self, job: cython.int) -> cython.void:
        """Let one use its quota who is to start now, if it suffices still."""
        first: cython.longlong = self.promises.first[job]
        if not self.ahead.admits(job) or (
            self.ahead.binds and not self.ahead.allows_kind(job, self.state.kind[job])
        ):
            return
        self.ahead.try_out(
            job,
            self.ahead.flavor_on(self.promises.places, first, first + self.promises.size[job]),
            1,
        )
        self._count_ahead()
