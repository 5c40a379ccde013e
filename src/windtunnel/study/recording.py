"""What of a recorded history a replay flies, and from when each job could have started."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.recorded import Recorded
from windtunnel.cluster.gpu_types import with_types_of
from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError, quote
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column, with_numbers
from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, RUNNING, WAITING, Flight
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
        submit, duration, gpus, start = (numbers(jobs, name) for name in columns)
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
        return cls(with_throttles(from_eligible(flown)), submit[kept], left_out, has_starts)

    def waits(self, outcome: Outcome) -> np.ndarray:
        """Return how long these jobs waited in a flight of theirs, s, shape (n,).

        In a closed loop a job may be submitted at another time than recorded, and attempts of the
        flight's own, behind the recorded jobs, count for nothing here.
        """
        start = outcome.flight.start[: len(self.submitted)]
        waits: np.ndarray = start - self.submitted_in(outcome)
        return waits

    def submitted_in(self, outcome: Outcome) -> np.ndarray:
        """Return when these jobs were really submitted in a flight of theirs, s, shape (n,)."""
        eligible = numbers(self.jobs, "submit_time")
        moved = outcome.submit_time[: len(eligible)] - eligible
        submitted: np.ndarray = self.submitted + moved
        return submitted

    def outcome(self, cluster: ClusterSpec) -> Outcome:
        """Return the record as the outcome of a run on a cluster."""
        return recorded_outcome(self.jobs, cluster)


def from_eligible(jobs: pa.Table) -> pa.Table:
    """Return jobs that are submitted when they were eligible, never after their recorded start.

    Those of which it is not known are submitted when they were.

    Raises:
        SpecError: ``eligible_time`` holds no finite numbers.
    """
    if "eligible_time" not in jobs.column_names:
        return jobs
    submit, start = (numbers(jobs, name) for name in ("submit_time", "start_time"))
    eligible = numeric_column(jobs, "eligible_time", "eligible_time", "seconds")
    if np.isinf(eligible).any():
        row = int(np.isinf(eligible).argmax())
        raise SpecError("eligible_time", f"found {eligible[row]} in row {row + 1:,}; expected s.")
    since = np.maximum(submit, np.where(np.isnan(eligible), submit, np.fmin(eligible, start)))
    if np.array_equal(since, submit, equal_nan=True):
        return jobs
    return with_numbers(jobs, "submit_time", since)


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


def check_record(record: Any, *, several: bool = False) -> None:
    """Check where decisions go: a file, True = they stay in memory, None = nobody wants them.

    Args:
        record: as given.
        several: it is one of several runs, which cannot share a file.

    Raises:
        SpecError: it is none of these, or a file of another kind.
    """
    if record is None or record is True:
        return
    if not isinstance(record, str | Path) or Path(record).suffix != ".parquet":
        raise SpecError("record", f"found {quote(record)}; expected a file such as run.parquet.")
    if several:
        raise SpecError("record", "a file holds one run; simulate each policy with its own.")


def keep_record(outcome: Outcome, record: Any) -> None:
    """Write the decisions of a run to a file, if one was asked for.

    Raises:
        SpecError: the run has no decisions of its own to record.
        OSError: the file cannot be written; nothing is left behind.
    """
    if record is None:
        return
    if outcome.flight.verdicts is None:
        message = "the published simulator's own loop tells no reasons; fly without compat."
        raise SpecError("record", message)
    if record is not True:
        from windtunnel.sim.observe.recording_file import write

        write(str(record), outcome)


def recorded_outcome(jobs: pa.Table, cluster: ClusterSpec) -> Outcome:
    """Return the recorded history of a trace as the outcome of a run.

    A job that started and has not ended is running since its start; one without a start that is
    pending waits; one that left the queue without a start was never in the run, as are jobs without
    a submission time.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        cluster: where it ran; its nodes are not distinguished.
    """
    jobs = with_types_of(jobs, cluster.gpu_types, cluster.aliases)
    found = Recorded.of(jobs)
    status = np.array(jobs["status"].fill_null("unknown").to_pylist(), dtype=object)
    ran = ~np.isnan(found.start) & ~np.isnan(found.submit) & ~np.isnan(found.end)
    runs_on = ran & (status == "running")
    code = np.full(len(status), NOT_SUBMITTED, dtype=np.int8)
    code[ran] = FINISHED
    code[runs_on] = RUNNING
    code[(status == "pending") & ~ran & ~np.isnan(found.submit)] = WAITING
    rows = np.flatnonzero(ran)
    rows = rows[np.lexsort((rows, found.start[rows]))]
    end = np.where(runs_on, np.nan, found.end)
    flight = Flight(
        start=np.where(ran, found.start, np.nan),
        end=np.where(ran, end, np.nan),
        run_time=np.where(ran, found.run, 0.0),
        preemptions=np.zeros(len(code), dtype=np.int64),
        status=code,
        segment_job=rows,
        segment_start=found.start[rows],
        segment_end=end[rows],
        node_offset=np.zeros(len(rows) + 1, dtype=np.int64),
        nodes=np.empty(0, dtype=np.int32),
        node_gpus=np.empty(0, dtype=np.int32),
        scheduling_points=0,
    )
    return Outcome(jobs, cluster, flight, {"policy": "recorded", "placement": "pool"})


def observed_cluster(jobs: pa.Table) -> ClusterSpec | None:
    """Return a pool of as many GPUs as were ever held at once; None where none were."""
    most = Recorded.of(jobs).most_held
    return ClusterSpec.pool(math.ceil(most), name="most held at once") if most > 0 else None
