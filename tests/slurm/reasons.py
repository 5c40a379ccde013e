"""The reasons that squeue gave for waiting, and those that the loops give in the same state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from records import table

from windtunnel.sim.slurm.meters import reason_text

if TYPE_CHECKING:
    from decisions import Replay
    from records import Record


#: `windtunnel.kernel.slurm_jobs.SLURM_PRIORITY`.
PRIORITY = 1
#: Since when a job must have waited for a loop to have looked at it, s.
FRESH = 0.5
#: That a dependency cannot be met any more is seen within so many seconds.
LATE = 30


def compare_reasons(record: Record, replay: Replay) -> tuple[int, int, list[str]]:
    """Return how many recorded reasons there are, how many are equal, and the others."""
    names = {_name(record, job): job for job in range(len(record.rows))}
    by_second: dict[float, list[tuple[int, str]]] = {}
    for row in table(record.folder / "record/reasons.csv"):
        if row["reason"] != "-" and row["job"] in names:
            said = (names[row["job"]], row["reason"])
            by_second.setdefault(float(row["second"]), []).append(said)
    compared = equal = 0
    wrong = []
    for second, said in by_second.items():
        mine = _reasons(record, replay, second + 0.3, [job for job, _ in said])
        for job, reason in said:
            compared += 1
            if mine[job] == reason:
                equal += 1
            else:
                wrong.append(
                    f"{second} job {record.rows[job]['slurm_id']}: {reason}, here {mine[job]}"
                )
    return compared, equal, wrong


def _name(record: Record, job: int) -> str:
    row = record.rows[job]
    return row["job"] + (f"_{row['array_task']}" if row["array_task"] else "")


def _reasons(record: Record, replay: Replay, now: float, jobs: list[int]) -> dict[int, str]:
    """Return why jobs wait, after a run of each loop in the recorded state."""
    before = [stay for stay in record.stays if stay.start < now]
    replay.load(now, before)
    queue = replay.loops.queued()
    waiting = {job for job, _ in queue}
    ahead: dict[int, int] = {}
    first: dict[int, int] = {}
    for job, part in queue:  # at its submission a job is told whether others stand before it
        identity = record.requests[job].identity
        first[job] = PRIORITY if ahead.setdefault(part, identity) != identity else 0
        replay.tables.jobs.set_reason(job, first[job])
    replay.decide(now, "main")
    seen = {job: replay.tables.jobs.reason_of(job) for job in waiting}
    fresh = {job for job in waiting if now - replay.world.eligible[job] < FRESH}
    replay.decide(now, "backfill")
    for job in waiting:
        later = replay.tables.jobs.reason_of(job)
        seen[job] = later or seen[job]
        if job in fresh:  # no loop has looked at it yet
            seen[job] = first[job]
    return {job: _why(record, replay, now, job, seen) for job in jobs}


def _why(  # noqa: PLR0911 - a reason each
    record: Record, replay: Replay, now: float, job: int, seen: dict[int, int]
) -> str:
    row, work = record.rows[job], record.work[job]
    if job in replay.world.held(now):
        return "JobHeldAdmin"
    if job in replay.tables.never:
        return replay.tables.never[job]
    if job in seen:
        return reason_text(seen[job])
    if record.requests[job].reservation:
        return "Reservation"
    others = set(re.findall(r"j\d+", work["dependency"]))
    ends = [float(r["end"] or "inf") for r in record.rows if r["job"] in others]
    if row["reason"] == "DependencyNeverSatisfied" and max(ends, default=0) < now - LATE:
        return row["reason"]
    if work["dependency"]:
        return "Dependency"
    return "BeginTime" if work["begin"] or int(row["restarts"] or 0) else "None"
