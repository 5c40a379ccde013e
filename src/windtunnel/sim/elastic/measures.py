"""What an elastic run costs and keeps: reconfigurations, GPU time held and useful, promises.

A *reconfiguration* is any change of a job's nodes, GPUs, cores or plan after its first launch:
each of a job's stays but the first. A guaranteed job's promise is the throughput of the option that
its user asked for. It is *kept while running* if the job's iterations over its time on GPUs,
launches left out, come to the promise; *kept while active* if they do over its time from submission
to end, the waits and launches counted (Morphling's "average throughput while active").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.quantiles import quantiles
from windtunnel.sim.flight import FINISHED

if TYPE_CHECKING:
    from windtunnel.sim.elastic.stretches import Stretches
    from windtunnel.sim.flown import Flown

#: Throughputs that agree to this part are the same: they are quotients of sums of seconds.
_SAME = 1e-9


def held(outcome: Flown) -> np.ndarray:
    """Return the seconds of each stay, up to the horizon, shape (s,)."""
    flight = outcome.flight
    until = outcome.settings.get("until")
    last = np.inf if until is None else float(until)
    ends = np.where(np.isnan(flight.segment_end), last, flight.segment_end)
    seconds: np.ndarray = ends - flight.segment_start
    return seconds


def gpu_seconds_held(outcome: Flown) -> np.ndarray:
    """Return the GPU-seconds that each job of an elastic run held, shape (n,)."""
    return _by_job(outcome, held(outcome) * _stretches(outcome).gpus)


def cpu_seconds_held(outcome: Flown) -> np.ndarray:
    """Return the core-seconds that each job of an elastic run held, shape (n,)."""
    return _by_job(outcome, held(outcome) * _stretches(outcome).cpus)


def gpu_seconds_useful(outcome: Flown) -> np.ndarray:
    """Return those in which it made progress, shape (n,)."""
    found = _stretches(outcome)
    return _by_job(outcome, (held(outcome) - found.penalty_time) * found.gpus)


def reconfigurations(outcome: Flown) -> np.ndarray:
    """Return how often each job was reconfigured, Int array (n,)."""
    stays = np.bincount(outcome.flight.segment_job, minlength=len(outcome.jobs))
    changes: np.ndarray = np.maximum(stays - 1, 0)
    return changes


def penalty_time(outcome: Flown) -> np.ndarray:
    """Return the seconds that each job spent launching, the first launch too, shape (n,)."""
    return _by_job(outcome, _stretches(outcome).penalty_time)


def promises_kept(outcome: Flown, *, active: bool) -> np.ndarray:
    """Return which jobs were at least as fast as promised, Bool array (n,); finished jobs only.

    Args:
        outcome: an elastic run.
        active: count from submission to end; else the time on GPUs without launches.
    """
    found, flight = _stretches(outcome), outcome.flight
    if active:
        seconds = flight.end - outcome.submit_time
    else:
        seconds = flight.run_time - penalty_time(outcome)
    fast = found.iterations_done >= found.promise * seconds * (1 - _SAME)
    kept: np.ndarray = fast & (flight.status == FINISHED)
    return kept


def summary(outcome: Flown, of: np.ndarray) -> dict[str, Any]:
    """Return what an elastic run was to some of its jobs (bool array (n,)); empty for others.

    Keys: ``num_reconfigurations``, ``reconfigurations_per_job``, ``max_reconfigurations`` (of one
    job), ``penalty_time`` (s of launches, all jobs), ``penalty_gpu_time`` and ``useful_gpu_time``
    (GPU-seconds; with the first the latter is ``gpu_time``), ``useful_share`` (the second over
    the sum), ``num_guaranteed``, ``promises_kept_running`` and
    ``promises_kept_active`` (shares of the guaranteed jobs that finished; None without any).
    """
    if outcome.flight.stretches is None:
        return {}
    changes = reconfigurations(outcome)[of]
    total, useful = gpu_seconds_held(outcome)[of].sum(), gpu_seconds_useful(outcome)[of].sum()
    finished = outcome.flight.status == FINISHED
    promised = outcome.flight.stretches.guaranteed & of
    count = int((promised & finished).sum())
    running = promises_kept(outcome, active=False)[promised].sum()
    active = promises_kept(outcome, active=True)[promised].sum()
    return {
        "num_reconfigurations": int(changes.sum()),
        "reconfigurations_per_job": float(changes.mean()) if len(changes) else None,
        "max_reconfigurations": int(changes.max(initial=0)),
        "penalty_time": float(penalty_time(outcome)[of].sum()),
        "penalty_gpu_time": float(total - useful),
        "useful_gpu_time": float(useful),
        "useful_share": float(useful / total) if total > 0 else None,
        "num_guaranteed": int(promised.sum()),
        "promises_kept_running": float(running / count) if count else None,
        "promises_kept_active": float(active / count) if count else None,
    }


def by_class(outcome: Flown) -> pa.Table:
    """Return one row a class, guaranteed and best-effort jobs, then all.

    Columns: ``class``, ``num_jobs``, ``num_finished``, ``avg_wait``, ``avg_jct``, ``p50_jct``,
    ``p90_jct``, ``p99_jct``, ``last_end`` (s; null without finished jobs), ``reconfigurations``,
    ``gpu_time``, ``useful_gpu_time`` (GPU-seconds).

    Raises:
        ValueError: the run is not elastic.
    """
    promised = _stretches(outcome).guaranteed
    groups = {"guaranteed": promised, "best-effort": ~promised, "all": np.ones_like(promised)}
    flight = outcome.flight
    jct, wait = flight.end - outcome.submit_time, flight.start - outcome.submit_time
    changes = reconfigurations(outcome)
    total, useful = gpu_seconds_held(outcome), gpu_seconds_useful(outcome)
    rows = []
    for label, members in groups.items():
        if not members.any():
            continue
        done = members & (flight.status == FINISHED)
        waits = wait[members & ~np.isnan(wait)]
        row: dict[str, Any] = {"num_jobs": int(members.sum()), "num_finished": int(done.sum())}
        row["avg_wait"] = float(waits.mean()) if len(waits) else None
        row["avg_jct"] = float(jct[done].mean()) if done.any() else None
        points = quantiles(jct[done], [0.5, 0.9, 0.99]) if done.any() else (None,) * 3
        for key, value in zip(("p50_jct", "p90_jct", "p99_jct"), points, strict=True):
            row[key] = None if value is None else float(value)
        row["last_end"] = float(flight.end[done].max()) if done.any() else None
        row["reconfigurations"] = int(changes[members].sum())
        row["gpu_time"] = float(total[members].sum())
        row["useful_gpu_time"] = float(useful[members].sum())
        rows.append({"class": label, **row})
    return pa.Table.from_pylist(rows)


def _stretches(outcome: Flown) -> Stretches:
    if outcome.flight.stretches is None:
        raise ValueError("the run is not elastic: its policy resizes no jobs")
    return outcome.flight.stretches


def _by_job(outcome: Flown, of_stays: np.ndarray) -> np.ndarray:
    sums: np.ndarray = np.bincount(
        outcome.flight.segment_job, weights=of_stays, minlength=len(outcome.jobs)
    )
    return sums
