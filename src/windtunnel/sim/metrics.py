"""Metrics of a run: pure functions from an outcome to numbers and small tables.

Definitions: ``wait`` = first start - submit; ``jct`` = end - submit; bounded slowdown =
max(1, jct / max(run time, 10 s)) (Feitelson, JSSPP'01, tau = 10 s); ``makespan`` = last end, time 0
being the trace's epoch (the horizon, where one cuts the run); utilisation = GPU-seconds held /
(GPUs x (last end - first submit)); where GPUs go down, GPU-seconds that were up in that time.
Averages are over finished jobs for jct and slowdown, over started jobs for wait.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.elastic import measures as elastic
from windtunnel.sim.flight import (
    FAILED,
    FINISHED,
    NOT_SUBMITTED,
    REJECTED,
    RUNNING,
    STATUS_NAMES,
    WAITING,
)
from windtunnel.sim.observe.stability import asked_gpu_time, stability
from windtunnel.sim.timeline import held_over_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.flown import Flown

#: Jobs shorter than this count as this long in the bounded slowdown, seconds.
SLOWDOWN_BOUND = 10.0
#: Upper ends of the job-size classes, GPUs; the last class is open.
SIZE_BOUNDS: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_PERCENTS = (50, 90, 95, 99)
#: What jobs without a name are together under.
NONE = "(none)"


def horizon(outcome: Flown) -> tuple[float, float]:
    """Return (first submit, last instant anything ended) in s; the span of a run's averages."""
    flight = outcome.flight
    flown = flight.status != REJECTED
    if not flown.any():
        return 0.0, 0.0
    first = float(outcome.submit_time[flown].min())
    until = outcome.settings.get("until")
    all_over = np.isin(flight.status[flown], (FINISHED, FAILED)).all()
    if until is not None and not all_over:
        return first, max(first, float(until))
    # The last that ended may be a stay that was cut, of a job that waits for ever.
    ends = flight.end if all_over else flight.segment_end
    ends = ends[~np.isnan(ends)]
    return first, float(ends.max()) if len(ends) else first


def bounded_slowdown(outcome: Flown) -> np.ndarray:
    """Return the bounded slowdown of finished jobs, shape (finished,), jobs-table order."""
    done = outcome.flight.status == FINISHED
    slowdown: np.ndarray = (outcome.flight.end - outcome.submit_time)[done]
    duration = np.asarray(outcome.jobs["duration"].to_numpy(), dtype=np.float64)[done]
    slowdown /= np.maximum(duration, SLOWDOWN_BOUND, out=duration)
    np.maximum(1.0, slowdown, out=slowdown)
    return slowdown


def summary(outcome: Flown) -> dict[str, Any]:
    """Return the run in numbers.

    Keys: ``num_jobs``, ``num_finished``, ``num_running``, ``num_waiting``, ``num_not_submitted``,
    ``num_rejected``, ``num_failed`` (ended by a failure); for each of wait, jct (s) and
    bounded_slowdown: ``avg_``, ``p50_``, ``p90_``, ``p95_``, ``p99_``, ``max_``; ``num_waited``
    (jobs with wait > 0); ``makespan`` (s); ``utilization`` (fraction of the cluster's GPU-seconds
    between first submit and last end); ``gpu_time`` (GPU-seconds held); ``num_preemptions``;
    ``avg_preempted_time`` (s a finished job spent waiting after its first start); ``num_failures``,
    ``num_restarts`` and ``lost_gpu_time`` (GPU-seconds of work undone by failures);
    ``scheduling_points``; ``offered_load`` (GPU time that the jobs submitted ask for, over the GPU
    time that was up from the first submission to the last, or to the horizon), ``stability`` and
    ``backlog_drift`` with ``backlog_drift_error`` (`windtunnel.sim.observe.stability`); and, None
    without a model of slow-downs, ``lost_to_slowdown`` (GPU-seconds held, less what resuming cost,
    less work done) and ``avg_rate`` (1 - lost_to_slowdown / gpu_time). None where there is nothing
    to average. With ``compat="pai"`` waits and jcts count once a task, and the makespan is a second
    longer, as in that simulator. With a numeric column ``deadline`` also `deadlines`; of an elastic
    run also `windtunnel.sim.elastic.measures.summary`.

    Of a run with a window (`windtunnel.site.window`) all numbers of jobs, ``gpu_time``
    included, count those inside it; ``utilization`` is that between their first submission and
    their last; ``makespan`` and ``scheduling_points`` are the whole run's.
    """
    flight = outcome.flight
    counted = _members(outcome)
    started = ~np.isnan(flight.start) & counted
    done = (flight.status == FINISHED) & counted
    wait = (flight.start - outcome.submit_time)[started]
    waits = distribution(_counted(wait, outcome, started), "wait")
    num_waited = int((wait > 0).sum())
    del wait  # one column of ten million jobs is 80 MB
    jct = (flight.end - outcome.submit_time)[done]
    jcts = distribution(_counted(jct, outcome, done), "jct")
    preempted_time = _preempted_time(outcome, jct, done)
    del jct
    gpu_time = float(gpu_seconds_held(outcome)[counted].sum())
    return {
        "num_jobs": int(counted.sum()),
        **{
            f"num_{STATUS_NAMES[code]}": int(((flight.status == code) & counted).sum())
            for code in (FINISHED, RUNNING, WAITING, NOT_SUBMITTED, REJECTED, FAILED)
        },
        **jcts,
        **waits,
        **distribution(
            bounded_slowdown(outcome)[counted[flight.status == FINISHED]], "bounded_slowdown"
        ),
        "num_waited": num_waited,
        "makespan": horizon(outcome)[1] + _idle_second(outcome) if done.any() else None,
        "utilization": _utilization(outcome, gpu_time),
        "gpu_time": gpu_time,
        "num_preemptions": int(flight.preemptions[counted].sum()),
        "avg_preempted_time": preempted_time,
        **_interruptions(outcome, counted),
        "scheduling_points": flight.scheduling_points,
        **_settling(outcome),
        **_slowdown(outcome, gpu_time, counted),
        **deadlines(outcome),
        **elastic.summary(outcome, counted),
    }


def _members(outcome: Flown) -> np.ndarray:
    """Return which jobs a run's numbers are of, Bool array (n,): all but where it has a window."""
    if outcome.settings.get("window") is None:
        return np.ones(len(outcome.flight.status), dtype=bool)
    return outcome.counted


def _utilization(outcome: Flown, gpu_time: float) -> float | None:
    """Return the part of the GPU time that was up which was held."""
    first, last = horizon(outcome)
    if outcome.settings.get("window") is not None:
        first, last = outcome.counted_span
        gpu_time = _held_between(outcome, first, last)
    span = gpu_seconds_up(outcome, first, last)
    return gpu_time / span if span > 0 else None


def _held_between(outcome: Flown, first: float, last: float) -> float:
    """Return the GPU-seconds that all jobs held between two instants (s)."""
    stays = np.arange(len(outcome.flight.segment_job))
    _, start, end, gpus = held_over_time(outcome, stays, np.nan_to_num(outcome.segment_gpus))
    held = np.clip(np.where(np.isnan(end), np.inf, end), first, last) - np.clip(start, first, last)
    return float((gpus * held).sum())


def _settling(outcome: Flown) -> dict[str, Any]:
    """Return the load that jobs offer, and whether the queue settles."""
    found = stability(outcome)
    if found is None:
        drift: dict[str, Any] = {"stability": None, "backlog_drift": None}
        return {"offered_load": None, **drift, "backlog_drift_error": None}
    up = gpu_seconds_up(outcome, *outcome.counted_span)
    asked = float(asked_gpu_time(outcome)[outcome.counted & outcome.submitted].sum())
    return {
        "offered_load": asked / up if up > 0 else None,
        "stability": found.verdict,
        "backlog_drift": None if np.isnan(found.drift) else found.drift,
        "backlog_drift_error": None if np.isnan(found.error) else found.error,
    }


def deadlines(outcome: Flown) -> dict[str, float | int | None]:
    """Return how deadlines were met, where the jobs table has the numeric column ``deadline``.

    A deadline is in seconds on the clock of ``submit_time``. It is missed by a job that ends after
    it, that a failure ends, or that has not ended when the run is over; where the run is cut before
    it, it counts for nothing, as do those of rejected jobs.

    Keys: ``num_deadlines`` (jobs that met theirs or missed it), ``num_missed_deadlines``,
    ``slo_attainment`` (share of the deadlines that was met; None without any), ``avg_tardiness`` (s
    by which finished jobs passed theirs, 0 for those in time; None without any). Empty without the
    column.
    """
    if "deadline" not in outcome.jobs.column_names:
        return {}
    try:
        deadline = numeric_column(outcome.jobs, "deadline", "deadlines")
    except SpecError:
        return {}  # a source's own column of this name, which holds something else
    flight = outcome.flight
    done, failed = flight.status == FINISHED, flight.status == FAILED
    until = outcome.settings.get("until")
    known = done | failed | (deadline <= (np.inf if until is None else float(until)))
    concerned = ~np.isnan(deadline) & outcome.counted & known
    missed = ~done | (flight.end > deadline)
    late = np.maximum(0.0, flight.end - deadline)[concerned & done]
    return {
        "num_deadlines": int(concerned.sum()),
        "num_missed_deadlines": int((concerned & missed).sum()),
        "slo_attainment": float((~missed)[concerned].mean()) if concerned.any() else None,
        "avg_tardiness": float(late.mean()) if len(late) else None,
    }


def _slowdown(outcome: Flown, gpu_time: float, of: np.ndarray) -> dict[str, float | None]:
    """Return what slow-downs cost; None without a model of them."""
    if outcome.flight.slowdown_time is None:
        return {"lost_to_slowdown": None, "avg_rate": None}
    lost = float(gpu_seconds_slowed(outcome)[of].sum())
    return {"lost_to_slowdown": lost, "avg_rate": 1 - lost / gpu_time if gpu_time > 0 else None}


def _counted(values: np.ndarray, outcome: Flown, of: np.ndarray) -> np.ndarray:
    """Return the values of some jobs as often as each job counts in averages.

    Args:
        values: one for each of these jobs.
        outcome: the run.
        of: Bool array (n,), which jobs they are.
    """
    if outcome.settings.get("compat") != "pai":
        return values
    tasks = np.asarray(outcome.jobs["num_tasks"].to_numpy(), dtype=np.int64)
    return np.repeat(values, tasks[of])


def _preempted_time(outcome: Flown, jct: np.ndarray, done: np.ndarray) -> float | None:
    """Return the mean time that finished jobs waited after their first starts, s."""
    if not len(jct):
        return None
    flight = outcome.flight
    waited = jct - (flight.start - outcome.submit_time)[done]
    return float((waited - flight.run_time[done]).mean())


def _idle_second(outcome: Flown) -> int:
    """Return the second that the PAI simulator runs on after the last completion."""
    return int(outcome.settings.get("compat") == "pai")


def _interruptions(outcome: Flown, of: np.ndarray) -> dict[str, Any]:
    """Return what disruptions did to the run; zeros where there were none."""
    found = outcome.flight.interruptions
    if found is None:
        return {"num_failures": 0, "num_restarts": 0, "lost_gpu_time": 0.0}
    return {
        "num_failures": int(found.failures[of].sum()),
        "num_restarts": int(found.restarts[of].sum()),
        "lost_gpu_time": float((gpus_of_work(outcome) * found.lost_time)[of].sum()),
    }


def gpu_seconds_up(outcome: Flown, first: float, last: float) -> float:
    """Return GPU-seconds that were up between two instants (s)."""
    found = outcome.flight.interruptions
    if found is None:
        return (last - first) * outcome.cluster.num_gpus
    edges = np.clip(np.append(found.up_time, np.inf), first, last)
    return float((np.diff(edges) * found.up_gpus).sum())


def gpu_seconds_held(outcome: Flown) -> np.ndarray:
    """Return GPU-seconds held by each job, shape (n,); 0 where its GPUs are unknown."""
    if outcome.flight.gpu_time is not None:
        return outcome.flight.gpu_time
    if outcome.flight.stretches is not None:
        return elastic.gpu_seconds_held(outcome)
    held: np.ndarray = np.nan_to_num(outcome.num_gpus)
    held *= outcome.flight.run_time
    return held


def mean_gpus(outcome: Flown) -> np.ndarray:
    """Return the GPUs that each job held in the mean while it ran, shape (n,)."""
    flight = outcome.flight
    gpus: np.ndarray = np.nan_to_num(outcome.num_gpus)
    if flight.gpu_time is not None or flight.stretches is not None:
        held, ran = gpu_seconds_held(outcome), flight.run_time > 0
        np.divide(held, flight.run_time, out=gpus, where=ran)
    return gpus


def gpus_of_work(outcome: Flown) -> np.ndarray:
    """Return how many GPU-seconds a second of each job's work is, shape (n,).

    Work of an elastic job is counted in seconds of the option that it asked for, on whichever it
    runs; that of others in seconds on what they hold.
    """
    if outcome.flight.stretches is None:
        return mean_gpus(outcome)
    asked: np.ndarray = np.nan_to_num(outcome.num_gpus)
    return asked


def gpu_seconds_slowed(outcome: Flown) -> np.ndarray:
    """Return the GPU-seconds that each job held, less what resuming cost, less its work, (n,).

    Of an elastic job they are also what its options are worse than the one it asked for; negative
    where they make more of a GPU. 0 where no rates differ.
    """
    flight = outcome.flight
    slowed = flight.slowdown_time
    if slowed is None:
        return np.zeros(len(flight.run_time))
    if flight.stretches is None:
        slowed_by_gpus: np.ndarray = mean_gpus(outcome) * slowed
        return slowed_by_gpus
    found = flight.interruptions
    paid = elastic.penalty_time(outcome) if found is None else found.overhead_time
    work = np.nan_to_num(outcome.num_gpus) * (flight.run_time - paid - slowed)
    left: np.ndarray = gpu_seconds_held(outcome) - mean_gpus(outcome) * paid - work
    return left


def distribution(values: np.ndarray, name: str) -> dict[str, float | None]:
    """Return mean, percentiles and maximum of ``values`` under ``avg_name``, ``p50_name`` ..."""
    if len(values) == 0:
        keys = ["avg", *(f"p{p}" for p in _PERCENTS), "max"]
        return {f"{key}_{name}": None for key in keys}
    points = quantiles(values, [p / 100 for p in _PERCENTS])
    return {
        f"avg_{name}": float(values.mean()),
        **{f"p{p}_{name}": float(v) for p, v in zip(_PERCENTS, points, strict=True)},
        f"max_{name}": float(values.max()),
    }


def size_classes(num_gpus: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return each job's size class and the classes' labels in order of size.

    Args:
        num_gpus: Float array of shape (n,), GPUs.

    Returns:
        Int array of shape (n,) of indices into the labels (``"<1"``, ``"1"``, ``"2"``, ``"3-4"``,
        ``"5-8"`` ...), which cover all classes, empty ones included; 0 GPUs are labelled ``"CPU"``,
        an unknown number ``"unknown"``.
    """
    labels = ["CPU", "<1", "1"]
    for low, high in itertools.pairwise(SIZE_BOUNDS):
        labels.append(str(high) if high == low + 1 else f"{low + 1}-{high}")
    labels += [f">{SIZE_BOUNDS[-1]}", "unknown"]
    classes = np.searchsorted(SIZE_BOUNDS, num_gpus, side="left") + 2
    classes = np.where(num_gpus == 0, 0, np.where(num_gpus < 1, 1, classes))
    classes = np.where(np.isnan(num_gpus), len(labels) - 1, classes)
    return classes, labels


def by_size(outcome: Flown) -> pa.Table:
    """Return one row a size class that has jobs, smallest first.

    Columns: ``size`` (GPUs, text), ``num_jobs``, ``num_started``, ``avg_wait``, ``p50_wait``,
    ``p90_wait``, ``p99_wait``, ``max_wait``, ``avg_jct``, ``p90_jct`` (s; null where none),
    ``gpu_time`` (GPU-seconds held). A policy that starves big gangs shows here.
    """
    return _grouped(outcome, "size", *size_classes(outcome.num_gpus))


def by_vc(outcome: Flown) -> pa.Table:
    """Return one row a virtual cluster, by name, with the columns of `by_size` (``vc`` for size).

    Jobs without a vc are together under ``"(none)"``.
    """
    return _grouped(outcome, "vc", *named_groups(outcome.jobs["vc"]))


def named_groups(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Return each job's group by a column of text, and the names of the groups, in order.

    Jobs without a name are together under `NONE`.

    Returns:
        Int array (n,) of indices into the names.
    """
    names = column.fill_null(NONE).combine_chunks().dictionary_encode()
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    labels = names.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels))
    codes = place[names.indices.to_numpy(zero_copy_only=False)]
    return codes, [labels[index] for index in order]


def members_of(
    codes: np.ndarray, labels: list[str], rows: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the label and the members of each group that has any, in order of the labels.

    Args:
        codes: Int array (n,), each job's index into the labels.
        labels: of the groups.
        rows: Int array (k,), ascending: the jobs that count.
    """
    order = rows[np.argsort(codes[rows], kind="stable")]
    bounds = np.searchsorted(codes[order], np.arange(len(labels) + 1))
    for code, label in enumerate(labels):
        members = order[bounds[code] : bounds[code + 1]]
        if len(members):
            yield label, members


#: Columns of numbers in the tables of groups.
_OF_GROUPS: tuple[str, ...] = (
    *("avg_wait", "p50_wait", "p90_wait", "p99_wait", "max_wait"),
    *("avg_jct", "p90_jct", "gpu_time"),
)


def _grouped(outcome: Flown, name: str, codes: np.ndarray, labels: list[str]) -> pa.Table:
    flight = outcome.flight
    wait = flight.start - outcome.submit_time
    jct = np.where(flight.status == FINISHED, flight.end - outcome.submit_time, np.nan)
    held = gpu_seconds_held(outcome)
    counted = np.flatnonzero(_members(outcome))
    rows = []
    for label, members in members_of(codes, labels, counted):
        waits = wait[members][~np.isnan(wait[members])]
        jcts = jct[members][~np.isnan(jct[members])]
        found = distribution(waits, "wait") | distribution(jcts, "jct")
        found["gpu_time"] = float(held[members].sum())
        counts = {"num_jobs": len(members), "num_started": len(waits)}
        rows.append({name: label, **counts, **{column: found[column] for column in _OF_GROUPS}})
    fields = [(name, pa.string()), ("num_jobs", pa.int64()), ("num_started", pa.int64())]
    fields += [(column, pa.float64()) for column in _OF_GROUPS]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
