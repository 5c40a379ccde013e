"""`Controller`: slurmctld at work: when its loops run, what jobs are worth, who has begun.

Seconds are whole. What happened within a second is seen from the next one on. The *main loop* runs
then for jobs that ended, over its whole queue every ``sched_interval`` (60 s), and for submissions
``batch_sched_delay`` (3 s) at least after the last such run or one over all of the queue. *Backfill
cycles* follow each other by their interval; where nobody waited in the last one, the next is once
that time has passed and something has happened.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

from windtunnel.sim.slurm.minutes import Minutes
from windtunnel.sim.slurm.preempting import REQUEUE
from windtunnel.sim.slurm.priority import BASIC_FIRST, Multifactor
from windtunnel.sim.slurm.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.sim.slurm.tables import SlurmTables
    from windtunnel.site.slurm import SlurmReservation


#: A job that is to run again may begin so long after its nodes were free, s: as long as its old
#: credential lives, and one second.
AGAIN = 121
#: Time limits and notices are looked at so often, s (``PERIODIC_TIMEOUT``).
LOOK = 30


class Controller:
    """The two loops and their clocks, over a site's tables.

    Args:
        tables: the site and the jobs, nobody running or waiting.
        phase: second of a backfill cycle, from which on they follow each other; None = nothing
            happens before the first job, and the first cycle is as soon as it is known.
        minute: second of the minute at which what slurmctld does by the clock is due: looking at
            time limits and notices, and the main loop's full runs.
        reservations: those there will be; None = the site's.

    Attributes:
        loops: the kernel's two loops.
        waiting: jobs that may be started, by number.
        running: jobs that run.
        stopped: jobs that the last `act` stopped for others.
        stuck: how many jobs wait that can never start: cycles follow each other for them, too.
    """

    def __init__(
        self,
        tables: SlurmTables,
        *,
        phase: int | None = None,
        minute: int = 0,
        reservations: Sequence[SlurmReservation] | None = None,
    ) -> None:
        site = tables.site
        self.tables, self.loops, self.requests = tables, tables.loops, tables.requests
        self.settings = site.settings
        self.priority = site.settings.priority
        self.interval = tables.settings["bf_interval"]
        self.waiting: set[int] = set()
        self.running: set[int] = set()
        self.shares = Shares(site.associations, self.priority)
        self.minutes = Minutes(tables, self.shares.decay)
        self.multifactor = Multifactor(site)
        self.stopped: list[int] = []
        self.stuck = 0
        self._later: list[tuple[int, int]] = []
        self.since: dict[int, int] = {}
        self._used_to: dict[int, int] = {}
        self._reservations = site.reservations if reservations is None else reservations
        self._holds: list[SlurmReservation] | None = None
        self._reserving = [job for job, r in enumerate(self.requests) if r.reservation]
        self._calculated = 0
        # Main loop: when it is to run, and whether a full run may find anybody.
        self._direct = self._queued = math.inf
        self._delay = tables.settings["batch_sched_delay"]
        self._full = max(tables.settings["sched_interval"], 1)
        self._minute = minute
        self._defers = "defer" in site.settings.scheduler
        self._last_queued: float = -self._delay
        self._is_new_to_full = False
        # Backfill: the last cycle, whether somebody waited in it, what has changed since.
        self._last_cycle = (1 if phase is None else phase) - self.interval
        self._was_busy = phase is not None
        self._changed = math.inf
        #: Seconds to whose multiples what is due is delayed; 0 = it is not.
        self.every = 0.0

    # What happens.

    def submit(self, job: int, now: float) -> None:
        """Let a job wait: it may run from ``now`` (s) on."""
        self._enter(job, math.floor(now))
        self.ask(now)

    def _enter(self, job: int, second: int) -> None:
        self._catch_up(second)
        self.since[job] = self._used_to[job] = second
        self._rate(job, second)
        self.loops.put_pending(job)
        self.waiting.add(job)
        self._note(second)

    def submit_later(self, job: int, now: float) -> None:
        """Let a job wait that may run from ``now`` (s) on, which nobody notices by itself."""
        heapq.heappush(self._later, (math.floor(now), job))

    @property
    def expects(self) -> bool:
        """Whether there are jobs that may run again from a later time on."""
        return bool(self._later)

    def requeue(self, job: int, now: float) -> None:
        """Let a job wait that has run, and whose nodes were free again at ``now`` (s)."""
        self.tables.jobs.columns["submitted"][job] = math.floor(now)
        self.submit_later(job, now + AGAIN)

    def end(self, job: int, now: float) -> None:
        """Let a running job have given back its nodes."""
        second = math.floor(now)
        self._use(job, second)
        self.minutes.end(job)
        self.loops.leave_now(job)
        self.running.discard(job)
        if self._defers:
            self.ask(now)
            return
        self._catch_up(second)
        self._direct = min(self._direct, second + 1)
        self._note(second)

    def withdraw(self, job: int, now: float) -> None:
        """Let a job wait no longer: it was cancelled."""
        self.waiting.discard(job)
        self._later = [due for due in self._later if due[1] != job]
        heapq.heapify(self._later)
        self.loops.withdraw(job)
        self._note(math.floor(now))

    def put_back(self, job: int) -> None:
        """Let a job that a loop has just started wait on: its nodes cannot be had after all."""
        self.loops.leave_now(job)
        self.running.discard(job)
        self.loops.put_pending(job)
        self.waiting.add(job)
        self._changed = min(self._changed, self._last_cycle + 1)  # the cycle may have been already

    def ask(self, now: float) -> None:
        """Say that something has changed by which jobs may start."""
        second = math.floor(now)
        self._catch_up(second)
        last = max(self._last_queued, self._last_full(second))
        due = max(second + 1, last + self._delay)
        self._queued = min(self._queued, due, _next(second, self._full, self._minute))
        self._note(second)

    def _last_full(self, second: int) -> float:
        """Return when the last full run was by a second; slurmctld began at second 0."""
        full = second - (second - self._minute) % self._full
        return full if full > 0 else -math.inf

    def _note(self, second: int) -> None:
        self._catch_up(second)
        self._is_new_to_full = True
        self._changed = min(self._changed, second + 1)

    def _catch_up(self, second: int) -> None:
        """Let what was due by a second, and nothing woke the run for, have been done.

        It found nobody, yet the next cycle and the next look at submissions are counted from it.
        """
        if self.waiting or self.stuck:
            self._count_cycles_left_out(second)
        else:
            self._count_what_found_nobody(second)

    def _count_cycles_left_out(self, second: int) -> None:
        """Count cycles in which nobody could begin: each delay moves those that follow."""
        while self.every and self._was_busy:
            done = self._done_at(self._last_cycle + self.interval)
            if done >= second:
                break
            self._last_cycle = int(done)

    def _count_what_found_nobody(self, second: int) -> None:
        """Count the runs of the main loop, and the cycle, that were due while nobody waited."""
        if self._done_at(min(self._direct, self._queued)) <= second:
            if self._done_at(self._queued) <= self._done_at(self._direct):
                self._last_queued = self._done_at(self._queued)
            self._direct = self._queued = math.inf
        cycle = self._done_at(self._cycle_after_change())
        if cycle <= second:
            self._last_cycle, self._changed, self._was_busy = int(cycle), math.inf, False

    def _done_at(self, due: float) -> float:
        """Return the second at which something is done that is due at one."""
        if not self.every or due == math.inf:
            return due
        return math.floor(math.ceil(due / self.every) * self.every)

    def _cycle_after_change(self) -> float:
        """Return when the next backfill cycle is for what has changed; inf = nothing has."""
        if self._changed == math.inf:
            return math.inf
        if self._was_busy:
            return _next(max(self._changed - 1, self._last_cycle), self.interval, self._last_cycle)
        return max(self._changed, self._last_cycle + self.interval)

    # What it does.

    def next_time(self, after: float) -> float:
        """Return the next second after ``after`` at which there is something to do; inf = never."""
        times: list[float] = []
        if self.priority.multifactor and (self.waiting or (self.running and self.shares.root)):
            times.append(_next(after, self.priority.period, 1))
        if self.waiting:
            times += [self._direct, self._queued]
            if self._full_may_find:
                times.append(_next(after, self._full, self._minute))
            if self.settings.backfill:
                times.append(self._next_cycle(after))
            times += [math.floor(bound) + 1 for bound in self._bounds() if bound >= after]
        if self._later:
            times.append(self._later[0][0])
        notice = self.loops.first_notice()
        if notice >= 0:
            times.append(_next(max(after, notice - 1), LOOK, self._minute))
        return max(min(times, default=math.inf), math.floor(after) + 1)

    @property
    def _full_may_find(self) -> bool:
        """Whether a full run may find anybody; who may be stopped for others goes by the time."""
        return self._is_new_to_full or self._may_stop

    @property
    def _may_stop(self) -> bool:
        """Whether somebody runs who may be stopped for others."""
        return bool(self.running) and self.loops.preempts()

    def _bounds(self) -> Iterator[float]:
        """Yield the instants at which reservations are made, begin or end."""
        for hold in self._reservations:
            yield from (hold.made, hold.start, hold.end)

    def _next_cycle(self, after: float) -> float:
        """Return when the next backfill cycle is that may start somebody."""
        if self._changed < math.inf and not self._was_busy:
            return self._cycle_after_change()
        news = self._changed
        if news == math.inf:
            # What is reserved for others moves as time passes, even where nothing happens.
            if not (self._may_stop or self.loops.may_begin_later()):
                return math.inf
            news = 0
        first = max(news - 1, self._last_cycle, after)
        return _next(first, self.interval, self._last_cycle)

    def act(self, now: int, due: int | None = None) -> list[int]:
        """Do what is due at a second; return the jobs that were started, in order.

        Args:
            now: the second.
            due: from when on things have been due, where decisions are delayed; None = ``now``.
        """
        first = now if due is None else due
        found: list[int] = []
        self.stopped = []
        while self._later and self._later[0][0] <= now:
            self._enter(heapq.heappop(self._later)[1], now)
        if self.looks(now, first):
            self.stopped += self.loops.noticed(now)
        self._reserve(first, now)
        is_full = _falls(first, now, self._full, self._minute)
        if min(self._direct, self._queued) <= now or (is_full and self._full_may_find):
            if self._queued <= now or is_full:
                self._last_queued = now
            self._direct = self._queued = math.inf
            self._is_new_to_full = self._is_new_to_full and not is_full
            found += self._began(self.loops.run_main(now, is_full=is_full), now)
            self.stopped += self.loops.last_stopped()
        if self.settings.backfill and self._is_cycle(first, now):
            self._last_cycle, self._changed = now, math.inf
            self._was_busy = bool(self.waiting) or self.stuck > 0
            found += self._began(self.loops.run_backfill(now), now)
            self.stopped += self.loops.last_stopped()
        for job in self.stopped:
            self.end(job, now)
        # slurmctld calculates within this second, when its loops at the start of it have been.
        if self.priority.multifactor and _falls(first, now, self.priority.period, 1):
            self._calculate(now)
        return found

    def looks(self, now: int, first: int | None = None) -> bool:
        """Return whether time limits and notices are looked at in a second, or since another."""
        return _falls(now if first is None else first, now, LOOK, self._minute)

    def runs_again(self, job: int) -> bool:
        """Return whether a job that was stopped for another is to run again."""
        columns = self.tables.jobs.columns
        kinds = int(columns["qos"][job]), int(columns["part"][job])
        return self.tables.preempting.mode_of(*kinds) == REQUEUE

    def _reserve(self, first: int, now: int) -> None:
        """Let the reservations be known that there are, having looked last before ``first``."""
        if any(first - 1 <= bound < now for bound in self._bounds()):
            self.ask(now - 1)
        holds = [hold for hold in self._reservations if hold.made < now < hold.end]
        if holds == self._holds:
            return
        self._holds = holds
        self.loops.set_holds(self.tables.hold_tables(holds))
        numbers = {hold.name: at for at, hold in enumerate(holds)}
        for job in self._reserving:
            number = numbers.get(self.requests[job].reservation, -1)
            self.tables.jobs.columns["hold"][job] = number

    def _is_cycle(self, first: int, now: int) -> bool:
        if self._was_busy:
            first = max(first, self._last_cycle + 1)
            return _falls(first, now, self.interval, self._last_cycle)
        return now - self._last_cycle >= self.interval and self._changed <= now

    def _began(self, jobs: list[int], now: int) -> list[int]:
        for job in jobs:
            self.waiting.discard(job)
            self.running.add(job)
            self._used_to[job] = now
        if jobs:
            self._note(now - 1)
        return jobs

    # Priorities.

    def _rate(self, job: int, now: int) -> None:
        request = self.requests[job]
        if not self.priority.multifactor:
            self.tables.jobs.columns["priority"][job] = BASIC_FIRST - request.identity
            return
        self.shares.look_up(request.account, request.user)
        factors = self.multifactor.of(
            request,
            age=now - self.since[job],
            fair_share=self.shares.factor(request.account, request.user),
            limit=request.limit or 0,
        )
        self.tables.jobs.columns["priority"][job] = factors.total

    def _use(self, job: int, now: int) -> None:
        since = max(self._used_to[job], self._calculated)
        if now > since and self.priority.multifactor:
            request = self.requests[job]
            cpus = sum(cpus for _, cpus, _, _ in self.tables.stays.of(job))
            qos = self.tables.meters.qos.get(request.qos)
            weight = 1.0 if qos is None else qos.usage_factor
            self.shares.add(request.account, request.user, cpus * weight, now - since)
            self.minutes.use(job, weight, now - since)

    def _calculate(self, now: int) -> None:
        """Work out all priorities anew, and what was used since the last time."""
        self.shares.age(now - self._calculated)
        self.minutes.age(now - self._calculated)
        self.shares.settle()
        for job in sorted(self.running):
            self._use(job, now)
        self.shares.calculate()
        self._calculated = now
        for job in sorted(self.waiting):
            self._rate(job, now)
        self.loops.sort_queue()
        if self.waiting:
            self._note(now - 1)


def _next(after: float, period: int, phase: int) -> int:
    """Return the first second after ``after`` that is ``phase`` modulo ``period``."""
    first = math.floor(after) + 1
    return first + (phase - first) % period


def _falls(first: int, last: int, period: int, phase: int) -> bool:
    """Return whether a second from ``first`` to ``last`` is ``phase`` modulo ``period``."""
    return _next(first - 1, period, phase) <= last
