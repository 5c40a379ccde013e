"""What is the cluster used for? Jobs and GPU time by kind of work, as a treemap shows them.

The numbers of figure 4 of the AcmeTrace notebook: rows and the sum of GPU time of the jobs with
GPUs, GPU time cut to whole GPU-seconds, percentages over the kinds that are listed (Kalos' SFT jobs
are not, so its shares are of 19,899 jobs and not of 19,907).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.groups import NONE, group_label, text_label
from windtunnel.characterize.population import counted, population
from windtunnel.characterize.relation import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation


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
