"""The load that jobs offer a cluster, and the same jobs at another load.

The offered load is the GPU time that the jobs ask for, over the GPU time that the cluster has while
they are submitted: sum of GPUs x duration / (cluster's GPUs x (last submission - first)). Above 1
the queue grows as long as jobs come. (Feitelson, *Workload Modeling*, ch. 1: stretching arrivals
changes the load and leaves everything else about the jobs as it is.)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import submitted_at

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


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
        The table with another ``submit_time``, and what is dated by it
        (`windtunnel.sim.columns.DATED`); recorded starts and ends stay as they are.

    Raises:
        SpecError: the load is no number above 0.
    """
    checked_number("loads", load, "numbers above 0, such as 0.9", above=0)
    submit = numbers(jobs, "submit_time")
    first = float(submit[flown].min())
    stretched = first + (submit - first) * (natural / load)
    return submitted_at(jobs, stretched)


_EVERY = re.compile(r"(?P<count>\d+)/(?P<seconds>\d+(?:\.\d+)?)")


def with_arrivals(
    table: pa.Table, text: str, ties: Callable[[np.ndarray], np.ndarray] | None = None
) -> pa.Table:
    """Return the jobs with other submit times: the k-th job comes at seconds x floor(k / count).

    Jobs count in order of their own submit times, which are forgotten; unknown ones come last.

    Args:
        table: jobs table.
        text: ``count/seconds``, as ``300/60``.
        ties: job ids -> place of each, for jobs submitted at one time; None = input order.

    Raises:
        SpecError: the text is not so.

    >>> import pyarrow as pa
    >>> jobs = pa.table({"submit_time": [9.0, 1.0, 5.0]})
    >>> with_arrivals(jobs, "2/60")["submit_time"].to_pylist()
    [60.0, 0.0, 0.0]
    """
    match = _EVERY.fullmatch(text.strip())
    count = int(match["count"]) if match else 0
    if match is None or count < 1 or float(match["seconds"]) <= 0:
        raise SpecError("arrivals", f"found {text!r}; expected COUNT/SECONDS, as 300/60.")
    submit = numbers(table, "submit_time")
    second = np.arange(len(submit))
    if ties is not None:
        second = ties(np.array(table["job_id"].to_pylist(), dtype=object))
    order = np.lexsort((second, submit))
    times = np.empty(len(submit))
    times[order] = float(match["seconds"]) * (np.arange(len(submit)) // count)
    return submitted_at(table, times)
