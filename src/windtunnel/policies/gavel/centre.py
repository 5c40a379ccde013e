"""The centre of all equally good shares, which interior-point solvers return.

A policy that does not know speeds leaves most of its answer open: whether a job has its time on
V100s or on K80s is all the same to it. A vertex of the optimal face pins jobs to single types; the
published programs were solved by interior-point methods, which end near the *analytic centre* of
the face, where each job's time is spread over the types in proportion to their GPUs. On gangs the
choice moves completion times by a quarter.

The centre is followed along the central path: maximise t z + the logarithms of all shares and
slacks, with z the part of the wanted speeds that every job gets, for growing t. Boyd and
Vandenberghe, *Convex Optimization*, sections 8.5 and 11.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.policies.gavel.shares import ShareModel

#: How far z may be from its best, relatively.
_GAP = 1e-5
_GROWTH = 20.0
_STEPS = 60
#: Newton's decrement, squared, at which a point of the path is taken as reached.
_REACHED = 1e-8
#: Part by which the diagonal of the Hessian is raised.
_REGULAR = 1e-12
_SHRINK, _SLOPE = 0.5, 0.05


def centre_of(model: ShareModel, need: np.ndarray) -> np.ndarray:
    """Return the most central shares that give every job the speed it needs.

    Args:
        model: the shares, without pairs.
        need: steps per second of each class's jobs, the most that all can have; shape (classes,).

    Returns:
        Values of the model's columns, shape (columns,); only those of shares are set.
    """
    problem = _Barrier(model, need)
    shares, z = problem.start()
    weight = count = 2 * problem.num_limits
    while True:
        shares, z = problem.centred(shares, z, weight)
        if count / weight <= _GAP or not problem.bound.any():
            break
        weight *= _GROWTH
    values = np.zeros(model.lp.num_columns)
    of, kind, column = model.single.T
    values[column] = shares[of, kind]
    return values


class _Barrier:
    """The logarithms, and Newton's steps on them.

    Shares have the shape (classes, types); a class of several equal jobs counts as often.
    """

    def __init__(self, model: ShareModel, need: np.ndarray) -> None:
        instance, classes = model.instance, model.classes
        shape = (len(classes.counts), len(instance.gpu_types))
        self.usable = np.zeros(shape, bool)
        self.usable[model.single[:, 0], model.single[:, 1]] = True
        speeds = np.where(self.usable, instance.throughputs[classes.first], 0.0)
        self.bound = need > 0
        self.pace = speeds / np.where(self.bound, need, np.inf)[:, None]
        self.counts = classes.counts.astype(float)
        self.gpus = instance.scale_factors[classes.first] * self.counts
        self.capacity = instance.num_gpus.astype(float)
        self.open = self.usable.any(axis=0)
        self.num_limits = float(
            (self.counts * (self.usable.sum(axis=1) + 1 + self.bound)).sum() + self.open.sum()
        )

    def start(self) -> tuple[np.ndarray, float]:
        """Return shares strictly within all limits, and a z that they exceed."""
        total = float(self.gpus.sum())
        shares = np.where(self.usable, 0.5 * np.minimum(1, self.capacity / total), 0.0)
        shares /= np.maximum(1.0, 2 * shares.sum(axis=1, keepdims=True))
        paces = (self.pace * shares).sum(axis=1)[self.bound]
        return shares, 0.5 * float(paces.min(initial=1.0))

    def slacks(self, shares: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what is left of jobs' time, of their pace beyond z, and of the types' GPUs."""
        time = 1.0 - shares.sum(axis=1)
        pace = np.where(self.bound, (self.pace * shares).sum(axis=1) - z, 1.0)
        spare = np.where(self.open, self.capacity - self.gpus @ shares, 1.0)
        return time, pace, spare

    def value(self, shares: np.ndarray, z: float, weight: float) -> float:
        """Return what is minimised; infinite beyond the limits."""
        time, pace, spare = self.slacks(shares, z)
        inside = np.where(self.usable, shares, 1.0)
        if min(time.min(), pace.min(), spare.min(), inside.min()) <= 0:
            return np.inf
        logs = np.log(inside).sum(axis=1) + np.log(time) + np.log(pace)
        return float(-weight * z - self.counts @ logs - np.log(spare).sum())

    def centred(self, shares: np.ndarray, z: float, weight: float) -> tuple[np.ndarray, float]:
        """Return the point of the central path for a weight of z, by Newton's method."""
        for _ in range(_STEPS):
            step, step_z, decrement = self._newton(shares, z, weight)
            if decrement <= _REACHED:
                break
            size, before = 1.0, self.value(shares, z, weight)
            while self.value(shares + size * step, z + size * step_z, weight) > (
                before - _SLOPE * size * decrement
            ):
                size *= _SHRINK
                if size < 1e-12:  # noqa: PLR2004 - rounding: as near as numbers come
                    return shares, z
            shares, z = shares + size * step, z + size * step_z
        return shares, z

    def _newton(
        self, shares: np.ndarray, z: float, weight: float
    ) -> tuple[np.ndarray, float, float]:
        """Return the step of the shares and of z, and the decrement squared.

        The Hessian is a block for each class, plus the types' GPUs and z, which couple them: a few
        columns, so the blocks are solved for these, and a small system joins them (Woodbury).
        """
        time, pace, spare = self.slacks(shares, z)
        counts, of_pace = self.counts[:, None], np.where(self.bound, 1 / pace, 0.0)
        inverse = np.where(self.usable, 1 / np.where(self.usable, shares, 1.0), 0.0)
        of_gpus = np.where(self.open, 1 / spare, 0.0)
        gradient = -counts * inverse + counts / time[:, None] + np.outer(self.gpus, of_gpus)
        gradient -= counts * of_pace[:, None] * self.pace
        gradient = np.where(self.usable, gradient, 0.0)
        gradient_z = -weight + float(self.counts @ of_pace)
        blocks = self._blocks(inverse, time, of_pace)
        num_types = len(self.capacity)
        coupling = np.zeros((*shares.shape, num_types + 1))
        for kind in range(num_types):
            coupling[:, kind, kind] = np.where(self.usable[:, kind], self.gpus * of_gpus[kind], 0.0)
        coupling[:, :, num_types] = -(self.counts * of_pace**2)[:, None] * self.pace
        solved = np.linalg.solve(blocks, np.concatenate([coupling, gradient[:, :, None]], axis=2))
        columns = np.einsum("ijk,ijl->kl", coupling, solved)
        small = np.eye(num_types + 1)
        small[:num_types, :num_types] += columns[:num_types, :num_types]
        small[:num_types, num_types] = columns[:num_types, num_types]
        small[num_types, :num_types] = -columns[num_types, :num_types]
        own = float(self.counts @ of_pace**2) if self.bound.any() else 1.0
        small[num_types, num_types] = own - columns[num_types, num_types]
        right = columns[:, -1].copy()
        right[num_types] = (gradient_z if self.bound.any() else 0.0) - columns[num_types, -1]
        found = np.linalg.solve(small, right)
        step_z = -float(found[num_types])
        step = -(solved[:, :, -1] - solved[:, :, :num_types] @ found[:num_types])
        step -= solved[:, :, num_types] * step_z
        decrement = -float((gradient * step).sum() + gradient_z * step_z * self.bound.any())
        return step, step_z, decrement

    def _blocks(self, inverse: np.ndarray, time: np.ndarray, of_pace: np.ndarray) -> np.ndarray:
        """Return each class's own second derivatives, shape (classes, types, types)."""
        pace = self.pace * of_pace[:, None]
        blocks = (self.usable / time[:, None])[:, :, None] * (self.usable / time[:, None])[:, None]
        blocks = blocks + pace[:, :, None] * pace[:, None]
        diagonal = np.arange(inverse.shape[1])
        blocks[:, diagonal, diagonal] += inverse**2
        blocks *= self.counts[:, None, None]
        blocks[:, diagonal, diagonal] += np.where(self.usable, 0.0, 1.0)
        # A job that needs all of its time has two limits a hair apart: keep the block regular.
        blocks[:, diagonal, diagonal] *= 1 + _REGULAR
        return np.asarray(blocks)
