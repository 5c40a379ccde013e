"""``pollux:<policy>``: a policy of Pollux's published simulator, with its parameters.

The policy itself is only a description: `windtunnel.study.pollux` runs it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError
from windtunnel.policies.described import Described
from windtunnel.policies.filling import ARRIVALS, NOBODY, checked_fill
from windtunnel.policies.pollux.clock import Clock
from windtunnel.policies.pollux.fitting import one_thread
from windtunnel.policies.pollux.on_options import OnOptions, OnOptionsPolicy
from windtunnel.policies.pollux.rivals import Optimus, Tiresias
from windtunnel.policies.pollux.search import Pollux
from windtunnel.policies.pollux.sia import Sia, SiaRules
from windtunnel.policies.pollux.sia_on_options import SiaOnOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.pollux.clock import Decider, ElasticJob, Trained
    from windtunnel.policies.pollux.roaming import Machines
    from windtunnel.sim.contract import Policy

PREFIX = "pollux:"
#: Policies that know no parameters of their own, by name.
RIVALS: dict[str, Callable[[], Decider]] = {"tiresias": Tiresias, "optimus": Optimus}
SEARCH, PROGRAM = "pollux", "sia"
#: Who may take free GPUs between two ticks.
FILLS = (ARRIVALS, NOBODY)
#: Parameters that only one policy takes, and what they are by default.
_OWN: dict[str, dict[str, float]] = {
    SEARCH: {"avoid": 1, "seed": 0},
    PROGRAM: {"power": -0.5, "rounding": 1, "own_batch": 1, "believed": 1},
}
_SWITCHES = {"avoid", "rounding", "own_batch", "believed"}
_MOST_SEEDS = 2**31
#: A power beyond this leaves nothing of a goodput but whether it is the least.
_STEEPEST = 8


class PolluxPolicy(Described):
    """A policy in the ticks of Pollux's published simulator.

    Args:
        decider: `SEARCH`, `PROGRAM`, or one of `RIVALS`.
        interval: s a tick.
        interference: part of its speed that a job on several nodes loses beside another such job.
        avoid: of `SEARCH` only: 1 = two jobs on several nodes never share one, 0 = they may.
        seed: of `SEARCH` only: of its random numbers.
        power: of `PROGRAM` only: of a goodput in the objective.
        rounding: of `PROGRAM` only: 1 = the program's entries have two decimals, as published.
        own_batch: of `PROGRAM` only: 1 = goodputs as if the batch size asked for were the largest,
            as published; 0 = with the largest that the job may train with.
        believed: of `PROGRAM` only: 1 = restarts are taken to cost what the published scheduler
            believes, 0 = what they do.
        fill: without ``compat``: who may take free GPUs between two ticks, of `FILLS`; "" =
            ``false``.

    Raises:
        SpecError: a parameter is out of range.
    """

    prefix = PREFIX
    refusal = "runs with compat=pollux, or as an elastic policy: see windtunnel.simulate"
    elastic = True

    def __init__(
        self,
        decider: str,
        *,
        interval: float = 60.0,
        interference: float = 0.0,
        avoid: float | None = None,
        seed: float | None = None,
        power: float | None = None,
        rounding: float | None = None,
        own_batch: float | None = None,
        believed: float | None = None,
        fill: str | bool = "",
    ) -> None:
        if decider not in {*RIVALS, *_OWN}:
            raise SpecError.unknown(
                "policy", PREFIX + decider, [PREFIX + n for n in (*_OWN, *RIVALS)]
            )
        where = f"policy {PREFIX}{decider}"
        if not 1 <= interval < float("inf") or interval != int(interval):
            raise SpecError(f"{where}: interval", f"found {interval:g}; expected whole seconds.")
        checked_number(f"{where}: interference", interference, "0 to 1", least=0, below=1)
        own = {"avoid": avoid, "seed": seed, "power": power, "rounding": rounding}
        own |= {"own_batch": own_batch, "believed": believed}
        given = {name: value for name, value in own.items() if value is not None}
        _check_own(where, given, _OWN.get(decider, {}))
        self.decider, self.interval, self.interference = decider, interval, interference
        self.every = interval
        self.filling = checked_fill(where, fill, FILLS)
        self.own = {**_OWN.get(decider, {}), **given}
        self.text = PREFIX + decider

    @property
    def given(self) -> dict[str, float]:
        """Its parameters, for the run's settings."""
        return {"interval": self.interval, "interference": self.interference, **self.own}

    def on_engine(self, compat: str | None) -> Policy:
        """Return the policy for jobs with options, on the simulator of all others.

        Raises:
            SpecError: it knows no such jobs, or a parameter means something else there.
        """
        if compat is not None:
            return self
        own = self.own
        if self.decider == PROGRAM and not (own["own_batch"] and own["believed"]):
            message = "own_batch and believed are of the published scheduler; they need compat."
            raise SpecError("policy", message)
        if self.interference:
            raise SpecError("interference", "expected slowdown='spread=...' without compat.")
        deciders: dict[str, Callable[[Machines], Decider]] = {
            "tiresias": lambda _: Tiresias(),
            "optimus": lambda _: Optimus(OnOptions.saved),
            SEARCH: self.made,
            PROGRAM: lambda machines: SiaOnOptions(machines, self._rules),
        }
        return OnOptionsPolicy(
            deciders[self.decider],
            self.text,
            self.interval,
            fill=self.filling,
            resizes=self.decider != "tiresias",
        )

    def made(self, machines: Machines) -> Decider:
        """Return who decides, on some nodes."""
        own = self.own
        if self.decider == SEARCH:
            return Pollux(avoid=own["avoid"] != 0, seed=int(own["seed"]))
        if self.decider == PROGRAM:
            return Sia(machines, self._rules)
        return RIVALS[self.decider]()

    @property
    def _rules(self) -> SiaRules:
        own = self.own
        decimals = 2 if own["rounding"] else None
        return SiaRules(own["power"], decimals, own["own_batch"] != 0, own["believed"] != 0)


def _check_own(where: str, given: dict[str, float], known: dict[str, float]) -> None:
    """Check parameters that not every policy takes.

    Raises:
        SpecError: this one does not take it, or the value is out of range.
    """
    for name, value in given.items():
        if name not in known:
            raise SpecError(f"{where}: {name}", "this policy does not take it.")
        if name in _SWITCHES and value not in {0, 1}:
            raise SpecError(f"{where}: {name}", f"found {value:g}; expected 0 or 1.")
    seed, power = given.get("seed", 0), given.get("power", -1)
    if not (0 <= seed < _MOST_SEEDS and seed == int(seed)):
        message = f"found {seed:g}; expected a whole number below {_MOST_SEEDS:,}."
        raise SpecError(f"{where}: seed", message)
    checked_number(f"{where}: power", power, f"-{_STEEPEST} to below 0", least=-_STEEPEST, below=0)


def run_in_ticks(
    jobs: Sequence[ElasticJob], machines: Machines, policy: PolluxPolicy
) -> list[Trained]:
    """Return the jobs, all done, in the workload's order.

    Args:
        jobs: the workload.
        machines: the nodes.
        policy: who decides.

    Raises:
        SpecError: step times that were not measured, or a library is missing.
    """
    clock = Clock(jobs, machines.sizes, policy.interval, policy.interference)
    with one_thread() if policy.own else nullcontext():
        return clock.run(policy.made(machines))
