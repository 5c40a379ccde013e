"""When the jobs of a run held GPUs, waited for them, and were taken off them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.flight import NOT_SUBMITTED, REJECTED
from windtunnel.sim.metrics import horizon

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome


def stay_times(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return when stays began and ended, s, shape (s,) each; what goes on ends at the horizon."""
    flight = outcome.flight
    end = flight.segment_end
    goes_on = np.isnan(end)
    if not goes_on.any():
        return flight.segment_start, end
    until = max(horizon(outcome)[1], float(flight.segment_start.max(initial=-np.inf)))
    return flight.segment_start, np.where(goes_on, until, end)


def waits(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each time that a job waited: its row, from when, and until when (s), shape (w,).

    A job waits from its submission, or from when it was taken off its GPUs, to its next start; to
    the horizon where there is none. Waits of no length are left out.
    """
    flight = outcome.flight
    order = np.argsort(flight.segment_job, kind="stable")
    job = flight.segment_job[order]
    fresh = np.append(True, job[1:] != job[:-1]) if len(job) else np.empty(0, dtype=bool)
    ended = flight.segment_end[order]
    since = np.where(fresh, outcome.submit_time[job], np.roll(ended, 1))
    row, until = [job], [flight.segment_start[order]]
    begin = [since]
    known = np.flatnonzero((flight.status != REJECTED) & (flight.status != NOT_SUBMITTED))
    latest = outcome.submit_time.copy()
    latest[job] = ended  # a job's last stay is written last; NaN = it runs on
    left = known[np.isnan(flight.end[known]) & ~np.isnan(latest[known])]
    row.append(left)
    begin.append(latest[left])
    until.append(np.full(len(left), horizon(outcome)[1]))
    rows, begins, ends = (np.concatenate(parts) for parts in (row, begin, until))
    real = ends > begins
    return rows[real], begins[real], ends[real]


def cut_short(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return the stays that ended before their job was over, and when (s)."""
    flight = outcome.flight
    last = np.full(len(outcome.jobs), -1, dtype=np.int64)
    last[flight.segment_job] = np.arange(len(flight.segment_job))
    ended = ~np.isnan(flight.segment_end)
    final = np.zeros(len(ended), dtype=bool)
    final[last[(last >= 0) & ~np.isnan(flight.end)]] = True
    stays = np.flatnonzero(ended & ~final)
    return stays, flight.segment_end[stays]
