"""``pollux:<policy>``: a policy of Pollux's published simulator, with its parameters.

The policy itself is only a description: `windtunnel.study.pollux` runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.policies.described import Described
from windtunnel.policies.pollux.clock import Clock
from windtunnel.policies.pollux.goodput_model import one_thread
from windtunnel.policies.pollux.rivals import Optimus, Tiresias
from windtunnel.policies.pollux.search import Pollux

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.pollux.clock import Decider, ElasticJob, Trained

PREFIX = "pollux:"
#: Policies that know no parameters of their own, by name.
RIVALS: dict[str, Callable[[], Decider]] = {"tiresias": Tiresias, "optimus": Optimus}
SEARCH = "pollux"
_MOST_SEEDS = 2**31


class PolluxPolicy(Described):
    """A policy in the ticks of Pollux's published simulator.

    Args:
        decider: `SEARCH`, or one of `RIVALS`.
        interval: s a tick.
        interference: part of its speed that a job on several nodes loses beside another such job.
        avoid: of `SEARCH` only: 1 = two jobs on several nodes never share one, 0 = they may.
        seed: of `SEARCH` only: of its random numbers.

    Raises:
        SpecError: a parameter is out of range.
    """

    prefix = PREFIX
    runs = "with compat=pollux only"

    def __init__(
        self,
        decider: str,
        *,
        interval: float = 60.0,
        interference: float = 0.0,
        avoid: float | None = None,
        seed: float | None = None,
    ) -> None:
        if decider not in {*RIVALS, SEARCH}:
            known = [PREFIX + name for name in (*RIVALS, SEARCH)]
            raise SpecError.unknown("policy", PREFIX + decider, known)
        where = f"policy {PREFIX}{decider}"
        if not 1 <= interval < float("inf") or interval != int(interval):
            raise SpecError(f"{where}: interval", f"found {interval:g}; expected whole seconds.")
        if not 0 <= interference < 1:
            raise SpecError(f"{where}: interference", f"found {interference:g}; expected 0 to 1.")
        if decider != SEARCH and (avoid is not None or seed is not None):
            raise SpecError(where, f"it takes no avoid and no seed; {PREFIX}{SEARCH} does.")
        if avoid not in {None, 0, 1}:
            raise SpecError(f"{where}: avoid", f"found {avoid:g}; expected 0 or 1.")
        if seed is not None and not (0 <= seed < _MOST_SEEDS and seed == int(seed)):
            message = f"found {seed:g}; expected a whole number below {_MOST_SEEDS:,}."
            raise SpecError(f"{where}: seed", message)
        self.decider, self.interval, self.interference = decider, interval, interference
        self.avoid, self.seed = avoid != 0, int(seed or 0)
        self.text = PREFIX + decider

    @property
    def given(self) -> dict[str, float]:
        """Its parameters, for the run's settings."""
        own = {"avoid": int(self.avoid), "seed": self.seed} if self.decider == SEARCH else {}
        return {"interval": self.interval, "interference": self.interference, **own}


def run_in_ticks(
    jobs: Sequence[ElasticJob], nodes: int, gpus: int, policy: PolluxPolicy
) -> list[Trained]:
    """Return the jobs, all done, in the workload's order.

    Args:
        jobs: the workload.
        nodes: of the cluster.
        gpus: a node.
        policy: who decides.

    Raises:
        SpecError: step times that were not measured, or a library is missing.
    """
    clock = Clock(jobs, nodes, gpus, policy.interval, policy.interference)
    if policy.decider != SEARCH:
        return clock.run(RIVALS[policy.decider]())
    with one_thread():
        return clock.run(Pollux(avoid=policy.avoid, seed=policy.seed))
