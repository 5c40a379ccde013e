"""Changes to a cluster and to its jobs that a what-if can make, one function each."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.checked import checked_number
from windtunnel.cluster.gpu_types import spelling, spelt
from windtunnel.errors import SpecError
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.policies.slurm.site_of import cluster_of_site
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import with_numbers
from windtunnel.sim.disruptions.dated import DatedDisruptions
from windtunnel.site.slurm_changes import gpu_types_of, site_at, site_with_nodes
from windtunnel.study.resolving import cluster_of
from windtunnel.traces.wallclock import to_utc

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions


def with_nodes(cluster: ClusterSpec, change: int, gpu_type: str | None = None) -> ClusterSpec:
    """Return a cluster with more or fewer nodes of one type.

    Args:
        cluster: as it is; of a pool, ``change`` is GPUs.
        change: nodes more (or, below 0, fewer).
        gpu_type: of which nodes; None = those with GPUs of which there are most.

    Raises:
        SpecError: there are no such nodes, or no GPU would be left.
    """
    kinds = list(cluster.node_types)
    wanted = (
        None if gpu_type is None else spelt(gpu_type, spelling(cluster.gpu_types, cluster.aliases))
    )
    places = [
        place for place, node in enumerate(kinds) if node.gpus and wanted in (None, node.gpu_type)
    ]
    if not places:
        known = [node.gpu_type or "(none)" for node in kinds if node.gpus]
        raise SpecError.unknown("--nodes", str(gpu_type), known)
    place = max(places, key=lambda place: (kinds[place].count, -place))
    node = kinds[place]
    size = node.gpus if cluster.is_pool else node.count
    if size + change < 1:
        what = "GPUs" if cluster.is_pool else "nodes"
        message = f"found {change:+d}; of these {what} there are {size:,}, and one must stay."
        raise SpecError("--nodes", message)
    changed = {"gpus": size + change} if cluster.is_pool else {"count": size + change}
    kinds[place] = msgspec.structs.replace(node, **changed)
    return msgspec.structs.replace(cluster, node_types=tuple(kinds), name="")


def conditions_with_nodes(
    conditions: Conditions, change: int, gpu_type: str | None = None
) -> Conditions:
    """Return resolved conditions with more or fewer nodes of one type.

    Args:
        conditions: resolved; where Slurm's own files (or what was learnt) say what nodes there are,
            new ones are in the partitions of the last of their type.
        change: nodes more (or, below 0, fewer); of a pool GPUs.
        gpu_type: of which nodes; None = those with GPUs of which there are most.

    Raises:
        SpecError: there are no such nodes, or none would be left.
    """
    policy, cluster = conditions.scheduler.policy, cluster_of(conditions)
    if not isinstance(policy, Slurm) or policy.site is None:
        return conditions.having(cluster=with_nodes(cluster, change, gpu_type))
    site = site_with_nodes(policy.site, change, gpu_type)
    return conditions.having(policy=Slurm(site), cluster=cluster_of_site(site, cluster.name))


def on_clock(conditions: Conditions, epoch: str | None, zone: str | None) -> Conditions:
    """Return resolved conditions whose reservations and disruptions are on a trace's clock.

    Args:
        conditions: resolved; dates in them are of Slurm's reservations and of disruptions.
        epoch: UTC instant of the trace's time 0, ISO 8601; None = it has none.
        zone: IANA zone of the site's clock; None = UTC.

    Raises:
        SpecError: there are dates, and the trace has none.
    """
    policy, down = conditions.scheduler.policy, conditions.site.disruptions
    site = policy.site if isinstance(policy, Slurm) else None
    holds = site is not None and any(hold.is_dated for hold in site.reservations)
    if not holds and not isinstance(down, DatedDisruptions):
        return conditions
    if epoch is None:
        of = "reservations" if holds else "disruptions"
        raise SpecError(of, "the site's have dates, and the trace has none.")
    zero = datetime.fromisoformat(epoch).timestamp()

    def time_of(local: float) -> float:
        return float(to_utc(np.array([local]), zone or "UTC")[0][0]) - zero

    if isinstance(down, DatedDisruptions):
        conditions = conditions.having(disruptions=down.at(time_of))
    if site is None or not holds:
        return conditions
    return conditions.having(policy=Slurm(site_at(site, time_of)))


def varied_nodes(conditions: Conditions) -> int:
    """Return how many nodes there are of the type that a change varies; of a pool its GPUs."""
    policy, cluster = conditions.scheduler.policy, cluster_of(conditions)
    if isinstance(policy, Slurm) and policy.site is not None:
        return max(gpu_types_of(policy.site).values())
    node = max((n for n in cluster.node_types if n.gpus), key=lambda n: n.count)
    return node.gpus if cluster.is_pool else node.count


def with_shared_gpus(jobs: pa.Table, part: float) -> tuple[pa.Table, int]:
    """Return the jobs, those of one whole GPU asking for a part of it, and how many they are.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        part: above 0 and below 1.

    Raises:
        SpecError: ``part`` is out of range.
    """
    checked_number("--share", part, "a part of a GPU, such as 0.5", above=0, below=1)
    gpus = numbers(jobs, "num_gpus")
    single = gpus == 1
    return with_numbers(jobs, "num_gpus", np.where(single, part, gpus)), int(single.sum())


def with_idle_killed(jobs: pa.Table, tails: np.ndarray, after: float) -> tuple[pa.Table, int]:
    """Return the jobs as a rule would have left them that ends a job idle for so long.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        tails: s that each job was idle to its end, shape (n,), 0 = not, or not known.
        after: idle for so many seconds, a job is ended.

    Returns:
        The jobs with shorter run times, and how many of them the rule hits.
    """
    duration = numbers(jobs, "duration")
    saved = np.where(tails > after, tails - after, 0.0)
    hit = (saved > 0) & (duration > 0)
    shorter = np.where(hit, np.maximum(duration - saved, 0.0), duration)
    return with_numbers(jobs, "duration", shorter), int(hit.sum())


def with_limits(jobs: pa.Table, slack: float) -> pa.Table:
    """Return the jobs with time limits of their true run times, times a slack.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        slack: 1 = exact limits.

    Raises:
        SpecError: ``slack`` is below 1: jobs would be cut.
    """
    checked_number("--limits", slack, "1 (exact) or more", least=1)
    return with_numbers(jobs, "estimate", numbers(jobs, "duration") * slack)
