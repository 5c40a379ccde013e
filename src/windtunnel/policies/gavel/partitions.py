"""POP: split a large instance into parts of random jobs and equal GPUs, and solve each alone.

Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems Efficiently with
POP", SOSP'21. Keep at least 64 jobs a part: the loss grows as parts become unlike the whole.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.policies.gavel.allocation import Allocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance

#: Objectives of parts that add up; of the others the worst part's counts.
_SUMS = ("max_sum", "total_throughput")
_SMALLER_IS_BETTER = ("min_total_duration", "makespan", "finish_time_fairness")


def solve_in_parts(
    instance: Instance, compute: Callable[[Instance], Allocation], asked: Asked, parts: int
) -> Allocation:
    """Solve each part alone and put the shares together.

    Args:
        instance: the whole.
        compute: solves one part.
        asked: the policy's name and the seed of the split.
        parts: how many, from 2 to the number of jobs.

    Returns:
        The shares of all jobs; the objective is that of the whole: the sum of the parts', or the
        worst part's.

    Raises:
        SpecError: too few or too many parts.
    """
    most = instance.num_jobs
    checked_count("partitions", parts, f"a whole number 1..{most}", most=most)
    rows = list(range(instance.num_jobs))
    random.Random(asked.seed).shuffle(rows)  # noqa: S311 - a split, not a secret
    solved = []
    for number in range(parts):
        mine = np.array(sorted(rows[number::parts]))
        alone = replace(
            instance.keep(mine),
            num_gpus=instance.num_gpus / parts,
            num_sharing=instance.num_jobs / parts,
        )
        solved.append(compute(alone))
    reached = [part.objective for part in solved if part.objective is not None]
    if asked.policy.startswith(_SUMS):
        objective = sum(reached)
    elif asked.policy.startswith(_SMALLER_IS_BETTER):
        objective = max(reached)
    else:
        objective = min(reached)
    whole = Allocation(
        asked.policy,
        objective,
        {},
        iterations=sum(part.iterations for part in solved),
        notes=(f"Solved in {parts} parts (POP), split with seed {asked.seed}.",),
    )
    for part in solved:
        whole.pair_shares.update(part.pair_shares)
    for job in instance.job_ids:
        home = next(part for part in solved if job in part.shares)
        whole.shares[job] = home.shares[job]
        whole.throughputs[job] = home.throughputs[job]
        if home.levels:
            whole.levels[job] = home.levels[job]
    return whole
