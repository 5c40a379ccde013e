"""`PowerPlan`: what policies of power ask of one run, as plain data; `windtunnel.energy` makes it.

The engine knows watts only as numbers: what a node draws with nothing on it, and what a job adds to
that at each of its power limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from windtunnel.sim.power.ces import CesRule

#: Power is summed in whole nanowatts, so that a sum does not depend on what came and went before.
NANO = 1_000_000_000
#: A cap that is met but for rounding is met.
SLACK = 1e-9
#: Pieces of time, (start, end) in s, ascending.
Pieces = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Draw:
    """What one GPU under a job adds to the cluster's draw at one power limit.

    Attributes:
        limit_w: the limit, W.
        extra_w: W beyond the idle GPU, as the cap counts it: measured, or the limit.
        speed: work per second, 1 = at the highest limit.
    """

    limit_w: float
    extra_w: float
    speed: float


@dataclass(frozen=True)
class CapPlan:
    """A cap on the facility's draw.

    Attributes:
        rows: start (s) -> (time, W) of what holds then, and of each change after it.
        highest_w: the highest cap of all.
        period: s after which these repeat; inf = the cap is constant.
        limits: ``none``, ``uniform`` or ``optimised``: how running jobs' power limits are chosen.
        pue: the building's draw over the machines'.
        base_w: W of the machines while all are awake and no job runs.
        wake_w: W that a node awake draws beyond one asleep, one a node; empty on a pool.
        kind_of: kind of work of each job.
        type_of: GPU type of each node (or pool), an index.
        draws: (kind, type) -> power limits, highest first.
    """

    rows: Callable[[float], Iterator[tuple[float, float]]]
    highest_w: float
    period: float
    limits: str
    pue: float
    base_w: float
    wake_w: tuple[float, ...]
    kind_of: tuple[int, ...]
    type_of: tuple[int, ...]
    draws: dict[tuple[int, int], tuple[Draw, ...]]

    def budget_at(self, cap_w: float, base_w: float) -> int:
        """Return what jobs may add, nanowatts, where the machines alone draw ``base_w``."""
        return math.floor((cap_w / self.pue * (1 + SLACK) - base_w) * NANO)


@dataclass(frozen=True)
class ShiftPlan:
    """Jobs that wait for better times.

    Attributes:
        pieces: (seconds of work, earliest, deadline, when there is no room) -> when to run, by what
            was forecast; empty = there is room for it at no time before the deadline.
        amount: what running at these times emits or costs by the forecast, a watt, in any unit.
        next_change: time -> the next after it at which the forecast changes, s; inf = never.
        deadline: when each job must be over, s; NaN = it is not shifted.
        length: run time of each job as it was known at submission, s.
        interruptible: running jobs may be stopped, and go on later.
        fill: share of the GPUs that plans may fill; None = what others plan is not looked at.
    """

    pieces: Callable[[float, float, float, np.ndarray], Pieces]
    amount: Callable[[Pieces], float]
    next_change: Callable[[float], float]
    deadline: tuple[float, ...]
    length: tuple[float, ...]
    interruptible: bool
    fill: float | None = None


@dataclass(frozen=True)
class SleepPlan:
    """Nodes that are powered off.

    Attributes:
        rule: when nodes fall asleep and wake.
        step: seconds between two looks at the cluster.
        wake_time: seconds from the call until a node can run jobs.
        back: steps back to the value that forecasts the next: a day, a week; 0 = the last value.
    """

    rule: CesRule
    step: float
    wake_time: float
    back: int

    @property
    def memory(self) -> float:
        """Seconds after which it makes no difference that jobs ever ran."""
        return self.step * (max(self.rule.history, self.back) + self.rule.keep)


@dataclass(frozen=True)
class PowerPlan:
    """All policies of power of a run; None = there is no such policy."""

    cap: CapPlan | None = None
    shift: ShiftPlan | None = None
    sleep: SleepPlan | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def patience(self) -> float:
        """Seconds after which all that there is to have has been there, while nobody runs."""
        period = 0.0 if self.cap is None or self.cap.period == math.inf else self.cap.period
        return period + (0.0 if self.sleep is None else self.sleep.memory)

    @property
    def throttles(self) -> bool:
        """Whether running jobs get power limits, and with them speeds."""
        return self.cap is not None and self.cap.limits != "none"
