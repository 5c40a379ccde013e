"""`RunRules`: what a run of jobs that keep their size goes by, its options checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.placements import checked_topology, is_scored, resolve_placement, split_placement
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.placements.tree import Tree, TreeOfDevices
from windtunnel.sim.contract import checked_queueing
from windtunnel.sim.demands import DeviceRules, needs_devices
from windtunnel.sim.engines import choose_engine
from windtunnel.sim.topology_asks import Asks
from windtunnel.site.scheduler import BACKFILLING, Scheduler
from windtunnel.study.around import Around, around, workload_of_jobs
from windtunnel.study.predictions import checked_estimates

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.site.conditions import Conditions


@dataclass(frozen=True)
class RunRules:
    """What a run goes by, its options checked.

    Attributes:
        as_pool: nodes are not distinguished.
        devices: how the nodes' devices are used; None = whole GPUs of nodes will do.
        where: the placement.
        queueing: the head-of-line rule.
        until: horizon, s.
        estimates: where expected run times come from; None = nothing plans with them.
        around: outages, slow-downs, policies of power, the time between decisions.
        engine: what flies the run.
    """

    as_pool: bool
    devices: DeviceRules | None
    where: Placement
    queueing: str
    until: float
    estimates: str | None
    around: Around
    engine: Any

    def settings(self) -> dict[str, Any]:
        """Return the rules as plain data."""
        sharing = None if self.devices is None else ("pooled" if self.devices.pooled else "devices")
        return {
            **self.around.settings(),
            "queueing": self.queueing,
            "placement": self.where.name,
            "sharing": sharing,
            "estimates": self.estimates,
            "engine": self.engine.NAME,
        }


def asks_of(scheduler: Scheduler, where: Placement) -> Asks | None:
    """Return what jobs ask of the tree in which they are placed; None = they are placed in none.

    Raises:
        SpecError: jobs are to ask for levels, and the placement looks at none.
    """
    if isinstance(where, (Tree, TreeOfDevices)):
        return Asks(where.tree, scheduler.topology_request)
    check_no_request(scheduler, where.name)
    return None


def check_no_request(scheduler: Scheduler, placement: str) -> None:
    """Check that no job is to ask for levels where the placement looks at none.

    Raises:
        SpecError: jobs are to.
    """
    if scheduler.topology_request is not None:
        message = f"placement {placement!r} looks at no levels; expected --placement tree."
        raise SpecError("topology_request", message)


def rules_of(
    table: pa.Table, cluster: ClusterSpec, policy: Policy, conditions: Conditions
) -> RunRules:
    """Check the options of a run and return what it goes by.

    Raises:
        SpecError, TraceError: an option is wrong, or does not go with another.
    """
    scheduler = conditions.scheduler
    as_pool = cluster.is_pool or split_placement(scheduler.placement).name == "pool"
    topology = checked_topology(scheduler.placement, cluster)
    if policy.chooses_nodes:
        _check_chooses(policy, conditions, as_pool=as_pool)
    has_devices = not (as_pool or policy.chooses_nodes)
    devices = _devices(table, cluster, conditions, topology) if has_devices else None
    where = resolve_placement(
        scheduler.placement,
        cluster,
        devices=devices is not None,
        seed=conditions.seed,
        workload=lambda: workload_of_jobs(table),
    )
    if devices is not None and isinstance(where, ScoredPlacement):
        where.check_sharing(pooled=devices.pooled)
    queueing = checked_queueing(scheduler.queueing, policy, scheduler.preemption)
    until = math.inf if conditions.until is None else conditions.until
    plans = queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - the tier's name
    estimates = checked_estimates(scheduler.estimates, policy)
    return RunRules(
        as_pool=as_pool,
        devices=devices,
        where=where,
        queueing=queueing,
        until=until,
        estimates=estimates if plans or policy.foresees else None,
        around=around(conditions, as_pool=as_pool),
        engine=choose_engine(conditions.engine),
    )


def _devices(
    table: pa.Table, cluster: ClusterSpec, conditions: Conditions, topology: str
) -> DeviceRules | None:
    """Return how the nodes' devices are used; None = whole GPUs of nodes will do."""
    scheduler = conditions.scheduler
    resources = conditions.site.resources == "all"
    wanted = scheduler.sharing is not None or is_scored(scheduler.placement)
    if not wanted and not needs_devices(table, cluster, resources=resources):
        return None
    return DeviceRules(
        pooled=scheduler.sharing == "pooled",
        resources=resources,
        bind_cpu_tasks=scheduler.compat is not None,
        one_rack=topology == "rack-only",
    )


def _check_chooses(policy: Policy, conditions: Conditions, *, as_pool: bool) -> None:
    """Check that nothing else is to choose nodes, or to keep some, where the policy does."""
    scheduler, site = conditions.scheduler, conditions.site
    label = quote(policy.label)
    if as_pool:
        raise SpecError("cluster", f"policy {label} chooses nodes; expected them, as in 64x8:A100.")
    for name in ("placement", "sharing"):
        if getattr(scheduler, name) not in (None, "best_fit"):
            raise SpecError(name, f"policy {label} chooses whole GPUs of nodes by its own rules.")
    if site.disruptions is not None and site.disruptions.reservations:
        message = f"policy {label} has reservations of its own; expected none here."
        raise SpecError("disruptions.reservations", message)
    if site.disruptions is not None and site.disruptions.on_failure == "swap":
        message = f"policy {label} gives a running job no other node; expected restart or end."
        raise SpecError("disruptions.on_failure", message)
    if site.slowdown is not None and site.slowdown.cpu > 0:
        message = f"policy {label} gives jobs the cores that they ask for; expected none."
        raise SpecError("slowdown.cpu", message)
