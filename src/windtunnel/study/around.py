"""`Around`: what surrounds a run, whoever schedules: outages, slow-downs, policies of power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.placements import checked_topology
from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.disruptions.plan import resolve
from windtunnel.sim.fragmentation import TargetWorkload, workload_of
from windtunnel.sim.neighbours import Neighbours
from windtunnel.sim.slowdown import Slowdown
from windtunnel.study.resolving import governing_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.governing import Governing
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions


@dataclass(frozen=True)
class Around:
    """What surrounds a run.

    Attributes:
        disruptions: what disrupts it; None = nothing.
        slowdown: how jobs slow each other; None = not at all.
        governing: the model and policies of power; None = it has none.
        decide_every: seconds between decisions; None = when something happens.
    """

    disruptions: Disruptions | None
    slowdown: Slowdown | None
    governing: Governing | None
    decide_every: float | None

    def settings(self) -> dict[str, Any]:
        """Return it as plain data; policies of power tell themselves."""
        return {
            "disruptions": None if self.disruptions is None else self.disruptions.to_mapping(),
            "slowdown": None if self.slowdown is None else self.slowdown.to_mapping(),
        }

    def extras(
        self, problem: Problem, cluster: ClusterSpec, conditions: Conditions
    ) -> tuple[Problem, dict[str, Any], list[str]]:
        """Return the jobs to fly, what an engine gets besides them, and what to tell of it.

        Raises:
            SpecError: something does not go with the jobs or the cluster.
        """
        extra: dict[str, Any] = {}
        if self.governing is not None and self.governing.acts:
            problem, extra["power"] = self.governing.plan(
                problem, cluster, conditions.seed, conditions.scheduler.oversize
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
            neighbours = Neighbours(model, problem, cluster, nodes_slow=slows)
            extra["slowdown"] = neighbours
            notes += neighbours.notes
        return problem, extra, notes


def around(conditions: Conditions, *, as_pool: bool) -> Around:
    """Return what was asked for, checked.

    Args:
        conditions: of the run, resolved.
        as_pool: nodes are not distinguished.

    Raises:
        SpecError: one of them needs nodes, or decisions are no time apart.
    """
    governing = governing_of(conditions)
    if governing is not None:
        governing.check(as_pool=as_pool)
    site, interval = conditions.site, conditions.scheduler.decide_every
    if interval == 0:
        raise SpecError("decide_every", "found 0; expected seconds > 0.")
    return Around(site.disruptions, site.slowdown, governing, interval)


def workload_of_jobs(table: pa.Table) -> TargetWorkload:
    """Return the target workload of a jobs table; empty if it has no jobs."""
    requests = device_requests(table, incomplete="reject")
    return workload_of(requests) if len(requests.rows) else TargetWorkload((), ())
