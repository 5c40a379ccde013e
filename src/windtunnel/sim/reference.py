"""The reference engine: plain Python that *is* the specification of a run.

At an instant: all completions, then all arrivals, then one decision (DESIGN, "Semantics of
simulation"). `Ledger` holds the state, `windtunnel.sim.queues` the orders with their head-of-line
rules and preemption, `windtunnel.sim.decisions` the tier-3 policies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError
from windtunnel.sim.contract import static_rank
from windtunnel.sim.decisions import Decider
from windtunnel.sim.jobs import JobView
from windtunnel.sim.ledger import Ledger
from windtunnel.sim.queues import QuotaWalk, SkipQueue, StrictQueue

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.queues import Key

    Scheduler = StrictQueue | SkipQueue | QuotaWalk | Decider

NAME = "reference"
#: What this engine can run.
FEATURES: frozenset[str] = frozenset({"tier1", "tier2", "tier3", "preemption", "rounds"})
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
) -> Flight:
    """Fly the jobs under the policy.

    Args:
        problem: jobs and cluster.
        policy: who runs next, any tier.
        placement: where.
        queueing: ``strict`` or ``skip``; a tier-3 policy decides for itself.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon in s; later events are not processed.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
    """
    ledger = Ledger(problem, placement, overhead)
    scheduler = _scheduler(ledger, policy, queueing)
    submit = [*problem.submit.tolist(), math.inf]
    arrived, points, idle_rounds = 0, 0, 0
    rounds = _Rounds(policy.every)
    only_at_rounds = policy.tier == 3 and policy.every is not None  # noqa: PLR2004
    while True:
        next_event = min(ledger.next_end(), submit[arrived])
        active = bool(ledger.running) or len(scheduler) > 0
        now = min(next_event, rounds.next_after(active=active, next_event=next_event))
        if now > until or now == math.inf:
            break
        for job in ledger.finish_all(now):
            scheduler.finished(job)
        while submit[arrived] == now:
            scheduler.add(arrived, now)
            arrived += 1
        at_round = rounds.reached(now)
        if at_round:
            scheduler.rekey(now)
        elif only_at_rounds:
            continue
        points += 1
        started = len(ledger.segment_job)
        scheduler.decide(now)
        stuck = not ledger.running and arrived == len(submit) - 1 and len(scheduler) > 0
        idle_rounds = idle_rounds + 1 if stuck and started == len(ledger.segment_job) else 0
        if idle_rounds > MAX_IDLE_ROUNDS:
            message = f"starts none of {len(scheduler)} waiting jobs on an idle cluster"
            raise PolicyError(policy.label, message, time=now)
    return ledger.close(until, points)


class _Rounds:
    """The instants k x every, k = 0, 1, ..., visited only while a job is active."""

    def __init__(self, every: float | None) -> None:
        self.every = every
        self.count = 0

    def next_after(self, *, active: bool, next_event: float) -> float:
        """Return the next round's time; none before the next event while nothing is active."""
        if self.every is None:
            return math.inf
        if not active:
            if next_event == math.inf:
                return math.inf
            self.count = max(self.count, math.ceil(next_event / self.every))
        return self.count * self.every

    def reached(self, now: float) -> bool:
        """Return whether ``now`` is the round that was due, and move on if it is."""
        if self.every is None or self.count * self.every != now:
            return False
        self.count += 1
        return True


def _scheduler(ledger: Ledger, policy: Policy, queueing: str) -> Scheduler:
    if policy.tier == 3:  # noqa: PLR2004 - the tier's number is its name
        return Decider(ledger, policy)
    key = _key(ledger, policy)
    if policy.preemptive:
        strict = queueing == "strict"
        return QuotaWalk(ledger, key, strict=strict, by_remaining=policy.by_remaining)
    return StrictQueue(ledger, key) if queueing == "strict" else SkipQueue(ledger, key)


def _key(ledger: Ledger, policy: Policy) -> Key:
    """Return (job, now) -> key for a tier-1 or tier-2 policy."""
    problem = ledger.problem
    if policy.tier == 1:
        ranks = static_rank(policy, problem.jobs)[problem.rows].tolist()
        return lambda job, now: ranks[job]  # noqa: ARG005 - static by definition
    rows = problem.rows.tolist()
    views: dict[int, JobView] = {}

    def key(job: int, now: float) -> float:
        view = views.get(job)
        if view is None:
            view = views[job] = JobView(problem.jobs, rows[job])
        segment = ledger.segment_of[job]
        view.running = segment >= 0
        view.run_time = ledger.run_time[job]
        view.remaining = ledger.remaining[job]
        if view.running:
            view.run_time += now - ledger.segment_start[segment]
            view.remaining = min(view.remaining, ledger.projected_end[job] - now)
        value = float(policy.key(view, now)) + 0.0
        if math.isnan(value):
            raise PolicyError(policy.label, "key is NaN", time=now, job=view.job_id)
        return value

    return key
