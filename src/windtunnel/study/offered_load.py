"""The load that jobs offer a cluster, and the same jobs at another load.

The offered load is the GPU time that the jobs ask for, over the GPU time that the cluster has while
they are submitted: sum of GPUs x duration / (cluster's GPUs x (last submission - first)). Above 1
the queue grows as long as jobs come. (Feitelson, *Workload Modeling*, ch. 1: stretching arrivals
changes the load and leaves everything else about the jobs as it is.)
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.predictors.features import numbers


def offered_load(jobs: pa.Table, num_gpus: int, flown: np.ndarray) -> float:
    """Return the load that the flown jobs offer ``num_gpus`` GPUs.

    Args:
        jobs: jobs table.
        num_gpus: GPUs of the cluster.
        flown: bool array of shape (n,): jobs that count; they have times, durations and GPUs.

    Raises:
        SpecError: no two of them are submitted at different times, or they ask for no GPU time.
    """
    submit = numbers(jobs, "submit_time")[flown]
    gpu_time = float((numbers(jobs, "num_gpus") * numbers(jobs, "duration"))[flown].sum())
    span = float(np.ptp(submit)) if len(submit) else 0.0
    if span <= 0 or gpu_time <= 0:
        raise SpecError(
            "loads",
            f"the {len(submit):,} job(s) that can be flown offer no load: expected GPU time, and "
            "submissions at two times at least.",
        )
    return gpu_time / (span * num_gpus)


def at_load(jobs: pa.Table, natural: float, load: float, flown: np.ndarray) -> pa.Table:
    """Return the jobs with their submissions stretched about the first, so that they offer a load.

    Args:
        jobs: jobs table.
        natural: the load that they offer as they are (`offered_load`).
        load: the load wanted.
        flown: bool array of shape (n,): jobs that count.

    Returns:
        The table with another ``submit_time``; recorded starts and ends stay as they are.

    Raises:
        SpecError: the load is no number above 0.
    """
    if not 0 < load < math.inf:
        raise SpecError("loads", f"found {load!r}; expected numbers above 0, such as 0.9.")
    submit = numbers(jobs, "submit_time")
    first = float(submit[flown].min())
    stretched = first + (submit - first) * (natural / load)
    place = jobs.column_names.index("submit_time")
    column = pa.array(stretched, from_pandas=True)
    return jobs.set_column(place, jobs.schema.field(place), column)
