"""``shockwave:<policy>``: the market and the policies it is compared with, with their parameters.

The policy itself is only a description: `windtunnel.study.shockwave` runs it, on the simulator of
all other policies or, under ``compat="shockwave"``, in the published rounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError
from windtunnel.policies.described import Described
from windtunnel.policies.filling import checked_fill
from windtunnel.policies.shockwave import shares
from windtunnel.policies.shockwave.market import MarketRules
from windtunnel.policies.shockwave.published import OVERHEAD, Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.policies.shockwave.published import SharePolicy

PREFIX = "shockwave:"
#: The market of rounds, which plans instead of giving shares.
MARKET = "market"
#: What gives shares, by the published names.
SHARES: dict[str, Callable[[], SharePolicy]] = {
    "gandiva_fair": lambda: shares.Shares(shares.gandiva_fair),
    "isolated": lambda: shares.Shares(shares.isolated),
    "max_min_fairness": lambda: shares.Shares(shares.max_min),
    "max_sum_throughput_perf": lambda: shares.Shares(shares.most_throughput),
    "min_total_duration": lambda: shares.Shares(shares.least_span),
    "finish_time_fairness": shares.FinishTimeFairness,
    "allox": shares.AlloX,
}
ALLOCATIONS: tuple[str, ...] = (MARKET, *SHARES)
_MOST_SEEDS = 2**31


class ShockwavePolicy(Described):
    """A policy on one GPU type whose jobs may change their batch sizes, run in rounds.

    Args:
        allocation: one of `ALLOCATIONS`.
        round: seconds a round.
        gap: published rounds: least seconds between two decisions on shares.
        cut: published rounds: a job ends when it ran longer than this times its ideal duration.
        overhead: published rounds: seconds lost where a job did not run in the round before.
        testbed: published rounds: 1 = as real GPUs ran them, see `testbed` beside this module.
        seed: with ``testbed``: which flight of the ensemble.
        window: rounds that the market plans ahead.
        every: rounds after which it plans anew at the latest.
        k: what a second of the longest time left costs it.
        lam: exponent of the weight of late jobs.
        rhomax: finish time over that of the fair share that it promises.
        fill: without ``compat``: who may take free GPUs between two rounds, of
            `windtunnel.policies.filling.FILLS`; "" = ``false``.

    Raises:
        SpecError: a parameter is out of range.
    """

    prefix = PREFIX

    def __init__(
        self,
        allocation: str,
        *,
        round: float = 120.0,  # noqa: A002 - the field's word
        gap: float = 1000.0,
        cut: float = 1.5,
        overhead: float = OVERHEAD,
        testbed: float = 0,
        seed: float = 0,
        window: float = 20,
        every: float = 8,
        k: float = 1e-3,
        lam: float = 12.0,
        rhomax: float = 1.0,
        fill: str | bool = "",
    ) -> None:
        if allocation not in ALLOCATIONS:
            known = [PREFIX + name for name in ALLOCATIONS]
            raise SpecError.unknown("policy", PREFIX + allocation, known)
        where = f"policy {PREFIX}{allocation}: "
        positive = {"round": round, "gap": gap, "cut": cut, "k": k, "rhomax": rhomax}
        for name, value in {**positive, "window": window, "every": every}.items():
            if not value > 0 or (math.isinf(value) and name != "cut"):
                raise SpecError(where + name, f"found {value:g}; expected a number > 0.")
        for name, value in (("overhead", overhead), ("lam", lam)):
            checked_number(where + name, value, least=0)
        for name, value, most in (("testbed", testbed, 2), ("seed", seed, _MOST_SEEDS)):
            if not (0 <= value < most and value == int(value)):
                message = f"found {value:g}; expected a whole number below {most:,}."
                raise SpecError(where + name, message)
        if seed and not testbed:
            raise SpecError(f"{where}seed", "nothing is drawn; expected it with testbed=1.")
        self.allocation = allocation
        self.testbed, self.seed = bool(testbed), int(seed)
        self.rules = Rules(length=float(round), gap=gap, cut=cut, overhead=overhead)
        self.market = MarketRules(
            window=int(window), every=int(every), k=k, lam=lam, rhomax=rhomax, length=float(round)
        )
        self.filling = checked_fill(f"policy {PREFIX}{allocation}", fill)
        self.text = PREFIX + allocation
