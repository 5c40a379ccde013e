"""The compiled engine: numba kernels that return exactly what the reference engine returns.

The Python/numba boundary is crossed once a run. Kernels are compiled once and cached on disk;
nothing in them depends on the policy's code: a static order is an array of positions. Families of
runs have kernels of their own, loaded when one is flown, and a module here, ``..._flights``, that
goes from a problem to them and back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.compiled import (
    cohort_flights,
    disrupted_flights,
    plain_flights,
    slowed_flights,
    usage_flights,
)
from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.rates import Rates

NAME = "compiled"
#: What this engine can run; what of it together, `windtunnel.sim.engines` knows.
FEATURES: frozenset[str] = frozenset(
    {
        *("tier1", "tier2", "preemption", "levels", "usage", "cohorts"),
        *("topology", "slow-downs", "disruptions", "event order", *BACKFILLING),
    }
)


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float = 0.0,
    until: float = math.inf,
    events: str = "batch",
    rates: Rates | None = None,
    disruptions: Plan | None = None,
) -> Flight:
    """Fly the jobs under the policy; arguments and result as in `windtunnel.sim.reference.run`.

    Raises:
        PolicyError: the policy's order is unusable (NaN, wrong shape).
        SpecError: disruptions under which a job never gets anywhere.
    """
    overhead = float(overhead)
    given = problem, policy, placement
    if disruptions is not None or events != "batch":
        return disrupted_flights.fly(
            *given, disruptions, queueing=queueing, overhead=overhead, until=until, events=events
        )
    if rates is not None:
        return slowed_flights.fly(*given, rates, queueing=queueing, overhead=overhead, until=until)
    if policy.preemptive:
        return plain_flights.fly_preemptive(
            *given, queueing=queueing, overhead=overhead, until=until
        )
    if policy.cohort_order is not None:
        return cohort_flights.fly(problem, policy.cohort_order, placement, until)
    if policy.usage_order is not None:
        return usage_flights.fly(
            problem, policy.usage_order, placement, queueing=queueing, until=until
        )
    return plain_flights.fly(*given, queueing=queueing, until=until)
