"""Tier-3 policies: they are asked, and what they decide is carried out, one decision at a time."""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parts import free_units
from windtunnel.errors import PolicyError
from windtunnel.sim.contract import Move, Preempt, Rerate, Resize, Start, Stop, Wake
from windtunnel.sim.reference.views import ClusterView, ElasticView, QueueView
from windtunnel.sim.refusals import DECISIONS, no_company, no_room, why_not

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.reference.state import State

#: Decisions in a row in which nothing runs, arrives or is started.
MAX_IDLEDECISIONS = 10_000


class Decider:
    """Asks a tier-3 policy and applies what it yields.

    Args:
        state: the run.
        policy: who decides.
        may_wait: jobs may wait for ever: room or power that they ask for may be gone.

    Raises (from `decide`):
        PolicyError: a decision that is impossible; names the instant and the job.
    """

    def __init__(self, state: State, policy: Policy, *, may_wait: bool) -> None:
        self.state, self.policy, self.may_wait = state, policy, may_wait
        #: The policy starts jobs by ``cluster.start``, or has tried to.
        self._starts = False
        #: What `ClusterView.fit` said last; nothing has changed since, so it still fits.
        self.offered: Where | None = None
        #: Jobs that began to wait, that are over, and that were stopped, since the last decision.
        self.arrived: list[int] = []
        self.done: list[int] = []
        self.stopped: list[int] = []
        self.alarms: list[float] = []
        self._idle, self._changes = 0, 0
        self._queue = QueueView(self)
        self._cluster = ClusterView(self) if state.works is None else ElasticView(self)

    def came(self, job: int, now: float, *, was_stopped: bool = False) -> None:  # noqa: ARG002 - one contract with the rules
        """Note that a job waits."""
        self.arrived.append(job)
        self.stopped += [job] if was_stopped else []

    def gone(self, job: int) -> None:
        """Note that a job is over, or out of the queue."""
        self.done.append(job)

    def rekey(self, now: float) -> None:
        """Do nothing: a tier-3 policy keeps no keys here."""

    def number(self, view: JobView) -> int:
        """Return the arrival number of a job the policy names.

        Raises:
            PolicyError: the job is not active.
        """
        number, state = getattr(view, "number", -1), self.state
        is_active = number in state.running or number in state.waiting
        if not is_active or state.view(number) is not view:
            raise self._impossible("names a job that is neither waiting nor running", view)
        return number

    def decide(self, now: float) -> None:
        """Ask the policy and apply its decisions."""
        self.offered = None
        while self.alarms and self.alarms[0] <= now:
            heapq.heappop(self.alarms)
        self._refuse_idling()
        for job in self.state.running:
            self.state.view(job)
        decisions: Any = self.policy.decide(now, self._queue, self._cluster)
        if decisions is None and (self._starts or not self.state.waiting):
            decisions = ()
        if not isinstance(decisions, Iterable):
            message = f"decide returned {decisions!r}; expected to yield {DECISIONS}"
            raise self._impossible(message, None)
        for decision in decisions:
            self._apply(decision)
            self.offered = None
        self.arrived.clear()
        self.done.clear()
        self.stopped.clear()

    def _apply(self, decision: Any) -> None:
        """Carry out one decision."""
        if isinstance(decision, Start):
            self._start(decision)
        elif isinstance(decision, Preempt):
            job = self._running(decision.job, "preempts")
            self.state.preempt(job, self.state.now)
        elif isinstance(decision, Rerate):
            job = self._running(decision.job, "rerates")
            self.state.set_base(job, self._rate(decision.rate, decision.job))
        elif isinstance(decision, Wake):
            self._set_alarm(decision.at)
        elif isinstance(decision, Move):
            self._move(decision)
        elif isinstance(decision, Resize):
            self._resize(decision)
        elif isinstance(decision, Stop):
            self.state.is_stopped = True
        else:
            message = f"yielded {decision!r}; expected {DECISIONS}"
            raise self._impossible(message, None)

    def _start(self, decision: Start) -> None:
        view, state = decision.job, self.state
        job = self.number(view)
        if view.running:
            raise self._impossible("starts a job that already runs", view)
        rate = self._rate(decision.rate, view)
        if decision.beside is not None:
            other = self._running(decision.beside, "starts a job beside")
            where: Where = state.running[other].where
            self._check_beside(job, other, says=decision.where is not None)
        else:
            other, where = None, self._checked("starts", job, decision.where, self.offered)
        state.begin(job, state.now, where, rate=rate, beside=other)

    def start_if_it_fits(self, decision: Start) -> bool:
        """Start a waiting job, or return False if it does not fit."""
        self._starts = True
        job = self.number(decision.job)
        if decision.where is None and not decision.job.running and self.state.fit(job) is None:
            return False
        self._start(decision)
        self.offered = None
        return True

    def no_company(self, job: int, other: int, *, says: bool = False) -> str:
        """Return why a job may not share the GPUs of a running one; empty if it may."""
        state = self.state
        place = state.running[other].place
        if state.works is not None:
            return "another in an elastic run"
        shares = len(place.jobs) > 1
        message = no_company(state.problem, job, other, place.where, shares=shares, says=says)
        if not message and not state.affords(job, place.where):
            message = "one where there is too little power for both"
        return message

    def _check_beside(self, job: int, other: int, *, says: bool) -> None:
        message = self.no_company(job, other, says=says)
        if message:
            raise self._impossible(f"starts a job beside {message}", self.state.view(job))

    def _move(self, decision: Move) -> None:
        view, state = decision.job, self.state
        job = self._running(view, "moves")
        stay = state.running[job]
        if state.works is not None:
            self._rate(1.0 if decision.rate is None else decision.rate, view)
            self._resize(Resize(view, stay.place.demand, decision.where))
            return
        rate = stay.base if decision.rate is None else self._rate(decision.rate, view)
        where = self._checked("moves", job, decision.where, None)
        state.move(job, state.now, where, rate=rate)

    def _resize(self, decision: Resize) -> None:
        view, option, state = decision.job, decision.option, self.state
        if state.works is None:
            message = "resizes a job; only a policy with elastic=True may"
            raise self._impossible(message, view)
        job = self.number(view)
        if all(option is not known and option != known for known in state.works[job].options):
            raise self._impossible(f"runs a job in {option!r}, which is none of its options", view)
        where = self._checked("runs", job, decision.where, None, option)
        if view.running:
            state.move(job, state.now, where, option=option)
            return
        state.begin(job, state.now, where, option=option)

    def _checked(
        self, does: str, job: int, where: Where | None, offered: Where | None, option: Any = None
    ) -> Where:
        """Return where a job goes: where the policy says, or else the placement.

        Args:
            does: what the policy does to the job.
            job: which; what it holds counts as free.
            where: the policy's choice; None = none.
            offered: a choice that is known to fit.
            option: how an elastic job is to run.

        Raises:
            PolicyError: it does not fit there.
        """
        state, asked = self.state, where
        if where is None:
            if job not in state.running and state.works is None:
                where = state.fit(job)
            else:
                demand = option or state.demand[job]
                where = state.put(state.opened(self._without(job), job), job, demand)
                where = where if where is not None and self._affords(job, where) else None
        elif where is not offered and not self.has(job, where, option):
            where = None
        if where is None:
            free = state.free if asked is None else state.opened(self._without(job), job)
            why = no_room(state.problem, free_units(free))
            if asked is not None:
                why = why_not(state.problem, option or state.demand[job], asked, free_units(free))
            raise self._impossible(
                f"{does} a job where it does not fit: {why}", self.state.view(job)
            )
        return where

    def has(self, job: int, where: Where, option: Any = None) -> bool:
        """Return whether a policy's own choice of a place is free, besides what the job holds."""
        state = self.state
        try:
            where = [(operator.index(node), operator.index(grant)) for node, grant in where]
        except (TypeError, ValueError):
            return False
        free: Any = state.opened(self._without(job), job)
        found = state.has(free, job, where, option or state.demand[job])
        return found and self._affords(job, where)

    def _affords(self, job: int, where: Where) -> bool:
        return self.state.affords(job, where, [job] if job in self.state.running else [])

    def _without(self, job: int) -> Any:
        """Return what is free, what a job holds alone included."""
        stay = self.state.running.get(job)
        if stay is None or len(stay.place.jobs) > 1:
            return self.state.free
        free = self.state.free.copy()
        free.give(stay.where, stay.place.demand)
        return free

    def _running(self, view: JobView, does: str) -> int:
        job = self.number(view)
        if not view.running:
            raise self._impossible(f"{does} a job that does not run", view)
        return job

    def _rate(self, rate: Any, view: JobView) -> float:
        if self.state.works is not None and rate != 1.0:
            message = "gives a rate in an elastic run; the option says how fast a job is"
            raise self._impossible(message, view)
        try:
            value = float(rate)
        except (TypeError, ValueError):
            value = math.nan
        if not 0 < value < math.inf:
            message = f"gives a job the rate {rate!r}; expected a number above 0"
            raise self._impossible(message, view)
        return value

    def _set_alarm(self, at: float) -> None:
        if self.policy.every is not None:
            raise self._impossible("decides in rounds; it cannot ask for another instant", None)
        if not self.state.now < at < math.inf:
            message = f"asks to decide at {at!r}; expected a later time, in seconds"
            raise self._impossible(message, None)
        if at not in self.alarms[:1] and self._idle <= MAX_IDLEDECISIONS:
            heapq.heappush(self.alarms, at)

    def _refuse_idling(self) -> None:
        """Stop a policy that asks again and again to decide on an idle cluster, and starts nobody.

        Where its jobs may wait for what is gone it is not asked again before something happens.

        Raises:
            PolicyError: it did so too many times in a row, and all room is there.
        """
        changed, self._changes = self.state.changes != self._changes, self.state.changes
        idle = not (self.state.running or self.arrived or self.done or changed)
        self._idle = self._idle + 1 if idle else 0
        if self._idle > MAX_IDLEDECISIONS and self.may_wait:
            self.alarms.clear()
        elif self._idle > MAX_IDLEDECISIONS:
            message = f"starts none of {len(self.state.waiting)} waiting jobs on an idle cluster"
            raise self._impossible(message, None)

    def _impossible(self, message: str, view: JobView | None) -> PolicyError:
        job = getattr(view, "job_id", None)
        return PolicyError(self.policy.label, message, time=self.state.now, job=job)
