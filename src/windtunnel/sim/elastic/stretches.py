"""`Stretches`: what an elastic run adds to a flight: how each stay ran, what launches cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.elastic.work import plan_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.sim.elastic.work import Option, Work


@dataclass(frozen=True)
class Stretches:
    """How the stays of an elastic run went. Segments are numbered as the flight's.

    Attributes:
        gpus: Float array (s,), GPUs held.
        cpus: Float array (s,), CPU cores held.
        plan: object array (s,), word of the execution plan; empty for jobs without plans.
        iteration_time: Float array (s,), seconds an iteration.
        penalty_time: Float array (s,), seconds of launching, without progress; less than the
            penalty where the stay ended in it.
        iterations: Float array (n,), iterations to run; rows of the jobs table, as below.
        iterations_done: Float array (n,), iterations run by the end, or the horizon.
        promise: Float array (n,), iterations a second of the option that the job's user asked for;
            NaN for rejected jobs.
        guaranteed: Bool array (n,), jobs that are to keep it.
    """

    gpus: np.ndarray
    cpus: np.ndarray
    plan: np.ndarray
    iteration_time: np.ndarray
    penalty_time: np.ndarray
    iterations: np.ndarray
    iterations_done: np.ndarray
    promise: np.ndarray
    guaranteed: np.ndarray


def stretches_of(
    by_row: Callable[[np.ndarray, Any], np.ndarray],
    works: Sequence[Work],
    columns: Mapping[str, np.ndarray],
    ways: Sequence[tuple[Option, float]],
    *,
    left: np.ndarray,
    horizon: float,
) -> Stretches:
    """Return how the stays of an elastic run went.

    ``ways``: of each stay the option, and what its launch cost, s; ``left``: work left at the end,
    s in the option asked for.
    """
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
