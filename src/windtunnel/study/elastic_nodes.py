"""Where the options of elastic jobs may lie: cores, scores and domains of a cluster's nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windtunnel.cluster.devices import CORE_UNITS, device_nodes
from windtunnel.errors import SpecError
from windtunnel.placements import (
    checked_topology,
    label_of,
    resolve_placement,
    split_placement,
    tree_of,
)
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.placements.tree import Tree
from windtunnel.placements.whole import BestFit
from windtunnel.sim.elastic.domains import Domains
from windtunnel.sim.elastic.scores import Elastic, Scores
from windtunnel.sim.topology_asks import Asks
from windtunnel.study.around import workload_of_jobs
from windtunnel.study.run_options import check_no_request

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler


def nodes_of(
    cluster: ClusterSpec, conditions: Conditions, table: pa.Table
) -> tuple[Placement, Elastic]:
    """Return where plain numbers of GPUs go, and where options may lie.

    Args:
        cluster: with nodes.
        conditions: of the run; the placement and ``resources`` count here.
        table: the jobs, which some placements look at.

    Raises:
        SpecError: the placement cannot be parsed, says how gangs lie on nodes, or looks at racks
            that the cluster does not have.
    """
    cores = _cores(cluster, constrain=conditions.site.resources == "all")
    plain, scores = _placement(cluster, conditions, cores, table)
    return plain, Elastic((), cores, scores, _domains(conditions.scheduler, cluster, scores))


def asks_of(scheduler: Scheduler, cluster: ClusterSpec) -> Asks | None:
    """Return what jobs ask of the tree in which their options are placed; None = there is none.

    Raises:
        SpecError: what is preferred is to be spread evenly, or jobs are to ask for levels, and the
            placement looks at none.
    """
    tree = tree_of(scheduler.placement, cluster)
    if tree is None:
        check_no_request(scheduler, label_of(scheduler.placement) or BestFit.name)
        return None
    if tree.fill == "balanced":
        message = (
            "'tree:balanced' spreads pods of one size evenly, and the pieces of an elastic job's "
            "options are of unlike size."
        )
        raise SpecError("placement", message)
    return Asks(tree, scheduler.topology_request, in_pieces=True)


def _placement(
    cluster: ClusterSpec, conditions: Conditions, cores: tuple[int | None, ...], table: pa.Table
) -> tuple[Placement, Scores | None]:
    """Return where plain numbers of GPUs go, and the scores of options; None = best fit."""
    name, words, _ = split_placement(conditions.scheduler.placement)
    checked_topology(conditions.scheduler.placement, cluster)
    if words.get("gang", "node") != "node":
        asked = label_of(conditions.scheduler.placement)
        message = f"{asked!r}: an elastic job's options say how its GPUs lie on nodes."
        raise SpecError("placement", message)
    plain = resolve_placement("spread" if name == "spread" else "best_fit", cluster)
    if name == Tree.name or (name in (None, "best_fit") and not words):
        return plain, None
    scored = resolve_placement(
        conditions.scheduler.placement,
        cluster,
        devices=True,
        seed=conditions.seed,
        workload=lambda: workload_of_jobs(table),
    )
    assert isinstance(scored, ScoredPlacement)  # noqa: S101 - so it is where devices are modelled
    nodes = zip(device_nodes(cluster), cores, strict=True)
    return plain, Scores(scored, [replace(node, cores=limit) for node, limit in nodes])


def _domains(scheduler: Scheduler, cluster: ClusterSpec, scores: Scores | None) -> Domains | None:
    """Return the domains in which the pieces of options lie together; None = anywhere."""
    tree = tree_of(scheduler.placement, cluster)
    if tree is not None:
        return Domains.of_tree(tree)
    if scores is None:
        return None
    return Domains.of_racks(scores.devices.racks, scores.placement.topology)


def _cores(cluster: ClusterSpec, *, constrain: bool) -> tuple[int | None, ...]:
    """Return the thousandths of cores of each node, None = not constrained."""
    return tuple(
        round(kind.cpus * CORE_UNITS) if constrain and kind.cpus is not None else None
        for kind in cluster.node_types
        for _ in range(kind.count)
    )
