"""`Rules`: how a run goes, besides its jobs, policy and placement; the same for every engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

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
    elastic: Elastic | None = None
    record: bool = False
