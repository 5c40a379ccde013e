"""`Shares`: a policy of Gavel's asked again and again during a run, with what it remembers.

Instances are made of arrays, not of plain data: a run asks thousands of times.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.gavel.allocation import Allocation, shares_of
from windtunnel.policies.gavel.catalogue import POLICIES, allocate
from windtunnel.policies.gavel.closed_forms import isolated_throughputs
from windtunnel.policies.gavel.instance import Entity, Instance
from windtunnel.sim.rounds.contract import ALONE, Decision

if TYPE_CHECKING:
    from windtunnel.policies.gavel.in_rounds import GavelPolicy
    from windtunnel.sim.rounds.contract import Work

#: Shares below this are a solver's dust.
_DUST = 1e-9


class Shares:
    """Decides on shares of the jobs that are here; see `windtunnel.sim.rounds.Allocator`.

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
        self.isolated_time = np.zeros(work.num_jobs)
        self.notes: list[str] = []
        self._isolated_speed = np.ones(work.num_jobs)
        self.left = work.steps.astype(float).copy()
        self._rng = random.Random(seed)  # noqa: S311 - a simulation's draws, not a secret

    def __call__(self, now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        """Return the shares of the active jobs from ``now`` (s) on."""
        self.account(left)
        instance = self._instance(now, active, left)
        self._isolated_speed[active] = isolated_throughputs(instance)
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
        members = np.concatenate(
            [
                np.column_stack([active, np.full(len(active), ALONE)]),
                active[instance.pairs[used]].reshape(-1, 2),
            ]
        )
        shares = np.concatenate([alone, together[used]])
        return Decision(members, np.where(shares > _DUST, shares, 0.0))

    def account(self, left: np.ndarray) -> None:
        """Book the steps done since the last call at the isolated speeds of that time.

        Args:
            left: steps left of all jobs, shape (jobs,).
        """
        done = self.left - left
        worked = done > 0
        self.isolated_time[worked] += done[worked] / self._isolated_speed[worked]
        self.left = left.copy()

    def _instance(self, now: float, active: np.ndarray, left: np.ndarray) -> Instance:
        work = self.work
        pairs = work.pairs_among(active) if self.packed else np.empty((0, 2), int)
        num_gpus = work.num_gpus.astype(float)
        return Instance(
            gpu_types=work.gpu_types,
            num_gpus=num_gpus,
            job_ids=tuple(active.tolist()),
            throughputs=work.speeds[active],
            scale_factors=work.gangs[active].astype(float),
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
