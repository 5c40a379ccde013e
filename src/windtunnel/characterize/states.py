"""How do jobs end? Shares of jobs and of GPU time by final state.

AcmeTrace's convention (InternLM/AcmeTrace README and figure 3): a job that timed out or whose node
failed has failed, nothing else has. ``out_of_memory`` is a word of newer Slurm that the published
shares know nothing of: it stands for itself, like preempted, running, pending and unknown, so that
a failure rate means the same on every trace. `windtunnel.characterize.failures` counts it as a
failure.

What is the cluster used for? Jobs and GPU time by kind of work, as a treemap shows them.

The numbers of figure 4 of the AcmeTrace notebook: rows and the sum of GPU time of the jobs with
GPUs, GPU time cut to whole GPU-seconds, percentages over the kinds that are listed (Kalos' SFT jobs
are not, so its shares are of 19,899 jobs and not of 19,907).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.population import (
    NONE,
    counted,
    group_label,
    grouped_table,
    population,
    size_class,
    size_labels,
    text_label,
)
from windtunnel.characterize.relation import relation, rows, typed
from windtunnel.checked import checked_choice
from windtunnel.plain import fields_of
from windtunnel.schema import STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation


#: Statuses that count as failed in the published shares.
FAILED: tuple[str, ...] = ("failed", "timeout", "node_fail")
#: States in the order of the rows; the first three are there even without a job.
STATES: tuple[str, ...] = (
    *("completed", "cancelled", "failed"),
    *(s for s in STATUSES if s not in ("completed", "cancelled", *FAILED)),
    NONE,
)
_ALWAYS = STATES[:3]


def state_shares(
    jobs: Relation, by: str | None = None, *, where: str = "gpu", gpu_time: str = "gpu_time"
) -> pa.Table:
    """Return the share of jobs and of GPU time that ended in each state, in each group of jobs.

    Args:
        gpu_time: the fact to add up: ``gpu_time``, or ``source_gpu_time`` as AcmeTrace does.

    Returns:
        One row a group and state: the column named as ``by`` (absent without), then, in the order
        of `STATES` (completed, cancelled and failed always, the
        others where there are such jobs; ``"(none)"`` = no status): ``state``, ``num_jobs``,
        ``job_share`` (0..1 of n), ``gpu_time`` (GPU-seconds), ``gpu_time_share`` (0..1; null where
        there is no GPU time at all), ``n`` (jobs of the group), ``left_out`` (jobs of the state
        that are in no GPU time: duration unknown), ``unsized`` (jobs of unknown GPU count).

    Raises:
        SpecError: ``where`` or ``gpu_time`` is unknown.
    """
    table = population(jobs, (gpu_time,), where=where, by=by, columns=("status",))
    keyed = table.mutate(state=state_of(table.status))
    sums = keyed.group_by(["place", "label", "state"]).aggregate(
        num_jobs=keyed.asked.sum(),
        gpu_time=keyed.fact_0.sum().fill_null(0.0),
        left_out=(keyed.asked & keyed.fact_0.isnull()).sum(),
        unsized=(~keyed.asked).sum(),
    )
    groups: dict[tuple[float, str], dict[str, dict[str, Any]]] = {}
    for row in rows(sums):
        groups.setdefault((row["place"], row["label"]), {})[row["state"]] = row
    if by is None and not groups:
        groups[0.0, ""] = {}
    found = [row for key, states in groups.items() for row in _group(key, states)]
    names = "state num_jobs job_share gpu_time gpu_time_share n left_out unsized"
    return grouped_table(found, by, typed(names, "tifffiii"))


def state_of(status: Any) -> Any:
    """Return the state that a status (Ibis text) counts as: one of `STATES`."""
    return status.isin(FAILED).ifelse("failed", status.fill_null(NONE)).fill_null(NONE)


def _group(key: tuple[float, str], states: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of one group, in the order of `STATES`, then other words by name."""
    n = sum(row["num_jobs"] for row in states.values())
    total = sum(row["gpu_time"] for row in states.values())
    unsized = sum(row["unsized"] for row in states.values())
    others = sorted(set(states) - set(STATES))
    found = []
    for state in (*STATES, *others):
        row = states.get(state, {"num_jobs": 0, "gpu_time": 0.0, "left_out": 0})
        if not row["num_jobs"] and state not in _ALWAYS:
            continue
        found.append(
            {
                **dict(zip(("place", "label"), key, strict=True)),
                "state": state,
                "num_jobs": row["num_jobs"],
                "job_share": row["num_jobs"] / n if n else None,
                "gpu_time": row["gpu_time"],
                "gpu_time_share": row["gpu_time"] / total if total else None,
                "n": n,
                "left_out": row["left_out"],
                "unsized": unsized,
            }
        )
    return found


def workload_mix(
    jobs: Relation,
    listed: Sequence[str] | None = None,
    *,
    where: str = "gpu",
    gpu_time: str = "gpu_time",
) -> pa.Table:
    """Return jobs and GPU time by workload.

    Args:
        listed: the workloads that percentages are taken over; default: every one that is named.
        gpu_time: the fact to add up: ``gpu_time``, or ``source_gpu_time`` as AcmeTrace does.

    Returns:
        One row a workload, listed ones first, each part by number of jobs, most first, then by
        name: ``workload``, ``listed`` (bool), ``num_jobs``, ``gpu_time`` (whole GPU-seconds, cut),
        ``job_percent``, ``gpu_time_percent`` (0..100 over the listed; null for the others, and
        where the listed have none), ``n`` (jobs in the GPU time), ``left_out`` (jobs that are not:
        duration unknown), ``unsized``. A listed workload without a job has its row.

    Raises:
        SpecError: ``where`` or ``gpu_time`` is unknown.
    """
    import pyarrow as pa

    table = population(jobs, (gpu_time,), where=where, by="workload")
    sums = table.group_by("label").aggregate(
        num_jobs=table.asked.sum(),
        gpu_time=table.fact_0.sum().fill_null(0.0),
        **counted(table, table.fact_0),
    )
    found = {row["label"]: row for row in rows(sums)}
    chosen = set(found) - {NONE} if listed is None else {text_label(name) for name in listed}
    for name in chosen - set(found):
        found[name] = {"label": name, **dict.fromkeys(_SUMS, 0)}
    for row in found.values():
        row["gpu_time"] = math.trunc(row["gpu_time"])
    all_jobs = sum(found[name]["num_jobs"] for name in chosen)
    all_time = sum(found[name]["gpu_time"] for name in chosen)
    ordered = sorted(
        found.values(), key=lambda row: (row["label"] not in chosen, -row["num_jobs"], row["label"])
    )
    within = [row["label"] in chosen for row in ordered]
    names = [group_label("workload", 0.0, row["label"]) for row in ordered]

    def percent(key: str, total: int) -> list[float | None]:
        return [
            100.0 * row[key] / total if yes and total else None
            for row, yes in zip(ordered, within, strict=True)
        ]

    columns: dict[str, Any] = {
        "workload": pa.array(names, pa.string()),
        "listed": pa.array(within, pa.bool_()),
        "num_jobs": pa.array([row["num_jobs"] for row in ordered], pa.int64()),
        "gpu_time": pa.array([row["gpu_time"] for row in ordered], pa.int64()),
        "job_percent": pa.array(percent("num_jobs", all_jobs), pa.float64()),
        "gpu_time_percent": pa.array(percent("gpu_time", all_time), pa.float64()),
    }
    for name in ("n", "left_out", "unsized"):
        columns[name] = pa.array([row[name] for row in ordered], pa.int64())
    return pa.table(columns)


_SUMS = ("num_jobs", "gpu_time", "n", "left_out", "unsized")


#: Properties by which jobs can be grouped.
SHARES_BY: tuple[str, ...] = (
    *("num_gpus", "vc", "user", "workload", "template", "status", "gpu_type"),
)


def shares(jobs: Relation, by: str) -> pa.Table:
    """Return the share of jobs and of GPU time of each value of a property.

    Args:
        by: one of `SHARES_BY`; ``num_gpus`` means the size classes of `windtunnel.sim.metrics`.

    Returns:
        Columns ``by`` (text; ``"(none)"`` where unknown), ``num_jobs`` int64, ``job_share``
        (0..1), ``gpu_time`` (GPU-seconds), ``gpu_time_share`` (0..1, null where there is no GPU
        time at all), ``left_out`` int64 (jobs in no GPU time: size or duration unknown). Size
        classes in order of size, everything else by GPU time, most first, then by name.

    Raises:
        SpecError: ``by`` is none of `SHARES_BY`.
    """
    import ibis

    checked_choice("by", by, SHARES_BY)
    table = relation(jobs, ("num_gpus", "duration", by))
    place = size_class(table.num_gpus) if by == "num_gpus" else ibis.literal(0)
    group = ibis.literal(NONE) if by == "num_gpus" else table[by].fill_null(NONE)
    keyed = table.select(place=place, label=group, gpu_time=table.num_gpus * table.duration)
    sums = keyed.group_by(["place", "label"]).aggregate(
        num_jobs=keyed.count(),
        gpu_time=keyed.gpu_time.sum().fill_null(0.0),
        left_out=keyed.gpu_time.isnull().sum(),
    )
    if by == "num_gpus":
        sums = sums.mutate(label=ibis.array(list(size_labels()))[sums.place])
    total = sums.gpu_time.sum().over(ibis.window())
    shared = sums.mutate(
        job_share=sums.num_jobs / sums.num_jobs.sum().over(ibis.window()),
        gpu_time_share=sums.gpu_time / total.nullif(0.0),
    )
    ordered = shared.order_by([shared.place, shared.gpu_time.desc(), shared.label])
    columns = {
        by: ordered.label,
        **fields_of(ordered, "num_jobs", "job_share", "gpu_time", "gpu_time_share", "left_out"),
    }
    return ordered.select(**columns).to_pyarrow()
