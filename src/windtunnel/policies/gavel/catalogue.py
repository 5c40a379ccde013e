"""`allocate`: Gavel's policies by name, as pure functions of an instance.

Names are the published ones: no suffix = blind to speeds, ``_perf`` = knows each job's speed on
each type, ``_packed`` = lets pairs of jobs share GPUs, too. Narayanan et al., OSDI'20, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.policies.gavel import closed_forms, fairness, queues, totals
from windtunnel.policies.gavel.allocation import Allocation, allocation_of
from windtunnel.policies.gavel.centre import centre_of
from windtunnel.policies.gavel.instance import as_instance, with_costs, with_slos
from windtunnel.policies.gavel.partitions import solve_in_parts
from windtunnel.policies.gavel.strategy_proof import discounted
from windtunnel.policies.gavel.water_filling import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windtunnel.policies.gavel.instance import Instance


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
        return instance.runnable if self.gangs == "whole" else instance.throughputs > 0


@dataclass(frozen=True)
class Entry:
    """A policy.

    Attributes:
        compute: the function.
        meaning: what its objective is, with the unit; one line.
        packed: pairs share GPUs.
        blind: speeds are not known.
        partitions: whether jobs and GPUs may be split into parts (POP).
    """

    compute: Callable[[Instance, Asked], Allocation]
    meaning: str
    packed: bool = False
    blind: bool = False
    partitions: bool = False

    @property
    def leaves_open(self) -> bool:
        """Whether it optimises what is blind to types, so that many shares are equally good."""
        return self.blind and self.meaning != "none"


def allocate(
    policy: str,
    instance: Instance | Mapping[str, Any],
    *,
    instance_costs: Mapping[str, float] | None = None,
    slo_seconds_left: Mapping[Any, float] | None = None,
    on_infeasible_slo: Literal["raise", "drop"] = "raise",
    gangs: Literal["fractional", "whole"] = "fractional",
    partitions: int = 1,
    seed: int = 0,
    previous: Allocation | None = None,
    alpha: float = 1.0,
    merge: bool = True,
    choice: Literal["vertex", "centre"] = "vertex",
) -> Allocation:
    """Decide which share of the time each job has each GPU type.

    Args:
        policy: one of `POLICIES`.
        instance: the jobs and GPUs: an `Instance`, or plain data (see `as_instance`).
        instance_costs: dollars per GPU hour by type, instead of the instance's.
        slo_seconds_left: seconds to the deadline by job, instead of the instance's.
        on_infeasible_slo: ``raise``, or ``drop`` all SLOs where they cannot all be met, which is
            noted; as the published code does.
        gangs: ``fractional``, the published formulation, in which a gang may have a share of a
            type that has fewer GPUs than it needs; ``whole`` forbids it.
        partitions: split jobs (at random) and GPUs (equally) into as many parts, each solved on
            its own (POP, SOSP'21).
        seed: of the policies that draw, and of the split.
        previous: the allocation before: under `fifo` and `allox` running jobs stay, under
            `gandiva` pairs do.
        alpha: share of the jobs, the oldest, that `allox` looks at.
        merge: merge equal jobs before solving, which is exact.
        choice: among equally good shares: ``vertex`` (most throughput, then fewest GPUs), or
            ``centre`` (`windtunnel.policies.gavel.centre`), for policies that do not know speeds.

    Returns:
        The decision; the same for the same arguments, whatever the machine.

    Raises:
        SpecError: an unknown policy or option, or an instance that lacks what the policy needs.
        InfeasibleError: there is no answer: a job that can run nowhere, SLOs that cannot be met.

    >>> jobs = [{"id": n, "throughputs": {"v100": 4, "k80": 1}} for n in range(2)]
    >>> allocate("isolated", {"cluster": {"v100": 1, "k80": 1}, "jobs": jobs}).throughputs
    {0: 2.5, 1: 2.5}
    """
    if policy not in POLICIES:
        raise SpecError.unknown("policy", str(policy), POLICIES)
    entry = POLICIES[policy]
    _check_choice("choice", choice, ("vertex", "centre"))
    _check_choice("gangs", gangs, ("fractional", "whole"))
    _check_choice("on_infeasible_slo", on_infeasible_slo, ("raise", "drop"))
    if not isinstance(alpha, int | float) or not 0 < alpha <= 1:
        raise SpecError("alpha", f"expected a number > 0 and <= 1, not {quote(alpha)}.")
    if not isinstance(seed, int):
        raise SpecError("seed", f"expected a whole number, not {quote(seed)}.")
    if not isinstance(previous, Allocation | None):
        raise SpecError("previous", f"expected an Allocation, not {quote(previous)}.")
    problem = as_instance(instance)
    problem = problem if instance_costs is None else with_costs(problem, instance_costs)
    problem = problem if slo_seconds_left is None else with_slos(problem, slo_seconds_left)
    asked = Asked(
        policy,
        packed=entry.packed,
        blind=entry.blind,
        gangs=gangs,
        merge=merge,
        on_infeasible_slo=on_infeasible_slo,
        seed=seed,
        previous=previous,
        alpha=alpha,
        centred=choice == "centre" and entry.leaves_open,
    )
    if partitions != 1 and not entry.partitions:
        raise SpecError("partitions", f"{policy} cannot be split into parts.")
    if not problem.num_jobs:
        return Allocation(policy, None, {})
    if partitions == 1:
        return entry.compute(problem, asked)
    return solve_in_parts(problem, lambda part: entry.compute(part, asked), asked, partitions)


def _check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SpecError.unknown(option, str(value), known)


def _isolated(instance: Instance, asked: Asked) -> Allocation:
    return allocation_of(asked.policy, instance, closed_forms.isolated_shares(instance))


def _proportional(instance: Instance, asked: Asked) -> Allocation:
    return allocation_of(asked.policy, instance, closed_forms.proportional_shares(instance))


def _max_min(instance: Instance, asked: Asked) -> Allocation:
    seen, factors = fairness.believed(asked.policy, instance, blind=asked.blind)
    best, model, values = fairness.max_min(
        asked.policy,
        seen,
        factors / instance.weights,
        usable=asked.usable(instance),
        packed=asked.packed,
        merge=asked.merge,
    )
    if asked.centred:
        values = centre_of(model, best / model.per_class(factors / instance.weights))
    return allocation_of(
        asked.policy, instance, *model.shares(values), objective=best, iterations=1
    )


def _strategy_proof(instance: Instance, asked: Asked) -> Allocation:
    seen, factors = fairness.believed(asked.policy, instance, blind=asked.blind)
    mean, shares, discounts = discounted(
        asked.policy,
        seen,
        factors / instance.weights,
        usable=asked.usable(instance) & (instance.num_gpus > 0),
        merge=asked.merge,
    )
    return allocation_of(asked.policy, instance, shares, objective=mean, discounts=discounts)


def _water_filling(instance: Instance, asked: Asked) -> Allocation:
    return _filled(instance, asked, hierarchical=False)


def _hierarchical(instance: Instance, asked: Asked) -> Allocation:
    if not instance.entities:
        raise SpecError("instance.entities", f"{asked.policy} needs at least one entity.")
    return _filled(instance, asked, hierarchical=True)


def _filled(instance: Instance, asked: Asked, *, hierarchical: bool) -> Allocation:
    seen, factors = fairness.believed(asked.policy, instance, blind=asked.blind)
    filled = fill(
        asked.policy,
        seen,
        factors,
        usable=asked.usable(instance),
        packed=asked.packed,
        merge=asked.merge,
        hierarchical=hierarchical,
    )
    values = filled.values
    if asked.centred:
        values = centre_of(filled.model, filled.model.class_throughputs(values))
    # Each in the unit of its published check values: between entities the weights change.
    unit = instance.scale_factors if hierarchical else instance.weights
    return allocation_of(
        asked.policy,
        instance,
        *filled.model.shares(values),
        objective=filled.objective,
        levels=filled.levels / unit,
        iterations=filled.iterations,
    )


def _same_speed(instance: Instance, asked: Asked) -> Instance:
    """Return the instance as makespan and finish-time policies see it."""
    instance.require_runnable(asked.policy)
    instance.require_steps(asked.policy)
    if not asked.blind:
        return instance
    return replace(instance, throughputs=same_speeds(instance.throughputs, instance.gpu_types))


def same_speeds(speeds: np.ndarray, gpu_types: tuple[str, ...]) -> np.ndarray:
    """Return what blind makespan and finish-time policies take for speeds, (jobs, types).

    Each job's speed on V100s for every type, as published; without V100s, or for a job that does
    not run there, its fastest.
    """
    believed = speeds.max(axis=1, initial=0.0)
    spelt = [name.lower() for name in gpu_types]
    if "v100" in spelt:
        known = speeds[:, spelt.index("v100")]
        believed = np.where(known > 0, known, believed)
    return np.tile(believed[:, None], (1, len(gpu_types)))


def _makespan(instance: Instance, asked: Asked) -> Allocation:
    best, model, values = totals.makespan(
        asked.policy,
        _same_speed(instance, asked),
        usable=asked.usable(instance),
        packed=asked.packed,
        merge=asked.merge,
    )
    if asked.centred and best > 0:
        values = centre_of(model, model.per_class(instance.steps_left) / best)
    return allocation_of(
        asked.policy, instance, *model.shares(values), objective=best, iterations=1
    )


def _finish_time(instance: Instance, asked: Asked) -> Allocation:
    best, model, values, count = fairness.finish_time(
        asked.policy,
        _same_speed(instance, asked),
        usable=asked.usable(instance),
        packed=asked.packed,
        merge=asked.merge,
    )
    if asked.centred and best > 0:
        values = centre_of(model, fairness.needed_by(best, model))
    return allocation_of(
        asked.policy, instance, *model.shares(values), objective=best, iterations=count
    )


def _total(instance: Instance, asked: Asked) -> Allocation:
    return _summed(instance, asked, costs=None, slos=False)


def _total_by_cost(instance: Instance, asked: Asked) -> Allocation:
    return _summed(instance, asked, costs=totals.costs_of(instance), slos=False)


def _total_by_cost_slos(instance: Instance, asked: Asked) -> Allocation:
    costs = totals.costs_of(instance)
    try:
        return _summed(instance, asked, costs=costs, slos=True)
    except InfeasibleError as error:
        if asked.on_infeasible_slo == "raise":
            raise
        dropped = _summed(instance, asked, costs=costs, slos=False)
        return replace(dropped, notes=(f"All SLOs were dropped: {error.status}.",))


def _summed(
    instance: Instance, asked: Asked, *, costs: np.ndarray | None, slos: bool
) -> Allocation:
    best, model, values = totals.total_throughput(
        asked.policy,
        instance,
        usable=asked.usable(instance),
        packed=asked.packed,
        merge=asked.merge,
        costs=costs,
        slos=slos,
    )
    return allocation_of(
        asked.policy, instance, *model.shares(values), objective=best, iterations=1
    )


def _quickest(instance: Instance, asked: Asked) -> Allocation:
    instance.require_steps(asked.policy)
    instance.require_runnable(asked.policy)
    seconds, shares = totals.quickest_job(instance, asked.usable(instance))
    return allocation_of(asked.policy, instance, shares, objective=seconds)


def _fifo(instance: Instance, asked: Asked) -> Allocation:
    instance.require_runnable(asked.policy)
    shares = queues.fifo(instance, asked.seed, asked.previous)
    return allocation_of(asked.policy, instance, shares)


def _fifo_perf(instance: Instance, asked: Asked) -> Allocation:
    instance.require_runnable(asked.policy)
    return allocation_of(asked.policy, instance, queues.fifo_perf(instance))


def _fifo_packed(instance: Instance, asked: Asked) -> Allocation:
    instance.require_runnable(asked.policy)
    return allocation_of(asked.policy, instance, *queues.fifo_packed(instance))


def _allox(instance: Instance, asked: Asked) -> Allocation:
    instance.require_steps(asked.policy)
    instance.require_runnable(asked.policy)
    total, shares, count = queues.allox(instance, asked.alpha, asked.previous)
    return allocation_of(asked.policy, instance, shares, objective=total, iterations=count)


def _gandiva(instance: Instance, asked: Asked) -> Allocation:
    shares = queues.gandiva(instance, asked.seed, asked.previous)
    return allocation_of(asked.policy, instance, *shares)


_LEVEL = "smallest normalised throughput (1 = an equal share)"
_SPAN = "seconds until all jobs are done"
_RHO = "largest ratio of finish time to that under an equal share"
_SUM = "steps per second, all jobs"
_DOLLAR = "steps per second over dollars per GPU hour, all jobs"

#: Every policy by its published name.
POLICIES: dict[str, Entry] = {
    "isolated": Entry(_isolated, "none", blind=True),
    "proportional": Entry(_proportional, "none", blind=True),
    "max_min_fairness": Entry(
        _max_min, "smallest share of time x gang / weight", blind=True, partitions=True
    ),
    "max_min_fairness_perf": Entry(_max_min, _LEVEL, partitions=True),
    "max_min_fairness_packed": Entry(_max_min, _LEVEL, packed=True, partitions=True),
    "max_min_fairness_strategy_proof": Entry(
        _strategy_proof, "geometric mean of shares of time x gang / weight", blind=True
    ),
    "max_min_fairness_strategy_proof_perf": Entry(
        _strategy_proof, "geometric mean of normalised throughputs, before discounts"
    ),
    "max_min_fairness_water_filling": Entry(_water_filling, _LEVEL, blind=True, partitions=True),
    "max_min_fairness_water_filling_perf": Entry(_water_filling, _LEVEL, partitions=True),
    "max_min_fairness_water_filling_packed": Entry(
        _water_filling, _LEVEL, packed=True, partitions=True
    ),
    "hierarchical_water_filling": Entry(_hierarchical, _LEVEL, blind=True),
    "hierarchical_water_filling_perf": Entry(_hierarchical, _LEVEL),
    "hierarchical_water_filling_packed": Entry(_hierarchical, _LEVEL, packed=True),
    "min_total_duration": Entry(_makespan, _SPAN, blind=True, partitions=True),
    "min_total_duration_perf": Entry(_makespan, _SPAN, partitions=True),
    "min_total_duration_packed": Entry(_makespan, _SPAN, packed=True, partitions=True),
    "makespan": Entry(_makespan, _SPAN, partitions=True),
    "finish_time_fairness": Entry(_finish_time, _RHO, blind=True, partitions=True),
    "finish_time_fairness_perf": Entry(_finish_time, _RHO, partitions=True),
    "finish_time_fairness_packed": Entry(_finish_time, _RHO, packed=True, partitions=True),
    "max_sum_throughput_perf": Entry(_total, _SUM, partitions=True),
    "total_throughput": Entry(_total, _SUM, partitions=True),
    "max_sum_throughput_normalized_by_cost_perf": Entry(_total_by_cost, _DOLLAR, partitions=True),
    "max_sum_throughput_normalized_by_cost_perf_SLOs": Entry(_total_by_cost_slos, _DOLLAR),
    "max_sum_throughput_normalized_by_cost_packed_SLOs": Entry(
        _total_by_cost_slos, _DOLLAR, packed=True
    ),
    "quickest_job": Entry(_quickest, "seconds until the first job is done"),
    "fifo": Entry(_fifo, "none", blind=True),
    "fifo_perf": Entry(_fifo_perf, "none"),
    "fifo_packed": Entry(_fifo_packed, "none", packed=True),
    "allox": Entry(_allox, "sum of completion times since submission, in seconds"),
    "gandiva": Entry(_gandiva, "none", packed=True),
}
