"""Preemption: who of all active jobs, waiting and running, runs, by rank.

`Preemption` keeps the running jobs in order of rank; `QuotaWalk` and `Feasible` choose by it.
`PreemptiveRule` is the queueing rules strict and skip with one of them; rules that backfill let one
of them choose first.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.ranked import RANKED_CAPACITY, Ranked
from windtunnel.kernel.rounding import in_32_bits
from windtunnel.kernel.rules import Rule
from windtunnel.kernel.sorting import sort_by_key
from windtunnel.kernel.state import State


@cython.cclass
class Preemption:
    """Running jobs by rank.

    A job's rank is its key, then its number. Where the key is the time left to run, that of all
    running jobs falls alike, so that the list is in order of ends and needs no care; where it falls
    at different speeds (service left, or jobs that are slowed) the list is sorted at each decision.

    Args:
        state: the run.
        admission: where jobs fit.
        by_remaining: the key is the time left to run (`State.time_left`).
        weight: what that time counts for each job; None = once.

    Attributes:
        ranks: running jobs by what ``stored`` has, as far as `absorb` has seen them.
        stored: of running jobs the end, or the key where it is not the time left.
        moves: keys of running jobs fall at different speeds.
        leaps: a running job's key may rise by a rounding as its rate changes. So nothing is
            remembered from one decision to the next.
        last: when the last walk was, s.
        steady: nothing but arrivals has happened since the last decision.
    """

    state: State
    free: Free
    lines: Lines
    admission: Admission
    ranks: Ranked
    by_remaining: cython.bint
    moves: cython.bint
    leaps: cython.bint
    is_sorted: cython.bint
    has_weight: cython.bint
    weight: cython.double[::1]
    is_ranked: cython.char[::1]
    stored: cython.double[::1]
    seen_stays: cython.int
    steady: cython.bint
    last: cython.double
    in_order: JobList
    dropped: JobList
    chosen: JobList

    def __init__(
        self,
        state: State,
        admission: Admission,
        *,
        by_remaining: bool = False,
        weight: numpy.ndarray | None = None,
    ) -> None:
        self.state, self.admission = state, admission
        self.free, self.lines = state.free, state.lines
        self.ranks = Ranked()
        self.by_remaining = by_remaining
        self.has_weight = by_remaining and weight is not None
        self.weight = numpy.ascontiguousarray(weight) if self.has_weight else numpy.ones(1)
        self.moves = by_remaining and (self.has_weight or state.has_pace)
        self.leaps = by_remaining and state.has_pace
        self.is_ranked = numpy.zeros(max(state.num_jobs, 1), dtype=numpy.int8)
        self.stored = numpy.zeros(max(state.num_jobs, 1))
        self.in_order, self.dropped, self.chosen = JobList(), JobList(), JobList()
        self.last = -ENDLESS

    # What the rule is notified of.

    @compiled
    def comes(self, job: cython.int) -> cython.void:
        """Give a job that is about to wait its key, where that is the time left."""
        if self.by_remaining:
            self.lines.key[job] = self.waiting_key(job)

    @compiled
    def waiting_key(self, job: cython.int) -> cython.double:
        """Return how long a waiting job needs its GPUs at full speed; see `State.time_left`."""
        left: cython.double = self.state.left[job]
        if self.state.resumes:
            left = left + self.state.start_overhead[job]
        if self.state.writes:
            checkpoints = self.state.checkpoints.in_all(self.state.left[job])
            left = left + checkpoints * self.state.checkpoints.cost
        return in_32_bits(left * self.weight[job]) if self.has_weight else left

    @compiled
    def leaves(self, job: cython.int) -> cython.void:
        """Note that a job left its GPUs."""
        self.steady = False
        if self.is_ranked[job]:
            self.ranks.remove(self.stored[job], job)
            self.is_ranked[job] = False

    @compiled
    def rekeyed(self) -> cython.void:
        """Note that keys have changed."""
        self.steady = False
        self.absorb()
        if not self.by_remaining:
            self.sort_again()

    # Ranks.

    @compiled
    def absorb(self) -> cython.void:
        """Rank the jobs that have begun a stay since this was called last."""
        for stay in range(self.seen_stays, self.state.stays.count):
            job = self.state.stays.job[stay]
            if self.state.stay[job] == stay:
                self.is_ranked[job] = True
                self.stored[job] = self.to_store(job)
                self.ranks.insert(self.stored[job], job, job, self.state.units[job])
        self.seen_stays = self.state.stays.count

    @compiled
    def to_store(self, job: cython.int) -> cython.double:
        """Return what a running job is ranked by."""
        if not self.by_remaining:
            return self.lines.key[job]
        if not self.moves:
            return self.state.end_of(job)
        return self.running_key(job)

    @compiled
    def running_key(self, job: cython.int) -> cython.double:
        """Return a running job's key now."""
        if not self.by_remaining:
            return self.lines.key[job]
        left = self.state.time_left(job)
        return in_32_bits(left * self.weight[job]) if self.has_weight else left

    @compiled
    def shift(self) -> cython.double:
        """Return what is to be subtracted from what is stored to have a key of now."""
        return self.state.now if self.by_remaining and not self.moves else 0.0

    @compiled
    def sort_again(self) -> cython.void:
        """Rank all running jobs again: their keys have changed, each in its own way."""
        self.in_order.count = 0
        for place in range(self.ranks.used):
            number = self.ranks.block[place]
            for index in range(self.ranks.length[number]):
                job = self.ranks.job[number * RANKED_CAPACITY + index]
                self.stored[job] = self.to_store(job)
                self.in_order.add(job)
        sort_by_key(self.in_order.job, 0, self.in_order.count, self.stored)
        self.ranks.clear()
        for index in range(self.in_order.count):
            job = self.in_order.job[index]
            self.ranks.append(self.stored[job], job, job, self.state.units[job])

    # Choosing.

    @compiled
    def walk(self, past_refused: cython.bint) -> cython.int:
        """Choose who runs, and let it be so.

        Args:
            past_refused: go on past a job that cannot be chosen.

        Returns:
            The first job that cannot be chosen, where the walk ends there; -1 = none.
        """
        return -1

    @compiled
    def begin_walk(self) -> cython.void:
        """See to the ranks before a walk; `see_ranks` has to follow before they are used."""
        self.absorb()
        self.is_sorted = not self.moves
        self.chosen.count = 0
        self.dropped.count = 0

    @compiled
    def see_ranks(self) -> cython.void:
        """Let ``ranks`` be in order now."""
        if not self.is_sorted:
            self.is_sorted = True
            self.sort_again()

    @compiled
    def has_leapt(self) -> cython.bint:
        """Return whether keys may have changed as they do not by time alone since the last walk.

        At the instant of that walk, by a rounding: of the time left of a job that has just started.
        """
        return self.leaps or (self.by_remaining and self.last == self.state.now)

    @compiled
    def end_walk(self) -> cython.void:
        """Nothing has happened since this walk."""
        self.steady = True
        self.last = self.state.now

    @compiled
    def drop(self, job: cython.int) -> cython.void:
        """Add a running job to those that are to be preempted: they are in order of start."""
        place: cython.int = self.dropped.count
        self.dropped.add(job)
        while place > 0 and self.state.stay[self.dropped.job[place - 1]] > self.state.stay[job]:
            self.dropped.job[place] = self.dropped.job[place - 1]
            place -= 1
        self.dropped.job[place] = job

    @compiled
    def stop(self, job: cython.int) -> cython.void:
        """Preempt a running job; it is in no line yet."""
        self.leaves(job)
        self.state.preempt(job, False)
        if self.by_remaining:
            self.lines.key[job] = self.waiting_key(job)


@cython.cclass
class PreemptingRule(Rule):
    """What rules share that may preempt.

    Args:
        state: the run.
        admission: says who may start.
        preemption: chooses who runs; None = nobody is preempted.

    Attributes:
        preempts: there is one.
    """

    preempts: cython.bint
    preemption: Preemption

    def __init__(self, state: State, admission: Admission, preemption: Preemption | None) -> None:
        Rule.__init__(self, state, admission)
        self.preempts = preemption is not None
        self.preemption = preemption

    @compiled
    def comes(self, job: cython.int) -> cython.void:
        """Note that a job is about to wait."""
        if self.preempts:
            self.preemption.comes(job)

    @compiled
    def went(self, job: cython.int, is_over: cython.bint) -> cython.void:
        """Note that a job left its GPUs."""
        if self.preempts:
            self.preemption.leaves(job)

    @compiled
    def moves(self, job: cython.int) -> cython.void:
        """Note that a job goes on with other GPUs."""
        if self.preempts:
            self.preemption.leaves(job)

    @compiled
    def surprised(self) -> cython.void:
        """Note that capacity was lost or came back."""
        if self.preempts:
            self.preemption.steady = False

    @compiled
    def rekeyed(self) -> cython.void:
        """Note that keys have changed."""
        if self.preempts:
            self.preemption.rekeyed()

    def giving_way(self, line: int) -> tuple:
        """Return a line's first job, and the running jobs that are ranked below it."""
        first: cython.int = self.lines.head(line)
        job: cython.int = self.state.first_running if self.preempts else -1
        below = []
        while job >= 0:
            key = self.preemption.running_key(job)
            if key > self.lines.key[first] or (key == self.lines.key[first] and job > first):
                below.append(job)
            job = self.state.following[job]
        return first, below

    @compiled
    def ranks_running(self) -> cython.bint:
        """Return whether running jobs have keys, too."""
        return self.preempts and not self.preemption.by_remaining


@cython.final
@cython.cclass
class PreemptiveRule(PreemptingRule):
    """Strict or skip, with preemption.

    Args:
        past_refused: skip.
    """

    past_refused: cython.bint

    def __init__(
        self, state: State, admission: Admission, preemption: Preemption, *, past_refused: bool
    ) -> None:
        PreemptingRule.__init__(self, state, admission, preemption)
        self.past_refused = past_refused

    @compiled
    def decide(self) -> cython.void:
        """Let those run who may, and stop others for them."""
        self.preemption.walk(self.past_refused)
