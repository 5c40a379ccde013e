r"""Finish-time fairness: how much later a job ends than in a cluster cut into equal parts.

rho = T_shared / T_isolated (Mahajan et al., "Themis", NSDI'20, section 3): T_shared is the job's
completion time in the run, T_isolated what it would have taken with an equal part of the cluster
for itself. At or under 1 the job lost nothing by sharing; over 1, it did.

The equal part changes as others come and go. While m(t) competitors are active, each has N / m(t)
of the N GPUs, on which a gang of s GPUs progresses at the rate min(1, N / (m(t) s)): Gavel's
isolated allocation (Narayanan et al., OSDI'20, section 4). With d the job's run time,

    T_isolated = d / |A| * integral over A of max(1, s m(t) / N) dt

where A is the time over which competitors are averaged. By default it is the job's lifetime, from
submission to end, as in Themis, who multiply by the mean contention of the lifetime. Gavel sums up
the work done, each part at the isolated speed of its time, so that A is the time on GPUs.

Competitors are the jobs with GPUs that are submitted and not finished, the job itself among them
(Gavel), or the users or virtual clusters that have such a job (Themis' "apps").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.sim.flight import FINISHED
from windtunnel.sim.metrics import distribution, horizon
from windtunnel.sim.observe.groups import grouped_steps, job_groups
from windtunnel.sim.timeline import steps

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

#: The competitors who are cut the same part: every job.
JOBS = "jobs"
#: Over what time competitors are averaged: as Themis does, or as Gavel does.
SPANS: tuple[str, ...] = ("lifetime", "running")
#: A job counts as behind its part where rho is above 1 by more than sums of floats can be off.
TOLERANCE = 1e-9


def finish_time_fairness(outcome: Flown, among: str = JOBS, *, over: str = "lifetime") -> pa.Table:
    """Return each job's finish-time fairness.

    Args:
        outcome: the run.
        among: who competes: ``jobs``, or a column of text: ``user``, ``vc`` ... Jobs without a name
            compete together.
        over: one of `SPANS`.

    Returns:
        One row a job, in the jobs table's order: ``job_id``, ``jct`` (s), ``isolated_time`` (s) and
        ``rho``; null where the job did not finish, and ``rho`` where there was no work to do.

    Raises:
        SpecError: there is no such grouping, or span.
    """
    if over not in SPANS:
        raise SpecError.unknown("over", over, SPANS)
    flight = outcome.flight
    done = flight.status == FINISHED
    jct = np.where(done, flight.end - outcome.submit_time, np.nan)
    duration = outcome.jobs["duration"].to_numpy().astype(np.float64)
    curve = competitors(outcome, among)
    excess = np.zeros(len(done))
    if over == "lifetime":
        rows, whole = np.flatnonzero(done), jct
        start, end = outcome.submit_time[rows], flight.end[rows]
    else:
        stays, whole = np.flatnonzero(~np.isnan(flight.segment_end)), flight.run_time
        rows = flight.segment_job[stays]
        start, end = flight.segment_start[stays], flight.segment_end[stays]
    np.add.at(excess, rows, _excess(outcome, curve, rows, start, end))
    stretch = 1.0 + np.divide(excess, whole, out=np.zeros(len(done)), where=done & (whole > 0))
    isolated = np.where(done, duration * stretch, np.nan)
    rho = np.full(len(jct), np.nan)
    np.divide(jct, isolated, out=rho, where=isolated > 0)
    return pa.table(
        {
            "job_id": outcome.jobs["job_id"],
            "jct": pa.array(jct, mask=np.isnan(jct)),
            "isolated_time": pa.array(isolated, mask=np.isnan(isolated)),
            "rho": pa.array(rho, mask=np.isnan(rho)),
        }
    )


def summary(outcome: Flown, among: str = JOBS, *, over: str = "lifetime") -> dict[str, Any]:
    """Return finish-time fairness in numbers.

    Keys: ``avg_rho``, ``p50_rho``, ``p99_rho``, ``max_rho``; ``share_rho_over_1``, of the jobs that
    have one; ``num_rho``, how many. None where there are none.

    Raises:
        SpecError: there is no such grouping, or span.
    """
    column = finish_time_fairness(outcome, among, over=over)["rho"]
    rho = column.drop_null().to_numpy()
    found = distribution(rho, "rho")
    return {
        **{name: found[name] for name in ("avg_rho", "p50_rho", "p99_rho", "max_rho")},
        "share_rho_over_1": float((rho > 1 + TOLERANCE).mean()) if len(rho) else None,
        "num_rho": len(rho),
    }


def competitors(outcome: Flown, among: str = JOBS) -> tuple[np.ndarray, np.ndarray]:
    """Return how many compete over time: times (s, ascending, distinct) and numbers from then on.

    Raises:
        SpecError: there is no such grouping.
    """
    flight = outcome.flight
    rows = np.flatnonzero(outcome.submitted & (outcome.num_gpus > 0))
    submit = outcome.submit_time[rows]
    end = np.where(np.isnan(flight.end[rows]), horizon(outcome)[1], flight.end[rows])
    end = np.maximum(end, submit)
    times = np.concatenate([submit, end])
    signs = np.concatenate([np.ones(len(rows)), -np.ones(len(rows))])
    if among == JOBS:
        time, active = steps(times, signs)
        return time, active
    codes, _ = job_groups(outcome, among)
    group, time, active = grouped_steps(np.tile(codes[rows], 2), times, signs)
    before = np.append(0.0, active[:-1])
    before[np.append(True, group[1:] != group[:-1])[: len(group)]] = 0.0
    change = (active > 0).astype(np.float64) - (before[: len(active)] > 0)
    time, present = steps(time, change)
    return time, present


def _excess(
    outcome: Flown,
    curve: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
) -> np.ndarray:
    """Return the integral of max(1, s m(t) / N) - 1 over spans of jobs.

    Args:
        outcome: the run.
        curve: times and numbers of competitors from then on.
        rows: Int array (k,), the job of each span.
        start: Float array (k,), s; not before the curve begins, where the job has GPUs.
        end: Float array (k,), s.

    Returns:
        Float array (k,), s; exactly 0 where the equal part was never smaller than the job.
    """
    time, rivals = curve
    found = np.zeros(len(rows))
    if len(time) == 0:
        return found
    at = [np.maximum(np.searchsorted(time, when, side="right") - 1, 0) for when in (start, end)]
    gap = np.diff(time, append=time[-1])
    most = rivals.max()
    kinds, kind = np.unique(outcome.num_gpus[rows], return_inverse=True)
    for index, gpus in enumerate(kinds.tolist()):
        part = gpus / outcome.cluster.num_gpus
        if not part * most > 1:
            continue  # its part never was smaller than the job
        excess = np.maximum(1.0, rivals * part) - 1.0
        area = np.append(0.0, np.cumsum(excess * gap)[:-1])
        mine = np.flatnonzero(kind == index)
        begun, stopped = (
            area[place[mine]] + excess[place[mine]] * (when[mine] - time[place[mine]])
            for place, when in zip(at, (start, end), strict=True)
        )
        found[mine] = stopped - begun
    return found
