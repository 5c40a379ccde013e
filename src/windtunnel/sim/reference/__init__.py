"""The reference engine: plain Python that *is* the specification of a run.

Each module is one of the parts that DESIGN names: the state and its three changes (`state`), the
progress of a job (`progress`), where it may go (`place_search`), what happens by itself, through
`lent` (`windtunnel.sim.disruptions.source`, `windtunnel.sim.power.sources`), who is next and
queueing rules (`rules`, `easy`, `conservative`), preemption (`preemption`), policies that decide
for themselves (`decisions`, `views`), when decisions are made (`clock`), the instant (`loop`), the
result (`record`). Every feature goes with every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.sim.disruptions.source import Outages
from windtunnel.sim.power.plan import PowerPlan
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.reference.conservative import Conservative
from windtunnel.sim.reference.decisions import Deciding
from windtunnel.sim.reference.easy import Backfilling, Easy, EasySjbf
from windtunnel.sim.reference.lent import Lent
from windtunnel.sim.reference.loop import Loop
from windtunnel.sim.reference.preemption import Feasible, QuotaWalk
from windtunnel.sim.reference.record import flight
from windtunnel.sim.reference.recorder import Recorder
from windtunnel.sim.reference.rules import Rule, Skip
from windtunnel.sim.reference.views import ClusterView, ElasticClusterView, QueueView
from windtunnel.sim.run_rules import Rules
from windtunnel.sim.verdicts import school_of

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem

NAME = "reference"
_RULES: dict[str, type[Rule]] = {
    "strict": Rule, "skip": Skip, "easy": Easy, "easy_sjbf": EasySjbf,
    "conservative": Conservative,
}  # fmt: skip


def run(problem: Problem, policy: Policy, placement: Placement, **given: Any) -> Flight:
    """Fly the jobs under the policy; see `windtunnel.sim.engines.choose_engine`."""
    rules = Rules(**given)
    state = Lent(problem, placement, policy, rules)
    state.scheduler = scheduler = _scheduler(state, rules)
    if rules.record:
        state.recorder = Recorder(state, school_of(policy, rules.queueing))
    plan = rules.disruptions
    outages = None if plan is None else Outages(state, problem, plan)
    power = PowerSources(rules.power or PowerPlan(), problem, state)
    if isinstance(scheduler, Backfilling):
        scheduler.power = power
    loop = Loop(state, rules, outages, power)
    return flight(loop, loop.run(rules.until), powered=rules.power is not None)


def _scheduler(state: Lent, rules: Rules) -> Rule | Deciding:
    """Return what decides about the waiting jobs."""
    if state.policy.tier == 3:  # noqa: PLR2004 - the tier's name
        deciding = Deciding(state, rules)
        deciding.queue = QueueView(deciding)
        view = ClusterView if state.works is None else ElasticClusterView
        deciding.cluster = view(deciding)
        return deciding
    walk = None
    if state.policy.preemptive:
        walk = (QuotaWalk if rules.preemption == "quota_walk" else Feasible)(state).walk
    return _RULES[rules.queueing](state, walk)
