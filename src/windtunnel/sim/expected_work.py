"""What policies expect jobs to have left, where they do not know it.

What is predicted is work, not time: how long a job takes depends on what it runs on. A prediction
in seconds stands for the work that takes as long as the job was asked for; how much of it is done
is measured while the job runs. A job that outruns what was expected of it is expected to need as
much again as that was in all, as often as that happens: never nothing, and never less than before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

#: Least part of a job's work that is expected: a prediction of nothing says nothing.
_LEAST = 1e-6


def expected_parts(problem: Problem) -> np.ndarray | None:
    """Return the work that each flown job is expected to have over what it has, shape (jobs,).

    None = the run knows what there is: it has no estimates, or perfect ones.
    """
    estimate, truth = problem.estimate, problem.duration
    if np.isnan(estimate).all() or np.array_equal(estimate, truth):
        return None
    parts = np.ones(len(truth))
    np.divide(estimate, truth, out=parts, where=(truth > 0) & ~np.isnan(estimate))
    return np.maximum(parts, _LEAST)


def expected_whole(first: np.ndarray, done: np.ndarray) -> np.ndarray:
    """Return the work that jobs are expected to have in all.

    Args:
        first: what was predicted, above 0; any unit, any shape.
        done: of it; in the same unit.

    >>> expected_whole(np.array([10.0, 10.0, 10.0]), np.array([4.0, 10.0, 25.0])).tolist()
    [10.0, 20.0, 40.0]
    """
    outrun = np.maximum(done / first, 0.5)
    doublings = np.maximum(np.floor(np.log2(outrun)) + 1.0, 0.0)
    whole: np.ndarray = first * np.exp2(doublings)
    return whole


def expected_left(
    part: np.ndarray | float, whole: np.ndarray | float, left: np.ndarray | float
) -> np.ndarray:
    """Return the work that jobs are expected to have left.

    Args:
        part: what was predicted of them over what they have in all, above 0.
        whole: what they have in all, at least 0.
        left: what they have left of it.
    """
    done = np.maximum(whole - left, 0.0)
    rest = expected_whole(np.maximum(part * whole, np.finfo(float).tiny), done) - done
    found: np.ndarray = np.where(left > 0, rest, 0.0)
    return found
