"""Who was in front of one job: what ran, and who waited before it, at the instant it joined.

Users of queues ask for it (kubernetes-sigs/kueue#2833: "who is in front of me, and how much do they
hold"). The line is that of `windtunnel.study.wait_causes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.study.wait_causes import CAUSES

if TYPE_CHECKING:
    from windtunnel.characterize.recorded import Recorded
    from windtunnel.study.wait_causes import WaitCauses


@dataclass(frozen=True)
class InFront:
    """One job and who was in front of it.

    Attributes:
        job_id: the job.
        at: when it joined the line, or, where it still waits, the end of the log, s.
        num_gpus: what it asks for.
        wait: s; None = it never started.
        left: when it left the line without a start, s; None = it started, or still waits.
        causes: s of its wait by cause; None = it never started.
        running: other jobs that held GPUs when it joined, most GPUs first, then in the table's
            order: ``job_id``, ``user``, ``vc``, ``num_gpus``, ``start_time``, ``end_time`` (s; null
            = no end is known). Of jobs that start at that very instant those before it in the line
            count.
        waiting: jobs that waited before it, in the order of the line: ``job_id``, ``user``,
            ``vc``, ``num_gpus``, ``since`` (s).
        in_line: whether it stood in the line of GPU jobs; else nobody is listed as in front.
        reason: why it waited, as the log says; None = it does not.
    """

    job_id: str
    at: float
    num_gpus: float
    wait: float | None
    left: float | None
    causes: dict[str, float] | None
    running: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    in_line: bool = True
    reason: str | None = None

    @property
    def running_gpus(self) -> float:
        """GPUs that were held."""
        return float(sum(row["num_gpus"] for row in self.running))

    @property
    def waiting_gpus(self) -> float:
        """GPUs asked for by those who waited before it."""
        return float(sum(row["num_gpus"] for row in self.waiting))


def in_front(found: WaitCauses, job_id: str) -> InFront:
    """Return who was in front of a job.

    Args:
        found: the waits of its trace.
        job_id: any job of the trace; only GPU jobs that were not held stood in the line.

    Raises:
        SpecError: the trace has no such job.
    """
    recorded = found.recorded
    ids = recorded.jobs["job_id"].to_pylist()
    if job_id not in ids:
        raise SpecError.unused("--job", "job", job_id, ids, where="the trace")
    row = ids.index(job_id)
    places = np.flatnonzero(found.line_rows == row)
    reason = (
        recorded.jobs["reason"][row].as_py() if "reason" in recorded.jobs.column_names else None
    )
    if not len(places):
        return _outside(recorded, row, job_id, reason)
    place = int(places[0])
    begin, leave = found.line[:, 0], found.line[:, 1]
    split = np.flatnonzero(found.rows == row)
    waits = bool(np.isinf(leave[place]))
    at = recorded.span[1] if waits else float(begin[place])
    end = _known_ends(recorded)
    before = np.zeros(len(end), dtype=bool)
    before[found.line_rows[:place]] = True
    began = (recorded.start < at) | ((recorded.start == at) & before)
    holds = began & ~(end <= at) & (recorded.gpus > 0)
    holders = np.flatnonzero(holds)
    holders = holders[np.lexsort((holders, -recorded.gpus[holders]))]
    ahead = np.flatnonzero((begin[:place] <= at) & (leave[:place] > at))

    def described(rows: np.ndarray) -> list[dict[str, Any]]:
        chosen = recorded.jobs.select(["job_id", "user", "vc", "num_gpus"]).take(rows)
        jobs: list[dict[str, Any]] = chosen.to_pylist()
        return jobs

    running = [
        {**job, "start_time": float(recorded.start[i]), "end_time": _known(end[i])}
        for job, i in zip(described(holders), holders.tolist(), strict=True)
    ]
    waiting = [
        {**job, "since": float(begin[i])}
        for job, i in zip(described(found.line_rows[ahead]), ahead.tolist(), strict=True)
    ]
    causes = None
    if len(split):
        causes = dict(zip(CAUSES, found.causes[int(split[0])].tolist(), strict=True))
    wait = float(recorded.wait[row]) if len(split) else None
    left = None if len(split) or waits else float(leave[place])
    return InFront(
        *(job_id, at, float(recorded.gpus[row]), wait, left, causes, running, waiting),
        reason=reason,
    )


def _outside(recorded: Recorded, row: int, job_id: str, reason: str | None) -> InFront:
    """Return what is known of a job that did not stand in the line of GPU jobs."""
    wait = _known(float(recorded.wait[row]))
    end = _known(float(recorded.jobs["end_time"].to_numpy()[row]))
    at = recorded.submit[row] if np.isfinite(recorded.submit[row]) else recorded.span[0]
    return InFront(
        *(job_id, float(at), float(recorded.gpus[row]), wait, end if wait is None else None),
        *(None, [], []),
        in_line=False,
        reason=reason,
    )


def _known_ends(recorded: Recorded) -> np.ndarray:
    """Return when jobs ended; NaN, too, where one still runs: its end is the log's."""
    import pyarrow.compute as pc

    jobs = recorded.jobs
    open_ended = pc.and_(pc.equal(jobs["status"], "running"), pc.is_null(jobs["end_time"]))
    still = np.asarray(pc.fill_null(open_ended, False).to_numpy(), dtype=bool)
    return np.where(still, np.nan, recorded.end)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
