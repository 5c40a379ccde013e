"""Instances whose speeds come from a measured throughput table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.policies.gavel.instance import as_instance

if TYPE_CHECKING:
    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.throughput.measured import JobType, ThroughputTable


def instance_of(
    source: Mapping[str, Any], table: ThroughputTable, *, packed: bool = False
) -> Instance:
    """Return an instance with the speeds of a throughput table.

    Args:
        source: plain data as `as_instance` takes it, except that a job has a ``job_type``, the
            model with its batch size, instead of ``throughputs``.
        table: measured speeds; a job type that was not measured on a type of the cluster cannot
            run there.
        packed: also give the pairs of jobs with gangs of one size that were measured together.

    Raises:
        SpecError: a GPU type or job type is not in the table; names the nearest.

    >>> from windtunnel.throughput import gavel_speeds
    >>> jobs = [{"id": 7, "job_type": "A3C"}]
    >>> found = instance_of({"cluster": {"v100": 1}, "jobs": jobs}, gavel_speeds())
    >>> found.throughputs.round(3).tolist()
    [[7.176]]
    """
    cluster = source.get("cluster") or {}
    for name in cluster:
        checked_choice(f"instance.cluster.{name}", name, table.gpu_types)
    jobs = list(source.get("jobs") or ())
    kinds = [_job_type(job, row, table) for row, job in enumerate(jobs)]
    filled = [
        {**job, "throughputs": {g: table.alone[g].get(kind, 0.0) for g in cluster}}
        for job, kind in zip(jobs, kinds, strict=True)
    ]
    instance = as_instance({**source, "jobs": filled, "pairs": ()})
    return _with_pairs(instance, kinds, table) if packed else instance


def _job_type(job: Any, row: int, table: ThroughputTable) -> JobType:
    where = f"instance.jobs[{row}]"
    if not isinstance(job, Mapping) or not isinstance(job.get("job_type"), str):
        raise SpecError(where, "expected a mapping with a 'job_type'.")
    model, gang = job["job_type"], job.get("scale_factor", 1)
    if isinstance(gang, int) and (model, gang) in table.job_types_known:
        return model, gang
    models = sorted({known for known, _ in table.job_types})
    if model in models:
        raise SpecError(where, f"{quote(model)} was not measured on {quote(gang)} GPUs.")
    raise SpecError.unknown(f"{where}.job_type", model, models)


def _with_pairs(instance: Instance, kinds: list[JobType], table: ThroughputTable) -> Instance:
    """Return the instance with its measured pairs; one look-up a pair of job types."""
    types = sorted(set(kinds))
    of = np.array([types.index(kind) for kind in kinds], int)
    speeds = np.zeros((len(types), len(types), len(instance.gpu_types), 2))
    for row, first in enumerate(types):
        for column, second in enumerate(types):
            if first[1] == second[1]:
                speeds[row, column] = [
                    table.pair_speeds(first, second, name) for name in instance.gpu_types
                ]
    one, other = np.triu_indices(instance.num_jobs, k=1)
    measured = np.asarray((speeds > 0).any(axis=(2, 3)))[of[one], of[other]]
    one, other = one[measured], other[measured]
    return replace(
        instance,
        pairs=np.column_stack([one, other]),
        pair_throughputs=speeds[of[one], of[other]],
    )
