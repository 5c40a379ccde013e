"""How many GPUs a workload needs, by searching placements on ever fewer of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving.fewest import fewest
from windtunnel.serving.overheads import as_overheads
from windtunnel.serving.placement import MEM_BUDGET
from windtunnel.serving.search.policies import REFINE, SearchResult, search

if TYPE_CHECKING:
    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.search.problem import OnDone
    from windtunnel.serving.workload import Workload

#: GPUs tried at most.
MOST_GPUS = 256


@dataclass(frozen=True)
class Capacity:
    """The fewest GPUs found to reach an attainment.

    Attributes:
        gpus: how many; one fewer was searched and does not reach it, unless it is 1.
        found: the placement on them.
        tried: attainment of the placement found on each number of GPUs searched; 0 where no model
            fits.
    """

    gpus: int
    found: SearchResult
    tried: dict[int, float]


def fewest_gpus(
    workload: Workload,
    profile: Profile,
    attainment: float,
    policy: str = "mp-search",
    *,
    mem_budget: float = MEM_BUDGET,
    overheads: Overheads | str = "none",
    max_gpus: int = MOST_GPUS,
    refine: int = REFINE,
    workers: int = 1,
    on_done: OnDone | None = None,
) -> Capacity:
    """Search the fewest GPUs whose placement serves a share of the requests in time.

    The number is doubled until a placement suffices, then bisected. Attainment need not grow with
    every GPU, so that far fewer could suffice by chance; the number found suffices and one fewer
    does not.

    Args:
        workload: the requests, all of which count.
        profile: costs and memory.
        attainment: share of requests within their SLO, 0 < attainment <= 1.
        policy: of `windtunnel.serving.search.policies.search`, one that needs no group.
        mem_budget: bytes for weights on a GPU.
        overheads: ``none``, ``alpaserve``, or your own.
        max_gpus: given up beyond.
        refine: as in the search.
        workers: threads; the result is the same.
        on_done: called after each number of GPUs.

    Raises:
        SpecError: a number makes no sense, or there are no requests.
        InfeasibleError: too many requests have a deadline that no configuration meets, or
            ``max_gpus`` do not suffice.
    """
    checked_number("attainment", attainment, "0 < share <= 1", above=0, most=1)
    checked_count("max_gpus", max_gpus)
    reachable = attainable(workload, profile, mem_budget, overheads)
    if reachable < attainment:
        raise InfeasibleError(
            "capacity",
            f"with any number of GPUs at most {reachable:.6g} of the requests can be in time, "
            f"wanted {attainment:.6g}",
        )
    tried: dict[int, float] = {}

    def reached(gpus: int) -> SearchResult | None:
        try:
            found = search(
                workload, profile, gpus, policy, mem_budget=mem_budget, overheads=overheads,
                refine=refine, workers=workers,
            )  # fmt: skip
        except InfeasibleError:
            found = None
        tried[gpus] = 0.0 if found is None else found.attainment
        if on_done is not None:
            on_done("gpus")
        return found if tried[gpus] >= attainment else None

    best = fewest(reached, max_gpus)
    if best is None:
        raise InfeasibleError(
            "capacity",
            f"{policy} reaches {tried[max_gpus]:.6g} with {max_gpus} GPUs, wanted {attainment:.6g}",
        )
    return Capacity(*best, tried)


def attainable(
    workload: Workload, profile: Profile, mem_budget: float, overheads: Overheads | str = "none"
) -> float:
    """Return the share of requests that an idle group of some configuration answers in time.

    Raises:
        SpecError: there are no requests, or the profile does not know a model.
    """
    if not len(workload):
        raise SpecError("workload", "there are no requests to serve.")
    costs = as_overheads(overheads)
    quickest = np.full(len(workload.models), math.inf)
    for model, name in enumerate(workload.models):
        for parallel in profile.configurations(name):
            if profile.has(name, parallel) and profile.weight(name, parallel) <= mem_budget:
                times = costs.stage_times(profile.stages(name, parallel).latency)
                quickest[model] = min(quickest[model], times.sum() + costs.fixed)
    needed = quickest[workload.model]
    return float(np.mean((needed <= workload.slo) & np.isfinite(needed)))
