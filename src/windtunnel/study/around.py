"""`Around`: what surrounds a run, whoever schedules: outages, slow-downs, power, quotas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.placements import checked_topology
from windtunnel.policies.kueue.policy import Kueue
from windtunnel.policies.quota import Quota
from windtunnel.policies.quota_limits import QuotaLimits
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.disruptions.plan import resolve
from windtunnel.sim.fragmentation import TargetWorkload, workload_of
from windtunnel.sim.neighbours import Neighbours
from windtunnel.sim.slowdown import Slowdown
from windtunnel.study.resolving import governing_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.governing import Governing
    from windtunnel.policies.quotas import Quotas
    from windtunnel.sim.cohort_order import CohortQuotas
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler


@dataclass(frozen=True)
class Around:
    """What surrounds a run.

    Attributes:
        disruptions: what disrupts it; None = nothing.
        slowdown: how jobs slow each other; None = not at all.
        governing: the model and policies of power; None = it has none.
        decide_every: seconds between decisions; None = when something happens.
        quotas: what virtual clusters may use; None = as much as there is, or the policy sees to it.
    """

    disruptions: Disruptions | None
    slowdown: Slowdown | None
    governing: Governing | None
    decide_every: float | None
    quotas: Quotas | None

    def settings(self) -> dict[str, Any]:
        """Return it as plain data; policies of power tell themselves."""
        return {
            "disruptions": None if self.disruptions is None else self.disruptions.to_mapping(),
            "slowdown": None if self.slowdown is None else self.slowdown.to_mapping(),
            "quotas": None if self.quotas is None else self.quotas.to_mapping()["queues"],
        }

    def extras(
        self,
        problem: Problem,
        cluster: ClusterSpec,
        conditions: Conditions,
        *,
        least: Callable[[Problem], np.ndarray] | None = None,
        needs: Callable[[Problem], Callable[[int, int], float]] | None = None,
        own_quotas: CohortQuotas | None = None,
    ) -> tuple[Problem, dict[str, Any], list[str]]:
        """Return the jobs to fly, what an engine gets besides them, and what to tell of it.

        Args:
            problem: the jobs.
            cluster: where.
            conditions: what they are flown under.
            least: says how many GPUs each job does with, Float array (m,); None = with what it asks
                for.
            needs: says how many GPUs elastic jobs do with on some nodes; None = jobs have one size.
            own_quotas: by which the policy itself goes; None = it has none.

        Raises:
            SpecError: something does not go with the jobs or the cluster.
        """
        extra: dict[str, Any] = {}
        scheduler = conditions.scheduler
        if self.quotas is not None:
            problem, extra["quotas"] = self._limits(
                problem, scheduler, needs, resizes=least is not None
            )
        if self.governing is not None and self.governing.acts:
            whole = problem
            quotas = extra.get("quotas", own_quotas)
            problem, extra["power"] = self.governing.plan(
                problem,
                cluster,
                conditions.seed,
                scheduler.oversize,
                least=least,
                quotas=quotas,
            )
            if self.quotas is not None and problem is not whole:
                problem, extra["quotas"] = self._limits(
                    problem, scheduler, needs, resizes=least is not None
                )
        if self.disruptions is not None:
            one_rack = checked_topology(conditions.scheduler.placement, cluster) == "rack-only"
            extra["disruptions"] = resolve(
                self.disruptions, problem, cluster, conditions.seed, one_rack=one_rack
            )
        notes = [note for plan in extra.values() for note in plan.notes]
        slows = self.disruptions is not None and extra["disruptions"].slows
        if self.slowdown is not None or slows:
            model = Slowdown() if self.slowdown is None else self.slowdown
            neighbours = Neighbours(
                model, problem, cluster, nodes_slow=slows, elastic=scheduler.policy.elastic
            )
            extra["slowdown"] = neighbours
            notes += neighbours.notes
        return problem, extra, notes

    def _limits(
        self,
        problem: Problem,
        scheduler: Scheduler,
        needs: Callable[[Problem], Callable[[int, int], float]] | None,
        *,
        resizes: bool,
    ) -> tuple[Problem, CohortQuotas]:
        """Return the jobs to fly, and their quotas.

        Raises:
            PolicyError: quotas do not go with the jobs or the cluster.
        """
        assert self.quotas is not None  # noqa: S101 - who calls has seen to it
        label = scheduler.policy.label
        found = QuotaLimits(self.quotas, problem, label)
        over = found.too_large(None if needs is None else needs(problem), resizes=resizes)
        out = too_large(label, problem, over, scheduler.oversize)
        if out:
            problem = problem.without(out)
            found = QuotaLimits(self.quotas, problem, label)
        return problem, found.in_numbers(blocks=scheduler.blocking_limits)


def too_large(label: str, problem: Problem, found: dict[int, str], oversize: str) -> dict[int, str]:
    """Return the jobs that ask for more than they can ever get, if they may be rejected.

    Args:
        label: the policy's.
        problem: the run.
        found: those jobs, with why, by arrival number.
        oversize: ``raise``, or ``reject``.

    Raises:
        PolicyError: there are some, and they may not; names the first.
    """
    if found and oversize == "raise":
        first = min(found)
        message = (
            f"{found[first]}. Pass oversize='reject' (--oversize reject) to list such jobs as "
            "rejected"
        )
        raise PolicyError(label, message, job=problem.jobs.job_id[problem.rows[first]])
    return found


def around(conditions: Conditions, *, as_pool: bool) -> Around:
    """Return what was asked for, checked.

    Args:
        conditions: of the run, resolved.
        as_pool: nodes are not distinguished.

    Raises:
        SpecError: one of them needs nodes, decisions are no time apart, or quotas are for a policy
            that has limits of its own.
    """
    governing = governing_of(conditions)
    if governing is not None:
        governing.check(as_pool=as_pool)
    site, interval = conditions.site, conditions.scheduler.decide_every
    if interval == 0:
        raise SpecError("decide_every", "found 0; expected seconds > 0.")
    quotas = quotas_of(conditions)
    return Around(site.disruptions, site.slowdown, governing, interval, quotas)


def quotas_of(conditions: Conditions) -> Quotas | None:
    """Return the quotas that limit a run; None = none do, or its policy goes by them itself.

    Raises:
        SpecError: the policy has limits of its own, or no line that a job could hold up.
    """
    scheduler, policy = conditions.scheduler, conditions.scheduler.policy
    quotas: Quotas | None = conditions.site.quotas
    if scheduler.blocking_limits:
        if quotas is None:
            raise SpecError("blocking_limits", "there are no limits; expected quotas, too.")
        if policy.tier == 3:  # noqa: PLR2004 - the tier's name
            message = f"policy {quote(policy.label)} decides by itself: no job stands behind one."
            raise SpecError("blocking_limits", message)
    if quotas is None or isinstance(policy, Quota):
        return None
    if isinstance(policy, Kueue | Slurm):
        message = f"policy {quote(policy.label)} has limits of its own; expected no quotas."
        raise SpecError("quotas", message)
    if scheduler.preemption == "quota_walk" and policy.preemptive:
        message = "the walk knows one quota, that of all GPUs; expected preemption='feasible'."
        raise SpecError("quotas", message)
    return quotas


def workload_of_jobs(table: pa.Table) -> TargetWorkload:
    """Return the target workload of a jobs table; empty if it has no jobs."""
    requests = device_requests(table, incomplete="reject")
    return workload_of(requests) if len(requests.rows) else TargetWorkload((), ())
