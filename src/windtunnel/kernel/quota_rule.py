"""`QuotaRule`: quotas of queues with borrowing and reclaim: twin of `windtunnel.policies.quota`.

That module, with `windtunnel.policies.waiting_line`, says who is tried when, and is what this one
must agree with. Waiting jobs stand in a line for each queue and class of jobs that fit in the same
places; what a line's first job is refused no other of it gets in this decision.

Less capacity or quota never lets a job start. So a queue for whose jobs nobody gives way is passed
over as long as nothing is given back and nobody joins it; and a refusal is remembered for as long
as it must be the same: until capacity comes back, or, where others may give way, until anything
changes.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import ldexp

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.quota_accounts import QuotaAccounts
from windtunnel.kernel.quota_victims import QuotaVictims
from windtunnel.kernel.rules import Rule
from windtunnel.kernel.state import State

#: Decisions in a row in which nothing happens and nothing runs, after which none is asked for.
QUOTA_MAX_IDLE = cython.declare(cython.int, 10_000)
#: Most times that a pause doubles.
QUOTA_MOST_DOUBLINGS = cython.declare(cython.int, 1000)


@cython.final
@cython.cclass
class QuotaRule(Rule):
    """Admits jobs by quotas.

    Args:
        state: the run; its lines are those of ``order``, by (priority, time in the queue).
        admission: whether jobs may start.
        order: the quotas (`windtunnel.sim.cohort_order.CohortOrder`), its lines as in ``state``.
        kinds: Int array (lines, F), kind of job that each flavor of a line is tried as.
        class_of: Int array (lines,), class of jobs of each line: they fit in the same places.

    Attributes:
        first_line: lines of each queue; a queue's lines are consecutive.
        filled, num_filled: of them those with jobs, in ``filled`` from ``first_line`` on.
        filled_at: where each line stands there; -1 = it is empty.
        open, num_open: those of them that may be tried in this decision, a heap by first jobs.
        eligible, num_eligible: queues that may be tried, a heap by `_is_earlier`.
        is_fresh: somebody joined the queue since the last decision.
        borrows, share: whether the first job of a queue would borrow, and its queue's share then.
        refused_at: state of the cluster at which a class was refused a flavor, by class and flavor.
        refused, refused_then: whom a line was refused for, in what state of things.
        gave_way: decision in which each job was preempted.
        head, since: of each queue who waits at its head, and since when.
        resting: jobs that were put back, until they join their lines again.
        times: how often each was.
        kind, on_flavor: as what the job at hand is to be taken, and of what flavor's quota.
    """

    accounts: QuotaAccounts
    victims: QuotaVictims
    fair: cython.bint
    remembers: cython.bint
    queues: cython.int
    queue_of: cython.int[::1]
    flavor: cython.int[::1]
    kinds: cython.int[::1]
    class_of: cython.int[::1]
    strict: cython.char[::1]
    first_line: cython.int[::1]
    filled: cython.int[::1]
    num_filled: cython.int[::1]
    filled_at: cython.int[::1]
    open: cython.int[::1]
    num_open: cython.int[::1]
    num_tried: cython.int[::1]
    tried_at: cython.longlong[::1]
    eligible: cython.int[::1]
    num_eligible: cython.int
    is_fresh: cython.char[::1]
    borrows: cython.char[::1]
    share: cython.double[::1]
    refused_at: cython.longlong[::1]
    refused: cython.int[::1]
    refused_then: cython.longlong[::1]
    gave_way: cython.longlong[::1]
    decisions: cython.longlong
    rounds: cython.longlong
    version: cython.longlong
    kind: cython.int
    on_flavor: cython.int
    # Waiting at the head.
    timeout: cython.double
    backoff: cython.double
    backoff_max: cython.double
    evicts: cython.bint
    head: cython.int[::1]
    since: cython.double[::1]
    resting: JobHeap
    times: cython.int[::1]
    num_timeouts: cython.longlong
    # Idling.
    happened: cython.bint
    idle: cython.int
    changes: cython.longlong

    def __init__(
        self,
        state: State,
        admission: Admission,
        order: object,
        kinds: numpy.ndarray,
        class_of: numpy.ndarray,
    ) -> None:
        Rule.__init__(self, state, admission)
        self.accounts = QuotaAccounts(order)
        self.victims = QuotaVictims(admission, self.accounts, order)
        self.fair = bool(order.fair)
        self.queues = queues = len(order.strict)
        self.queue_of = numpy.ascontiguousarray(order.queue_of, dtype=numpy.int32)
        self.flavor = numpy.ascontiguousarray(order.flavors.reshape(-1), dtype=numpy.int32)
        self.kinds = numpy.ascontiguousarray(kinds.reshape(-1), dtype=numpy.int32)
        self.class_of = numpy.ascontiguousarray(class_of, dtype=numpy.int32)
        self.strict = numpy.ascontiguousarray(order.strict, dtype=numpy.int8)
        lines, jobs = max(len(order.queue_of), 1), max(state.num_jobs, 1)
        self.first_line = numpy.searchsorted(order.queue_of, numpy.arange(queues + 1)).astype(
            numpy.int32
        )
        self.filled = numpy.zeros(lines, dtype=numpy.int32)
        self.filled_at = numpy.full(lines, -1, dtype=numpy.int32)
        self.open = numpy.zeros(lines, dtype=numpy.int32)
        self.tried_at = numpy.full(lines, -1, dtype=numpy.int64)
        self.refused = numpy.full(lines, -1, dtype=numpy.int32)
        self.refused_then = numpy.zeros(lines, dtype=numpy.int64)
        self.num_filled = numpy.zeros(queues, dtype=numpy.int32)
        self.num_open = numpy.zeros(queues, dtype=numpy.int32)
        self.num_tried = numpy.zeros(queues, dtype=numpy.int32)
        self.eligible = numpy.zeros(queues, dtype=numpy.int32)
        self.is_fresh = numpy.zeros(queues, dtype=numpy.int8)
        self.borrows = numpy.zeros(queues, dtype=numpy.int8)
        self.share = numpy.zeros(queues)
        classes = int(class_of.max(initial=0)) + 1
        self.refused_at = numpy.full(classes * self.accounts.flavors, -1, dtype=numpy.int64)
        self.gave_way = numpy.full(jobs, -1, dtype=numpy.int64)
        self.timeout = order.timeout
        self.backoff, self.backoff_max = order.backoff, order.backoff_max
        self.evicts = bool(order.evicts)
        times_out = order.timeout < numpy.inf
        self.remembers = not times_out and not state.has_power
        self.head = numpy.full(queues, -1, dtype=numpy.int32)
        self.since = numpy.zeros(queues)
        self.resting = JobHeap(jobs if times_out else 1)
        self.times = numpy.zeros(jobs if times_out else 1, dtype=numpy.int32)
        self.version = -1
        self.changes = -1

    def put_back(self) -> int:
        """Return how often a job was put back because it waited at the head for too long."""
        return self.num_timeouts

    # What happens.

    @compiled
    def came(self, job: cython.int) -> cython.void:
        """Note that a job waits; it is in its line."""
        self.happened = True
        self.is_fresh[self.queue_of[self.lines.line_of[job]]] = True
        self._joined(self.lines.line_of[job])

    @compiled
    def went(self, job: cython.int, is_over: cython.bint) -> cython.void:
        """Note that a job left its GPUs."""
        self.happened = True
        self.accounts.release(job, self.queue_of[self.lines.line_of[job]])

    @compiled
    def moves(self, job: cython.int) -> cython.void:
        """Note that a job goes on with other GPUs, of the same quota."""
        self.happened = True

    @compiled
    def _joined(self, line: cython.int) -> cython.void:
        """Note that a line has one more job."""
        queue: cython.int = self.queue_of[line]
        if self.filled_at[line] >= 0:
            return
        self.filled_at[line] = self.num_filled[queue]
        self.filled[self.first_line[queue] + self.num_filled[queue]] = line
        self.num_filled[queue] += 1

    @compiled
    def _left(self, line: cython.int) -> cython.void:
        """Note that a line has one job less."""
        queue: cython.int = self.queue_of[line]
        if self.lines.length[line] > 0:
            return
        self.num_filled[queue] -= 1
        last = self.filled[self.first_line[queue] + self.num_filled[queue]]
        self.filled[self.first_line[queue] + self.filled_at[line]] = last
        self.filled_at[last] = self.filled_at[line]
        self.filled_at[line] = -1

    # A decision.

    @compiled
    def decide(self) -> cython.void:
        """Start what may start, and stop who gives way."""
        self.decisions += 1
        self._count_idling()
        self._let_back()
        self._gather_eligible(self.remembers and self.version == self.free.version)
        while self.num_eligible > 0:
            queue = self.eligible[0]
            line = self.open[self.first_line[queue]]
            job = self.lines.head(line)
            if not self._can_start(job, queue, line):
                self._refuse(job, queue, line)
            elif self.victims.gone.count > 0:
                self._start(job, queue, line)
                self._gather_eligible(False)
                continue
            else:
                self._start(job, queue, line)
                self._head_changed(queue, line)
            self._look_at_first()
        self.version = self.free.version
        self.alarm = self._next_time_out()

    @compiled
    def _start(self, job: cython.int, queue: cython.int, line: cython.int) -> cython.void:
        """Start the first job of a line for which a place was found, as what ``kind`` says."""
        self._leave(line)
        if self.timeout < ENDLESS:
            self.times[job] = 0
            self.lines.second[job] = self.state.submit[job]
        for at in range(self.victims.gone.count):
            victim = self.victims.gone.job[at]
            self.state.preempt(victim, False)
            self.accounts.release(victim, self.queue_of[self.lines.line_of[victim]])
            self.gave_way[victim] = self.decisions
            self.lines.add(victim)
            self._joined(self.lines.line_of[victim])
        if self.victims.gone.count > 0:
            self.free.place.count = 0
            self.free.place.extend(self.victims.found, 0, self.victims.found.count)
        self.state.begin(job, self.kind)
        self.accounts.admit(job, queue, self.on_flavor)

    @compiled
    def _leave(self, line: cython.int) -> cython.void:
        """Take the first job out of a line."""
        queue: cython.int = self.queue_of[line]
        if self.head[queue] == self.lines.head(line):
            self.head[queue] = -1
        self.lines.pop(line)
        self._left(line)

    # Whose turn it is.

    @compiled
    def _gather_eligible(self, only_fresh: cython.bint) -> cython.void:
        """Let every queue try that has jobs; those alone that somebody joined, or may reclaim."""
        self.rounds += 1
        self.num_eligible = 0
        for queue in range(self.queues):
            if self.num_filled[queue] == 0:
                continue
            if only_fresh and not self.is_fresh[queue] and not self.victims.can_ever(queue):
                continue
            self.is_fresh[queue] = False
            self.num_tried[queue] = 0
            self._open_lines(queue)
            self._look_at(queue)
            self._rise(self.num_eligible, queue)
            self.num_eligible += 1

    @compiled
    def _rise(self, hole: cython.int, queue: cython.int) -> cython.void:
        """Let a queue rise to its place from a hole in the heap of the eligible ones."""
        while hole > 0:
            parent = (hole - 1) >> 1
            if self._is_earlier(self.eligible[parent], queue):
                break
            self.eligible[hole] = self.eligible[parent]
            hole = parent
        self.eligible[hole] = queue

    @compiled
    def _look_at_first(self) -> cython.void:
        """Put the first of the eligible ones where it belongs; it leaves if it has nobody left."""
        queue: cython.int = self.eligible[0]
        hole: cython.int = 0
        child: cython.int = 1
        if self.num_open[queue] > 0:
            self._look_at(queue)
        else:
            self.num_eligible -= 1
            if self.num_eligible == 0:
                return
            queue = self.eligible[self.num_eligible]
        while child < self.num_eligible:
            if child + 1 < self.num_eligible and self._is_earlier(
                self.eligible[child + 1], self.eligible[child]
            ):
                child += 1
            if self._is_earlier(queue, self.eligible[child]):
                break
            self.eligible[hole] = self.eligible[child]
            hole = child
            child = 2 * hole + 1
        self.eligible[hole] = queue

    @compiled
    def _is_earlier(self, one: cython.int, other: cython.int) -> cython.bint:
        """Return whether a queue's first job is tried before another's."""
        if self.borrows[one] != self.borrows[other]:
            return self.borrows[one] < self.borrows[other]
        if self.share[one] != self.share[other]:
            return self.share[one] < self.share[other]
        return self.lines.before(
            self.lines.head(self.open[self.first_line[one]]),
            self.lines.head(self.open[self.first_line[other]]),
        )

    @compiled
    def _look_at(self, queue: cython.int) -> cython.void:
        """Work out whether the first job of a queue would borrow, and the queue's share then."""
        line: cython.int = self.open[self.first_line[queue]]
        amount: cython.longlong = self.accounts.amount[self.lines.head(line)]
        self.borrows[queue] = True
        self.share[queue] = ENDLESS if self.fair else 0.0
        for index in range(line * self.accounts.flavors, (line + 1) * self.accounts.flavors):
            flavor = self.flavor[index]
            if flavor < 0:
                break
            if self.accounts.is_within(queue, flavor, amount):
                self.borrows[queue] = False
            if self.fair:
                share = self.accounts.share(queue, flavor, amount)
                if share < self.share[queue]:
                    self.share[queue] = share

    # The lines of a queue that may be tried.

    @compiled
    def _open_lines(self, queue: cython.int) -> cython.void:
        """Let all lines of a queue try that have not tried in this round."""
        first: cython.int = self.first_line[queue]
        count: cython.int = 0
        for at in range(first, first + self.num_filled[queue]):
            line = self.filled[at]
            if self.tried_at[line] != self.rounds:
                self.open[first + count] = line
                count += 1
        self.num_open[queue] = count
        for at in range((count >> 1) - 1, -1, -1):
            self._sink_line(first, count, at)

    @compiled
    def _sink_line(self, first: cython.int, count: cython.int, hole: cython.int) -> cython.void:
        line: cython.int = self.open[first + hole]
        job: cython.int = self.lines.head(line)
        child: cython.int = 2 * hole + 1
        while child < count:
            if child + 1 < count and self.lines.before(
                self.lines.head(self.open[first + child + 1]),
                self.lines.head(self.open[first + child]),
            ):
                child += 1
            if self.lines.before(job, self.lines.head(self.open[first + child])):
                break
            self.open[first + hole] = self.open[first + child]
            hole = child
            child = 2 * hole + 1
        self.open[first + hole] = line

    @compiled
    def _head_changed(self, queue: cython.int, line: cython.int) -> cython.void:
        """Put a queue's first line where it belongs: its first job has left."""
        if self.lines.length[line] == 0:
            self._drop_first(queue)
        else:
            self._sink_line(self.first_line[queue], self.num_open[queue], 0)

    @compiled
    def _drop_first(self, queue: cython.int) -> cython.void:
        """Let a queue's first line not try any more."""
        first: cython.int = self.first_line[queue]
        self.num_open[queue] -= 1
        if self.num_open[queue] > 0:
            self.open[first] = self.open[first + self.num_open[queue]]
            self._sink_line(first, self.num_open[queue], 0)

    # Whether a job may start.

    @compiled
    def _can_start(self, job: cython.int, queue: cython.int, line: cython.int) -> cython.bint:
        """Return whether a job may start; say where, on what flavor, as what and who gives way."""
        tries: cython.bint = self.victims.can_ever(queue)
        then: cython.longlong = self.free.changes if tries else self.free.version
        if self.remembers and self.refused[line] == job and self.refused_then[line] == then:
            return False
        self.victims.gone.count = 0
        for index in range(line * self.accounts.flavors, (line + 1) * self.accounts.flavors):
            flavor = self.flavor[index]
            if flavor < 0:
                break
            is_within: cython.bint = self.accounts.amount[job] <= self.accounts.available(
                queue, flavor
            )
            if is_within and self._fits(job, line, index):
                self.on_flavor = flavor
                return True
        self.refused[line] = job
        self.refused_then[line] = then
        if not tries:
            return False
        if self.gave_way[job] == self.decisions:
            self.refused[line] = -1
            return False
        for index in range(line * self.accounts.flavors, (line + 1) * self.accounts.flavors):
            flavor = self.flavor[index]
            if flavor < 0:
                break
            if self.victims.find(job, queue, flavor, self.kinds[index]):
                self.on_flavor = flavor
                self.kind = self.victims.found_kind
                return True
        self.victims.gone.count = 0
        return False

    @compiled
    def _fits(self, job: cython.int, line: cython.int, index: cython.int) -> cython.bint:
        """Return whether there is room for a job on a flavor; ``free.place`` has where."""
        flavor: cython.int = self.flavor[index]
        place: cython.int = self.class_of[line] * self.accounts.flavors + flavor
        if self.refused_at[place] == self.free.version:
            return False
        self.kind = self.kinds[index]
        if self.kind == self.state.kind[job]:
            found = self.admission.fit(job)
        else:
            spare = self.state.spare() if self.state.has_power else 0
            found = self.admission.fit_as(self.free, job, self.kind, spare)
        self.kind = self.admission.kind
        if not found:
            self.refused_at[place] = self.free.version
        return found

    # Waiting at the head.

    @compiled
    def _refuse(self, job: cython.int, queue: cython.int, line: cython.int) -> cython.void:
        """Let a queue's first job wait; one that has been at the head for too long is put back."""
        at_head: cython.bint = self.strict[queue] or self.num_tried[queue] == 0
        if at_head and self.timeout < ENDLESS:
            if self.head[queue] != job:
                self.head[queue] = job
                self.since[queue] = self.state.now
            if self.since[queue] + self.timeout <= self.state.now:
                self._put_back(job, queue, line)
                return
        self.tried_at[line] = self.rounds
        self.num_tried[queue] += 1
        if self.strict[queue]:
            self.num_open[queue] = 0
        else:
            self._drop_first(queue)

    @compiled
    def _put_back(self, job: cython.int, queue: cython.int, line: cython.int) -> cython.void:
        doublings: cython.int = cython.cast(cython.int, self.times[job])
        self._leave(line)
        self.times[job] += 1
        self.num_timeouts += 1
        if self.evicts:
            self.lines.second[job] = self.state.now
        if doublings > QUOTA_MOST_DOUBLINGS:
            doublings = QUOTA_MOST_DOUBLINGS
        pause = ldexp(self.backoff, doublings)
        if pause > self.backoff_max:
            pause = self.backoff_max
        if pause == 0.0:
            self.lines.add(job)
            self._joined(line)
        else:
            self.resting.push(self.state.now + pause, job, job)
        self._open_lines(queue)

    @compiled
    def _let_back(self) -> cython.void:
        """Let those join their lines again who have been out for long enough."""
        while self.resting.count > 0 and self.resting.time[0] <= self.state.now:
            job = self.resting.pop()
            self.lines.add(job)
            self._joined(self.lines.line_of[job])

    @compiled
    def _next_time_out(self) -> cython.double:
        """Return when somebody who waits now has waited at the head, or was out, for long enough.

        Then it is to be decided though nothing happens; of who has started since there is nothing
        to decide.
        """
        found: cython.double = self.resting.time[0] if self.resting.count > 0 else ENDLESS
        if self.timeout == ENDLESS or self.idle > QUOTA_MAX_IDLE:
            return ENDLESS
        for queue in range(self.queues):
            if self.head[queue] >= 0 and self.since[queue] + self.timeout < found:
                found = self.since[queue] + self.timeout
        return found

    @compiled
    def _count_idling(self) -> cython.void:
        """Count decisions at which nothing runs or has happened; in the end ask for none."""
        if self.state.num_running > 0 or self.happened or self.changes != self.free.changes:
            self.idle = 0
        else:
            self.idle += 1
        self.happened = False
        self.changes = self.free.changes
