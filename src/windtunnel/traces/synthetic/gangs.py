"""How many tasks a job has: the published numbers of gangs, dealt to jobs that can have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.request_facts import Gangs

#: Jobs whose tasks ask for several GPUs, or for a scarce type, have no larger gangs (modelled).
_MOST_OF_LARGE = 8
_MOST_OF_SCARCE = 100
_THIRD = 3


def deal_gangs(
    facts: Gangs,
    large: NDArray[np.bool_],
    scarce: NDArray[np.bool_],
    thirds: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the tasks of each job; so many jobs have so many tasks as the facts say.

    Args:
        large: jobs whose tasks ask for several GPUs: small gangs, shape (jobs,).
        scarce: jobs on a scarce GPU type: no very large gangs, shape (jobs,).
        thirds: jobs whose mean run time is an odd third: a multiple of three tasks, where there
            are enough, shape (jobs,).
    """
    count = len(large)
    left = rng.permutation(np.repeat(facts.tasks, largest_remainder(facts.jobs, count)))
    tasks = np.zeros(count, dtype=np.int64)
    rules = (
        (thirds, left % _THIRD == 0),
        (large & ~thirds, left <= _MOST_OF_LARGE),
        (scarce & ~large & ~thirds, left <= _MOST_OF_SCARCE),
    )
    taken = np.zeros(count, dtype=bool)
    for jobs, fits in rules:
        mine = np.flatnonzero(jobs)
        chosen = np.flatnonzero(fits & ~taken)[: len(mine)]
        tasks[mine[: len(chosen)]] = left[chosen]
        taken[chosen] = True
    tasks[tasks == 0] = left[~taken]
    return tasks
