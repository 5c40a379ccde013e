"""Shares that need no solver: `isolated` (equal split) and `proportional`.

Narayanan et al., OSDI'20, section 4.1: the second is the normaliser of max-min fairness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.policies.gavel.instance import Instance


def isolated_shares(instance: Instance) -> np.ndarray:
    """Return X[i, j] = N[j] / (jobs x s[i]), each row scaled down to a sum of at most 1.

    Shape (jobs, types).
    """
    return equal_split(instance.num_gpus, instance.scale_factors, among=instance.num_sharing)


def equal_split(
    num_gpus: np.ndarray, gangs: np.ndarray, *, among: float | None = None
) -> np.ndarray:
    """Return the equal split of GPUs for jobs with gangs of some sizes, shape (jobs, types).

    Args:
        num_gpus: of each type, shape (types,).
        gangs: shape (jobs,).
        among: how many jobs share the GPUs; None = those whose gangs are given.
    """
    count = max(len(gangs) if among is None else among, 1)
    shares = num_gpus[None, :] / (count * gangs[:, None])
    split: np.ndarray = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return split


def proportional_shares(instance: Instance) -> np.ndarray:
    """Return X[i, j] = N[j] / sum N, whatever the gang; shape (jobs, types)."""
    total = instance.num_gpus.sum()
    row = instance.num_gpus / total if total > 0 else np.zeros(len(instance.gpu_types))
    return np.tile(row, (instance.num_jobs, 1))


def isolated_throughputs(instance: Instance) -> np.ndarray:
    """Return steps per second under the equal split, shape (jobs,)."""
    speeds: np.ndarray = (instance.throughputs * isolated_shares(instance)).sum(axis=1)
    return speeds


def proportional_throughputs(instance: Instance) -> np.ndarray:
    """Return steps per second under proportional shares, shape (jobs,)."""
    speeds: np.ndarray = (instance.throughputs * proportional_shares(instance)).sum(axis=1)
    return speeds
