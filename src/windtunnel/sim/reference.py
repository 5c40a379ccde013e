"""The reference engine: plain Python that *is* the specification of a run.

At an instant: all completions, then all arrivals, then outages and failures, if the run has any
(`windtunnel.sim.disruptions`), then one decision (DESIGN, "Semantics of
simulation"). `Ledger` holds the state, `windtunnel.sim.queues` the orders with their head-of-line
rules and preemption, `windtunnel.sim.decisions` the tier-3 policies.
"""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError
from windtunnel.sim.backfill import ConservativeQueue, EasyQueue
from windtunnel.sim.contract import BACKFILLING, checked_key, static_rank
from windtunnel.sim.decisions import Decider
from windtunnel.sim.disruptions.backfill import HeldConservativeQueue, HeldEasyQueue
from windtunnel.sim.disruptions.ledger import DisruptedLedger
from windtunnel.sim.disruptions.outages import Outages
from windtunnel.sim.disruptions.watched import WatchedDisruptedLedger
from windtunnel.sim.jobs import JobView
from windtunnel.sim.ledger import Ledger
from windtunnel.sim.power.backfill import PoweredEasyQueue
from windtunnel.sim.power.governor import Governor
from windtunnel.sim.power.ledger import PoweredLedger, WatchedPoweredLedger
from windtunnel.sim.power.throttle import Throttle
from windtunnel.sim.queues import QuotaWalk, SkipQueue, StrictQueue
from windtunnel.sim.rates import Rates
from windtunnel.sim.watched import WatchedLedger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.power.plan import PowerPlan
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.queues import Key

    Scheduler = (
        StrictQueue | SkipQueue | QuotaWalk | Decider | EasyQueue | ConservativeQueue | Governor
    )

NAME = "reference"
#: What this engine can run.
FEATURES: frozenset[str] = frozenset(
    {
        *("tier1", "tier2", "tier3", "preemption", "rounds", "levels", "event order"),
        *("watching", "disruptions", "power", "slow-downs", "topology", *BACKFILLING),
    }
)
#: Rounds in a row in which nothing runs, nothing arrives and the policy starts nothing.
MAX_IDLE_ROUNDS = 10_000


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float = 0.0,
    until: float = math.inf,
    events: str = "batch",
    disruptions: Plan | None = None,
    rates: Rates | None = None,
    power: PowerPlan | None = None,
) -> Flight:
    """Fly the jobs under the policy.

    Args:
        problem: jobs and cluster.
        policy: who runs next, any tier.
        placement: where.
        queueing: the head-of-line rule; a tier-3 policy decides for itself.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon in s; later events are not processed.
        events: how what happens at one instant is ordered
            (`windtunnel.sim.contract.EVENT_ORDERS`).
        disruptions: what goes wrong, or is planned; None = nothing.
        rates: how fast jobs get on, for this run alone; None = all at rate 1.
        power: caps, shifted starts, sleeping nodes; None = no such policy.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
        SpecError: disruptions under which a job never gets anywhere.
    """
    with _collector_paused():
        if power is not None:
            powered = _powered(problem, policy, placement, overhead, rates)
            governor = _governed(powered, power, policy, queueing)
            return _fly(powered, policy, governor, events, until, outages=governor)
        if disruptions is None:
            ledger = Ledger(problem, placement, overhead, rates)
            if policy.watches:
                ledger = WatchedLedger(problem, placement, overhead, policy, rates)
            return _fly(ledger, policy, _scheduler(ledger, policy, queueing), events, until)
        plans = queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - the tier's name
        if policy.watches:
            ledger = WatchedDisruptedLedger(
                problem, placement, overhead, disruptions, plans=plans, policy=policy
            )
        else:
            ledger = DisruptedLedger(problem, placement, overhead, disruptions, plans=plans)
        outages = Outages(ledger)
        outages.scheduler = _scheduler(ledger, policy, queueing)
        return _fly(ledger, policy, outages.scheduler, events, until, outages=outages)


def fly(ledger: Ledger, policy: Policy, decider: Decider, until: float) -> Flight:
    """Fly jobs with a ledger and a decider of one's own, as `windtunnel.sim.elastic` does.

    Args:
        ledger: the run's state, nothing in it running.
        policy: whom the decider asks; its rounds count.
        decider: carries out what a tier-3 policy decides.
        until: horizon in s.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
    """
    with _collector_paused():
        return _fly(ledger, policy, decider, "batch", until)


def _powered(
    problem: Problem, policy: Policy, placement: Placement, overhead: float, rates: Rates | None
) -> PoweredLedger:
    if policy.watches:
        return WatchedPoweredLedger(problem, placement, overhead, policy, rates)
    return PoweredLedger(problem, placement, overhead, rates)


def _governed(ledger: PoweredLedger, power: PowerPlan, policy: Policy, queueing: str) -> Governor:
    """Return what governs a run under policies of power."""
    throttle = None
    if power.throttles:
        inner = None if ledger.rates is None else ledger.rates.neighbours
        throttle = Throttle(ledger, inner)
        ledger.rates = Rates(throttle)
    ledger.govern(power)
    scheduler = _scheduler(ledger, policy, queueing)
    governor = Governor(ledger, scheduler, throttle)
    if isinstance(scheduler, PoweredEasyQueue):
        scheduler.governor = governor
    return governor


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: a run makes millions of objects and no cycles (-25 %)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _fly(  # noqa: C901 - the hottest loop, in which every call costs
    ledger: Ledger,
    policy: Policy,
    scheduler: Scheduler,
    events: str,
    until: float,
    *,
    outages: Outages | Governor | None = None,
) -> Flight:
    problem = ledger.problem
    submit = [*problem.submit.tolist(), math.inf]
    in_turn = None if events == "batch" else _InTurn(ledger, scheduler, events)
    rounds = _rounds(policy, ledger, scheduler, may_wait=isinstance(outages, Outages))
    alarms: Sequence[float] = getattr(scheduler, "alarms", ())
    ends, rates = ledger.ends, ledger.rates
    arrived, points, now = 0, 0, 0.0
    while True:
        if rates is not None:
            rates.settle(ledger, now)
        now = ends[0][0]
        if submit[arrived] < now:  # noqa: PLR1730 - min() costs a call in the hottest loop
            now = submit[arrived]
        if rounds is not None or outages is not None or alarms:
            alarm = alarms[0] if alarms else math.inf
            now = min(_sooner(now, rounds, outages, last=arrived == len(submit) - 1), alarm)
        if now > until or now == math.inf:
            break
        if in_turn is not None:
            arrived, decided = in_turn.handle(now, submit, arrived)
            points += decided
            continue
        while ends[0][0] == now:
            scheduler.finished(ledger.finish_next(now))
        while submit[arrived] == now:
            scheduler.add(arrived, now)
            arrived += 1
        if outages is not None:
            outages.apply(now)
        last = arrived == len(submit) - 1 and not (outages and outages.certain)
        if rounds is not None and not rounds.decides(now, last=last):
            continue
        points += 1
        scheduler.decide(now)
    return ledger.close(until, points)


def _rounds(
    policy: Policy, ledger: Ledger, scheduler: Scheduler, *, may_wait: bool
) -> _Rounds | None:
    if policy.every is None:
        return None
    return _Rounds(policy, ledger, scheduler, may_wait=may_wait)


def _sooner(
    event: float, rounds: _Rounds | None, outages: Outages | Governor | None, *, last: bool
) -> float:
    """Return the next instant, s: the next completion or arrival, a round, or an outage.

    Args:
        event: the next completion or arrival, s; inf = none.
        rounds: the policy's rounds, if it has any.
        outages: what happens by itself, if anything does.
        last: no more jobs arrive.
    """
    now = event if rounds is None else min(event, rounds.next_before(event))
    if outages is None:
        return now
    if last and outages.nothing_will_change(rounds=rounds is not None and not rounds.gave_up):
        return math.inf
    return min(now, outages.next_time())


class _InTurn:
    """One event at a time, a decision after each: how some published simulators order an instant.

    Completions come in the order in which the jobs started. With submissions first, a running job
    that ends now, and was expected to by now, counts as gone already in every decision.

    Args:
        ledger: the run.
        scheduler: holds the waiting jobs.
        events: ``submissions_first`` or ``completions_first``.
    """

    def __init__(self, ledger: Ledger, scheduler: Scheduler, events: str) -> None:
        self.ledger = ledger
        self.scheduler = scheduler
        self.submissions_first = events == "submissions_first"
        self.estimate = ledger.problem.estimate.tolist()

    def handle(self, now: float, submit: list[float], arrived: int) -> tuple[int, int]:
        """Handle everything that happens at ``now``.

        Args:
            now: the instant, s.
            submit: submit times, infinity behind the last.
            arrived: jobs that arrived before.

        Returns:
            Jobs that have arrived now, and how many decisions were made.
        """
        ledger, scheduler = self.ledger, self.scheduler
        points = 0
        if self.submissions_first:
            gone = [
                job
                for job, stay in ledger.running.items()
                if ledger.projected_end[job] == now and stay.start + self.estimate[job] <= now
            ]
            leads = bool(gone) and ledger.ends[0][2].job in gone
            for job in gone:
                ledger.finish(job, now)
                scheduler.finished(job)
            arrived, points = self._arrivals(now, submit, arrived)
            if leads and not points:
                scheduler.decide(now)
                points = 1
        while ledger.ends[0][0] == now:
            scheduler.finished(ledger.finish_next(now))
            scheduler.decide(now)
            points += 1
        if not self.submissions_first:
            arrived, more = self._arrivals(now, submit, arrived)
            points += more
        if not points:  # the policy asked to be woken
            scheduler.decide(now)
            points = 1
        return arrived, points

    def _arrivals(self, now: float, submit: list[float], arrived: int) -> tuple[int, int]:
        first = arrived
        while submit[arrived] == now:
            self.scheduler.add(arrived, now)
            arrived += 1
            self.scheduler.decide(now)
        return arrived, arrived - first


class _Rounds:
    """The instants k x every, k = 0, 1, ..., visited only while a job is active.

    At a round keys are asked again. A tier-3 policy with rounds decides at rounds only.

    Args:
        policy: its ``every`` is the rounds' distance in s.
        ledger: the run.
        scheduler: holds the waiting jobs.
        may_wait: jobs may wait for ever: what they ask for may be gone.
    """

    def __init__(
        self, policy: Policy, ledger: Ledger, scheduler: Scheduler, *, may_wait: bool
    ) -> None:
        self.policy = policy
        self.every = float(policy.every or math.nan)
        self.ledger = ledger
        self.scheduler = scheduler
        self.may_wait = may_wait
        #: The policy has started nothing for so long that it never will.
        self.gave_up = False
        self.count = 0
        self._idle = 0
        self._starts = 0

    def next_before(self, event: float) -> float:
        """Return the next round's time; none before the next event while nothing is active."""
        if not self.ledger.running and not len(self.scheduler):
            if event == math.inf:
                return math.inf
            self.count = max(self.count, math.ceil(event / self.every))
        return self.count * self.every

    def decides(self, now: float, *, last: bool) -> bool:
        """Return whether the policy decides now; at a round, ask keys again and move on.

        Args:
            now: the instant, s.
            last: no more jobs arrive.

        Raises:
            PolicyError: too many rounds in which nothing runs, arrives or is started.
        """
        if self.count * self.every != now:
            return self.policy.tier != 3  # noqa: PLR2004 - the tier's number is its name
        self.count += 1
        self.scheduler.rekey(now)
        stuck = last and not self.ledger.running and len(self.ledger.stays) == self._starts
        self._idle = self._idle + 1 if stuck else 0
        self._starts = len(self.ledger.stays)
        if self._idle > MAX_IDLE_ROUNDS and self.may_wait:
            self.gave_up = True
        elif self._idle > MAX_IDLE_ROUNDS:
            message = f"starts none of {len(self.scheduler)} waiting jobs on an idle cluster"
            raise PolicyError(self.policy.label, message, time=now)
        return True


def _scheduler(ledger: Ledger, policy: Policy, queueing: str) -> Scheduler:
    if policy.tier == 3:  # noqa: PLR2004 - the tier's number is its name
        return Decider(ledger, policy)
    key = _key(ledger, policy)
    if queueing in BACKFILLING:
        return _backfilling(ledger, key, queueing)
    if policy.preemptive:
        strict = queueing == "strict"
        return QuotaWalk(
            ledger,
            key,
            strict=strict,
            by_remaining=policy.by_remaining,
            by_service=policy.by_service,
        )
    return StrictQueue(ledger, key) if queueing == "strict" else SkipQueue(ledger, key)


def _backfilling(ledger: Ledger, key: Key, queueing: str) -> EasyQueue | ConservativeQueue:
    shortest_first = queueing == "easy_sjbf"
    if isinstance(ledger, PoweredLedger) and queueing != "conservative":
        return PoweredEasyQueue(ledger, key, shortest_first=shortest_first)
    if isinstance(ledger, DisruptedLedger):
        if queueing == "conservative":
            return HeldConservativeQueue(ledger, key)
        return HeldEasyQueue(ledger, key, shortest_first=shortest_first)
    if queueing == "conservative":
        return ConservativeQueue(ledger, key)
    return EasyQueue(ledger, key, shortest_first=shortest_first)


def _key(ledger: Ledger, policy: Policy) -> Key:
    """Return (job, now) -> key for a tier-1 or tier-2 policy."""
    problem = ledger.problem
    if policy.tier == 1:
        ranks = static_rank(policy, problem.jobs, problem.rows).tolist()
        return lambda job, now: ranks[job]  # noqa: ARG005 - static by definition
    rows = problem.rows.tolist()
    views: dict[int, JobView] = {}

    def key(job: int, now: float) -> float:
        view = views.get(job)
        if view is None:
            view = views[job] = JobView(problem.jobs, rows[job])
        view.running = job in ledger.running
        view.run_time, view.remaining = ledger.attained(job, now)
        return checked_key(policy, view, now)

    return key
