"""Goodput: how much of the GPU time that jobs held made progress, and where the rest went.

In the words of ml-goodput-measurement (goodput and badput by cause). Of the GPU time held

    productive + initialization + checkpoint + restart + lost_work + slowdown = 1.

*Initialization* is a job's first startup (of an elastic job, its first launch), *checkpoint* the
writing of checkpoints, *restart* what going on costs after a failure, an outage or a preemption,
*lost_work* work that a failure undid, *slowdown* what slow-downs cost. Work that a running job has
not secured yet is productive. Of elastic jobs work is that of the option asked for, on its GPUs, so
that *slowdown* is also what other options lose, or gain, on each GPU. *Waiting for replacement* is
the GPU time that stopped jobs asked for and did not hold until they went on; it is no part of that
sum.

The *effective training time ratio* (ETTR; Kokolis et al., HPCA'25) is the productive time of jobs
over the time from their submission to their end, or to the end of the run, waits included, each job
counted with its GPUs. The *mean time to failure* (MTTF) is the time that jobs ran over the number
of failures that stopped them. Intervals are 95 %: of ETTR by the variance of a ratio of sums over
jobs, of MTTF by Garwood's exact bounds of a Poisson count.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.poisson import interval
from windtunnel.sim.flight import FAILED
from windtunnel.sim.metrics import (
    gpu_seconds_held,
    gpu_seconds_slowed,
    gpus_of_work,
    horizon,
    mean_gpus,
    size_classes,
)

if TYPE_CHECKING:
    from windtunnel.sim.flight import Interruptions
    from windtunnel.sim.flown import Flown

#: Parts of the GPU time held, in order.
PARTS: tuple[str, ...] = (
    *("productive", "initialization", "checkpoint", "restart", "lost_work", "slowdown"),
)
#: Keys of `summary`.
KEYS: tuple[str, ...] = (
    *("goodput", *(f"badput_{part}" for part in PARTS[1:]), "badput_waiting_for_replacement"),
    *("ettr", "ettr_low", "ettr_high", "mttf", "mttf_low", "mttf_high"),
)
_Z = 1.959963984540054


def parts(outcome: Flown) -> dict[str, np.ndarray]:
    """Return each job's GPU-seconds by part (`PARTS`), shape (n,) each; they add up to all held.

    Jobs whose GPUs changed, or were shared, count with the mean of what they held; the work of
    elastic jobs as on the GPUs that they asked for (`windtunnel.sim.metrics.gpus_of_work`).
    """
    found = outcome.flight.interruptions
    if found is None:
        return {}
    gpus, work = mean_gpus(outcome), gpus_of_work(outcome)
    startup = _startup(outcome, found)
    resuming = np.maximum(0.0, found.overhead_time - found.checkpoint_time - startup)
    return {
        "productive": work * found.useful_time,
        "initialization": gpus * startup,
        "checkpoint": gpus * found.checkpoint_time,
        "restart": gpus * resuming,
        "lost_work": work * found.lost_time,
        "slowdown": gpu_seconds_slowed(outcome),
    }


def waited(outcome: Flown) -> np.ndarray:
    """Return how long each stopped job waited until it went on, shape (k,), s, in order of stops.

    Until the end of the run where it never did; 0 where the failure ended the job.
    """
    flight = outcome.flight
    found = flight.interruptions
    if found is None or not len(found.stop_row):
        return np.zeros(0)
    order = np.argsort(flight.segment_job, kind="stable")
    rows, starts, ends = (a[order] for a in (flight.segment_job, flight.segment_start,
                                             flight.segment_end))  # fmt: skip
    firsts = np.searchsorted(rows, found.stop_row)
    lasts = np.searchsorted(rows, found.stop_row, side="right")
    last = horizon(outcome)[1]
    waits = np.zeros(len(firsts))
    #: Job and time -> stops so far: several stays of a job may end at one instant.
    before: Counter[tuple[int, float]] = Counter()
    for k, (low, high) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
        stop = int(found.stop_row[k]), float(found.stop_time[k])
        before[stop] += 1
        at = low + int(np.searchsorted(ends[low:high], stop[1])) + before[stop]
        if at < high:
            waits[k] = starts[at] - found.stop_time[k]
        elif flight.status[found.stop_row[k]] != FAILED:
            waits[k] = max(0.0, last - found.stop_time[k])
    return waits


def _failed(outcome: Flown) -> Interruptions | None:
    """Return what disruptions did; None where nothing was stopped, slow, saved or started up."""
    found = outcome.flight.interruptions
    if found is None:
        return None
    slowed = outcome.flight.slowdown_time
    costs = (found.stop_row + 1, found.startup_cost, found.checkpoint_time, slowed)
    return found if any(cost is not None and cost.any() for cost in costs) else None


def summary(outcome: Flown, of: np.ndarray) -> dict[str, float | None]:
    """Return goodput, badput by cause, ETTR (shares) and MTTF (s) of some jobs (Bool array (n,)).

    Keys: `KEYS`; None of a run that nothing disrupted, and where there is nothing to divide by.
    """
    found = _failed(outcome)
    if found is None:
        return dict.fromkeys(KEYS)
    split = {name: float(values[of].sum()) for name, values in parts(outcome).items()}
    held = sum(split.values())
    waits = np.nan_to_num(outcome.num_gpus)[found.stop_row] * waited(outcome)
    split["waiting_for_replacement"] = float(waits[of[found.stop_row]].sum())
    shares = {name: value / held if held > 0 else None for name, value in split.items()}
    goodput = shares.pop("productive")
    return {
        "goodput": goodput,
        **{f"badput_{name}": value for name, value in shares.items()},
        **_ettr(outcome, of),
        **_mttf(outcome, found, of),
    }


def by_size(outcome: Flown) -> pa.Table:
    """Return one row a size class that has jobs, smallest first; no rows without disruptions.

    Columns: ``size`` (GPUs, text), ``num_jobs``, ``num_failures``, ``gpu_time`` (GPU-s held), and
    the keys of `summary` (nulls where there is nothing to divide by).
    """
    found = _failed(outcome)
    rows: list[dict[str, Any]] = []
    classes, labels = size_classes(outcome.num_gpus)
    for code, label in enumerate(labels if found is not None else ()):
        of = (classes == code) & outcome.counted
        if found is None or not of.any():
            continue
        held = float(gpu_seconds_held(outcome)[of].sum())
        failures = int(found.failures[of].sum())
        row = {"size": label, "num_jobs": int(of.sum()), "num_failures": failures}
        rows.append({**row, "gpu_time": held, **summary(outcome, of)})
    counts = [(name, pa.int64()) for name in ("num_jobs", "num_failures")]
    floats = [(name, pa.float64()) for name in ("gpu_time", *KEYS)]
    return pa.Table.from_pylist(rows, schema=pa.schema([("size", pa.string()), *counts, *floats]))


def by_cause(outcome: Flown) -> pa.Table:
    """Return what each cause cost the counted jobs, most GPU time first.

    Columns: ``cause``, ``num_stops`` (jobs stopped), ``lost_work`` and ``waiting_for_replacement``
    (GPU-s). No rows without disruptions.
    """
    found = outcome.flight.interruptions
    rows: list[dict[str, Any]] = []
    if found is not None:
        counted = outcome.counted[found.stop_row]
        lost = gpus_of_work(outcome)[found.stop_row] * found.stop_lost
        waits = np.nan_to_num(outcome.num_gpus)[found.stop_row] * waited(outcome)
        for place, cause in enumerate(found.causes.tolist()):
            of = counted & (found.stop_cause == place)
            row = {"num_stops": int(of.sum()), "lost_work": float(lost[of].sum())}
            rows.append({"cause": cause, **row, "waiting_for_replacement": float(waits[of].sum())})
    rows = [row for row in rows if row["num_stops"]]
    rows.sort(key=lambda row: -(row["lost_work"] + row["waiting_for_replacement"]))
    floats = [(name, pa.float64()) for name in ("lost_work", "waiting_for_replacement")]
    head = [("cause", pa.string()), ("num_stops", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema([*head, *floats]))


def _startup(outcome: Flown, found: Interruptions) -> np.ndarray:
    """Return the seconds of each job's first startup or launch, shape (n,)."""
    flight = outcome.flight
    rows, at = np.unique(flight.segment_job, return_index=True)
    cost = found.startup_cost[rows]
    if flight.stretches is not None:
        cost += flight.stretches.penalty_time[at]
    ends = np.where(np.isnan(flight.segment_end), horizon(outcome)[1], flight.segment_end)
    startup = np.zeros(len(flight.run_time))
    startup[rows] = np.clip((ends - flight.segment_start)[at], 0.0, cost)
    return startup


def _ettr(outcome: Flown, of: np.ndarray) -> dict[str, float | None]:
    flight = outcome.flight
    assert flight.interruptions is not None  # noqa: S101 - `summary` looked
    asks = np.nan_to_num(outcome.num_gpus)
    of = of & outcome.submitted & (asks > 0)
    end = np.where(np.isnan(flight.end), horizon(outcome)[1], flight.end)
    whole = asks * np.maximum(0.0, end - outcome.submit_time)
    good, whole = (asks * flight.interruptions.useful_time)[of], whole[of]
    total = float(whole.sum())
    if total <= 0:
        return dict.fromkeys(("ettr", "ettr_low", "ettr_high"))
    ratio, count = float(good.sum()) / total, len(whole)
    if count == 1:
        return {"ettr": ratio, "ettr_low": None, "ettr_high": None}
    spread = math.sqrt(count / (count - 1) * float(((good - ratio * whole) ** 2).sum())) / total
    # Jobs may do more in a second than was asked for: on other options, or where a rate is above 1.
    most = 1.0 if ratio <= 1 else math.inf
    low, high = max(0.0, ratio - _Z * spread), min(most, ratio + _Z * spread)
    return {"ettr": ratio, "ettr_low": low, "ettr_high": high}


def _mttf(outcome: Flown, found: Interruptions, of: np.ndarray) -> dict[str, float | None]:
    ran = float(outcome.flight.run_time[of].sum())
    count = int(found.failures[of].sum())
    low, high = interval(count)
    return {
        "mttf": ran / count if count else None,
        "mttf_low": ran / high,
        "mttf_high": ran / low if low > 0 else None,
    }
