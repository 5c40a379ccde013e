"""`allocate`: Gavel's policies by name, as pure functions of an instance.

Names are the published ones: no suffix = blind to speeds, ``_perf`` = knows each job's speed on
each type, ``_packed`` = lets pairs of jobs share GPUs, too. Narayanan et al., OSDI'20, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.policies.gavel import closed_forms, fairness, queues, totals
from windtunnel.policies.gavel.allocation import Allocation, Asked, allocation_of
from windtunnel.policies.gavel.centre import centre_of
from windtunnel.policies.gavel.instance import as_instance, with_costs, with_slos
from windtunnel.policies.gavel.partitions import solve_in_parts
from windtunnel.policies.gavel.strategy_proof import discounted
from windtunnel.policies.gavel.water_filling import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.policies.gavel.shares import Solved


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
    checked_choice("policy", policy, POLICIES)
    entry = POLICIES[policy]
    checked_choice("choice", choice, ("vertex", "centre"))
    checked_choice("gangs", gangs, ("fractional", "whole"))
    checked_choice("on_infeasible_slo", on_infeasible_slo, ("raise", "drop"))
    checked_number("alpha", alpha, above=0, most=1)
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


def _isolated(instance: Instance, asked: Asked) -> Allocation:
    return allocation_of(asked.policy, instance, closed_forms.isolated_shares(instance))


def _proportional(instance: Instance, asked: Asked) -> Allocation:
    return allocation_of(asked.policy, instance, closed_forms.proportional_shares(instance))


def _shared(instance: Instance, asked: Asked, found: Solved) -> Allocation:
    """Return the decision that a solved program stands for, its shares centred where asked."""
    values = found.values
    if asked.centred and found.need is not None:
        values = centre_of(found.model, found.need)
    levels = {} if found.levels is None else {"levels": found.levels}
    return allocation_of(
        asked.policy,
        instance,
        *found.model.shares(values),
        objective=found.objective,
        iterations=found.iterations,
        **levels,
    )


def _max_min(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, fairness.max_min(asked, instance))


def _strategy_proof(instance: Instance, asked: Asked) -> Allocation:
    mean, shares, discounts = discounted(asked, instance)
    return allocation_of(asked.policy, instance, shares, objective=mean, discounts=discounts)


def _water_filling(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, fill(asked, instance))


def _hierarchical(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, fill(asked, instance, hierarchical=True))


def _makespan(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, totals.makespan(asked, instance))


def _finish_time(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, fairness.finish_time(asked, instance))


def _total(instance: Instance, asked: Asked) -> Allocation:
    return _shared(instance, asked, totals.total_throughput(asked, instance))


def _total_by_cost(instance: Instance, asked: Asked) -> Allocation:
    costs = totals.costs_of(instance)
    return _shared(instance, asked, totals.total_throughput(asked, instance, costs))


def _total_by_cost_slos(instance: Instance, asked: Asked) -> Allocation:
    costs = totals.costs_of(instance)
    try:
        found = totals.total_throughput(asked, instance, costs, slos=True)
    except InfeasibleError as error:
        if asked.on_infeasible_slo == "raise":
            raise
        dropped = _total_by_cost(instance, asked)
        return replace(dropped, notes=(f"All SLOs were dropped: {error.status}.",))
    return _shared(instance, asked, found)


def _quickest(instance: Instance, asked: Asked) -> Allocation:
    seconds, shares = totals.quickest_job(asked, instance)
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
