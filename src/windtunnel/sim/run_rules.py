"""`Rules`: how a run goes, besides its jobs, policy and placement; the same for every engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from windtunnel.sim.cohort_order import CohortQuotas
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.neighbours import Neighbours
    from windtunnel.sim.power.plan import PowerPlan


@dataclass(frozen=True)
class Rules:
    """How a run goes.

    Attributes:
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
        quotas: what queues may use, whatever the policy; None = there is no such limit.
        elastic: the options of the jobs of an elastic run; None = it is none.
        record: write down why jobs wait, which changes nothing.
    """

    queueing: str
    overhead: float | np.ndarray = 0.0
    until: float = math.inf
    events: str = "batch"
    decide_every: float | None = None
    preemption: str = "feasible"
    disruptions: Plan | None = None
    slowdown: Neighbours | None = None
    power: PowerPlan | None = None
    quotas: CohortQuotas | None = None
    elastic: Elastic | None = None
    record: bool = False

    @property
    def differs_by_node(self) -> bool:
        """Whether quotas or power let a job have GPUs on some nodes and not on others."""
        by_quota = self.quotas is not None and self.quotas.by_type
        cap = None if self.power is None else self.power.cap
        return by_quota or (cap is not None and len(set(cap.type_of)) > 1)

    def may_wait(self, policy: Policy) -> bool:
        """Return whether jobs may wait for ever: GPUs, power or a limit of theirs may be gone."""
        return self.disruptions is not None or self.power is not None or policy.lets_wait

    def patience(self, policy: Policy) -> float:
        """Return the seconds after which all that there is to have has been there, once, s.

        Where nobody runs, and nobody was started for so long, jobs that wait are given up on.
        """
        power = 0.0 if self.power is None else self.power.patience
        return (self.decide_every or 0.0) + (policy.every or 0.0) + power

    def settles(self, policy: Policy) -> bool:
        """Return whether jobs are given up on after that time, and not only after many instants.

        Not under a policy that decides by itself or in rounds: its order may be another next time.
        Nor where decisions are made at multiples of an interval while a power cap goes up and down:
        which parts of its period they meet is known after many only.
        """
        decides = policy.tier == 3 and not policy.in_numbers  # noqa: PLR2004 - the tier's name
        cap = None if self.power is None else self.power.cap
        beats = self.decide_every is not None and cap is not None and cap.period < math.inf
        return self.may_wait(policy) and policy.every is None and not decides and not beats
