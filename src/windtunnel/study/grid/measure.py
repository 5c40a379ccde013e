"""What a study keeps of a run: one row, with waits by size, user and week inside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.predictors.features import numbers
from windtunnel.sim.flight import FINISHED, REJECTED
from windtunnel.sim.metrics import SLOWDOWN_BOUND, size_classes
from windtunnel.sim.observe import goodput
from windtunnel.sim.observe.groups import job_groups
from windtunnel.study.big_jobs import big_jobs, big_measures

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome
    from windtunnel.study.grid.plan import Run

#: Seconds of a week; weeks count from the trace's first submission.
WEEK = 7 * 86_400.0
#: How the jobs of a run are grouped.
GROUPS: tuple[str, ...] = ("sizes", "users", "weeks")
#: Status of a run: it gave a result, or an error.
OK, FAILED = "ok", "failed"

_SPREAD = ("avg", "p50", "p90", "p95", "p99", "max")
_INTEGERS = (
    *("num_jobs", "num_finished", "num_running", "num_waiting", "num_not_submitted"),
    *("num_rejected", "num_failed", "num_waited", "num_preemptions", "num_failures"),
    *("num_restarts", "scheduling_points", "num_deadlines", "num_missed_deadlines"),
    *("big_num_jobs", "big_max_overtaken"),
    *("num_reconfigurations", "max_reconfigurations", "num_guaranteed"),
)
_FLOATS = (
    *(f"{part}_{name}" for name in ("jct", "wait", "bounded_slowdown") for part in _SPREAD),
    *("makespan", "utilization", "gpu_time", "avg_preempted_time", "lost_gpu_time"),
    *("lost_to_slowdown", "avg_rate", "avg_tardiness", "slo_attainment", "jain_user", "jain_vc"),
    *("reconfigurations_per_job", "penalty_time", "penalty_gpu_time", "useful_gpu_time"),
    *("useful_share", "promises_kept_running", "promises_kept_active"),
    *("big_avg_wait", "big_p99_wait", "big_max_wait", "big_avg_overtaken"),
    *("offered_load", "backlog_drift", "backlog_drift_error"),
    *("energy_j", "carbon_kg", "cost"),
    *goodput.KEYS,
)
#: Every metric of a run; null where it does not apply.
METRICS: tuple[str, ...] = (*_INTEGERS, *_FLOATS)
#: Metrics of which more is better; of the others less is.
HIGHER_IS_BETTER = frozenset(
    {
        *("num_finished", "utilization", "avg_rate", "jain_user", "jain_vc", "gpu_time"),
        *("goodput", "ettr", "ettr_low", "ettr_high", "mttf", "mttf_low", "mttf_high"),
        *("slo_attainment", "useful_share", "promises_kept_running", "promises_kept_active"),
    }
)

#: Columns that say in words what was flown.
_WORDS = ("run_id", "trace", "cluster", "policy", "queueing", "placement")
_GROUP = pa.struct(
    [
        ("group", pa.string()),
        *((name, pa.int64()) for name in ("num_jobs", "num_started", "num_finished")),
        *((name, pa.float64()) for name in ("wait", "jct", "bounded_slowdown")),
    ]
)
#: Columns of results: what was flown, how it went, the metrics (units as in
#: `windtunnel.sim.metrics.summary`), and the jobs by group: numbers of jobs, and sums over those
#: that started (wait, s) or finished (jct, s; bounded_slowdown); and metrics of the user's own.
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _WORDS),
        ("load", pa.float64()),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("parameters", "status", "error", "settings")),
        ("notes", pa.list_(pa.string())),
        ("stability", pa.string()),
        *((name, pa.int64()) for name in _INTEGERS),
        *((name, pa.float64()) for name in _FLOATS),
        *((name, pa.list_(_GROUP)) for name in GROUPS),
        ("own", pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64())]))),
    ]
)


def run_columns(run: Run) -> dict[str, Any]:
    """Return the columns that say what was flown."""
    found = {name: getattr(run, name) for name in (*_WORDS, "load", "seed")}
    return {**found, "parameters": json.dumps(run.parameters, sort_keys=True)}


def measured(run: Run, outcome: Outcome, recorded: np.ndarray, energy: dict[str, Any]) -> pa.Table:
    """Return a run's row, in `SCHEMA`.

    Args:
        run: what was flown.
        outcome: what came of it.
        recorded: Float array of shape (n,), submissions before any stretching, s: weeks are those
            of the record, so that they pair over loads.
        energy: ``energy_j``, ``carbon_kg`` and ``cost``, where they were accounted for.
    """
    flown, counted = outcome.flight.status != REJECTED, outcome.counted
    row: dict[str, Any] = {
        **run_columns(run),
        "status": OK,
        "settings": json.dumps(outcome.settings, sort_keys=True, default=str),
        "notes": list(outcome.notes),
        **{name: value for name, value in outcome.metrics().items() if name not in outcome.own},
        "own": [{"name": name, "value": value} for name, value in outcome.own.items()],
        **{name: energy[name] for name in ("energy_j", "carbon_kg", "cost") if name in energy},
    }
    if counted.any():
        row |= big_measures(outcome, big_jobs(outcome.num_gpus, counted))
    weeks = np.floor((recorded - np.nanmin(recorded[flown], initial=np.inf)) / WEEK)
    known = np.where(flown & ~np.isnan(weeks), weeks, 0).astype(np.int64)
    row["sizes"] = _groups(outcome, *size_classes(outcome.num_gpus))
    row["users"] = _groups(outcome, *job_groups(outcome, "user"))
    row["weeks"] = _groups(outcome, known, [str(w) for w in range(int(known.max()) + 1)])
    return as_row(row)


def failed(run: Run, error: str) -> pa.Table:
    """Return the row of a run that gave an error instead of a result."""
    return as_row({**run_columns(run), "status": FAILED, "error": error})


def as_row(row: dict[str, Any]) -> pa.Table:
    """Return a table of one row in `SCHEMA`; columns that are not there are null.

    Raises:
        KeyError: the row has a column that the schema lacks.
    """
    for name in row:
        SCHEMA.field(name)
    return pa.Table.from_pylist([row], schema=SCHEMA)


def _groups(outcome: Outcome, codes: np.ndarray, labels: list[str]) -> list[dict[str, Any]]:
    """Return the groups that have jobs that the run is measured by, in order of their labels."""
    flight, counted = outcome.flight, outcome.counted
    wait = flight.start - outcome.submit_time
    jct = flight.end - outcome.submit_time
    duration = numbers(outcome.jobs, "duration")
    slowdown = np.maximum(1.0, jct / np.maximum(duration, SLOWDOWN_BOUND))
    started, finished = counted & ~np.isnan(wait), counted & (flight.status == FINISHED)

    def summed(which: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        weights = None if values is None else values[which]
        sums: np.ndarray = np.bincount(codes[which], weights, minlength=len(labels))
        return sums

    sums = {
        "num_jobs": summed(counted),
        "num_started": summed(started),
        "num_finished": summed(finished),
        "wait": summed(started, wait),
        "jct": summed(finished, jct),
        "bounded_slowdown": summed(finished, slowdown),
    }
    return [
        {"group": labels[code], **{name: values[code].item() for name, values in sums.items()}}
        for code in np.flatnonzero(sums["num_jobs"])
    ]
