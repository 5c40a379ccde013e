"""``pollux:<policy>``: a policy of Pollux's published simulator, with its parameters.

The policy itself is only a description: `windtunnel.study.pollux` runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.policies.described import Described
from windtunnel.policies.pollux.rivals import Optimus, Tiresias

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.policies.pollux.clock import Decider

PREFIX = "pollux:"
DECIDERS: dict[str, Callable[[], Decider]] = {"tiresias": Tiresias, "optimus": Optimus}


class PolluxPolicy(Described):
    """A policy in the ticks of Pollux's published simulator.

    Args:
        decider: one of `DECIDERS`.
        interval: s a tick.
        interference: part of its speed that a job on several nodes loses beside another such job.

    Raises:
        SpecError: a parameter is out of range.
    """

    prefix = PREFIX
    runs = "with compat=pollux only"

    def __init__(self, decider: str, *, interval: float = 60.0, interference: float = 0.0) -> None:
        if decider not in DECIDERS:
            known = [PREFIX + name for name in DECIDERS]
            raise SpecError.unknown("policy", PREFIX + decider, known)
        where = f"policy {PREFIX}{decider}"
        if not 1 <= interval < float("inf") or interval != int(interval):
            raise SpecError(f"{where}: interval", f"found {interval:g}; expected whole seconds.")
        if not 0 <= interference < 1:
            raise SpecError(f"{where}: interference", f"found {interference:g}; expected 0 to 1.")
        self.decider, self.interval, self.interference = decider, interval, interference
        self.text = PREFIX + decider
