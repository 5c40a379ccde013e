"""What resuming costs each job: `save_time` and `restore_time`, as one number or by job.

Saving and restoring take longer the larger a job is; Helios (Hu et al., SC'21) counts 7 s for a job
on one GPU, 30 s on up to one node, 60 s beyond. A cost is

* a number of seconds, the same for all jobs;
* by size: a mapping from a number of GPUs to seconds for jobs of at least so many, or in words
  ``1=7/2=30/9=60``; smaller jobs than the first pay nothing;
* by what runs: a mapping from a name to seconds, compared with a job's ``workload``, then its
  ``template``; ``*`` = all others (0 where it is not given); or in words ``bert=20/*=5``;
* a function from the jobs (`windtunnel.sim.jobs.Jobs`) to seconds, Float array (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from windtunnel.sim.jobs import Jobs
    from windtunnel.sim.problem import Problem

#: Seconds for all jobs, by GPUs or by name (a mapping or words), or a function of the jobs.
ResumeCost: TypeAlias = float | str | Mapping[Any, float] | Callable[["Jobs"], np.ndarray]
#: Stands for all names that a mapping does not have.
OTHERS = "*"


def resume_costs(name: str, given: ResumeCost, problem: Problem) -> np.ndarray:
    """Return the seconds that each flown job pays, Float array (m,).

    Args:
        name: of the option, for messages.
        given: the cost.
        problem: the jobs.

    Raises:
        SpecError: it is none of what the module says, or below 0.
    """
    cost = read_cost(name, given)
    jobs, rows = problem.jobs, problem.rows
    if isinstance(cost, float):
        return np.full(len(rows), cost)
    if callable(cost):
        return np.asarray(_of_function(name, cost, jobs)[rows])
    if all(isinstance(key, float) for key in cost):
        bounds = np.array(sorted(cost))
        seconds = np.array([0.0, *(cost[bound] for bound in bounds.tolist())])
        return np.asarray(seconds[np.searchsorted(bounds, jobs.num_gpus[rows], side="right")])
    pairs = zip(jobs.workload[rows].tolist(), jobs.template[rows].tolist(), strict=True)
    others = cost.get(OTHERS, 0.0)
    return np.array([cost.get(one, cost.get(two, others)) for one, two in pairs], dtype=np.float64)


def read_cost(
    name: str, given: ResumeCost
) -> float | dict[Any, float] | Callable[[Jobs], np.ndarray]:
    """Return a cost as a number, a mapping whose keys are all numbers or all names, or a function.

    Raises:
        SpecError: it is none of these, or below 0.

    >>> read_cost("save_time", "1=7/9=60")
    {1.0: 7.0, 9.0: 60.0}
    """
    if callable(given):
        return given
    if isinstance(given, str) and "=" in given:
        parts = [part.rpartition("=") for part in given.split("/")]
        if not all(key.strip() for key, _, _ in parts):
            message = f"found {quote(given)}; expected as in 1=7/2=30/9=60 or bert=20/*=5"
            raise SpecError(name, message)
        given = {key.strip(): _seconds(f"{name}.{key}", cost) for key, _, cost in parts}
    if not isinstance(given, Mapping):
        return _seconds(name, given)
    found: dict[Any, float] = {key: _seconds(f"{name}.{key}", cost) for key, cost in given.items()}
    try:
        return {float(key): cost for key, cost in found.items()}
    except (TypeError, ValueError):
        return {str(key): cost for key, cost in found.items()}


def _seconds(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise SpecError(name, f"found {quote(value)}; expected seconds >= 0")
    return number


def _of_function(name: str, cost: Callable[[Jobs], np.ndarray], jobs: Jobs) -> np.ndarray:
    found = np.asarray(cost(jobs), dtype=np.float64)
    if found.shape != (len(jobs),) or not (found >= 0).all() or np.isinf(found).any():
        message = f"the function returned shape {found.shape}; expected seconds >= 0, one a job"
        raise SpecError(name, message)
    return found
