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
        return cls(_from_eligible(flown), submit[kept], left_out, has_starts)

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
