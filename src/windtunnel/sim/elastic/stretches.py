"""`Stretches`: what an elastic run adds to a flight: how each stay ran, what launches cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


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
