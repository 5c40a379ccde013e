"""What of a recorded history a replay flies, and from when each job could have started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.study.recorded_flight import recorded_outcome

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome


@dataclass(frozen=True)
class Recording:
    """The jobs of a record that are flown again.

    Attributes:
        jobs: their table; a job is submitted when it was eligible (``eligible_time``, where the
            source has it): a begin time, a dependency or a hold is not the scheduler's doing.
        submitted: when they were really submitted, s, shape (n,): waits count from here.
        left_out: reason -> jobs that are not flown.
        has_starts: whether the source records when jobs started.
    """

    jobs: pa.Table
    submitted: np.ndarray
    left_out: dict[str, int]
    has_starts: bool

    @classmethod
    def of(cls, jobs: pa.Table, *, with_cpu_jobs: bool = False) -> Recording:
        """Return the jobs that ask for GPUs and are recorded to have started.

        Of a trace that records no start at all, those that ask for GPUs.

        Args:
            jobs: a jobs table (`windtunnel.schema`).
            with_cpu_jobs: those without GPUs are flown, too: the policy knows of cores.
        """
        columns = ("submit_time", "duration", "num_gpus", "start_time")
        submit, duration, gpus, start = (
            np.asarray(jobs[name].to_numpy(), dtype=np.float64) for name in columns
        )
        has_starts = bool((~np.isnan(start)).any())
        known = ~np.isnan(submit) & ~np.isnan(duration) & ~np.isnan(gpus)
        asks = np.ones(len(gpus), dtype=bool) if with_cpu_jobs else ~(gpus == 0)
        ran = ~np.isnan(start) if has_starts else np.ones(len(start), dtype=bool)
        reasons = {
            "without a known submission, run time or number of GPUs": ~known,
            "without GPUs": known & ~asks,
            "that never started": known & asks & ~ran,
        }
        left_out = {why: int(mask.sum()) for why, mask in reasons.items() if mask.any()}
        kept = known & asks & ran
        flown = jobs.filter(pa.array(kept))
        return cls(with_throttles(_from_eligible(flown)), submit[kept], left_out, has_starts)

    def outcome(self, cluster: ClusterSpec) -> Outcome:
        """Return the record as the outcome of a run on a cluster."""
        return recorded_outcome(self.jobs, cluster)


def _from_eligible(jobs: pa.Table) -> pa.Table:
    """Return jobs that are submitted when they were eligible; never after their start."""
    if "eligible_time" not in jobs.column_names:
        return jobs
    submit, start = (
        np.asarray(jobs[name].to_numpy(), dtype=np.float64)
        for name in ("submit_time", "start_time")
    )
    eligible = np.asarray(
        pc.cast(jobs["eligible_time"], pa.float64(), safe=False).to_numpy(), dtype=np.float64
    )
    since = np.fmax(submit, np.where(np.isnan(eligible), submit, np.fmin(eligible, start)))
    if np.array_equal(since, submit, equal_nan=True):
        return jobs
    at = jobs.schema.get_field_index("submit_time")
    return jobs.set_column(
        at, jobs.schema.field(at), pa.array(since, pa.float64(), from_pandas=True)
    )


def with_throttles(jobs: pa.Table) -> pa.Table:
    """Return jobs with ``array_limit``, where the log does not say it but names it as a reason.

    An array whose tasks waited for its own limit (``JobArrayTaskLimit``) let so many run at once as
    ever ran.
    """
    if "reason" not in jobs.column_names or "array_limit" in jobs.column_names:
        return jobs
    arrays = [name.partition("_")[0] if name and "_" in name else "" for name in
              jobs["job_id"].to_pylist()]  # fmt: skip
    reasons = jobs["reason"].to_pylist()
    bound = {a for a, word in zip(arrays, reasons, strict=True) if a and word == THROTTLE}
    if not bound:
        return jobs
    start, end = (jobs[name].to_numpy().tolist() for name in ("start_time", "end_time"))
    rows: dict[str, list[int]] = {}
    for row, array in enumerate(arrays):
        if array in bound:
            rows.setdefault(array, []).append(row)
    ones = np.ones(len(arrays))
    limits = {array: int(most_at_once(its, start, end, ones)) for array, its in rows.items()}
    column = pa.array([limits.get(array, 0) for array in arrays], pa.int64())
    return jobs.append_column("array_limit", column)


#: Slurm's reason for a task that waits for its array's own limit.
THROTTLE = "JobArrayTaskLimit"


def most_at_once(rows: list[int], start: list[float], end: list[float], held: np.ndarray) -> float:
    """Return the most that some jobs ever held at once; ends come before starts of an instant."""
    ran = [row for row in rows if start[row] == start[row] and end[row] == end[row]]
    times = np.array([start[row] for row in ran] + [end[row] for row in ran])
    changes = np.concatenate([held[ran], -held[ran]])
    order = np.lexsort((changes, times))
    return float(np.cumsum(changes[order]).max(initial=0.0))
