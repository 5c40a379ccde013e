"""``pollux:<policy>``: a policy of Pollux's published simulator, with its parameters.

The policy itself is only a description: `windtunnel.study.pollux` runs it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError
from windtunnel.plugins import parameters
from windtunnel.policies.pollux.rivals import Optimus, Tiresias
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.policies.pollux.clock import Decider
    from windtunnel.sim.contract import Start

PREFIX = "pollux:"
DECIDERS: dict[str, Callable[[], Decider]] = {"tiresias": Tiresias, "optimus": Optimus}


class PolluxPolicy(Policy):
    """A policy in the ticks of Pollux's published simulator.

    Args:
        decider: one of `DECIDERS`.
        interval: s a tick.
        interference: part of its speed that a job on several nodes loses beside another such job.

    Raises:
        SpecError: a parameter is out of range.
    """

    preemptive = True
    queueing = "skip"

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

    @property
    def label(self) -> str:
        """The policy as it was asked for."""
        return self.text

    @property
    def tier(self) -> int:
        """3: it decides on everything."""
        return 3

    def decide(
        self,
        now: float,  # noqa: ARG002 - one contract
        queue: Any,  # noqa: ARG002 - ditto
        cluster: Any,  # noqa: ARG002 - ditto
    ) -> Iterable[Start]:
        """Refuse to: the published clock asks in its own words.

        Raises:
            PolicyError: always.
        """
        raise PolicyError(self.label, "runs with compat=pollux only: see windtunnel.simulate")


def pollux_policy(text: str) -> PolluxPolicy:
    """Return the policy that ``pollux:<policy>[:parameter=value...]`` asks for.

    Raises:
        SpecError: no such policy or parameter, or the value is none for it.
    """
    name, *words = text[len(PREFIX) :].split(":")
    known = [p for p in inspect.signature(PolluxPolicy).parameters if p != "decider"]
    given = parameters(words, known, where=f"policy {text}")
    try:
        numbers = {parameter: float(value) for parameter, value in given.items()}
    except ValueError as error:
        raise SpecError(f"policy {text}", f"a parameter is no number: {error}.") from error
    made = PolluxPolicy(name, **numbers)
    made.text = text
    return made
