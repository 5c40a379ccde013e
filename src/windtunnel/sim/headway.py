"""`Headway`: notices a policy that starts and stops jobs for ever, so that none gets on.

A policy of the user's in Python may give turns that are shorter than saving and resuming take. Such
a run would never end. (Of the house's own policies this is known before the run, and refused.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.run_rules import Rules

#: Decisions, or rounds, between two looks.
BETWEEN_LOOKS = 10_000


class Headway:
    """Looks now and then whether the active jobs have got on; the same for every engine.

    Args:
        policy: who decides.
        rules: how the run goes; one with a horizon ends in any case, and is let go on.
        work_left: returns the work left of each active job now, s, by arrival number.
    """

    def __init__(
        self, policy: Policy, rules: Rules, work_left: Callable[[], dict[int, float]]
    ) -> None:
        self._label, self._work_left = policy.label, work_left
        self._is_needed = rules.until == math.inf
        self._decisions, self._starts = 0, 0
        self._left: dict[int, float] = {}

    def decides(self, now: float, num_starts: int) -> None:
        """Count one more decision, at ``now`` (s); ``num_starts`` stays have begun so far.

        Raises:
            PolicyError: in `BETWEEN_LOOKS` decisions jobs were started, yet none arrived or ended,
                and all have as much work left as before.
        """
        self._decisions += 1
        if self._decisions % BETWEEN_LOOKS or not self._is_needed:
            return
        left, starts = self._work_left(), num_starts - self._starts
        if left and starts and left == self._left:
            message = (
                f"started jobs {starts:,} times in its last {BETWEEN_LOOKS:,} decisions, and none "
                "got on with its work; this would go on for ever. Let jobs run for longer than "
                "saving and restoring take (every, save_time, restore_time), or give the run an "
                "end (until)."
            )
            raise PolicyError(self._label, message, time=now)
        self._left, self._starts = left, num_starts
