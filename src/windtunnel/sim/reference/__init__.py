"""The reference engine: plain Python that *is* the specification of a run.

Each module is one of the parts that DESIGN names: the state and its three changes (`state`), the
progress of a job (`progress`), what happens by itself (`outages`, `windtunnel.sim.power.sources`),
who is next (`order`), queueing rules (`rules`, `easy`, `conservative`, with `future`), preemption
(`preemption`), policies that decide for themselves (`decisions`, `views`), when decisions are made
(`clock`), the instant (`loop`), the result (`record`). Every feature goes with every other.
"""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.contract import BACKFILLING
from windtunnel.sim.power.on_reference import Powered
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.power.watts import Watts
from windtunnel.sim.reference.conservative import Conservative
from windtunnel.sim.reference.decisions import Decider
from windtunnel.sim.reference.easy import Easy, EasySjbf
from windtunnel.sim.reference.future import Future
from windtunnel.sim.reference.loop import Loop
from windtunnel.sim.reference.order import Order
from windtunnel.sim.reference.preemption import Feasible, QuotaWalk
from windtunnel.sim.reference.record import flight
from windtunnel.sim.reference.rules import Rule, Scheduler, Skip, Strict
from windtunnel.sim.reference.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.neighbours import Pace
    from windtunnel.sim.power.plan import PowerPlan
    from windtunnel.sim.problem import Problem

NAME = "reference"
_RULES: dict[str, type[Rule]] = {
    "strict": Strict, "skip": Skip, "easy": Easy, "easy_sjbf": EasySjbf,
    "conservative": Conservative,
}  # fmt: skip
_DECIDES = 3


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float | np.ndarray = 0.0,
    until: float = math.inf,
    events: str = "batch",
    decide_every: float | None = None,
    preemption: str = "feasible",
    disruptions: Plan | None = None,
    slowdown: Pace | None = None,
    power: PowerPlan | None = None,
    elastic: Elastic | None = None,
) -> Flight:
    """Fly the jobs under the policy.

    Args:
        problem: jobs and cluster.
        policy: who runs next, any tier.
        placement: where.
        queueing: the head-of-line rule; a tier-3 policy decides for itself.
        overhead: seconds a preempted job pays when it resumes; one number, or one a flown job.
        until: horizon in s; later events are not processed.
        events: how what happens at one instant is ordered
            (`windtunnel.sim.contract.EVENT_ORDERS`).
        decide_every: decisions are delayed to the multiples of so many seconds; None = they are
            not.
        preemption: ``feasible``, or ``quota_walk`` with ``strict`` and ``skip``.
        disruptions: what goes wrong, or is planned; None = nothing.
        slowdown: what slows jobs, made for this run alone; None = nothing.
        power: caps, shifted starts, sleeping nodes; None = no such policy.
        elastic: the options of the jobs of an elastic run; None = it is none.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
        SpecError: disruptions under which a job never gets anywhere.
    """
    count = len(problem.rows)
    costs = np.broadcast_to(np.asarray(overhead, dtype=np.float64), count).tolist()
    if elastic is not None:
        costs = [work.penalty for work in elastic.works]
    with _collector_paused():
        watts = None
        if power is not None and power.cap is not None:
            watts = Watts(problem, power.cap, fixed=elastic is None)
        state = State(
            problem, placement, overhead=costs, plan=disruptions, pace=slowdown, watts=watts,
            elastic=elastic, plans=queueing in BACKFILLING and policy.tier < _DECIDES,
            watcher=policy if policy.watches else None,
        )  # fmt: skip
        sources, lent = None, Powered(state)
        if power is not None:
            sources = PowerSources(power, problem, lent, watts)
        may_wait = disruptions is not None or power is not None
        scheduler = _scheduler(state, policy, queueing, preemption, sources, may_wait=may_wait)
        lent.scheduler = scheduler
        loop = Loop(state, policy, scheduler, sources, events=events, interval=decide_every)
        return flight(loop, loop.run(until))


def _scheduler(
    state: State, policy: Policy, queueing: str, preemption: str, power: PowerSources | None, *,
    may_wait: bool,
) -> Scheduler:  # fmt: skip
    if policy.tier == _DECIDES:
        return Decider(state, policy, may_wait=may_wait)
    walk = QuotaWalk(state) if preemption == "quota_walk" else Feasible(state)
    rule = _RULES[queueing](state, Order(state, policy), walk if policy.preemptive else None)
    if isinstance(rule, Easy | Conservative):
        rule.future = Future(state, power)
    return rule


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
