"""`State`: who waits, who runs where since when, and how far; the only code that changes it.

All changes go through ``begin``, ``leave`` and ``rerate``. Progress: a job that begins a stay at t
owing c seconds gets on from t + c at its rate, and ends when its work is done. A *segment* is a
time at one rate within a stay. See `windtunnel.sim.reference` for the same in plain Python.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import floor

from windtunnel.kernel.checkpoints import Checkpoints
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.expected_ends import ExpectedEnds
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_heap import JobHeap
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_use import NodeUse
from windtunnel.kernel.orders import UsageBooks
from windtunnel.kernel.pace import Pace
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.power_budget import PowerBudget
from windtunnel.kernel.power_levels import PowerLevels
from windtunnel.kernel.quota_limits import QuotaLimits
from windtunnel.kernel.stays import StayLog
from windtunnel.kernel.verdicts import Verdicts

#: What a job is up to; the first six are the codes of `windtunnel.sim.flight.STATUS_NAMES`.
STATE_FINISHED = cython.declare(cython.int, 0)
STATE_RUNNING = cython.declare(cython.int, 1)
STATE_WAITING = cython.declare(cython.int, 2)
STATE_NOT_SUBMITTED = cython.declare(cython.int, 3)
STATE_FAILED = cython.declare(cython.int, 5)
STATE_HELD = cython.declare(cython.int, 6)


@cython.final
@cython.cclass
class State:
    """The jobs of a run. Jobs are known by their arrival number, stays by order of start.

    Attributes:
        now: the instant, s.
        happened: up to when what was planned has happened, s: at an instant of events one by one,
            it comes after them.
        moving: a job is on its way from one place to another, of which nobody hears.
        num_running, num_waiting, num_over: jobs that run, wait (held ones included), are over.
    """

    # The jobs, shape (m,).
    num_jobs: cython.int
    submit: cython.double[::1]
    work: cython.double[::1]
    kind: cython.int[::1]
    access: cython.int[::1]
    units: cython.longlong[::1]
    status: cython.char[::1]
    left: cython.double[::1]
    start_overhead: cython.double[::1]
    resume_cost: cython.double[::1]
    stay: cython.int[::1]
    run_before: cython.double[::1]
    preemptions: cython.int[::1]
    # Running jobs: how they get on.
    base_rate: cython.double[::1]
    rate: cython.double[::1]
    since: cython.double[::1]
    paid: cython.double[::1]
    stay_work: cython.double[::1]
    held_kind: cython.int[::1]
    mate: cython.int[::1]
    # Accounts of what became of the time on GPUs.
    useful: cython.double[::1]
    overhead: cython.double[::1]
    writing_time: cython.double[::1]
    lost: cython.double[::1]
    slowed: cython.double[::1]
    # Failures: seconds on GPUs at which a job fails by itself; whether its next start is a restart.
    hazards: JobHeap
    has_hazards: cython.bint
    fail_at: cython.double[::1]
    to_restart: cython.char[::1]
    restarts: cython.longlong[::1]
    last_kept: cython.double[::1]
    # Running jobs in order of start.
    first_running: cython.int
    last_running: cython.int
    following: cython.int[::1]
    preceding: cython.int[::1]
    # Where nodes may sleep: in which order jobs came into the queue.
    counts_nodes: cython.bint
    came: cython.longlong[::1]
    comings: cython.longlong
    # Parts.
    stays: StayLog
    node_use = cython.declare(NodeUse, visibility="readonly")
    free: Free
    lines: Lines
    ends: JobHeap
    expected: ExpectedEnds
    pace: Pace
    power: PowerLevels
    budget = cython.declare(PowerBudget, visibility="readonly")
    quotas: QuotaLimits
    books: UsageBooks
    checkpoints: Checkpoints
    verdicts: Verdicts
    # What of it this run has.
    resumes: cython.bint
    keeps_left: cython.bint
    is_segmented: cython.bint
    has_accounts: cython.bint
    plans: cython.bint
    has_access: cython.bint
    has_pace: cython.bint
    has_power: cython.bint
    has_quotas: cython.bint
    has_books: cython.bint
    has_checkpoints: cython.bint
    writes: cython.bint
    has_mates: cython.bint
    tells: cython.bint
    records: cython.bint
    # The run.
    now: cython.double
    happened: cython.double
    num_running: cython.int
    num_waiting: cython.int
    num_over: cython.int
    moving: cython.bint
    # Jobs whose base rate has changed at this instant, where there is no pace.
    rerated: JobList
    # What happened since Python last looked: jobs, and +1 began, -1 left. A job that is reported
    # as stopped is shown so, though it may run again.
    shown_stopped: cython.int
    changes: list

    def __init__(self, jobs: object, free: Free, **features: object) -> None:
        count = len(jobs.submit)
        self.num_jobs = count
        most = max(count, 1)
        self.submit, self.work = jobs.submit, jobs.work
        self.kind, self.units = jobs.kind, jobs.units
        self.free = free
        self.ends = JobHeap(count)
        self.stays = StayLog(count)
        self.status = numpy.full(most, STATE_NOT_SUBMITTED, dtype=numpy.int8)
        self.stay = numpy.full(most, -1, dtype=numpy.int32)
        self.following = numpy.full(most, -1, dtype=numpy.int32)
        self.preceding = numpy.full(most, -1, dtype=numpy.int32)
        self.first_running = self.last_running = -1
        self.now = self.happened = -numpy.inf
        self._take_up(features, jobs)
        self.rerated = JobList()
        self.shown_stopped = -1
        self.changes = []

    def _take_up(self, features: dict, jobs: object) -> None:
        """Make what the features of this run need; what they do not is not there."""
        count = max(self.num_jobs, 1)

        def where(wanted: bool, value: float = 0.0) -> numpy.ndarray:
            return numpy.full(count if wanted else 1, value)

        self.plans = bool(features.get("plans"))
        self.has_accounts = bool(features.get("accounts"))
        self.resumes = bool(features.get("resumes"))
        self.keeps_left = bool(features.get("keeps_left"))
        self.is_segmented = bool(features.get("segmented"))
        self.has_mates = bool(features.get("mates"))
        self.tells = bool(features.get("tells"))
        self.records = bool(features.get("records"))
        self.verdicts = Verdicts(self.num_jobs if self.records else 0)
        self.checkpoints = features.get("checkpoints")
        self.has_checkpoints = self.checkpoints is not None
        self.writes = self.has_checkpoints and features["checkpoints_cost"] > 0
        self.pace = features.get("pace")
        self.has_pace = self.pace is not None
        self.power = features.get("power")
        self.has_power = self.power is not None
        self.budget = PowerBudget()
        self.quotas = features.get("quotas")
        self.has_quotas = self.quotas is not None
        if self.has_quotas:
            self.free.limit(self.quotas)
        self.counts_nodes = bool(features.get("counts_nodes"))
        self.node_use = NodeUse(self.free.num_nodes() if self.counts_nodes else 0)
        self.came = numpy.zeros(count if self.counts_nodes else 1, dtype=numpy.int64)
        self.books = features.get("books")
        self.has_books = self.books is not None
        self.has_access = jobs.access is not None
        self.access = numpy.zeros(1, dtype=numpy.int32) if jobs.access is None else jobs.access
        self.expected = ExpectedEnds(jobs, self.checkpoints, plans=self.plans, writes=self.writes)
        self.left = numpy.array(self.work) if self.keeps_left else self.work
        self.run_before = where(self.keeps_left)
        self.preemptions = numpy.zeros(count if self.keeps_left else 1, dtype=numpy.int32)
        self.start_overhead = where(self.resumes)
        if self.resumes and jobs.first_cost is not None:
            self.start_overhead = numpy.array(jobs.first_cost)
        self.paid = where(self.resumes)
        self.resume_cost = numpy.array(jobs.resume_cost) if self.resumes else where(False)
        self.base_rate = where(self.is_segmented, 1.0)
        self.rate = where(self.is_segmented, 1.0)
        self.since = where(self.is_segmented)
        self.stay_work = where(self.has_accounts)
        self.useful, self.overhead = where(self.has_accounts), where(self.has_accounts)
        self.lost, self.writing_time = where(self.has_accounts), where(self.has_accounts)
        self.slowed = where(self.is_segmented)
        self.has_hazards = features.get("fail_at") is not None
        self.fail_at = features["fail_at"] if self.has_hazards else where(False)
        self.hazards = JobHeap(count if self.has_hazards else 1)
        self.to_restart = numpy.zeros(count if self.has_accounts else 1, dtype=numpy.int8)
        self.restarts = numpy.zeros(count if self.has_accounts else 1, dtype=numpy.int64)
        self.last_kept = where(self.has_accounts)
        self.held_kind = numpy.array(self.kind) if features.get("kinds_vary") else self.kind
        self.mate = numpy.full(count if self.has_mates else 1, -1, dtype=numpy.int32)
        if self.has_power and self.has_mates:
            self.power.mate = self.mate
        if self.has_pace and self.has_mates:
            self.pace.mate = self.mate

    @compiled
    def tell(self, job: cython.int, what: cython.int) -> cython.void:
        """Note for Python that a job began (1) or left (-1)."""
        with cython.gil:
            self.changes.append((job, what, self.now))

    # Begin.

    @compiled
    def begin(self, job: cython.int, kind: cython.int) -> cython.void:
        """Let a waiting job begin a stay where ``free.place`` says; it is in no line any more."""
        first: cython.longlong = self.stays.pairs.count
        self.stays.pairs.extend(self.free.place, 0, self.free.place.count)
        self.free.take(kind, self.stays.pairs, first, self.stays.pairs.count)
        if kind != self.held_kind[job]:
            self.held_kind[job] = kind
        self._open_stay(job, first)

    @compiled
    def begin_beside(self, job: cython.int, other: cython.int) -> cython.void:
        """Let a waiting job begin a stay on the GPUs of a running one, which has no mate."""
        first: cython.longlong = self.stays.pairs.count
        stay: cython.int = self.stay[other]
        self.stays.pairs.extend(self.stays.pairs, self.stays.first[stay], self.stays.last(stay))
        self.mate[job] = other
        self.mate[other] = job
        self.held_kind[job] = self.held_kind[other]
        self.free.draws += 1
        self._open_stay(job, first)

    @compiled
    def _open_stay(self, job: cython.int, first: cython.longlong) -> cython.void:
        stay: cython.int = self.stays.open(job, self.now, first)
        self.stay[job] = stay
        self.status[job] = STATE_RUNNING
        self.num_waiting -= 1
        self.num_running += 1
        self.preceding[job] = self.last_running
        self.following[job] = -1
        if self.last_running >= 0:
            self.following[self.last_running] = job
        else:
            self.first_running = job
        self.last_running = job
        self._get_on(job, stay)
        if self.has_pace:
            if self.pace.has_options:
                self.pace.run_in(job, self.held_kind[job])
            self.pace.enter(job, self.stays.pairs, first, self.stays.pairs.count)
        if self.has_power:
            self.power.enter(job, self.stays.pairs, first, self.stays.pairs.count)
        if self.has_quotas:
            self._use_quota(job, first)
        if self.has_books:
            self.books.charge(job, 1.0, self.now)
        if self.counts_nodes:
            self.node_use.add(self.stays.pairs, first, self.stays.pairs.count, 1)
        if self.tells and not self.moving:
            self.tell(job, 1)

    @compiled
    def _use_quota(self, job: cython.int, first: cython.longlong) -> cython.void:
        """Book what a job that begins a stay uses of its queue's quota."""
        self.quotas.begin(
            job,
            self.quotas.flavor_on(self.stays.pairs, first, self.stays.pairs.count),
            self._quota_asked(
                job, self.held_kind[job], self.stays.pairs, first, self.stays.pairs.count
            ),
        )

    @compiled
    def _quota_asked(
        self,
        job: cython.int,
        kind: cython.int,
        pairs: Pairs,
        begin: cython.longlong,
        end: cython.longlong,
    ) -> cython.longlong:
        """Return the millionths of GPUs that a job needs of its quota as a kind, on a place."""
        units: cython.longlong = 0
        if not self.quotas.resizes:
            return self.quotas.accounts.amount[job]
        for pair in range(begin, end):
            units += self.free.granted(kind, pairs.grant[pair])
        return units * self.quotas.per_unit

    @compiled
    def allows(self, free: Free, job: cython.int, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a job's quota in a free state suffices for it on a place as a kind."""
        if not self.has_quotas:
            return True
        return free.quotas.allows(
            job,
            self.quotas.flavor_on(pairs, 0, pairs.count),
            self._quota_asked(job, kind, pairs, 0, pairs.count),
        )

    @compiled
    def _get_on(self, job: cython.int, stay: cython.int) -> cython.void:
        """Work out when a job that begins a stay ends."""
        ready: cython.double = self.now
        rate: cython.double = 1.0
        left: cython.double = self.left[job]
        if self.resumes:
            ready = ready + self.start_overhead[job]
            self.paid[job] = self.start_overhead[job]
            self.start_overhead[job] = 0.0
        if self.is_segmented:
            rate = self.base_rate[job]
            self.rate[job] = rate
            self.since[job] = ready
        if self.has_accounts:
            self.stay_work[job] = left
            self.restarts[job] += self.to_restart[job]
            self.to_restart[job] = False
        if self.has_hazards and self.fail_at[job] < ENDLESS:
            ahead: cython.double = self.fail_at[job] - self.run_before[job]
            self.hazards.push(self.now + (ahead if ahead > 0.0 else 0.0), stay, job)
        end: cython.double = ready + left / rate
        if self.has_checkpoints:
            self.checkpoints.begin(job, left)
            if self.writes:
                end = end + self.checkpoints.to_write(job, self.checkpoints.work[job])
        self.ends.push(end, stay, job)
        if self.plans:
            self.expected.begin(job, stay, ready, left, rate)

    # Progress.

    @compiled
    def end_of(self, job: cython.int) -> cython.double:
        """Return when a running job ends as things are, s."""
        return self.ends.time[self.ends.at[job]]

    @compiled
    def work_left(self, job: cython.int) -> cython.double:
        """Return a running job's work left now, s at full speed."""
        if self.writes:
            self.checkpoints.look(job, self.now - self.since[job], self.rate[job])
            return self.checkpoints.work[job] - self.checkpoints.now_done
        ahead: cython.double = self.end_of(job) - self.now
        if self.is_segmented and self.rate[job] != 1.0:
            active: cython.double = self.now - self.since[job]
            done: cython.double = active * self.rate[job] if active > 0.0 else 0.0
            # The end is a quotient, whose rounding is no work.
            ahead = self.left[job] - done if done < self.left[job] else ahead * self.rate[job]
        return ahead if ahead < self.left[job] else self.left[job]

    @compiled
    def time_left(self, job: cython.int) -> cython.double:
        """Return how long a running job still needs its GPUs at full speed, s.

        That is its work left, with what it pays for resuming and the checkpoints that it writes.
        """
        if not self.is_segmented or self.rate[job] == 1.0:
            return self.end_of(job) - self.now
        ahead: cython.double = self.since[job] - self.now
        left: cython.double = self.work_left(job) + (ahead if ahead > 0.0 else 0.0)
        return left + self.checkpoints.now_to_write(job) if self.writes else left

    @compiled
    def run_time(self, job: cython.int) -> cython.double:
        """Return the seconds a job has been on GPUs so far."""
        before: cython.double = self.run_before[job] if self.keeps_left else 0.0
        if self.status[job] != STATE_RUNNING:
            return before
        return before + self.now - self.stays.start[self.stay[job]]

    @compiled
    def rerate(self, job: cython.int, rate: cython.double) -> cython.void:
        """Let a running job get on at another rate from now on."""
        if rate == self.rate[job]:
            return
        ready: cython.double = self.since[job]
        left: cython.double = self.work_left(job)
        self._book_slow(job)
        if self.writes:
            self.checkpoints.fold(job)
        self.left[job] = left
        self.rate[job] = rate
        if ready < self.now:
            ready = self.now
        self.since[job] = ready
        ahead: cython.double = ready - self.now
        end: cython.double = self.now + ahead + left / rate
        if self.writes:
            end = end + self.checkpoints.to_write(job, self.checkpoints.work[job])
        self.ends.change(job, end)
        if self.plans:
            self.expected.over(job, self.stay[job])
            self.expected.begin(job, self.stay[job], ready, left, rate)

    @compiled
    def _book_slow(self, job: cython.int) -> cython.void:
        """Book the seconds that a job's rate cost it in the segment that ends now."""
        worked: cython.double = self.now - self.since[job]
        if self.writes and worked > 0.0:
            worked = worked - self.checkpoints.spent_since(job)
        if worked > 0.0:
            self.slowed[job] += worked * (1.0 - self.rate[job])

    @compiled
    def settle(self) -> cython.void:
        """Give the running jobs whose rate may have changed the rate that they now have."""
        if self.has_power and self.power.choose(self.budget.now) > 0:
            self._note_levels()
        self.pace.take_touched()
        for touched in range(self.pace.num_touched):
            job = self.pace.touched_jobs[touched]
            rate = self.base_rate[job] * self.pace.rate(job)
            if self.has_power:
                rate = rate / self.power.slow(job)
            self.rerate(job, rate)
        self.pace.num_touched = 0

    @compiled
    def set_base(self, job: cython.int, rate: cython.double) -> cython.void:
        """Let a running job's rate, before what slows everybody, be another from this instant."""
        self.base_rate[job] = rate
        if self.has_pace:
            self.pace.touch(job)
        else:
            self.rerated.add(job)

    @compiled
    def settle_bases(self) -> cython.void:
        """Give the running jobs whose base rate has changed that rate: nothing else slows them."""
        for at in range(self.rerated.count):
            job = self.rerated.job[at]
            if self.status[job] == STATE_RUNNING:
                self.rerate(job, self.base_rate[job])
        self.rerated.count = 0

    # Power.

    @compiled
    def spare(self) -> cython.longlong:
        """Return the nanowatts that a job may add now."""
        return (self.budget.now if self.budget.now > 0 else 0) - self.power.floor_sum

    @compiled
    def _note_levels(self) -> cython.void:
        """Write down whose power limits have changed, and see to their rates."""
        for changed in range(self.power.changed.count):
            job = self.power.changed.job[changed]
            self.stays.note_level(self.stay[job], self.now, self.power.level[job])
            self.pace.touch(job)

    # Other free states, and what they show a job.

    @compiled
    def access_of(self, job: cython.int) -> cython.int:
        """Return the number of a job's set of reservations; 0 = it may use none."""
        return self.access[job] if self.has_access else 0

    @compiled
    def open_for(self, free: Free, job: cython.int) -> cython.bint:
        """Show what is withheld for a job's reservations alone; return if anything is."""
        access: cython.int = self.access_of(job)
        return access > 0 and free.open_for(access)

    @compiled
    def give_place(self, free: Free, job: cython.int) -> cython.void:
        """Give what a running job holds back to a free state of this cluster, but its quota."""
        stay: cython.int = self.stay[job]
        free.give(
            self.held_kind[job], self.stays.pairs, self.stays.first[stay], self.stays.last(stay)
        )

    @compiled
    def give_all(self, free: Free, job: cython.int) -> cython.void:
        """Give what a running job holds back to a free state of this cluster."""
        self.give_place(free, job)
        if self.has_quotas:
            free.quotas.lift(job)

    @compiled
    def take_all(self, free: Free, job: cython.int) -> cython.void:
        """Undo `give_all`."""
        self.take_place(free, job)
        if self.has_quotas:
            free.quotas.put(job)

    @compiled
    def try_out(
        self,
        free: Free,
        job: cython.int,
        kind: cython.int,
        pairs: Pairs,
        begin: cython.longlong,
        end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:
        """Take (1) what a job would hold as a kind from a free state, or give it back (-1)."""
        if sign > 0:
            free.take(kind, pairs, begin, end)
        else:
            free.give(kind, pairs, begin, end)
        if self.has_quotas:
            free.quotas.try_out(job, self.quotas.flavor_on(pairs, begin, end), sign)

    @compiled
    def take_place(self, free: Free, job: cython.int) -> cython.void:
        """Undo `give_place`."""
        stay: cython.int = self.stay[job]
        free.take(
            self.held_kind[job], self.stays.pairs, self.stays.first[stay], self.stays.last(stay)
        )

    # Leave.

    @compiled
    def _leave(self, job: cython.int) -> cython.void:
        """Take a running job off its GPUs; what becomes of its work has been seen to."""
        stay: cython.int = self.stay[job]
        self.stays.end[stay] = self.now
        self.status[job] = STATE_HELD
        self.num_running -= 1
        if self.preceding[job] >= 0:
            self.following[self.preceding[job]] = self.following[job]
        else:
            self.first_running = self.following[job]
        if self.following[job] >= 0:
            self.preceding[self.following[job]] = self.preceding[job]
        else:
            self.last_running = self.preceding[job]
        self.ends.remove(job)
        if self.has_hazards and self.hazards.at[job] >= 0:
            self.hazards.remove(job)
        if self.plans:
            self.expected.over(job, stay)
        if self.has_power:
            self.power.leave(job)
        if self.has_mates and self.mate[job] >= 0:
            self.mate[self.mate[job]] = -1
            self.mate[job] = -1
            self.free.version += 1  # what it drew is free, if nothing else
        else:
            self.give_place(self.free, job)
        self.stay[job] = -1
        if self.keeps_left:
            self.run_before[job] += self.now - self.stays.start[stay]
        if self.has_pace:
            self.pace.leave(job)
        if self.has_quotas:
            self.quotas.end(job)
            self.free.version += 1  # though what it held may be withheld from all
        if self.has_books:
            self.books.charge(job, -1.0, self.now)
        if self.counts_nodes:
            self.node_use.add(self.stays.pairs, self.stays.first[stay], self.stays.last(stay), -1)
        if self.tells and not self.moving:
            self.tell(job, -1)

    @compiled
    def finish(self, job: cython.int) -> cython.void:
        """Let a running job be over: its work is done."""
        self._complete(job)
        if self.has_accounts:
            self.useful[job] += self.stay_work[job]
            self._book_overhead(job)
        self._leave(job)
        self.status[job] = STATE_FINISHED
        self.num_over += 1

    @compiled
    def _book_overhead(self, job: cython.int) -> cython.void:
        """Book the seconds of a job's stay that went into resuming and into checkpoints."""
        held: cython.double = self.now - self.stays.start[self.stay[job]]
        paid: cython.double = self.paid[job] if self.resumes else 0.0
        writing: cython.double = 0.0
        if held <= paid:
            self.overhead[job] += held
            return
        if self.writes:
            writing = self.checkpoints.now_spent()
            self.writing_time[job] += writing
        self.overhead[job] += paid + writing

    @compiled
    def stop(self, job: cython.int, loses: cython.bint) -> cython.void:
        """Take a running job off its GPUs, with its work saved or but for its checkpoints lost.

        It neither waits nor is counted as preempted: the caller says what becomes of it.
        """
        left: cython.double = self.work_left(job)
        if self.is_segmented:
            self._book_slow(job)
        self._stop_with(job, left, loses)

    @compiled
    def fail_at_end(self, job: cython.int) -> cython.void:
        """Take a job off its GPUs whose work is done, with what is not saved of it lost."""
        self._complete(job)
        self._stop_with(job, 0.0, True)

    @compiled
    def _complete(self, job: cython.int) -> cython.void:
        """End the segment of a job that completes now: all is done, whatever rounding says."""
        if self.writes:
            self.checkpoints.look(job, self.now - self.since[job], self.rate[job])
        if self.is_segmented:
            self._book_slow(job)
        if self.writes:
            self.checkpoints.end(job)

    @compiled
    def _stop_with(self, job: cython.int, left: cython.double, loses: cython.bint) -> cython.void:
        if self.has_accounts:
            done = self.checkpoints.now_done if self.writes else self.stay_work[job] - left
            kept = self.kept(job, done) if loses else done
            self.last_kept[job] = kept
            self.useful[job] += kept
            self.lost[job] += done - kept
            self._book_overhead(job)
            if loses:
                left = self.stay_work[job] - kept
        self._leave(job)
        self.left[job] = left

    @compiled
    def kept(self, job: cython.int, done: cython.double) -> cython.double:
        """Return how much of the work done in a job's stay its checkpoints have secured."""
        if not self.has_checkpoints or self.checkpoints.interval == ENDLESS:
            return 0.0
        if self.writes:
            return self.checkpoints.now_complete * self.checkpoints.interval
        complete = cython.cast(cython.longlong, floor(done / self.checkpoints.interval))
        if complete > self.checkpoints.in_all(self.stay_work[job]):
            complete = self.checkpoints.in_all(self.stay_work[job])
        return complete * self.checkpoints.interval

    @compiled
    def wait(self, job: cython.int) -> cython.void:
        """Let a job wait: it arrived, was let in, or was stopped."""
        if self.records:
            self.verdicts.waits(job)
        self.status[job] = STATE_WAITING
        self.num_waiting += 1
        if self.counts_nodes:
            self.came[job] = self.comings
            self.comings += 1

    @compiled
    def preempt(self, job: cython.int, loses: cython.bint) -> cython.void:
        """Stop a running job for another; it pays for resuming. Its work is saved, or lost."""
        if self.records:
            self.verdicts.preempted(self.now, job)
        self.stop(job, loses)
        self.preemptions[job] += 1
        if self.resumes:
            self.start_overhead[job] = self.resume_cost[job]
        if loses:
            self.to_restart[job] = True
        self.wait(job)

    def go_on(self, job: int, where: list) -> None:
        """Let a job that was stopped just now begin again elsewhere; it has never waited."""
        self.num_waiting += 1
        self.free.place.count = 0
        for node, grant in where:
            self.free.place.add(node, grant)
        self.begin(job, self.held_kind[job])
        self.moving = False

    @compiled
    def fail(self, job: cython.int) -> cython.void:
        """Let a waiting job that is in no queue be over: it failed."""
        self.num_waiting -= 1
        self.status[job] = STATE_FAILED
        self.num_over += 1

    # Python's side.

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw from now on; whoever was refused may try again."""
        self.budget.now = nanowatts
        self.free.version += 1
        self.free.changes += 1

    def use_lines(self, lines: Lines) -> None:
        """Let the jobs wait in these lines."""
        self.lines = lines

    def close_at(self, horizon: float) -> None:
        """Book what running jobs have done by the horizon, s."""
        self.now = horizon
        job = self.first_running
        while job >= 0:
            left = self.work_left(job)
            if self.is_segmented:
                self._book_slow(job)
            if self.has_accounts:
                done = self.checkpoints.now_done if self.writes else self.stay_work[job] - left
                self.useful[job] += done
                self._book_overhead(job)
            job = self.following[job]
