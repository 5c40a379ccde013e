"""Where each group's part begins in one array for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Return where each part begins, and the end of the last, Int array (parts + 1,).

    Args:
        sizes: Int array (parts,), their lengths in order.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def class_starts(problem: Problem) -> np.ndarray:
    """Return where each demand class's jobs begin among those of all, shape (classes + 1,)."""
    return offsets_of(np.bincount(problem.demand_of, minlength=len(problem.demands)))
