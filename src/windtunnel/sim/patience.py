"""When a run gives up on jobs that wait: nobody runs, and nobody was started for so long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.power.plan import PowerPlan

_DECIDES = 3


def patience(policy: Policy, interval: float | None, power: PowerPlan | None) -> float:
    """Return the seconds after which all that there is to have has been there, once, s.

    Args:
        policy: who runs next; in rounds it must have had one.
        interval: seconds between decisions; None = they are made when they are called for.
        power: the cap's period, and what the rule of sleeping nodes remembers; None = neither.
    """
    return (interval or 0.0) + (policy.every or 0.0) + (0.0 if power is None else power.patience)


def settles(policy: Policy, interval: float | None, power: PowerPlan | None) -> bool:
    """Return whether jobs are given up on after that time, and not only after many instants.

    Not under a policy that decides by itself or in rounds: its order may be another next time. Nor
    where decisions are made at multiples of an interval while a power cap goes up and down: which
    parts of its period they meet is known after many only.
    """
    decides = policy.tier == _DECIDES and not policy.in_numbers
    cap = None if power is None else power.cap
    beats = interval is not None and cap is not None and cap.period < math.inf
    return policy.every is None and not decides and not beats
