"""The reasons that squeue gave for waiting, and those that the loops give in the same state."""

from __future__ import annotations

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
LATE = 2


def compare_reasons(record: Record, replay: Replay) -> tuple[int, int, list[str]]:
    """Return how many recorded reasons there are, how many are equal, and the others."""
    names = {_name(record, job): job for job in range(len(record.rows))}
    by_second: dict[float, list[tuple[int, str]]] = {}
    for row in table(record.folder / "record/reasons.csv"):
        if row["reason"] != "-" and row["job"] in names:
            recorded = (names[row["job"]], row["reason"])
            by_second.setdefault(float(row["second"]), []).append(recorded)
    compared = equal = 0
    wrong = []
    for second, recorded in by_second.items():
        mine = _reasons(record, replay, second + 0.3, [job for job, _ in recorded])
        for job, reason in recorded:
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
    """Return why jobs wait, after the last backfill cycle and a run of the main loop since."""
    cycle = replay.cycle_before(now)
    looked_at: dict[int, int] = {} if cycle is None else _looked_at(record, replay, cycle)
    replay.load(now, [stay for stay in record.stays if stay.start < now])
    queue = replay.loops.queued()
    first = _at_submission(record, replay, now, queue)
    for job in first:
        replay.tables.jobs.columns["reason"][job] = looked_at.get(job) or first[job]
    replay.decide(now, "main")
    seen = {job: replay.tables.jobs.columns["reason"][job] for job in first}
    for job in first:
        if now - replay.world.eligible[job] < FRESH:  # no loop has looked at it yet
            seen[job] = first[job]
    return {job: _why(record, replay, now, job, seen) for job in jobs}


def _looked_at(record: Record, replay: Replay, cycle: float) -> dict[int, int]:
    """Return the reasons of those who waited that a cycle left behind, after the main loop's."""
    replay.load(cycle, [stay for stay in record.stays if stay.start < cycle])
    waiting = {job for job, _ in replay.loops.queued()}
    replay.decide(cycle, "main")
    replay.decide(cycle, "backfill")
    return {job: replay.tables.jobs.columns["reason"][job] for job in waiting}


def _at_submission(
    record: Record, replay: Replay, now: float, queue: list[tuple[int, int]]
) -> dict[int, int]:
    """Return what jobs get as reason at their submission: whether others stand before them."""
    ahead: dict[int, int] = {}
    first: dict[int, int] = {}
    every = max(replay.tables.settings["sched_interval"], 1)
    full = (now - FRESH) // every * every  # the main loop's last run over its whole queue
    defers = "defer" in record.site.settings.scheduler
    for job, part in queue:
        identity = record.requests[job].identity
        is_first = ahead.setdefault(part, identity) == identity
        is_known = not defers or replay.world.eligible[job] < full
        first[job] = PRIORITY if is_known and not is_first else 0
    return first


def _why(record: Record, replay: Replay, now: float, job: int, seen: dict[int, int]) -> str:
    row, work = record.rows[job], record.work[job]
    if job in replay.world.held(now):
        return "JobHeldAdmin"
    if job in replay.tables.never:
        return replay.tables.never[job]
    if job in seen:
        return reason_text(seen[job])
    if record.requests[job].reservation:
        return "Reservation"
    if work["dependency"]:

        def ended(other: int) -> bool | None:
            row = record.rows[other]
            is_over = row["end"] and float(row["end"]) < now - LATE
            return row["state"] == "COMPLETED" if is_over else None

        met = replay.world.dependencies.met(job, lambda _: False, ended)
        return "DependencyNeverSatisfied" if met is False else "Dependency"
    return "BeginTime" if work["begin"] or int(row["restarts"] or 0) else "None"
