"""What a policy is asked, and what it decides: which share of the time jobs have each GPU type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.policies.gavel.instance import Instance, JobId

#: Shares below this are a solver's dust.
_DUST = 1e-12


@dataclass(frozen=True)
class Allocation:
    """A policy's decision on an instance.

    Attributes:
        policy: the policy's name.
        objective: what it optimises, in its own unit (see `windtunnel.gavel`); None where it
            optimises nothing (closed forms and queues).
        shares: job -> GPU type -> share of wall-clock time on its own.
        pair_shares: two jobs -> GPU type -> share of wall-clock time together; empty where
            nothing is shared.
        throughputs: job -> steps per second that the shares give it.
        levels: job -> normalised throughput, for water filling; else empty.
        iterations: linear programs solved.
        discounts: job -> factor on its shares, for strategy-proof fairness; else empty.
        notes: anything a reader of the result must know.
    """

    policy: str
    objective: float | None
    shares: dict[JobId, dict[str, float]]
    pair_shares: dict[tuple[JobId, JobId], dict[str, float]] = field(default_factory=dict)
    throughputs: dict[JobId, float] = field(default_factory=dict)
    levels: dict[JobId, float] = field(default_factory=dict)
    iterations: int = 0
    discounts: dict[JobId, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the decision as plain data, ready for JSON; keys are text."""
        return {
            "policy": self.policy,
            "objective": self.objective,
            "shares": {str(job): row for job, row in self.shares.items()},
            "pair_shares": [
                {"jobs": list(pair), "shares": row} for pair, row in self.pair_shares.items()
            ],
            "throughputs": {str(job): speed for job, speed in self.throughputs.items()},
            "levels": {str(job): level for job, level in self.levels.items()},
            "discounts": {str(job): factor for job, factor in self.discounts.items()},
            "iterations": self.iterations,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Asked:
    """How a policy is to be computed.

    Attributes:
        policy: its name.
        packed: pairs share GPUs.
        blind: speeds are not known: every job counts as equally fast everywhere.
        gangs: ``fractional``: a gang may have a share of a type that has fewer GPUs, as published;
            ``whole``: it may not.
        merge: merge equal jobs.
        on_infeasible_slo: ``raise``, or ``drop``: leave out all SLOs where they cannot all be met.
        seed: of a policy that draws.
        previous: the allocation before, for policies that let jobs stay.
        alpha: AlloX's share of jobs looked at.
        centred: among equally good shares take the centre, not a vertex; of blind policies.
    """

    policy: str
    packed: bool = False
    blind: bool = False
    gangs: Literal["fractional", "whole"] = "fractional"
    merge: bool = True
    on_infeasible_slo: Literal["raise", "drop"] = "raise"
    seed: int = 0
    previous: Allocation | None = None
    alpha: float = 1.0
    centred: bool = False

    def usable(self, instance: Instance) -> np.ndarray:
        """Return where a job may have a share, shape (jobs, types)."""
        return self.fitting(instance) & (instance.throughputs > 0)

    def fitting(self, instance: Instance) -> np.ndarray:
        """Return where a gang may have a share by its size, shape (jobs, types)."""
        fits = instance.fits
        return fits if self.gangs == "whole" else np.ones_like(fits)


def allocation_of(
    policy: str,
    instance: Instance,
    alone: np.ndarray,
    together: np.ndarray | None = None,
    *,
    objective: float | None = None,
    **more: Any,
) -> Allocation:
    """Return the decision that two arrays of shares stand for.

    Args:
        policy: the policy's name.
        instance: what was decided on.
        alone: shares of the jobs on their own, shape (jobs, types).
        together: shares of the instance's pairs, shape (pairs, types).
        objective: what was reached.
        more: further attributes of `Allocation`; per-job arrays become mappings.
    """
    types = instance.gpu_types
    both = np.zeros((len(instance.pairs), len(types))) if together is None else together
    speeds = throughputs_of(instance, alone, both)
    for name in ("levels", "discounts"):
        if name in more:
            more[name] = _by_job(instance, more[name])
    ids = instance.job_ids
    used = np.flatnonzero((both > _DUST).any(axis=1))
    names = [(ids[one], ids[other]) for one, other in instance.pairs[used].tolist()]
    return Allocation(
        policy=policy,
        objective=objective,
        shares=dict(zip(ids, _by_type(types, alone), strict=True)),
        pair_shares=dict(zip(names, _by_type(types, both[used]), strict=True)),
        throughputs=_by_job(instance, speeds),
        **more,
    )


def throughputs_of(instance: Instance, alone: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Return the steps per second that shares give each job, shape (jobs,)."""
    speeds = np.array((instance.throughputs * alone).sum(axis=1))
    for member in (0, 1):
        gained = (instance.pair_throughputs[:, :, member] * together).sum(axis=1)
        np.add.at(speeds, instance.pairs[:, member], gained)
    return speeds


def shares_of(instance: Instance, decided: Allocation) -> tuple[np.ndarray, np.ndarray]:
    """Return a decision's shares as arrays, shapes (jobs, types) and (pairs, types)."""
    types, ids = instance.gpu_types, instance.job_ids
    alone = np.array([[decided.shares[job][t] for t in types] for job in ids])
    both = np.zeros((len(instance.pairs), len(types)))
    for row, (one, other) in enumerate(instance.pairs):
        found = decided.pair_shares.get((ids[one], ids[other]))
        if found is not None:
            both[row] = [found[t] for t in types]
    return alone.reshape(len(ids), len(types)), both


def _by_type(types: tuple[str, ...], rows: np.ndarray) -> list[dict[str, float]]:
    """Return each row as a mapping; thousands of times a run."""
    values = np.where(rows > _DUST, rows, 0.0).tolist()
    return [dict(zip(types, row, strict=True)) for row in values]


def _by_job(instance: Instance, values: np.ndarray | Mapping[JobId, float]) -> dict[JobId, float]:
    return dict(zip(instance.job_ids, np.asarray(values, float).tolist(), strict=True))
