"""What a search would cost, before it is made: simulations, requests and groups looked through.

The estimate is for refusing what takes minutes where seconds were expected, a slip of the keyboard
most often: a factor of a few either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.serving.overheads import Overheads
from windtunnel.serving.search.layouts import equal_groups, search_layouts
from windtunnel.serving.search.policies import REFINE, named_policy, parallel_of
from windtunnel.serving.search.problem import Problem

if TYPE_CHECKING:
    from windtunnel.serving.parallel import Parallel
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.workload import Workload

#: Seconds of a request of a simulation, of a group that it looks at, and of a group that may hold a
#: model or not. Measured.
_REQUEST, _HOST, _PLACE = 1e-8, 5.5e-10, 7e-10
#: Seconds that are spent without being asked to.
MOST_SECONDS = 15.0
#: Policies that fill groups greedily; the others make few simulations.
_ONE_LAYOUT = ("sr-greedy", "mp-greedy", "beam")
_ALL_LAYOUTS = ("mp-search", "mp-search-sep", "mp-grow", "mp-evolve")


def refuse_large_search(
    workload: Workload,
    profile: Profile,
    gpus: int,
    policy: str,
    *,
    mem_budget: float,
    group: Parallel | int | None,
    refine: int | None,
    times: int = 1,
) -> None:
    """Check that a search is not out of all proportion; the arguments are those of `search`.

    With ``times`` it is made so often, each time of an even part of the requests.

    Raises:
        SpecError: it is; or the policy or the group is unknown.
    """
    policy, group = named_policy(policy, group)
    layouts = search_layouts(gpus) if policy in _ALL_LAYOUTS else []
    if policy in _ONE_LAYOUT:
        layouts = [equal_groups(gpus, parallel_of(group, policy, gpus))]
    everyone = tuple(range(len(workload.models)))
    problem = Problem(workload, profile, mem_budget, Overheads(), everyone)
    total = 0.0
    for layout in layouts:
        replicas = 0
        for parallel in set(layout):
            weights = np.sort(problem.weights(parallel))
            fits = int(np.searchsorted(np.cumsum(weights), mem_budget, side="right"))
            replicas += fits * layout.count(parallel)
        hosts = replicas / max(len(everyone), 1)
        simulations = replicas + (REFINE if refine is None else refine) / len(layouts)
        of_requests = len(workload) * (_REQUEST + hosts / 2 * _HOST)
        total += simulations * (of_requests + times * len(layout) * len(everyone) * _PLACE)
    if total > MOST_SECONDS:
        raise SpecError(
            "allow_large",
            f"a search by {policy} on {gpus:,} GPUs for {len(workload):,} requests would take "
            f"about {total:,.0f} s; more than {MOST_SECONDS:g} s are spent only if it is set "
            "(--allow-large). A shorter --duration searches as well.",
        )
