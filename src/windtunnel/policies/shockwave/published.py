"""Shockwave's published simulator: rounds of 120 s on one GPU type, for ``compat="shockwave"``.

A round lasts until its last job hands in; jobs do whole steps; a job that did not run in the round
before loses 20 s of a full round's work; batch sizes change when a job next hands in; and a job
whose run time passes a cut is ended, however many steps are left. Shares, where the policy gives
any, become rounds by priority = share / part of the time received, as in Gavel.

Zheng et al., NSDI'23; uw-mad-dash/shockwave, ``scheduler/scheduler.py``.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from windtunnel.policies.shockwave.work import Progress
from windtunnel.throughput.batch_sizes import batch_size_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.policies.shockwave.market import Market
    from windtunnel.policies.shockwave.work import InTraining, TrainingJob

    #: From now (s), the active jobs and the GPUs to the share of each job, in [0, 1]; see `shares`
    #: beside this module.
    SharePolicy = Callable[[float, Mapping[int, InTraining], int], dict[int, float]]

#: Seconds that a job loses in a full round before which it did not run.
OVERHEAD = 20.0
#: Rounds shorter than this many seconds under the length are no full ones.
_SLACK = 5.0
#: Failed rounds after which a job is ended.
_FAILURES = 5


@dataclass(frozen=True)
class Rules:
    """The published simulator's numbers.

    Attributes:
        length: seconds a round.
        gap: least seconds between two decisions on shares.
        cut: a job ends when its run time passes int(cut x int(ideal duration)); infinite = never.
        overhead: seconds lost by a job that did not run in the round before.
    """

    length: float = 120.0
    gap: float = 1000.0
    cut: float = 1.5
    overhead: float = OVERHEAD


@dataclass
class RoundBooks:
    """What a run leaves behind.

    Attributes:
        schedule: job -> GPU numbers, round by round.
        starts: when each round began, s.
        ends: when each round ended, s.
        end: completion time of each job, s, by job.
        admitted: round in which each job came.
        gone: round in which it was found to be done.
        speeds: job -> [(round, steps per second, batch size)], one for each round run.
        run_time: job -> GPU -> seconds booked.
        extended: leases that went on with the same GPUs.
        could_extend: leases that could have.
    """

    schedule: list[dict[int, tuple[int, ...]]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    end: dict[int, float] = field(default_factory=dict)
    admitted: dict[int, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    speeds: dict[int, list[tuple[int, float, int]]] = field(default_factory=dict)
    run_time: dict[int, dict[int, float]] = field(default_factory=dict)
    extended: int = 0
    could_extend: int = 0


class PublishedRounds:
    """One run of the published simulator.

    Args:
        jobs: by submission.
        num_gpus: of the one type.
        rules: its numbers.
    """

    def __init__(
        self,
        jobs: Sequence[TrainingJob],
        num_gpus: int,
        rules: Rules,
    ) -> None:
        self.jobs, self.num_gpus, self.rules = jobs, num_gpus, rules
        self.planner: Market | None = None
        self.accounts: _Accounts | None = None
        self.books = RoundBooks()
        self.active: dict[int, Progress] = {}
        self.failures: dict[int, int] = {}
        self.arrived = 0
        self.now = 0.0
        self.round_start = 0.0
        self.round_end: float | None = None
        self.running: list[tuple[float, int, int]] = []  # finish, job, steps

    def share_by(self, shares: SharePolicy) -> None:
        """Let a policy that gives shares decide."""
        self.accounts = _Accounts(shares, self.rules, self.num_gpus)

    def plan_with(self, planner: Market) -> None:
        """Let a planner decide."""
        self.planner = planner

    def run(self) -> RoundBooks:
        """Return the run to its end, which comes with the first idle gap (published)."""
        while len(self.books.end) < len(self.jobs):
            if self.running:
                self.round_start = self.round_end or 0.0
                self.now = self.round_end = max(finish for finish, _, _ in self.running)
                self.books.ends.append(self.now)
            elif self.arrived < len(self.jobs):
                self.now = max(self.now, self.jobs[self.arrived].submit)
            elif not self._hurry():
                break
            ran = self._hand_in()
            self._request_batch_sizes()
            if self.planner is not None and self.now > 0:
                self.planner.close_round(ran, self.active)
            self._admit()
            if not self.active:
                break
            self._start_round()
        return self.books

    def _hurry(self) -> bool:
        """Let shares be decided on at once where nothing runs and nobody is to come."""
        return self.accounts is not None and self.accounts.hurry()

    def _admit(self) -> None:
        while self.arrived < len(self.jobs) and self.jobs[self.arrived].submit <= self.now:
            number = self.arrived
            self.active[number] = Progress(self.jobs[number])
            self.books.admitted[number] = len(self.books.schedule)
            if self.accounts is not None:
                self.accounts.add(number)
            if self.planner is not None:
                self.planner.admit(number, self.active[number], self.now)
            self.arrived += 1

    def _hand_in(self) -> list[int]:
        """Book the round that is over, latest finish first; return who ran."""
        ran = []
        for finish, number, steps in sorted(self.running, key=lambda r: (-r[0], r[1])):
            ran.append(number)
            self._book(number, finish, steps)
        self.running = []
        return ran

    def _book(self, number: int, finish: float, steps: int) -> None:
        progress, books, rules = self.active[number], self.books, self.rules
        seconds = finish - self.round_start
        before = books.schedule[-2] if len(books.schedule) > 1 else None
        full = seconds > rules.length - _SLACK and seconds != 0
        if before is not None and number not in before and full and rules.overhead:
            steps = int(steps * ((seconds - rules.overhead) / seconds))
            seconds -= rules.overhead
        speed = (len(books.schedule), steps / seconds if seconds > 0 else 0.0, progress.batch_size)
        books.speeds.setdefault(number, []).append(speed)
        if steps <= 0 and seconds <= 0:
            self._fail(number, finish)
            return
        self.failures[number] = 0
        self._credit(number, steps, seconds)
        if progress.left == 0 or self._counted(number) > self._limit(number):
            self._remove(number, finish)
        else:
            progress.rescale()

    def _credit(self, number: int, steps: int, seconds: float, charged: float = 0.0) -> None:
        """Book what a job did in a round, of which some seconds were charged before."""
        progress = self.active[number]
        progress.done += steps
        progress.run_time += seconds
        spent = self.books.run_time.setdefault(number, {})
        for gpu in self.books.schedule[-1][number]:
            spent[gpu] = spent.get(gpu, 0.0) + seconds
        if self.accounts is not None:
            self.accounts.charge(number, seconds - charged)

    def _limit(self, number: int) -> float:
        """Return the run time at which a job is ended."""
        cut, ideal = self.rules.cut, int(self.jobs[number].profile.duration)
        return int(cut * ideal) if cut < math.inf else math.inf

    def _counted(self, number: int) -> float:
        """Return the run time that counts against the cut: over all GPUs, by the gang's size.

        Added one by one, as published: from Python 3.12 on `sum` makes up for what is rounded.
        """
        total = reduce(operator.add, self.books.run_time[number].values(), 0.0)
        return total / self.jobs[number].gpus

    def _fail(self, number: int, finish: float) -> None:
        """Book a round in which there was nothing to do; after five the job is ended."""
        self.failures[number] = self.failures.get(number, 0) + 1
        if self.accounts is not None:
            self.accounts.changed = True
        if self.failures[number] >= _FAILURES:
            self._remove(number, finish)
        else:
            self.active[number].rescale()

    def _remove(self, number: int, finish: float) -> None:
        self.books.end[number] = finish
        self.books.gone[number] = len(self.books.schedule)
        del self.active[number]
        if self.accounts is not None:
            self.accounts.drop(number)

    def _request_batch_sizes(self) -> None:
        for progress in self.active.values():
            asked = batch_size_request(progress.kind, progress.batch_size, progress.epochs_begun)
            progress.asked = progress.asked if asked is None else asked

    def _start_round(self) -> None:
        if self.accounts is not None:
            chosen = self.accounts.choose(self.now, self.active)
        else:
            assert self.planner is not None  # noqa: S101 - one of the two decides
            chosen = self.planner.chosen()
        placed = self._placed(chosen)
        self.books.schedule.append(placed)
        self.books.starts.append(self.now)
        if not chosen:  # shares that are not decided on yet: nothing runs
            self.books.ends.append(self.now)
        for number in chosen:
            progress = self.active[number]
            steps = min(int(progress.speed * self.rules.length), progress.left)
            finish = self.now + steps / progress.speed
            self.running.append((finish, number, steps))

    def _placed(self, chosen: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return GPUs by job: those it had, if it may keep them all; else the lowest free ones."""
        before = self.books.schedule[-1] if self.books.schedule else {}
        sizes = {number: int(self.jobs[number].gpus) for number in chosen}
        free = set(range(self.num_gpus))
        placed: dict[int, tuple[int, ...]] = {}
        for size in sorted(set(sizes.values()), reverse=True):
            of_size = [number for number in chosen if sizes[number] == size]
            for number in of_size:
                if number in before and free.issuperset(before[number]):
                    placed[number] = before[number]
                    free.difference_update(before[number])
            for number in of_size:
                if number not in placed:
                    placed[number] = tuple(sorted(free)[:size])
                    free.difference_update(placed[number])
        self.books.could_extend += sum(number in self.active for number in before)
        self.books.extended += sum(before.get(n) == gpus for n, gpus in placed.items())
        return placed


class _Accounts:
    """Gavel's books: shares, received time, deficits, and who runs because of them."""

    def __init__(self, shares: SharePolicy, rules: Rules, num_gpus: int) -> None:
        self._shares, self._rules, self._num_gpus = shares, rules, num_gpus
        self._half = rules.length / 2
        self._share: dict[int, float] = {}
        self._deficit: dict[int, float] = {}
        self._received: dict[int, float] = {}
        self._total = 0.0
        self._last_reset = 0.0
        self.changed = True

    def add(self, number: int) -> None:
        """Add a job that arrived."""
        self._received[number], self._deficit[number] = self._half, 0.0
        self.changed = True

    def drop(self, number: int) -> None:
        """Remove a job that is done; what it received still counts in all."""
        for of in (self._share, self._deficit, self._received):
            of.pop(number, None)
        self.changed = True

    def charge(self, number: int, seconds: float) -> None:
        """Book time that a job received, s."""
        self._received[number] += seconds
        self._total += seconds

    def hurry(self) -> bool:
        """Forget when shares were decided on; return whether that lets them be decided on."""
        may = self.changed and self._last_reset != 0
        self._last_reset = 0.0
        return may

    def choose(self, now: float, active: Mapping[int, Progress]) -> list[int]:
        """Return who runs, shares decided on anew where that is due."""
        due = now - self._last_reset >= self._rules.gap or self._last_reset == 0
        if self.changed and due:
            self._reset(now, active)
        priority = {number: self._priority(number) for number in active}
        order = sorted(
            active,
            key=lambda n: (-priority[n], -self._deficit[n], -self._share.get(n, 0.0)),
        )
        left, chosen = self._num_gpus, []
        for number in order:
            gang = int(active[number].job.gpus)
            if gang <= left:
                left -= gang
                if number in self._share:  # the others hold their GPUs without running
                    chosen.append(number)
            if not left:
                break
        return chosen

    def _priority(self, number: int) -> float:
        share = self._share.get(number, 0.0)
        if share == 0:
            return 0.0
        part = self._received[number] / self._total if self._total else 0.0
        return share / part if part else share * 1e9

    def _reset(self, now: float, active: Mapping[int, Progress]) -> None:
        elapsed = now - self._last_reset
        for number in active:
            given = self._share.get(number, 0.0) * elapsed
            self._deficit[number] += given - (self._received[number] - self._half)
            self._received[number] = self._half
        self._total = self._half * len(active)
        self._share = self._shares(now, active, self._num_gpus)
        self._last_reset, self.changed = now, False
