"""`Bookings`: when a cluster is full by what is planned, so that shifted jobs spread over hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.power.plan import Pieces
    from windtunnel.sim.problem import Problem


#: The end of what has none, s.
_ENDLESS = 1e300


class Bookings:
    """GPUs over time: of the whole cluster, and of the nodes that jobs of one kind may use.

    Where in the cluster they are free is not looked at: a gang may wait for its nodes.

    Args:
        problem: the jobs.
        fill: share of the GPUs that plans may fill.
    """

    def __init__(self, problem: Problem, fill: float) -> None:
        self._gpus = problem.gpus.astype(np.float64)
        masks = [demand.allowed for demand in problem.demands]
        kinds = {mask: kind for kind, mask in enumerate(dict.fromkeys(masks))}
        of_class = np.array([kinds[mask] for mask in masks], dtype=np.int64)
        self._kind = of_class[problem.demand_of]
        sizes = problem.sizes.tolist()
        self._most = fill * float(sum(sizes))
        self._most_of = [
            fill * float(sum(size for node, size in enumerate(sizes) if mask >> node & 1))
            for mask in kinds
        ]

    def full(self, job: int, planned: Mapping[int, Pieces]) -> np.ndarray:
        """Return when there is no room for one more job.

        Args:
            job: the job.
            planned: other jobs -> when each is to run, (start, end) in s.

        Returns:
            Stretches (start, end), s, ascending and apart; shape (k, 2).
        """
        own = self._gpus[job]
        rows = [(other, *piece) for other, pieces in planned.items() for piece in pieces]
        if own == 0 or not rows:
            return np.empty((0, 2))
        table = np.array(rows)
        jobs = table[:, 0].astype(np.int64)
        alike = self._kind[jobs] == self._kind[job]
        most_alike = self._most_of[self._kind[job]]
        stretches = np.concatenate(
            [
                _above(table[chosen, 1:], self._gpus[jobs[chosen]], max(most - own, 0.0))
                for chosen, most in ((slice(None), self._most), (alike, most_alike))
            ]
        )
        return _joined(stretches)


def _above(pieces: np.ndarray, gpus: np.ndarray, most: float) -> np.ndarray:
    """Return when pieces of time together hold more GPUs than ``most``; shape (k, 2)."""
    times = np.minimum(pieces.T.ravel(), _ENDLESS)
    order = np.argsort(times, kind="stable")
    times = times[order]
    held = np.cumsum(np.concatenate([gpus, -gpus])[order])
    # Of changes at one instant the last tells what holds from then on.
    over = (held[:-1] > most + 1e-6) & (np.diff(times) > 0)
    return np.stack([times[:-1][over], times[1:][over]], axis=1)


def _joined(stretches: np.ndarray) -> np.ndarray:
    """Return the union of stretches, ascending and apart."""
    if not len(stretches):
        return stretches
    stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
    reach = np.maximum.accumulate(stretches[:, 1])
    begins = np.concatenate([[True], stretches[1:, 0] > reach[:-1]])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:] - 1, len(stretches) - 1)
    return np.stack([stretches[firsts, 0], reach[lasts]], axis=1)
