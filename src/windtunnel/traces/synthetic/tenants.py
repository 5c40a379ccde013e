"""Virtual clusters and their users."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.attributes import statuses
from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.size_facts import VirtualClusters


def vcs_of_users(share: NDArray[np.float64], vcs: VirtualClusters) -> NDArray[np.int64]:
    """Return each user's virtual cluster, so that the clusters' shares are near the wanted ones.

    From the largest user on, each goes where most is still wanted.

    Args:
        share: the users' shares of the GPU time, falling, shape (users,).

    Returns:
        Index of the virtual cluster, shape (users,).
    """
    total = sum(vcs.gpu_time)
    wanted = [(-weight / total, k) for k, weight in enumerate(vcs.gpu_time)]
    heapq.heapify(wanted)
    chosen = []
    for mine in share.tolist():
        owed, k = wanted[0]
        heapq.heapreplace(wanted, (owed + mine, k))
        chosen.append(k)
    return np.array(chosen, dtype=np.int64)


def member_users(
    vcs: VirtualClusters, users: int, weight: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each job's user and virtual cluster, where only the latter's shares are known.

    The jobs of each virtual cluster are exact, its GPU time is near the published share. Users
    belong to one virtual cluster, which has them in proportion to the root of its jobs; the k-th
    of them submits in proportion to 1/k.

    Args:
        vcs: the virtual clusters with shares of jobs and GPU time.
        weight: GPU time of each job, shape (jobs,).

    Returns:
        Indices of user and virtual cluster, shape (jobs,) each.
    """
    total = sum(vcs.gpu_time)
    by_weight = {v: w / total for v, w in zip(vcs.names, vcs.gpu_time, strict=True)}
    names = statuses(dict(zip(vcs.names, vcs.jobs, strict=True)), by_weight, weight, rng)
    code = {v: k for k, v in enumerate(vcs.names)}
    vc = np.array([code[v] for v in names.to_pylist()], dtype=np.int64)
    members = 1 + largest_remainder(np.sqrt(vcs.jobs), users - len(vcs.names))
    first = np.concatenate([[0], np.cumsum(members)])
    user = np.empty(len(vc), dtype=np.int64)
    for k, number in enumerate(members.tolist()):
        mine = np.flatnonzero(vc == k)
        edges = np.cumsum(1.0 / np.arange(1, number + 1))
        rank = np.searchsorted(edges, rng.random(len(mine)) * edges[-1], side="right")
        user[mine] = first[k] + np.minimum(rank, number - 1)
    return user, vc
