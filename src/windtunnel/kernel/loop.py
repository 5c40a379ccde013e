"""`Simulation`: the event loop.

An instant: completions, then arrivals, then what else happens by itself (Python's sources), then
one decision. `Simulation.advance` goes on until Python is needed, and says for what.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import ceil

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.orders import ServiceLevels
from windtunnel.kernel.pairs import PAIRS_REFUSED
from windtunnel.kernel.recorder import Recorder
from windtunnel.kernel.rules import Rule
from windtunnel.kernel.slices import Slices
from windtunnel.kernel.standstill import Standstill
from windtunnel.kernel.state import STATE_FAILED, State

#: Why `advance` returns.
LOOP_OVER = cython.declare(cython.int, 0)
LOOP_SLICE = cython.declare(cython.int, 1)
LOOP_ARRIVED = cython.declare(cython.int, 2)
LOOP_SOURCES = cython.declare(cython.int, 3)
LOOP_ROUND = cython.declare(cython.int, 4)
LOOP_DECIDE = cython.declare(cython.int, 5)
LOOP_AFTER = cython.declare(cython.int, 6)
LOOP_END = cython.declare(cython.int, 7)
LOOP_IDLE = cython.declare(cython.int, 8)

#: What is to be done next, within an instant or between two.
PHASE_NEXT = cython.declare(cython.int, 0)
PHASE_EVENTS = cython.declare(cython.int, 1)
PHASE_SOURCES = cython.declare(cython.int, 2)
PHASE_ROUND = cython.declare(cython.int, 3)
PHASE_DECIDE = cython.declare(cython.int, 4)
PHASE_AFTER = cython.declare(cython.int, 5)
#: One event at a time.
PHASE_TURN = cython.declare(cython.int, 6)
#: All decisions of the instant are made.
PHASE_END = cython.declare(cython.int, 7)

EVENTS_BATCH = cython.declare(cython.int, 0)
EVENTS_SUBMISSIONS_FIRST = cython.declare(cython.int, 1)
EVENTS_COMPLETIONS_FIRST = cython.declare(cython.int, 2)

#: Where keys come from.
KEYS_STATIC = cython.declare(cython.int, 0)
KEYS_USAGE = cython.declare(cython.int, 1)
KEYS_LEVELS = cython.declare(cython.int, 2)
KEYS_PYTHON = cython.declare(cython.int, 3)


@cython.final
@cython.cclass
class Simulation:
    """A run.

    What sources and policies in Python change is ``source_time`` to ``news``.

    Attributes:
        source_time: when a source of Python's is due next, s; inf = never. They are asked at every
            instant at which one is due, a job failed at its end, or something came that they hold
            back.
        cap_time: when the power cap changes, s; waited for only while jobs run or wait.
        alarm: when to decide though nothing happens, s; inf = never.
        wants_after: Python is asked after every decision.
        ends_instants: Python is asked when all decisions of an instant are made.
        num_held: jobs that arrived, or ran, and are let into the queue later.
        certain: changes that Python's sources have to come, whatever chance brings.
        news: something happened at this instant that calls for a decision.
        arrived: jobs that have arrived.
        asks_idle: of runs in rounds with outages, Python is asked whether anybody ever fits.
        is_asked: Python has been asked at this instant whether the run goes on; it does.
        before, capped_before: the clock, s, and ``time_capped`` before this instant.
        time_capped: s in which somebody waited for power alone.
        asks: Python makes the decisions.
        at_round: a round began, and was not taken notice of yet (`takes_round`).
        points: decisions so far.
        ups: when the GPU units that are up changed, s, and to what: pairs.
    """

    state: State
    rule: Rule
    recorder: Recorder
    standstill: Standstill
    slices: Slices
    levels: ServiceLevels
    phase: cython.int
    until: cython.double
    events: cython.int
    keys: cython.int
    asks: cython.bint
    arrivals_wait: cython.bint
    source_time = cython.declare(cython.double, visibility="public")
    cap_time = cython.declare(cython.double, visibility="public")
    alarm = cython.declare(cython.double, visibility="public")
    wants_after = cython.declare(cython.bint, visibility="public")
    ends_instants = cython.declare(cython.bint, visibility="public")
    num_held = cython.declare(cython.int, visibility="public")
    certain = cython.declare(cython.longlong, visibility="public")
    news = cython.declare(cython.bint, visibility="public")
    arrived = cython.declare(cython.int, visibility="readonly")
    time_capped = cython.declare(cython.double, visibility="readonly")
    points = cython.declare(cython.longlong, visibility="readonly")
    every: cython.double
    round: cython.longlong
    decides_in_rounds: cython.bint
    is_round: cython.bint
    at_round: cython.bint
    decide_every: cython.double
    pending: cython.double
    asks_idle: cython.bint
    is_asked: cython.bint
    before: cython.double
    capped_before: cython.double
    is_awake: cython.bint
    refused: cython.longlong
    fresh: JobList
    fails_once: cython.char[::1]
    has_fails_once: cython.bint
    failed: JobList
    returns: cython.int
    notes_up: cython.bint
    all_units: cython.longlong
    units_up: cython.longlong
    ups = cython.declare(list, visibility="readonly")
    leads: cython.bint
    turn_points: cython.longlong
    had_event: cython.bint

    def __init__(self, state: State, rule: Rule, **options: object) -> None:
        self.state = state
        self.rule = rule
        self.asks = bool(options.get("asks"))
        self.levels = options.get("levels")
        self.recorder = options.get("recorder")
        self.keys = int(options["keys"])
        self.until = float(options["until"])
        self.events = int(options["events"])
        self.every = float(options["every"])
        self.decide_every = float(options["decide_every"])
        self.decides_in_rounds = bool(options["decides_in_rounds"])
        self.arrivals_wait = bool(options["arrivals_wait"])
        self.standstill = Standstill(
            state, float(options["patience"]), settles=bool(options["settles"])
        )
        self.slices = Slices()
        self.asks_idle = bool(options["asks_idle"])
        self.wants_after = self.ends_instants = self.news = False
        self.num_held = self.certain = self.arrived = self.points = 0
        self.time_capped = 0.0
        self.source_time = self.cap_time = numpy.inf
        self.alarm = numpy.inf
        self.pending = numpy.inf
        self.phase = PHASE_NEXT
        self.refused = PAIRS_REFUSED
        self.fresh, self.failed = JobList(), JobList()
        self.units_up, self.ups = -1, []
        once = options.get("fails_once")
        self.has_fails_once = once is not None
        self.fails_once = numpy.zeros(1, dtype=numpy.int8) if once is None else once

    # Time.

    @compiled
    def _next_submit(self) -> cython.double:
        if self.arrived < self.state.num_jobs:
            return self.state.submit[self.arrived]
        return ENDLESS

    @compiled
    def _next_end(self) -> cython.double:
        return self.state.ends.time[0] if self.state.ends.count > 0 else ENDLESS

    @compiled
    def _next_failure(self) -> cython.double:
        """Return when a job fails by itself next, s."""
        return self.state.hazards.time[0] if self.state.hazards.count > 0 else ENDLESS

    @compiled
    def _is_source_due(self) -> cython.bint:
        return (
            self.source_time <= self.state.now
            or self.failed.count > 0
            or self.cap_time <= self.state.now
            or self._fails_now()
        )

    @compiled
    def _fails_now(self) -> cython.bint:
        return self.state.has_hazards and self._next_failure() <= self.state.now

    @compiled
    def _next_time(self) -> cython.double:
        """Return when something happens next, s."""
        now: cython.double = self._next_end()
        other: cython.double = self._next_submit()
        if other < now:
            now = other
        if self.every < ENDLESS:
            other = self._next_round(now)
            if other < now:
                now = other
        if self.source_time < now:
            now = self.source_time
        if self.cap_time < now and (self.state.num_running > 0 or self.state.num_waiting > 0):
            now = self.cap_time
        if self.state.has_hazards and self._next_failure() < now:
            now = self._next_failure()
        if self.alarm < now:
            now = self.alarm
        if self.pending < now:
            now = self.pending
        if self.rule.alarm < now:
            now = self.rule.alarm
        return now

    @compiled
    def _next_round(self, event: cython.double) -> cython.double:
        """Return the next round's time; none before the next event while nothing is active."""
        if self.state.num_running == 0 and self.state.num_waiting == 0 and self.num_held == 0:
            if event == ENDLESS:
                return ENDLESS
            least = cython.cast(cython.longlong, ceil(event / self.every))
            if least > self.round:
                self.round = least
        return self.round * self.every

    # Events.

    @compiled
    def _arrive(self) -> cython.void:
        """Let the next job arrive."""
        job: cython.int = self.arrived
        self.arrived += 1
        if self.arrivals_wait:
            self.fresh.add(job)
            self.state.num_waiting += 1
        else:
            self.enter(job)

    @compiled
    def enter(self, job: cython.int) -> cython.void:
        """Let a job wait in the queue."""
        self.news = True
        self.state.wait(job)
        if self.keys == KEYS_USAGE:
            self.state.lines.key[job] = self.state.books.key(job, self.state.now)
        elif self.keys == KEYS_LEVELS:
            self.state.lines.key[job] = self.levels.key(job, self.state.run_time(job))
        self.rule.comes(job)
        self.state.lines.add(job)
        self.rule.came(job)

    @compiled
    def _finish_next(self) -> cython.void:
        """Complete the job that ends first."""
        self._finish(self.state.ends.job[0])

    @compiled
    def _finish(self, job: cython.int) -> cython.void:
        """Let a running job be over, or fail at its end."""
        self.news = True
        if self.has_fails_once and self.fails_once[job]:
            self.fails_once[job] = False
            self.state.fail_at_end(job)
            self.failed.add(job)
            self.rule.failed(job)
            return
        self.state.finish(job)
        self.rule.went(job, True)

    @compiled
    def _batch(self) -> cython.void:
        """Let all completions happen that are due, then all arrivals."""
        while self.state.ends.count > 0 and self.state.ends.time[0] == self.state.now:
            self._finish_next()
        while self.arrived < self.state.num_jobs and (
            self.state.submit[self.arrived] == self.state.now
        ):
            self._arrive()

    # One event at a time.

    @compiled
    def _begin_turn(self) -> cython.void:
        """Begin an instant of events one by one.

        With submissions first, a running job that ends now, and was expected to by now, counts as
        gone already in every decision.
        """
        job: cython.int = self.state.first_running
        self.leads = False
        if self.events != EVENTS_SUBMISSIONS_FIRST or not self.state.plans:
            return
        if self._next_end() != self.state.now:
            return
        first: cython.int = self.state.ends.job[0]
        while job >= 0:
            following = self.state.following[job]
            if self.state.end_of(job) == self.state.now and (
                self.state.expected.end[job] <= self.state.now
            ):
                if job == first:
                    self.leads = True
                self._finish(job)
            job = following
        self.news = False  # what these call for is decided with the first event, or as `leads`

    @compiled
    def _one_event(self) -> cython.bint:
        """Let the next event of this instant happen; return whether there was one."""
        ends: cython.bint = self._next_end() == self.state.now
        comes: cython.bint = self._next_submit() == self.state.now
        if comes and (self.events == EVENTS_SUBMISSIONS_FIRST or not ends):
            self._arrive()
        elif self.leads and self.points == self.turn_points:
            self.leads = False
            self.news = True
        elif ends:
            self._finish_next()
        else:
            return False
        return True

    @compiled
    def advance(self) -> cython.int:
        """Go on until Python is needed, and return for what."""
        while True:
            if self.phase == PHASE_NEXT:
                code = self._go_to_next()
                if code >= 0:
                    return code
            if self.phase == PHASE_EVENTS:
                self.returns = PHASE_END
                if self.events == EVENTS_BATCH:
                    self.phase = PHASE_SOURCES
                    self._batch()
                    if self.fresh.count > 0:
                        return LOOP_ARRIVED
                else:
                    self.phase = self.returns = PHASE_TURN
                    self._begin_turn()
            if self.phase == PHASE_TURN:
                if self._one_event():
                    self.had_event = True
                    self.phase = PHASE_DECIDE
                    if self.fresh.count > 0:
                        return LOOP_ARRIVED
                else:
                    self.phase = PHASE_SOURCES
                    self.returns = PHASE_END
            if self.phase == PHASE_SOURCES:
                self.phase = PHASE_ROUND
                if self._is_source_due():
                    return LOOP_SOURCES
            if self.phase == PHASE_ROUND:
                self.phase = PHASE_DECIDE
                self.state.happened = self.state.now
                if self.is_awake:  # unless events of this very instant had their decisions
                    self.is_awake = False
                    self.news = self.news or self.points == self.turn_points
                if self.every < ENDLESS and self.round * self.every == self.state.now:
                    self.round += 1
                    self.is_round = self.at_round = self.news = True
                    if self.keys == KEYS_PYTHON:
                        return LOOP_ROUND
                    if not self.asks:
                        self._rekey()
            if self.phase == PHASE_DECIDE:
                if (self.returns == PHASE_TURN and not self.news) or not self._is_due():
                    self.phase = self.returns
                    continue
                self.phase = PHASE_AFTER
                self.points += 1
                self.news = False
                if self.asks:
                    return LOOP_DECIDE
                self.rule.admission.begin()
                self.rule.decide()
            if self.phase == PHASE_AFTER:
                self.phase = self.returns
                if self.state.records:
                    self.recorder.decided(self.points)
                if self.wants_after:
                    return LOOP_AFTER
            if self.phase == PHASE_END:
                self.phase = PHASE_NEXT
                if self.state.records:
                    self.recorder.undecided()
                if self.ends_instants:
                    return LOOP_END

    @compiled
    def _go_to_next(self) -> cython.int:
        """Settle rates and move the clock; return why not, or -1."""
        if self.refused != PAIRS_REFUSED:
            return LOOP_SLICE
        if self.notes_up:
            self.record_up(self.state.now)
        if self.state.has_pace:
            self.state.settle()
        else:
            self.state.settle_bases()
        if self.slices.is_over():
            return LOOP_SLICE
        if self.state.num_over == self.state.num_jobs:
            return LOOP_OVER
        if self.is_asked:
            self.is_asked = False
        elif self._is_idle() or self._asks_whether_idle():
            self.is_asked = True
            return LOOP_IDLE
        now = self._next_time()
        if now > self.until or now == ENDLESS:
            return LOOP_OVER
        self.before, self.capped_before = self.state.now, self.time_capped
        self._count_capped(now)
        self.state.now = now
        self.phase = PHASE_EVENTS
        self.turn_points = self.points
        self.had_event = False
        if self.alarm <= now:
            self.alarm = ENDLESS
            self.is_awake = True
        if self.rule.alarm <= now:
            self.rule.alarm = ENDLESS
            self.is_awake = True
        return -1

    @compiled
    def _is_idle(self) -> cython.bint:
        """Return whether nobody who waits will ever be started, as far as can be known."""
        return self.standstill.look(
            self.arrived < self.state.num_jobs,
            self.certain == 0,
            self.pending < ENDLESS,
            self._next_alarm() < ENDLESS,
        )

    @compiled
    def _asks_whether_idle(self) -> cython.bint:
        """Return whether Python is to say if somebody may be started at a round to come."""
        return (
            self.asks_idle
            and self.state.num_running == 0
            and self.state.num_waiting > 0
            and self.arrived == self.state.num_jobs
            and self.certain == 0
            and self.pending == ENDLESS
        )

    @compiled
    def _next_alarm(self) -> cython.double:
        return self.alarm if self.alarm < self.rule.alarm else self.rule.alarm

    @compiled
    def _is_due(self) -> cython.bint:
        """Return whether a decision is made now."""
        if self.decides_in_rounds:
            self.news = self.is_round
        self.is_round = False
        if self.pending <= self.state.now:
            self.pending = ENDLESS
            return True
        if not self.news:
            return False
        if self.decide_every == ENDLESS:
            return True
        self.news = False
        if self.pending < ENDLESS:
            return False
        due = ceil(self.state.now / self.decide_every) * self.decide_every
        if due < self.state.now:
            due += self.decide_every
        if due > self.state.now:
            self.pending = due
            return False
        return True

    @compiled
    def _rekey(self) -> cython.void:
        """Work out the keys of all that wait again, and where they are ranked, of all that run."""
        for line in range(self.state.lines.num_lines):
            for cell in range(
                self.state.lines.begin[line],
                self.state.lines.begin[line] + self.state.lines.length[line],
            ):
                self._rekey_job(self.state.lines.slab[cell])
        self.state.lines.reorder()
        if self.rule.ranks_running():
            job = self.state.first_running
            while job >= 0:
                self._rekey_job(job)
                job = self.state.following[job]
        self.rule.rekeyed()

    @compiled
    def _rekey_job(self, job: cython.int) -> cython.void:
        if self.keys == KEYS_USAGE:
            self.state.lines.key[job] = self.state.books.key(job, self.state.now)
        elif self.keys == KEYS_LEVELS:
            self.state.lines.key[job] = self.levels.key(job, self.state.run_time(job))

    @compiled
    def _count_capped(self, until: cython.double) -> cython.void:
        """Count the time from now on until then, s, if somebody waits for power alone."""
        if self.state.has_power and self.rule.admission.capped and self.state.num_waiting > 0:
            self.time_capped += until - self.state.now

    @compiled
    def record_up(self, now: cython.double) -> cython.void:
        """Record the GPU units that are up from ``now`` on, those of reservations included."""
        units: cython.longlong = self.all_units - self.state.free.down()
        if units != self.units_up:
            self.units_up = units
            with cython.gil:
                self.ups.append((now, units))

    # Python's side.

    def note_up(self, all_units: int) -> None:
        """From now on record which of so many GPU units are up."""
        self.all_units = all_units
        self.notes_up = True
        self.record_up(-ENDLESS)

    def run(self) -> int:
        """Go on until Python is needed; return for what (``LOOP_...``).

        Raises what `check` does.
        """
        code: cython.int
        with cython.nogil:
            code = self.advance()
        self._raise_kept()
        return code

    def check(self) -> None:
        """Raise what could not be raised within the loop: what Python has raised that it asked.

        Raises:
            MemoryError: there was no memory for a longer array.
        """
        self._raise_kept()

    @cython.cfunc
    def _raise_kept(self) -> cython.void:
        if self.refused != PAIRS_REFUSED:
            raise MemoryError("there is no memory for what the run has to remember")
        if self.state.free.raised is not None:
            self.state.free.raised.raise_kept()
        self.rule.admission.announced.raised.raise_kept()
        if self.state.has_power:
            self.state.power.check()

    def take_fresh(self) -> list:
        """Return the jobs that arrived, and wait for Python to say what becomes of them."""
        self.state.num_waiting -= self.fresh.count
        return self.fresh.take()

    def take_failed(self) -> list:
        """Return the jobs that failed at their end since this was asked last, in order."""
        return self.failed.take()

    def let_in(self, job: int, key: float = 0.0) -> None:
        """Let a job wait in the queue: it arrived, or was stopped.

        Args:
            job: its number.
            key: its key, where Python says it.
        """
        if self.keys == KEYS_PYTHON:
            self.state.lines.key[job] = key
        self.enter(job)

    def interrupt(self, job: int, loses: bool, goes_on: bool) -> None:
        """Take a running job off its GPUs, its work saved or lost; it is in no queue then.

        Args:
            job: its number.
            loses: what its checkpoints have not secured is lost.
            goes_on: it begins again elsewhere at once (`State.go_on`).
        """
        self.state.moving = goes_on
        self.state.stop(job, loses)
        if goes_on:
            self.rule.moves(job)
        else:
            self.rule.went(job, False)
        self.news = True

    def set_start_overhead(self, job: int, seconds: float, restarts: bool) -> None:
        """Let a job that runs nowhere pay so much as it starts, or restarts after an outage."""
        self.state.start_overhead[job] = seconds
        self.state.to_restart[job] = restarts

    def pause(self, job: int) -> None:
        """Take a running job off its GPUs with its work saved; it is in no queue then."""
        self.state.stop(job, False)
        self.state.preemptions[job] += 1
        if self.state.resumes:
            self.state.start_overhead[job] = self.state.resume_cost[job]
        self.rule.went(job, False)
        self.news = True

    def undo_instant(self) -> None:
        """Let the run end before this instant, at which nothing happened to anybody."""
        self.state.now, self.time_capped = self.before, self.capped_before

    def close_at(self, until: float) -> None:
        """Let things be as they are until the horizon, s, and book what running jobs have done."""
        if until < ENDLESS:
            self._count_capped(until)
        self.state.close_at(until)

    def end_failed(self, job: int) -> None:
        """Let a job that waits nowhere be over: it failed."""
        self.state.status[job] = STATE_FAILED
        self.state.num_over += 1
        self.rule.went(job, True)

    def failing(self) -> int:
        """Return the next job that fails by itself by now, -1 if there is none."""
        return self.state.hazards.job[0] if self._fails_now() else -1

    def fail_at(self, job: int, run_time: float) -> None:
        """Let a job fail once it has been on its GPUs for so long, s."""
        self.state.fail_at[job] = run_time

    def surprise(self) -> None:
        """Tell the rule that capacity was lost or came back that nobody had announced."""
        self.rule.surprised()

    def rekey(self, jobs: numpy.ndarray, keys: numpy.ndarray) -> None:
        """Give jobs other keys.

        Args:
            jobs: Int32 array (k,), active jobs.
            keys: Float array (k,), their keys.
        """
        at: cython.longlong
        count: cython.longlong = len(jobs)
        job: cython.int[::1] = jobs
        key: cython.double[::1] = keys
        for at in range(count):
            self.state.lines.key[job[at]] = key[at]
        self.state.lines.reorder()
        self.rule.rekeyed()

    @property
    def gave_up(self) -> bool:
        """Whether nobody who waits will ever be started, as far as can be known."""
        return self.standstill.gave_up

    @property
    def next_alarm(self) -> float:
        """When a decision is asked for though nothing happens, s; inf = never."""
        return self._next_alarm()

    @property
    def is_pending(self) -> bool:
        """Whether a decision was called for that is made later."""
        return self.pending < ENDLESS

    @property
    def has_news(self) -> bool:
        """Whether something happened at this instant that calls, or called, for a decision."""
        return self.news or self.is_awake or self.had_event

    @property
    def now(self) -> float:
        """The instant, s."""
        return self.state.now

    def takes_round(self) -> bool:
        """Return whether a round began since this was asked last."""
        began: bool = bool(self.at_round)
        self.at_round = False
        return began
