"""`Shares`: a policy of Gavel's asked again and again during a run, with what it remembers.

Instances are made of arrays, not of plain data: a run asks thousands of times.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.gavel.allocation import Allocation, shares_of
from windtunnel.policies.gavel.catalogue import POLICIES, allocate
from windtunnel.policies.gavel.closed_forms import equal_split
from windtunnel.policies.gavel.fairness import believed
from windtunnel.policies.gavel.instance import Entity, Instance
from windtunnel.policies.gavel.standing import StandingMaxMin
from windtunnel.policies.gavel.work import ALONE, Decision

if TYPE_CHECKING:
    from windtunnel.policies.gavel.in_rounds import GavelPolicy
    from windtunnel.policies.gavel.work import Work

#: Shares below this are a solver's dust.
_DUST = 1e-9
#: Policies whose program is kept between decisions (`StandingMaxMin`).
_STANDING = frozenset({"max_min_fairness", "max_min_fairness_perf"})
#: With more kinds of jobs than that, a program of the jobs that are here alone is the smaller.
_MOST_KINDS = 200


class Shares:
    """Decides on shares of the jobs that are here; see `windtunnel.policies.gavel.work.Allocator`.

    Args:
        policy: which policy, and its parameters.
        work: jobs and GPUs.
        weights: priority weights, shape (jobs,).
        deadlines: s, infinite = none; shape (jobs,).
        entities: tenants, empty = none.
        entity_of: index of each job's tenant, shape (jobs,).
        prices: dollars per GPU hour of each type, NaN = unknown; shape (types,).
        seed: of policies that draw, which draw anew each time.

    Attributes:
        isolated_time: seconds each job would have needed so far on its equal share of the cluster,
            whatever the policy (Narayanan et al., OSDI'20, section 4.2); shape (jobs,).
        left: steps left of each job at the last call, shape (jobs,).
        notes: what the policy had to tell.
    """

    def __init__(
        self,
        policy: GavelPolicy,
        work: Work,
        *,
        weights: np.ndarray,
        deadlines: np.ndarray,
        entities: tuple[Entity, ...],
        entity_of: np.ndarray,
        prices: np.ndarray,
        seed: int,
    ) -> None:
        self.policy, self.work = policy, work
        self.weights, self.deadlines = weights, deadlines
        self.entities, self.entity_of, self.prices = entities, entity_of, prices
        self.packed = POLICIES[policy.allocation].packed
        self.previous: Allocation | None = None
        self._num_gpus, self._gangs = work.num_gpus.astype(float), work.gangs.astype(float)
        self.isolated_time = np.zeros(work.num_jobs)
        self.notes: list[str] = []
        self._isolated_speed = np.full(work.num_jobs, np.nan)
        self._num_active = 1
        self.left = work.steps.astype(float).copy()
        self._standing = self._standing_max_min()
        self._rng = random.Random(seed)  # noqa: S311 - a simulation's draws, not a secret

    def __call__(self, now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        """Return the shares of the active jobs from ``now`` (s) on."""
        self._num_active = len(active)
        self.account(left)
        self._isolated_speed[active] = self._equal_share(active)
        if self._standing is not None:
            return _alone(active, self._standing.shares(active))
        instance = self._instance(now, active, left)
        decided = allocate(
            self.policy.allocation,
            instance,
            gangs="whole",
            on_infeasible_slo="drop",
            partitions=min(self.policy.partitions, max(1, len(active))),
            seed=self._rng.getrandbits(32),
            previous=self.previous,
            alpha=self.policy.alpha,
        )
        self.previous = decided
        self.notes += [note for note in decided.notes if note not in self.notes]
        alone, together = shares_of(instance, decided)
        used = np.flatnonzero((together > _DUST).any(axis=1))
        if not len(used):
            return _alone(active, alone)
        units = np.column_stack([active, np.full(len(active), ALONE)])
        members = np.concatenate([units, active[instance.pairs[used]].reshape(-1, 2)])
        shares = np.concatenate([alone, together[used]])
        return Decision(members, np.where(shares > _DUST, shares, 0.0))

    def _standing_max_min(self) -> StandingMaxMin | None:
        """Return the program to keep between decisions, where there is one for the policy."""
        name, everyone = self.policy.allocation, np.arange(self.work.num_jobs)
        if name not in _STANDING or self.policy.partitions > 1 or not len(everyone):
            return None
        instance = self._instance(0.0, everyone, self.left)
        usable = instance.runnable
        if not usable.any(axis=1).all():
            return None  # a decision that the job takes part in names it
        seen, factors = believed(name, instance, blind=POLICIES[name].blind)
        factors = factors / self.weights
        alike = np.column_stack([seen.throughputs, self._gangs, factors, usable])
        kinds, kind_of = np.unique(alike, axis=0, return_inverse=True)
        if len(kinds) > _MOST_KINDS:
            return None
        return StandingMaxMin(name, seen, factors, usable=usable, kind_of=kind_of.ravel())

    def account(self, left: np.ndarray) -> None:
        """Book the steps done since the last call at the isolated speeds of that time.

        Steps that a failure undid are taken off again.

        Args:
            left: steps left of all jobs, shape (jobs,).
        """
        done = self.left - left
        worked = done.nonzero()[0]
        speed = self._isolated_speed[worked]
        unknown = np.isnan(speed)
        if unknown.any():
            # Jobs may take free GPUs, and even end, before any decision was made about them.
            speed[unknown] = self._equal_share(worked[unknown])
        self.isolated_time[worked] += done[worked] / speed
        self.left = left.copy()

    def _equal_share(self, rows: np.ndarray) -> np.ndarray:
        """Return the steps per second of jobs on an equal share of the cluster, shape (rows,)."""
        split = equal_split(self._num_gpus, self._gangs[rows], among=self._num_active)
        speeds: np.ndarray = (self.work.speeds[rows] * split).sum(axis=1)
        return speeds

    def _instance(self, now: float, active: np.ndarray, left: np.ndarray) -> Instance:
        work = self.work
        pairs = work.pairs_among(active) if self.packed else np.empty((0, 2), int)
        num_gpus = self._num_gpus
        return Instance(
            gpu_types=work.gpu_types,
            num_gpus=num_gpus,
            job_ids=tuple(active.tolist()),
            throughputs=work.speeds[active],
            scale_factors=self._gangs[active],
            weights=self.weights[active],
            steps_left=left[active],
            time_since_start=now - work.submit[active],
            isolated_time=self.isolated_time[active],
            slo_seconds_left=self.deadlines[active] - now,
            pairs=np.searchsorted(active, pairs),
            pair_throughputs=work.unit_speeds(pairs),
            costs=self.prices,
            largest_gangs=num_gpus,
            entities=self.entities,
            job_entities=self.entity_of[active],
        )


def _alone(active: np.ndarray, shares: np.ndarray) -> Decision:
    """Return the decision that gives jobs shares of their own, shape (active, types)."""
    members = np.column_stack([active, np.full(len(active), ALONE)])
    return Decision(members, np.where(shares > _DUST, shares, 0.0))
