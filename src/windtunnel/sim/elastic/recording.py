"""`Stretches` of an elastic run, from what the kernel has logged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.closing import ByRow
from windtunnel.sim.elastic.stretches import Stretches
from windtunnel.sim.elastic.work import plan_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.elastic.work import Option, Work
    from windtunnel.sim.problem import Problem


def stretches_of(
    problem: Problem,
    works: Sequence[Work],
    columns: Mapping[str, np.ndarray],
    ways: Sequence[tuple[Option, float]],
    *,
    left: np.ndarray,
    horizon: float,
) -> Stretches:
    """Return how the stays of an elastic run went.

    Args:
        problem: the jobs.
        works: what each flown job is.
        columns: the kernel's log of stays.
        ways: of each stay the option, and what its launch cost, s.
        left: Float array (m,), work left at the end, s in the option asked for.
        horizon: where the run was cut, s.
    """
    by_row = ByRow(problem)
    options = [option for option, _ in ways]
    ends = columns["stay_end"]
    held = np.where(np.isnan(ends), horizon, ends) - columns["stay_start"]
    penalty = np.array([seconds for _, seconds in ways], dtype=np.float64)
    iterations = np.array([work.iterations for work in works], dtype=np.float64)
    times = np.array([work.requested.iteration_time for work in works], dtype=np.float64)
    done = iterations - np.maximum(0.0, left / times)
    return Stretches(
        gpus=np.array([option.num_gpus for option in options], dtype=np.float64),
        cpus=np.array([option.num_cpus for option in options], dtype=np.float64),
        plan=np.array([plan_name(option) for option in options], dtype=object),
        iteration_time=np.array([option.iteration_time for option in options], dtype=np.float64),
        penalty_time=np.minimum(held, penalty),
        iterations=by_row(iterations, 0.0),
        iterations_done=by_row(done, 0.0),
        promise=by_row(1 / times, math.nan),
        guaranteed=by_row(np.array([work.guaranteed for work in works], dtype=bool), False),
    )
