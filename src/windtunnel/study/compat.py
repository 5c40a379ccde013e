"""Published simulators' own ways, for comparing with what they printed: ``compat="pai"``.

``compat="gavel"`` and ``compat="morphling"`` are mechanisms of their own
(`windtunnel.policies.gavel.published`, `windtunnel.study.morphling_ticks`).

The PAI simulator (alibaba/clusterdata, ``cluster-trace-gpu-v2020/simulator``; Weng et al., NSDI
2022):

* durations are whole seconds, at least 1; GPUs and cores are whole percent, rounded half to even;
* a task asks for no more than the whole cluster has, in each dimension; unknown ones are 0;
* the queue is walked past what does not fit; equal keys go by job id (as numbers, if all are);
* a node's GPUs are one pool, gangs fill the nodes in the placement's order, GPU types bind tasks
  without GPUs, too;
* averages are over tasks, and the makespan is a second longer (`windtunnel.sim.metrics`).

Where nothing is idle, neither GPU nor core, it starts nothing, not even a job that asks for
nothing; such jobs start at once here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError
from windtunnel.placements import split_placement
from windtunnel.placements.tree import Tree
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import with_numbers
from windtunnel.sim.contract import Policy
from windtunnel.site.scheduler import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.jobs import Jobs
    from windtunnel.site.conditions import Conditions

#: Requests are rounded to this part of a GPU or a core.
_PERCENT = 100


def in_order(job_id: np.ndarray) -> np.ndarray:
    """Return each job's place by job id: as numbers where all are whole numbers, else as text.

    Args:
        job_id: object array (n,) of strings.
    """
    try:
        ids = np.array([int(name) for name in job_id.tolist()], dtype=object)
    except ValueError:
        ids = job_id
    places = np.empty(len(ids), dtype=np.int64)
    places[np.argsort(ids, kind="stable")] = np.arange(len(ids))
    return places


class ByJobId(Policy):
    """A static order in which equal keys go by job id.

    Args:
        order: the order.

    Raises:
        SpecError: the order is not static.
    """

    def __init__(self, order: Policy) -> None:
        if order.tier != 1 or order.preemptive:
            raise SpecError(
                "compat",
                f"the PAI simulator knows static orders without preemption; policy {order.label!r} "
                "is none, as fifo, sjf or sju are.",
            )
        self.order = order
        self.by = order.by
        self.needs = order.needs  # type: ignore[misc] # what the message names
        self.queueing = "skip"

    @property
    def label(self) -> str:
        """The order's own name."""
        return self.order.label

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the place of each job by (key, job id), NaN where there is no key."""
        keys = np.asarray(self.order.rank(jobs), dtype=np.float64)
        places = np.empty(len(keys))
        places[np.lexsort((in_order(jobs.job_id), keys))] = np.arange(len(keys))
        return np.where(np.isnan(keys), np.nan, places)


def pai_jobs(table: pa.Table, cluster: ClusterSpec) -> pa.Table:
    """Return the jobs as the PAI simulator takes them.

    Args:
        table: jobs table.
        cluster: where they are to be flown.
    """
    tasks = np.nan_to_num(numbers(table, "num_tasks"), nan=1.0)
    tasks = np.maximum(tasks, 1.0)
    duration = np.maximum(np.trunc(numbers(table, "duration")), 1.0)
    limits = {"num_gpus": float(cluster.num_gpus), "num_cpus": _cores(cluster)}
    table = with_numbers(table, "duration", duration)
    for name, limit in limits.items():
        percent = np.rint(np.nan_to_num(numbers(table, name)) / tasks * _PERCENT)
        table = with_numbers(table, name, np.minimum(percent / _PERCENT, limit) * tasks)
    at = table.column_names.index("num_tasks")
    field = table.schema.field(at)
    table = table.set_column(at, field, pa.array(tasks.astype(np.int32)).cast(field.type))
    anywhere = pc.equal(table["gpu_type"], "CPU").fill_null(False)
    types = pc.if_else(anywhere, pa.scalar(None, pa.string()), table["gpu_type"])
    return table.set_column(table.column_names.index("gpu_type"), "gpu_type", types)


def pai_placement(text: Any) -> str:
    """Return the placement that fills nodes in the named one's order; None = by node id."""
    name, options, _ = split_placement(text)
    if name == "pool":
        return "pool"
    if not isinstance(text, str | None):
        raise SpecError("placement", f"compat='pai' takes {name!r} by its name, not as a function.")
    if name == Tree.name:
        raise SpecError(
            "placement",
            f"{text!r} looks for the tightest domain, which the PAI simulator does not know; "
            "expected another placement, or no compat.",
        )
    options = {"gang": "fill", **options}
    return ":".join([name or "first_fit", *(f"{key}={value}" for key, value in options.items())])


def _cores(cluster: ClusterSpec) -> float:
    """Return the cluster's cores; infinity where they are not constrained everywhere."""
    cores = [None if n.cpus is None else n.cpus * n.count for n in cluster.node_types]
    return sum(np.inf if part is None else part for part in cores)


def as_pai(
    table: pa.Table, cluster: ClusterSpec, policy: Policy, conditions: Conditions
) -> tuple[pa.Table, Policy, Conditions]:
    """Return jobs, policy and conditions of a flight as the PAI simulator would make it.

    Args:
        table: jobs table.
        cluster: where they are to be flown.
        policy: who runs next.
        conditions: what they are flown under.

    Raises:
        SpecError: the policy, or an option, is not of the simulator's.
    """
    scheduler = conditions.scheduler
    if scheduler.compat != "pai":
        raise SpecError(
            "compat", f"policy {policy.label!r} is not of the simulator {scheduler.compat!r}."
        )
    if scheduler.queueing not in (None, "skip"):
        raise SpecError(
            "queueing", f"found {scheduler.queueing!r}; the PAI simulator goes on past what does "
            "not fit: 'skip'."
        )  # fmt: skip
    if policy.queueing in BACKFILLING:
        raise SpecError(
            "compat",
            f"policy {policy.label!r} backfills, which the PAI simulator does not; expected a "
            "plain order, as fifo, sjf or sju are.",
        )
    placement = "pool" if cluster.is_pool else pai_placement(scheduler.placement)
    nodes = {} if cluster.is_pool else {"sharing": "pooled"}
    chosen = conditions.having(queueing="skip", placement=placement, **nodes)
    return pai_jobs(table, cluster), ByJobId(policy), chosen
