"""What holds for every run, whatever policy, placement or engine made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import quote
from windtunnel.sim.flight import (
    FAILED,
    FINISHED,
    NOT_SUBMITTED,
    REJECTED,
    RUNNING,
    STATUS_NAMES,
    WAITING,
)

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

#: Seconds, and GPUs, that rounding may take.
_SLACK = 1e-6


def check_outcome(outcome: Outcome) -> None:
    """Assert that a run keeps to what holds for every run.

    Every job is accounted for: finished, running, waiting, failed, not submitted, or rejected with
    a reason. None starts before it is submitted; its stays follow each other and last as long as
    its run time says; what finished did all its work. A stay has the GPUs that its job asked for,
    and at no instant are more GPUs held than the cluster, or a node, has.

    Args:
        outcome: any run.

    Raises:
        AssertionError: it does not; the message names the job or node, the instant and what is
            wrong.

    >>> import windtunnel as wt
    >>> jobs = {"submit_time": [0, 1], "duration": [5, 5], "num_gpus": [1, 1]}
    >>> check_outcome(wt.simulate(jobs, "pool:1", "srtf"))
    """
    _check_status(outcome)
    _check_stays(outcome)
    _check_work(outcome)
    _check_gangs(outcome)
    _check_capacity(outcome)


def _check_status(outcome: Outcome) -> None:
    flight = outcome.flight
    status, start, end = flight.status, flight.start, flight.end
    _none(outcome, (status < 0) | (status >= len(STATUS_NAMES)), "has no known status")
    over = np.isin(status, (FINISHED, FAILED))
    _none(outcome, over & np.isnan(end), "is over and has no end")
    _none(outcome, ~over & ~np.isnan(end), "is not over and has an end")
    _none(outcome, (status == FINISHED) & np.isnan(start), "finished and never started")
    _none(outcome, (status == RUNNING) & np.isnan(start), "runs and never started")
    never = np.isin(status, (NOT_SUBMITTED, REJECTED))
    _none(outcome, never & ~np.isnan(start), "was never in the queue and started")
    unexplained = [row for row in np.flatnonzero(status == REJECTED) if row not in outcome.reasons]
    if unexplained:
        raise AssertionError(f"{_job(outcome, int(unexplained[0]))} is rejected without a reason")
    early = start < outcome.submit_time - _SLACK
    _none(outcome, early, "starts before it is submitted", start)
    _none(outcome, end < start - _SLACK, "ends before it starts", end)
    _none(outcome, (flight.preemptions > 0) & (status == WAITING) & np.isnan(start), "was stopped")


def _check_stays(outcome: Outcome) -> None:
    """Check that stays follow each other, and are what start, end and run time say."""
    flight = outcome.flight
    job, begin, end = flight.segment_job, flight.segment_start, flight.segment_end
    until = outcome.settings.get("until")
    horizon = np.inf if until is None else float(until)
    last = np.where(np.isnan(end), horizon, end)
    _none_of(outcome, job, begin > last + _SLACK, "a stay ends before it begins", begin)
    order = np.lexsort((last, begin, job))
    same = job[order][1:] == job[order][:-1]
    overlap = same & (begin[order][1:] < last[order][:-1] - _SLACK)
    _none_of(outcome, job[order][1:], overlap, "two stays overlap", begin[order][1:])
    first = np.full(len(flight.start), np.inf)
    np.minimum.at(first, job, begin)
    started = ~np.isnan(flight.start)
    wrong = np.isinf(first) == started
    wrong[started] |= np.abs(first[started] - flight.start[started]) > _SLACK
    _none(outcome, wrong, "does not start with its first stay", flight.start)
    if np.isfinite(last).all():
        held = np.bincount(job, last - begin, minlength=len(flight.start))
        slack = _SLACK * np.maximum(1.0, held)
        _none(outcome, np.abs(held - flight.run_time) > slack, "stays differ from run time", held)


def _check_work(outcome: Outcome) -> None:
    """Check that what finished did all its work, where a second on GPUs is a second of work."""
    flight = outcome.flight
    changes = (flight.slowdown_time, flight.stretches, flight.gpu_time, flight.power)
    if any(one is not None for one in changes) or outcome.settings.get("compat") is not None:
        return
    duration = np.asarray(outcome.jobs["duration"].to_numpy(zero_copy_only=False), dtype=float)
    short = (flight.status == FINISHED) & (flight.run_time < duration * (1 - _SLACK) - _SLACK)
    if not _has_rates(outcome):
        _none(outcome, short, "finished before its work was done", flight.run_time)


def _has_rates(outcome: Outcome) -> bool:
    """Return whether the policy may have let jobs run at rates of its own."""
    return outcome.settings.get("queueing") == "policy"


def _check_gangs(outcome: Outcome) -> None:
    """Check that a stay's nodes have, together, the GPUs that it holds."""
    flight = outcome.flight
    if not len(flight.nodes):
        return
    stays = len(flight.segment_job)
    of = np.repeat(np.arange(stays), np.diff(flight.node_offset))
    given = np.bincount(of, flight.node_gpus.astype(float), minlength=stays)
    wrong = np.abs(given - outcome.segment_gpus) > _SLACK * np.maximum(1.0, outcome.segment_gpus)
    _none_of(outcome, flight.segment_job, wrong, "a stay has other GPUs than it holds", given)


def _check_capacity(outcome: Outcome) -> None:
    """Check that at no instant more GPUs are held than there are, in all and on each node."""
    flight = outcome.flight
    if flight.gpu_time is not None:  # jobs on the same GPUs hold them together
        return
    end = np.where(np.isnan(flight.segment_end), np.inf, flight.segment_end)
    stays = flight.segment_start, end
    whole = np.zeros(len(end), dtype=np.int64)
    size = np.array([float(outcome.cluster.num_gpus)])
    _check_held("the cluster", whole, stays, outcome.segment_gpus, size)
    if not len(flight.nodes):
        return
    of = np.repeat(np.arange(len(end)), np.diff(flight.node_offset))
    kinds = outcome.cluster.node_types
    sizes = np.repeat([float(k.gpus) for k in kinds], [k.count for k in kinds])
    times = stays[0][of], stays[1][of]
    _check_held("node", flight.nodes, times, flight.node_gpus.astype(float), sizes)


def _check_held(
    what: str,
    place: np.ndarray,
    stays: tuple[np.ndarray, np.ndarray],
    gpus: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Check what is held in each place over time; ends come before starts of the same instant."""
    place = np.concatenate([place, place])
    time = np.concatenate(stays)
    change = np.concatenate([gpus, -gpus])
    order = np.lexsort((change > 0, time, place))
    place, time = place[order], time[order]
    held = np.cumsum(change[order])  # every place is back at 0 where the next one begins
    over = held > sizes[place] + _SLACK * np.maximum(1.0, sizes[place])
    if over.any():
        at = int(np.flatnonzero(over)[0])
        name = what if len(sizes) == 1 and what != "node" else f"{what} {place[at]}"
        raise AssertionError(
            f"{name} has {sizes[place[at]]:g} GPUs, and {held[at]:g} are held at t={time[at]:g} s"
        )


def _none(outcome: Outcome, wrong: np.ndarray, what: str, values: np.ndarray | None = None) -> None:
    _none_of(outcome, np.arange(len(wrong)), wrong, what, values)


def _none_of(
    outcome: Outcome,
    rows: np.ndarray,
    wrong: np.ndarray,
    what: str,
    values: np.ndarray | None = None,
) -> None:
    """Raise an error that names the first of the jobs for which something is wrong."""
    found = np.flatnonzero(wrong)
    if len(found):
        value = "" if values is None else f": {values[found[0]]:g}"
        count = f" ({len(found):,} such)" if len(found) > 1 else ""
        raise AssertionError(f"{_job(outcome, int(rows[found[0]]))} {what}{value}{count}")


def _job(outcome: Outcome, row: int) -> str:
    return f"job {quote(outcome.jobs['job_id'][row].as_py())} (row {row})"
