r"""How evenly a cluster is shared out: what each group of jobs held, and Jain's index over groups.

Jain's index of n allocations x is (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n where one has
everything, k/n where k share equally and the others have nothing (Jain, Chiu and Hawe, "A
Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer
Systems", DEC-TR-301, 1984). It says how equal allocations are, so what an allocation is measured
against decides what it says; `ENTITLEMENTS` names what we offer.

With run_time_j the time a job was on its GPUs, and active_j the time from its submission to its end
(or the horizon), a group holds H = sum_j num_gpus_j run_time_j GPU-seconds and asks for
D = sum_j num_gpus_j active_j. H / D is the share of the GPUs it asked for that it had, averaged
over the time for which it asked: 1 where none of its jobs ever waits.

Dominant share: the largest of a group's shares of GPUs, CPU cores and memory (Ghodsi et al.,
"Dominant Resource Fairness", NSDI'11), each averaged over the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.sim.elastic import measures as elastic
from windtunnel.sim.flight import RUNNING
from windtunnel.sim.metrics import NONE, gpu_seconds_held, horizon
from windtunnel.sim.observe.groups import job_groups, labelled

if TYPE_CHECKING:
    from windtunnel.cluster.spec import NodeType
    from windtunnel.sim.flown import Flown

#: What GPU time held is divided by: ``demand``, the GPU time asked for, waiting included;
#: ``equal``, the same for every group. A mapping from group to a number is a third: its quota.
ENTITLEMENTS: tuple[str, ...] = ("demand", "equal")
#: Resource -> its column in the jobs table, in the order that breaks ties.
_RESOURCES = {"gpu": "num_gpus", "cpu": "num_cpus", "mem": "mem_gib"}


def jain(values: np.ndarray) -> float | None:
    """Return Jain's index of non-negative numbers; None where there are none, or all are 0.

    Args:
        values: Float array of shape (n,), any unit: the index does not depend on it.

    >>> jain(np.array([1.0, 1.0, 0.0, 0.0])), jain(np.array([]))
    (0.5, None)
    """
    largest = values.max(initial=0.0)
    if not largest > 0:
        return None
    parts = values / largest  # squares of any unit stay within range
    return float(parts.sum() ** 2 / (len(parts) * (parts**2).sum()))


def jain_index(
    outcome: Flown, by: str = "user", *, per: str | Mapping[str, float] = "demand"
) -> float | None:
    """Return Jain's index over groups of jobs.

    Args:
        outcome: the run.
        by: whose shares: ``user``, ``vc``, or another column of text, or ``size``.
        per: what the GPU time that a group held is divided by: one of `ENTITLEMENTS`, or quotas,
            group -> GPUs (or any weight).

    Returns:
        A number in [1 / groups, 1]; None where no named group asked for GPU time. Jobs without a
        name are in no group; groups that asked for no GPU time are left out.

    Raises:
        SpecError: there is no such grouping or entitlement, or a group has no quota above 0.
    """
    if not isinstance(per, Mapping) and per not in ENTITLEMENTS:
        raise SpecError.unknown("per", per, ENTITLEMENTS)
    return _index(outcome, by, per, (gpu_seconds_held(outcome), asked_time(outcome)))


def summary(outcome: Flown) -> dict[str, float | None]:
    """Return Jain's index in numbers: ``jain_user`` and ``jain_vc``, by `jain_index`, per demand.

    None where the jobs name no user, or no virtual cluster.
    """
    named = [by for by in ("user", "vc") if outcome.jobs[by].null_count < outcome.jobs.num_rows]
    found: dict[str, float | None] = {"jain_user": None, "jain_vc": None}
    if named:  # else not worth a walk over all jobs
        times = gpu_seconds_held(outcome), asked_time(outcome)
        found |= {f"jain_{by}": _index(outcome, by, "demand", times) for by in named}
    return found


def shares(outcome: Flown, by: str = "vc") -> pa.Table:
    """Return what each group of jobs held of the cluster.

    Args:
        outcome: the run.
        by: ``vc``, ``user``, or another column of text, or ``size``.

    Returns:
        A row a group that has jobs, in order: the column named as ``by`` (jobs without a name under
        ``(none)``), ``num_jobs``; ``gpu_time`` held and ``asked_gpu_time`` (GPUs x time from
        submission to end), GPU-seconds; ``satisfaction``, the first over the second;
        ``gpu_time_share`` of all GPU time held; ``gpus_at_horizon``, GPUs held when the run ended
        (0 where it ran to its end); ``dominant_share`` of the cluster over the run (0..1) and
        ``dominant_resource`` (gpu, cpu, mem), of those resources of which the cluster says how much
        it has; an unknown request counts as none. Null where there is nothing to divide by.

    Raises:
        SpecError: there is no such grouping.
    """
    codes, labels = job_groups(outcome, by)
    groups = len(labels)
    held = np.bincount(codes, gpu_seconds_held(outcome), minlength=groups)
    asked = np.bincount(codes, asked_time(outcome), minlength=groups)
    runs = (outcome.flight.status == RUNNING)[outcome.flight.segment_job]
    runs &= np.isnan(outcome.flight.segment_end)
    holders = codes[outcome.flight.segment_job[runs]]
    at_end = np.bincount(holders, outcome.segment_gpus[runs], minlength=groups)
    dominant, resource = _dominant(outcome, codes, groups)
    jobs = np.bincount(codes, minlength=groups)
    rows = np.flatnonzero(jobs)
    return pa.table(
        {
            by: labelled(rows, labels),
            "num_jobs": jobs[rows],
            "gpu_time": held[rows],
            "asked_gpu_time": asked[rows],
            "satisfaction": _ratio(held[rows], asked[rows]),
            "gpu_time_share": _ratio(held[rows], np.full(len(rows), held.sum())),
            "gpus_at_horizon": at_end[rows].astype(np.float64),
            "dominant_share": dominant.take(pa.array(rows)),
            "dominant_resource": resource.take(pa.array(rows)),
        }
    )


def asked_time(outcome: Flown) -> np.ndarray:
    """Return the GPU-seconds from each job's submission to its end or the horizon, shape (n,)."""
    flight = outcome.flight
    end = np.where(np.isnan(flight.end), horizon(outcome)[1], flight.end)
    active = np.where(outcome.submitted, np.maximum(end - outcome.submit_time, 0.0), 0.0)
    asked: np.ndarray = np.nan_to_num(outcome.num_gpus) * active
    return asked


def _index(
    outcome: Flown,
    by: str,
    per: str | Mapping[str, float],
    times: tuple[np.ndarray, np.ndarray],
) -> float | None:
    """Return `jain_index`, given the GPU time that each job held and asked for."""
    codes, labels = job_groups(outcome, by)
    held, asked = (np.bincount(codes, each, minlength=len(labels)) for each in times)
    counts = (asked > 0) & (np.array(labels, dtype=object) != NONE)
    if isinstance(per, Mapping):
        names = [label for label, counted in zip(labels, counts, strict=True) if counted]
        return jain(held[counts] / _quotas(per, names))
    return jain(held[counts] / asked[counts] if per == "demand" else held[counts])


def _quotas(quotas: Mapping[str, float], names: list[str]) -> np.ndarray:
    for name in names:
        if name not in quotas:
            raise SpecError.unknown("per", name, quotas)
        if not 0 < quotas[name] < float("inf"):
            raise SpecError("per", f"found a quota of {quotas[name]!r}; expected a number > 0")
    return np.array([quotas[name] for name in names], dtype=np.float64)


def _dominant(outcome: Flown, codes: np.ndarray, groups: int) -> tuple[pa.Array, pa.Array]:
    """Return each group's dominant share and the resource it is of, null where unknown."""
    first, last = horizon(outcome)
    found = []
    for resource, column in _RESOURCES.items():
        whole = _capacity(outcome.cluster.node_types, resource) * (last - first)
        held = np.bincount(codes, _held(outcome, resource, column), minlength=groups)
        found.append(held / whole if whole > 0 else np.full(groups, -1.0))
    table = np.stack(found)
    best = table.argmax(axis=0)
    share = table.max(axis=0)
    unknown = share < 0
    return pa.array(share, mask=unknown), labelled(best, list(_RESOURCES), unknown)


def _held(outcome: Flown, resource: str, column: str) -> np.ndarray:
    """Return how much of a resource each job held, times how long, shape (n,)."""
    if resource == "gpu":
        return gpu_seconds_held(outcome)
    if resource == "cpu" and outcome.flight.stretches is not None:
        return elastic.cpu_seconds_held(outcome)
    asked: np.ndarray = np.nan_to_num(outcome.jobs[column].to_numpy().astype(np.float64))
    asked *= outcome.flight.run_time
    return asked


def _capacity(node_types: tuple[NodeType, ...], resource: str) -> float:
    """Return how much of a resource a cluster has; 0 where a kind of node does not say."""
    if resource == "gpu":
        return float(sum(kind.count * kind.gpus for kind in node_types))
    each = [kind.cpus if resource == "cpu" else kind.mem_gib for kind in node_types]
    if any(amount is None for amount in each):
        return 0.0
    pairs = zip(node_types, each, strict=True)
    return float(sum(kind.count * (amount or 0.0) for kind, amount in pairs))


def _ratio(above: np.ndarray, below: np.ndarray) -> pa.Array:
    known = below > 0
    ratio = np.divide(above, below, out=np.zeros(len(above)), where=known)
    return pa.array(ratio, mask=~known)
