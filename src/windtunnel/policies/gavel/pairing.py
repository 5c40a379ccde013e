"""Gandiva's pairs as the published code keeps and draws them, for ``compat="gavel"``.

Between decisions the pairs stay. A decision drops those of which a job left, or whose jobs do not
suit each other; then, where there are too few GPUs, it draws two jobs at a time from those without
a partner and joins them if their gangs are of one size. Whether they suit is asked at the *next*
decision only, so that for one period a pair may hold its share for nothing.

Narayanan et al., OSDI'20, section 5; stanford-futuredata/gavel, ``policies/gandiva.py``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.gavel.closed_forms import equal_split, isolated_shares
from windtunnel.policies.gavel.queues import in_id_order, pair_gain

if TYPE_CHECKING:
    from windtunnel.policies.gavel.instance import Instance, JobId

#: A pair stays where its normalised speeds, added up over all types, come to at least this.
_LEAST_GAIN = 1.0


class PublishedPairs:
    """The pairs of a run.

    Args:
        seed: of Python's own generator, which nothing else draws from.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - a simulation's draws, not a secret
        self._partner: dict[JobId, JobId] = {}

    def shares(self, instance: Instance) -> tuple[np.ndarray, np.ndarray]:
        """Return shares alone (jobs, types) and of the instance's pairs (pairs, types)."""
        place = {name: row for row, name in enumerate(instance.job_ids)}
        numbers = {frozenset(pair): at for at, pair in enumerate(instance.pairs.tolist())}
        self._drop(instance, place, numbers)
        together = np.zeros((len(instance.pairs), len(instance.gpu_types)))
        if instance.scale_factors.sum() <= instance.num_gpus.sum():
            return isolated_shares(instance), together
        self._draw(instance)
        pairs = {frozenset((place[a], place[b])) for a, b in self._partner.items()}
        paired = [min(pair) for pair in pairs]
        single = [row for name, row in place.items() if name not in self._partner]
        split = equal_split(instance.num_gpus, instance.scale_factors[[*paired, *single]])
        alone = np.zeros((instance.num_jobs, len(instance.gpu_types)))
        alone[single] = split[len(paired) :]
        for pair, shares in zip(pairs, split, strict=False):
            if pair in numbers:  # the others have no speed anywhere: their share is lost
                together[numbers[pair]] = shares
        return alone, together

    def _drop(
        self, instance: Instance, place: dict[JobId, int], numbers: dict[frozenset[int], int]
    ) -> None:
        """Forget the pairs of which a job left or that do not suit."""
        for one, other in list(self._partner.items()):
            rows = frozenset(place.get(name, -1) for name in (one, other))
            if rows not in numbers or not _suits(instance, numbers[rows]):
                self._partner.pop(one)

    def _draw(self, instance: Instance) -> None:
        """Join jobs without a partner at random, as many tries as there are such jobs."""
        names = [instance.job_ids[row] for row in in_id_order(instance)]
        gangs = dict(zip(instance.job_ids, instance.scale_factors.tolist(), strict=True))
        todo = [name for name in names if name not in self._partner]
        for _ in range(len(todo)):
            if len(todo) < 2:  # noqa: PLR2004 - a pair
                break
            one, other = self._rng.sample(todo, 2)
            if gangs[one] == gangs[other]:
                self._partner |= {one: other, other: one}
                todo.remove(one)
                todo.remove(other)


def _suits(instance: Instance, pair: int) -> bool:
    """Return whether a pair is kept: no speed of 0 on any type, and a gain in all."""
    if (instance.pair_throughputs[pair] <= 0).any():
        return False
    kinds = range(len(instance.gpu_types))
    return sum(pair_gain(instance, pair, kind) for kind in kinds) >= _LEAST_GAIN
