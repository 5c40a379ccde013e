"""`Headway`: notices that jobs are started and stopped for ever, so that none gets on.

A policy of the user's in Python may give turns that are shorter than saving and resuming take, and
a power cap that changes again and again may stop jobs before they have resumed. Such a run would
never end. (Of the turns of windtunnel's own policies this is known before the run, and refused.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.run_rules import Rules

#: Decisions between two looks.
BETWEEN_LOOKS = 10_000


class Headway:
    """Looks now and then whether the active jobs have got on; the same for every engine.

    Attributes:
        due: after how many decisions it looks again; a run with a horizon is never looked at.
    """

    def __init__(
        self, policy: Policy, rules: Rules, work_left: Callable[[], dict[int, float]]
    ) -> None:
        self._label, self._work_left = policy.label, work_left
        self.due = BETWEEN_LOOKS if rules.until == math.inf else math.inf
        plan = rules.disruptions
        self._is_certain = plan is None or not plan.by_chance
        self._starts, self._left = 0, dict[int, float]()

    @property
    def cap_due(self) -> float:
        """After how many decisions it looks as the power cap changes.

        Where nodes or jobs fail by chance a job may get through some day.
        """
        return self.due if self._is_certain else math.inf

    def look(self, now: float, decisions: int, num_starts: int) -> None:
        """Look whether jobs have got on.

        Raises:
            PolicyError: since the last look jobs were started, yet none arrived or ended, and all
                have as much work left as then.
        """
        self.due = decisions + BETWEEN_LOOKS
        left, starts = self._work_left(), num_starts - self._starts
        if left and starts and left == self._left:
            message = (
                f"started jobs {starts:,} times in {BETWEEN_LOOKS:,} decisions, and none "
                "got on with its work; this would go on for ever. Let jobs run for longer than "
                "saving and restoring take (every, power_cap, save_time, restore_time), or give "
                "the run an end (until)."
            )
            raise PolicyError(self._label, message, time=now)
        self._left, self._starts = left, num_starts
