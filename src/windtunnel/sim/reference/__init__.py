"""The reference engine: plain Python that *is* the specification of a run.

Each module is one of the parts that DESIGN names: the state and its three changes (`state`), the
progress of a job (`progress`), where it may go (`room`), what happens by itself, through `lent`
(`windtunnel.sim.disruptions.source`, `windtunnel.sim.power.sources`), who is next (`order`),
queueing rules (`rules`, `easy`, `conservative`, with `future`), preemption (`preemption`), policies
that decide for themselves (`decisions`, `views`), when decisions are made (`clock`), the instant
(`loop`), the result (`record`). Every feature goes with every other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.contract import BACKFILLING
from windtunnel.sim.disruptions.source import Outages
from windtunnel.sim.power.plan import PowerPlan
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.power.watts import Watts
from windtunnel.sim.reference.clock import Clock
from windtunnel.sim.reference.conservative import Conservative
from windtunnel.sim.reference.decisions import Deciding
from windtunnel.sim.reference.easy import Easy, EasySjbf
from windtunnel.sim.reference.future import Future
from windtunnel.sim.reference.lent import Lent
from windtunnel.sim.reference.loop import Loop
from windtunnel.sim.reference.order import Order
from windtunnel.sim.reference.preemption import Feasible, QuotaWalk
from windtunnel.sim.reference.record import flight
from windtunnel.sim.reference.recorder import Recorder
from windtunnel.sim.reference.rules import Rule, Skip, Strict
from windtunnel.sim.reference.state import State
from windtunnel.sim.reference.views import ClusterView, ElasticClusterView, QueueView
from windtunnel.sim.verdicts import school_of

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.neighbours import Neighbours
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
    slowdown: Neighbours | None = None,
    power: PowerPlan | None = None,
    elastic: Elastic | None = None,
    record: bool = False,
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
            (`windtunnel.site.scheduler.EVENT_ORDERS`).
        decide_every: decisions are delayed to the multiples of so many seconds; None = they are
            not.
        preemption: ``feasible``, or ``quota_walk`` with ``strict`` and ``skip``.
        disruptions: what goes wrong, or is planned; None = nothing.
        slowdown: what slows jobs, made for this run alone; None = nothing.
        power: caps, shifted starts, sleeping nodes; None = no such policy.
        elastic: the options of the jobs of an elastic run; None = it is none.
        record: write down why jobs wait, which changes nothing.

    Raises:
        PolicyError: the policy decided something impossible, or lets jobs wait for ever.
        SpecError: disruptions under which a job never gets anywhere.
    """
    count = len(problem.rows)
    costs = np.broadcast_to(np.asarray(overhead, dtype=np.float64), count).tolist()
    if elastic is not None:
        costs = [work.penalty for work in elastic.works]
    plans_power = PowerPlan() if power is None else power
    watts = None
    if plans_power.cap is not None:
        watts = Watts(problem, plans_power.cap, fixed=elastic is None)
    state = State(
        problem, placement, policy, overhead=costs, pace=slowdown, plan=disruptions, watts=watts,
        elastic=elastic, plans=queueing in BACKFILLING and policy.tier < _DECIDES,
    )  # fmt: skip
    state.counts_nodes = plans_power.sleep is not None
    may_wait = disruptions is not None or power is not None
    scheduler: Deciding | Rule
    if policy.tier == _DECIDES:
        scheduler = Deciding(state, policy, may_wait=may_wait)
        cluster = ClusterView if elastic is None else ElasticClusterView
        scheduler.shows(QueueView(scheduler), cluster(scheduler))
    else:
        walk = QuotaWalk(state) if preemption == "quota_walk" else Feasible(state)
        order = Order(state, policy)
        scheduler = _RULES[queueing](state, order, walk if policy.preemptive else None)
    if record:
        state.recorder = Recorder(state, scheduler, school_of(policy, queueing))
    lent = Lent(state, scheduler)
    outages = None if disruptions is None else Outages(lent, problem, disruptions)
    sources = PowerSources(plans_power, problem, lent)
    if isinstance(scheduler, Easy | Conservative):
        scheduler.future = Future(state, sources)
    clock = Clock(policy, state, scheduler, decide_every, may_wait=may_wait, power=power)
    loop = Loop(state, scheduler, clock, lent=lent, outages=outages, power=sources, events=events)
    return flight(loop, loop.run(until), powered=power is not None)
