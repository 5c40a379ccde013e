"""`Shares`: a policy of Gavel's asked again and again during a run, with what it remembers.

Instances are made of arrays, not of plain data: a run asks thousands of times.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Literal

import numpy as np

from windtunnel.policies.gavel.allocation import Allocation, Asked, shares_of
from windtunnel.policies.gavel.catalogue import POLICIES, allocate
from windtunnel.policies.gavel.closed_forms import IsolatedTime
from windtunnel.policies.gavel.fairness import believed, same_speeds
from windtunnel.policies.gavel.instance import Entity, Instance
from windtunnel.policies.gavel.pairing import PublishedPairs
from windtunnel.policies.gavel.persistent import PersistentMaxMin
from windtunnel.policies.gavel.work import ALONE, Decision

if TYPE_CHECKING:
    from windtunnel.policies.gavel.in_rounds import GavelPolicy
    from windtunnel.policies.gavel.work import Work

#: Shares below this are a solver's dust.
_DUST = 1e-9
#: Policies whose program is kept between decisions (`PersistentMaxMin`).
_WITH_KEPT_PROGRAM = frozenset({"max_min_fairness", "max_min_fairness_perf"})
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
        published: choose and draw as the published simulator does.

    Attributes:
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
        published: bool = False,
    ) -> None:
        self.policy, self.work = policy, work
        self.weights, self.deadlines = weights, deadlines
        self.entities, self.entity_of, self.prices = entities, entity_of, prices
        entry = POLICIES[policy.allocation]
        self.packed = entry.packed
        self.previous: Allocation | None = None
        self._num_gpus, self._gangs = work.num_gpus.astype(float), work.gangs.astype(float)
        self._true = self._believed = IsolatedTime(work, work.speeds)
        if policy.allocation == "finish_time_fairness":
            self._believed = IsolatedTime(work, same_speeds(work.speeds, work.gpu_types))
        self.notes: list[str] = []
        self.left = work.steps.astype(float).copy()
        self.choice: Literal["vertex", "centre"] = "vertex"
        if policy.choice == "centre" or (published and not policy.choice and entry.leaves_open):
            self.choice = "centre"
        self._pairs = None
        if published and policy.allocation == "gandiva":
            self._pairs = PublishedPairs(seed)
        self._kept_program = self._persistent_max_min()
        self._rng = random.Random(seed)  # noqa: S311 - a simulation's draws, not a secret

    def __call__(self, now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        """Return the shares of the active jobs from ``now`` (s) on."""
        self.account(left)
        self._true.share_among(active)
        self._believed.share_among(active)
        if self._kept_program is not None:
            return _alone(active, self._kept_program.shares(active))
        instance = self._instance(now, active, left)
        if self._pairs is not None:
            return _decision(active, instance, *self._pairs.shares(instance))
        decided = allocate(
            self.policy.allocation,
            instance,
            gangs="whole" if self.choice == "vertex" else "fractional",
            on_infeasible_slo="drop",
            partitions=min(self.policy.partitions, max(1, len(active))),
            seed=self._rng.getrandbits(32),
            previous=self.previous,
            alpha=self.policy.alpha,
            choice=self.choice,
        )
        self.previous = decided
        self.notes += [note for note in decided.notes if note not in self.notes]
        return _decision(active, instance, *shares_of(instance, decided))

    def _persistent_max_min(self) -> PersistentMaxMin | None:
        """Return the program to keep between decisions, where there is one for the policy."""
        name, everyone = self.policy.allocation, np.arange(self.work.num_jobs)
        if (
            name not in _WITH_KEPT_PROGRAM
            or self.choice == "centre"
            or self.policy.partitions > 1
            or not len(everyone)
        ):
            return None
        instance = self._instance(0.0, everyone, self.left)
        usable = instance.runnable
        if not usable.any(axis=1).all():
            return None  # a decision that the job takes part in names it
        seen, factors = believed(Asked(name, blind=POLICIES[name].blind), instance)
        factors = factors / self.weights
        alike = np.column_stack([seen.throughputs, self._gangs, factors, usable])
        kinds, kind_of = np.unique(alike, axis=0, return_inverse=True)
        if len(kinds) > _MOST_KINDS:
            return None
        return PersistentMaxMin(name, seen, factors, usable=usable, kind_of=kind_of.ravel())

    @property
    def isolated_time(self) -> np.ndarray:
        """Seconds each job would have needed so far on its equal share; shape (jobs,).

        At its true speeds, whatever the policy believes.
        """
        return self._true.seconds

    def account(self, left: np.ndarray) -> None:
        """Book the steps done since the last call; those that a failure undid are taken off.

        Args:
            left: steps left of all jobs, shape (jobs,).
        """
        done = self.left - left
        for books in {id(b): b for b in (self._true, self._believed)}.values():
            books.book(done)
        self.left = left.copy()

    def _instance(self, now: float, active: np.ndarray, left: np.ndarray) -> Instance:
        work = self.work
        pairs = work.pairs_among(active) if self.packed else np.empty((0, 2), int)
        return Instance(
            gpu_types=work.gpu_types,
            num_gpus=work.in_reach,
            job_ids=tuple(active.tolist()),
            throughputs=work.speeds[active],
            scale_factors=self._gangs[active],
            weights=self.weights[active],
            steps_left=work.expected_left(active, left[active]),
            time_since_start=now - work.submit[active],
            isolated_time=self._believed.seconds[active],
            slo_seconds_left=self.deadlines[active] - now,
            pairs=np.searchsorted(active, pairs),
            pair_throughputs=work.unit_speeds(pairs),
            costs=self.prices,
            largest_gangs=self._num_gpus,
            entities=self.entities,
            job_entities=self.entity_of[active],
            quotas=work.quotas,
        )


def _decision(
    active: np.ndarray, instance: Instance, alone: np.ndarray, together: np.ndarray
) -> Decision:
    """Return the decision that gives shares to jobs and to the instance's pairs."""
    used = np.flatnonzero((together > _DUST).any(axis=1))
    if not len(used):
        return _alone(active, alone)
    units = np.column_stack([active, np.full(len(active), ALONE)])
    members = np.concatenate([units, active[instance.pairs[used]].reshape(-1, 2)])
    shares = np.concatenate([alone, together[used]])
    return Decision(members, np.where(shares > _DUST, shares, 0.0))


def _alone(active: np.ndarray, shares: np.ndarray) -> Decision:
    """Return the decision that gives jobs shares of their own, shape (active, types)."""
    members = np.column_stack([active, np.full(len(active), ALONE)])
    return Decision(members, np.where(shares > _DUST, shares, 0.0))
