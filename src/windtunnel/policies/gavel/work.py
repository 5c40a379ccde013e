"""What a mechanism is given: the jobs to run, the rules, and a function that decides on shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from windtunnel.policies.filling import NOBODY
from windtunnel.sim.expected_work import expected_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.gavel.queue_quotas import QueueQuotas

#: In place of a second member: the job has its GPUs to itself.
ALONE = -1


@dataclass(frozen=True)
class Work:
    """The jobs to run, by (submit_time, input order), and the GPUs.

    Attributes:
        names: ids of the jobs, for messages; shape (jobs,).
        gpu_types: names of the GPU types, sorted; shape (types,).
        num_gpus: GPUs of each type; shape (types,), int.
        node_sizes: GPUs of each node of each type; a tuple of int arrays, one a type.
        node_index: number of each of these nodes in the cluster, shaped alike.
        submit: s; shape (jobs,).
        steps: steps of each job, > 0; shape (jobs,).
        gangs: GPUs of each job, all of one type at a time; may be parts of one; shape (jobs,).
        speeds: steps per second of the whole gang on each type, 0 = cannot run there; shape
            (jobs, types).
        spread_speeds: the same with the gang's GPUs on several nodes; shape (jobs, types).
        kinds: row of each job in ``pair_speeds``; shape (jobs,), int.
        pair_speeds: steps per second of the first and the second of two jobs on the same GPUs, 0 =
            they cannot share; shape (kinds, kinds, types, 2). None = jobs never share.
        quotas: of the jobs' queues; None = none limit them.
    """

    names: Sequence[str]
    gpu_types: tuple[str, ...]
    num_gpus: np.ndarray
    node_sizes: tuple[np.ndarray, ...]
    node_index: tuple[np.ndarray, ...]
    submit: np.ndarray
    steps: np.ndarray
    gangs: np.ndarray
    speeds: np.ndarray
    spread_speeds: np.ndarray
    kinds: np.ndarray
    pair_speeds: np.ndarray | None = None
    quotas: QueueQuotas | None = None

    @cached_property
    def fastest(self) -> np.ndarray:
        """Steps per second of each job, alone, where it is fastest; shape (jobs,)."""
        best: np.ndarray = self.speeds.max(axis=1, initial=0.0)
        return best

    @cached_property
    def expected(self) -> np.ndarray:
        """Work that policies expect of each job over what it has: 1 = they know; shape (jobs,)."""
        return np.ones(self.num_jobs)

    @cached_property
    def able(self) -> np.ndarray:
        """Where each job can run alone, quotas aside; Bool array (jobs, types)."""
        able: np.ndarray = (self.speeds > 0) & (self.gangs[:, None] <= self.num_gpus)
        return able

    @cached_property
    def in_reach(self) -> np.ndarray:
        """GPUs of each type that first come, first served gives out; shape (types,).

        Those of nodes that are down are not; a mechanism that knows them says so.
        """
        return self.num_gpus.astype(float)

    def expected_left(self, rows: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return the steps that jobs are expected to have left, where they have ``left``."""
        parts = self.expected[rows]
        rest = expected_left(parts, self.steps[rows], left)
        known: np.ndarray = np.where(parts == 1, left, rest)
        return known

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return len(self.submit)

    @cached_property
    def num_types(self) -> int:
        """Number of GPU types."""
        return len(self.gpu_types)

    def pairs_among(self, rows: np.ndarray) -> np.ndarray:
        """Return the pairs of jobs that can share GPUs of some type, shape (pairs, 2).

        Args:
            rows: jobs, ascending; shape (n,).
        """
        if self.pair_speeds is None or len(rows) < 2:  # noqa: PLR2004 - a pair
            return np.empty((0, 2), int)
        one, other = np.triu_indices(len(rows), k=1)
        one, other = rows[one], rows[other]
        keep = self.gangs[one] == self.gangs[other]
        one, other = one[keep], other[keep]
        able = self._can_share[self.kinds[one], self.kinds[other]]
        return np.column_stack([one[able], other[able]])

    @cached_property
    def _can_share(self) -> np.ndarray:
        """Which kinds of jobs can share GPUs of some type, shape (kinds, kinds)."""
        speeds = np.zeros((1, 1, 1, 2)) if self.pair_speeds is None else self.pair_speeds
        able: np.ndarray = (speeds.min(axis=3) > 0).any(axis=2)
        return able

    def unit_speeds(self, members: np.ndarray) -> np.ndarray:
        """Return the speeds of jobs alone or in pairs; shape (units, types, 2), 0 = cannot run.

        Args:
            members: first and second job of each unit, the second `ALONE` if there is none;
                shape (units, 2).
        """
        found = np.zeros((len(members), self.num_types, 2))
        single = members[:, 1] == ALONE
        found[single, :, 0] = self.speeds[members[single, 0]]
        if self.pair_speeds is not None and not single.all():
            one, other = members[~single].T
            found[~single] = self.pair_speeds[self.kinds[one], self.kinds[other]]
        return found

    def runnable(self, members: np.ndarray) -> np.ndarray:
        """Return where units can run: every member has a speed there; shape (units, types)."""
        speeds = self.unit_speeds(members)
        alone = (members[:, 1] == ALONE)[:, None]
        able: np.ndarray = (speeds[:, :, 0] > 0) & (alone | (speeds[:, :, 1] > 0))
        return able


@dataclass(frozen=True)
class Decision:
    """Which share of the time each unit (a job, or two that share GPUs) has each GPU type.

    Attributes:
        members: first and second job (rows of `Work`) of each unit; the second is `ALONE` where a
            job has GPUs to itself; shape (units, 2).
        shares: shape (units, types).
    """

    members: np.ndarray
    shares: np.ndarray


class Allocator(Protocol):
    """Decides on shares."""

    def __call__(self, now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        """Return the shares from now on.

        Args:
            now: s.
            active: rows of the jobs that are here and not done, ascending; shape (active,).
            left: steps left of all jobs of the work; shape (jobs,).
        """


@dataclass(frozen=True)
class Rules:
    """How shares become rounds.

    Attributes:
        label: what to call the policy in errors.
        length: seconds a round.
        in_turn: no job without a share runs, even where GPUs are idle (first come, first served).
        blind: the policy does not know speeds: GPUs that nobody has a claim to are given by how
            many of a type are free.
        fill: who may take GPUs that are free between boundaries
            (`windtunnel.policies.filling`); of our default mechanism.
        until: horizon, s; of the mechanisms with a loop of their own.
        stop_after: rows of `Work`; the run ends when all of them are done. None = all jobs.
        gap: published mechanism: least seconds between two decisions.
        shuffle: published mechanism: draw the order of the types in each round; None = do not,
            else the seed.
        packed: published mechanism: pairs of jobs may fill GPUs that are left over, too.
    """

    label: str = "shares"
    length: float = 360.0
    in_turn: bool = False
    blind: bool = False
    fill: str = NOBODY
    until: float = math.inf
    stop_after: np.ndarray | None = None
    gap: float = 1920.0
    shuffle: int | None = None
    packed: bool = False
