"""The jobs of Seren and Kalos: workload first, then GPUs, run time and wait.

Streams: every subject (durations, waits, arrivals, people, states, CPU jobs) has its own child of
the seed, so that a change to one leaves the others as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.schema import conform
from windtunnel.traces.synthetic.arrivals import local_start, submit_times
from windtunnel.traces.synthetic.attributes import (
    cpu_job_cores,
    job_ids,
    statuses,
    templates,
    users,
    virtual_clusters,
)
from windtunnel.traces.synthetic.coupling import durations, joint
from windtunnel.traces.synthetic.knots import bins_from_knots, draw, largest_remainder, onto, settle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.draw_request import DrawRequest
    from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

_GPUS_PER_NODE = 8
_STREAMS = ("duration", "queue", "order", "arrivals", "people", "status", "cpu")
_PRETRAIN = "Pretrain"
_COLUMNS = ("kind", "gpus", "duration", "queue", "cores")


@dataclass(frozen=True)
class _Jobs:
    """Jobs before they have a place in time; every array has shape (jobs,).

    Attributes:
        kind: index of the type in `WorkloadFacts.types`; -1 for CPU jobs.
        gpus: GPUs.
        duration: s.
        queue: s.
        cores: CPU cores.
    """

    kind: NDArray[np.int64]
    gpus: NDArray[np.int64]
    duration: NDArray[np.int64]
    queue: NDArray[np.int64]
    cores: NDArray[np.int64]

    def take(self, order: NDArray[np.int64]) -> _Jobs:
        """Return the jobs in another order."""
        return _Jobs(*(getattr(self, column)[order] for column in _COLUMNS))


def jobs_by_workload(name: str, facts: WorkloadFacts, request: DrawRequest) -> pa.Table:
    """Return the jobs table of a trace, ordered by submit time."""
    streams = request.streams(_STREAMS)
    parts = [_gpu_jobs(facts, request.jobs, streams)]
    gpu_time = int(parts[0].duration @ parts[0].gpus)
    if request.cpu_jobs:
        scaled = request.scaled(facts.trace.cpu_jobs, facts.trace)
        parts.append(_cpu_only_jobs(facts, scaled, streams["cpu"]))
    return _table(name, facts, parts, request.span(facts.trace, gpu_time), streams)


def _gpu_jobs(facts: WorkloadFacts, count: int, streams: dict[str, np.random.Generator]) -> _Jobs:
    """Draw the GPU jobs, in random order."""
    limit = facts.trace.max_duration
    types = facts.types
    per_type = largest_remainder(facts.type_jobs(), count)
    columns = [
        largest_remainder(facts.sizes[t].jobs, int(n)) for t, n in zip(types, per_type, strict=True)
    ]
    wanted = _type_gpu_time(facts, count, columns)
    parts: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    carried = 0
    # Types whose smallest job is large cannot hit their GPU time to the second: first, so that
    # the next type can make up for what they miss and the total is right.
    order = sorted(
        range(len(types)), key=lambda i: (-min(facts.sizes[types[i]].gpus), per_type[i], i)
    )
    for i in order:
        counts = facts.duration_counts(types[i])
        bins = bins_from_knots(counts, int(counts[-1]), first=1, maximum=limit)
        gpus = np.array(facts.sizes[types[i]].gpus, dtype=np.int64)
        seconds = columns[i] * np.array(facts.sizes[types[i]].mean_duration)
        modelled = float(gpus @ seconds)
        if modelled > 0:
            seconds *= wanted[i] / modelled
        table = joint(bins, bins.apportioned(int(per_type[i])), columns[i], gpus, seconds)
        target = wanted[i] + carried
        parts[i] = durations(
            bins, table, gpus, seconds=seconds, gpu_time=target, rng=streams["duration"]
        )
        carried = target - int(parts[i][0] @ parts[i][1])
        if count != facts.trace.gpu_jobs:
            carried = 0  # a small sample misses by more than its neighbour should make up
    kind = np.repeat(np.arange(len(types)), per_type)
    duration = np.concatenate([parts[i][0] for i in range(len(types))])
    gpus = np.concatenate([parts[i][1] for i in range(len(types))])
    queue = _queues(facts, per_type, count, streams["queue"])
    cores = np.maximum(facts.cpus.minimum, facts.cpus.per_gpu * gpus)
    shuffled = streams["order"].permutation(count)
    return _Jobs(kind, gpus, duration, queue, cores).take(shuffled)


def _type_gpu_time(facts: WorkloadFacts, count: int, columns: list[NDArray[np.int64]]) -> list[int]:
    """Return the wanted GPU seconds of each type.

    At the real size the published shares of the published total (types without a share keep their
    modelled GPU time); otherwise each type's real GPU time scaled with its jobs, size by size.
    """
    modelled = {
        t: sum(n * g * m for n, g, m in zip(s.jobs, s.gpus, s.mean_duration, strict=True))
        for t, s in facts.sizes.items()
    }
    listed = facts.trace.gpu_time - sum(
        round(modelled[t]) for t in facts.types if t not in facts.gpu_time_share
    )
    # Rounded shares do not add up to 100: the same correction for each keeps all of them within
    # half a unit of the last published digit, scaling would not.
    excess = (sum(facts.gpu_time_share.values()) - 100.0) / len(facts.gpu_time_share)
    shares = [max(facts.gpu_time_share.get(t, excess) - excess, 0.0) for t in facts.types]
    parts = largest_remainder(shares, listed).tolist()
    real = [
        parts[i] if t in facts.gpu_time_share else round(modelled[t])
        for i, t in enumerate(facts.types)
    ]
    if count == facts.trace.gpu_jobs:
        return real
    scaled = []
    for i, (t, s) in enumerate(facts.sizes.items()):
        mine = float(columns[i] @ (np.array(s.gpus) * np.array(s.mean_duration)))
        scaled.append(round(mine * real[i] / modelled[t]))
    return scaled


def _queues(
    facts: WorkloadFacts, per_type: NDArray[np.int64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the waits of the GPU jobs, type after type, in random order within each, s."""
    values, low, high = [], [], []
    for t, n in zip(facts.types, per_type.tolist(), strict=True):
        bins = bins_from_knots(
            facts.queue_counts(t), facts.queue_jobs(t), first=0, maximum=facts.trace.max_queue
        )
        index = bins.each(n)
        rng.shuffle(index)
        values.append(draw(bins, index, rng))
        low.append(bins.low[index])
        high.append(bins.high[index])
    queue = np.concatenate(values)
    if facts.trace.mean_queue is not None and count == facts.trace.gpu_jobs:
        total = round(facts.trace.mean_queue * count)
        queue = settle(queue, np.concatenate(low), np.concatenate(high), total)
    return queue


def _cpu_only_jobs(facts: WorkloadFacts, count: int, rng: np.random.Generator) -> _Jobs:
    """Draw the jobs without a GPU: exact run-time knots and mean, log-normal waits, modelled cores.

    Above the last knot nothing is known but what the published mean leaves for it.
    """
    cpu = facts.cpu
    bins = bins_from_knots(
        np.array(cpu.duration), facts.trace.cpu_jobs, first=1, maximum=cpu.max_duration
    )
    index = bins.each(count)
    duration = draw(bins, index, rng)
    is_tail = index == len(bins.jobs) - 1
    low, high = (np.where(is_tail, edge[index], duration) for edge in (bins.low, bins.high))
    duration = onto(duration, low, high, round(cpu.mean_duration * count))
    # A log-normal law with this median and mean has sigma^2 = 2 log(mean / median).
    sigma = math.sqrt(2.0 * math.log(cpu.mean_queue / cpu.median_queue))
    waits = np.exp(rng.normal(math.log(cpu.median_queue), sigma, count))
    queue = np.minimum(np.rint(waits), facts.trace.max_queue).astype(np.int64)
    cores = cpu_job_cores(count, rng)
    none = np.zeros(count, dtype=np.int64)
    shuffled = rng.permutation(count)
    return _Jobs(none - 1, none, duration, queue, cores).take(shuffled)


def _table(
    name: str,
    facts: WorkloadFacts,
    parts: list[_Jobs],
    span: int,
    streams: dict[str, np.random.Generator],
) -> pa.Table:
    """Place the jobs in time and return the jobs table, ordered by submit time."""
    rng = streams["arrivals"]
    start = local_start(facts.trace)
    submits = [
        submit_times(start, facts.model, len(part.kind), span, rng)
        for part in parts
        if len(part.kind)
    ]
    submit = np.concatenate(submits)
    order = np.argsort(submit, kind="stable")
    states = [
        statuses(
            facts.status.jobs if part.kind[0] >= 0 else facts.status.cpu_jobs,
            facts.status.gpu_time if part.kind[0] >= 0 else None,
            (part.duration * part.gpus).astype(np.float64),
            streams["status"],
        )
        for part in parts
        if len(part.kind)
    ]
    status = pa.concat_arrays(states).take(pa.array(order))
    jobs = _Jobs(
        *(np.concatenate([getattr(part, column) for part in parts]) for column in _COLUMNS)
    ).take(order)
    submit = submit[order]
    user, user_names = users(facts, len(submit), streams["people"])
    kinds = [*facts.types, "CPU"]  # index -1 is the last
    pretrain = np.array([t == _PRETRAIN for t in kinds])[jobs.kind]
    started = submit + jobs.queue
    priority = np.array([*(facts.model.priority.get(t, 0.0) for t in facts.types), 0.0])
    table = pa.table(
        {
            "job_id": job_ids(f"{name}-", len(submit)),
            "submit_time": submit.astype(np.float64),
            "start_time": started.astype(np.float64),
            "end_time": (started + jobs.duration).astype(np.float64),
            "duration": jobs.duration.astype(np.float64),
            "num_gpus": jobs.gpus.astype(np.float64),
            "num_tasks": np.maximum(-(-jobs.gpus // _GPUS_PER_NODE), 1).astype(np.int32),
            "num_cpus": jobs.cores.astype(np.float64),
            "user": pa.array(user_names).take(pa.array(user)),
            "vc": virtual_clusters(user, pretrain),
            "workload": pa.array([*facts.types, None]).take(pa.array(jobs.kind % len(kinds))),
            "template": templates(
                kinds,
                jobs.kind % len(kinds),
                user,
                user_names,
                gpus=jobs.gpus,
                duration=jobs.duration,
                rng=streams["people"],
            ),
            "status": status,
            "priority": priority[jobs.kind],
        }
    )
    return conform(table, source=f"synthetic:{name}")


def workload_notes(facts: WorkloadFacts, count: int) -> tuple[str, ...]:
    """Return what a reader must know: what is exact, what is modelled."""
    if count == facts.trace.gpu_jobs:
        exact = (
            "Exact for any seed: jobs at every published knot of run time and wait by type, "
            "box plots of GPU counts, number of jobs in each final state."
        )
    else:
        exact = (
            f"Scaled from {facts.trace.gpu_jobs} to {count} GPU jobs: counts by type, knot, GPU "
            "count and final state are nearest whole numbers (largest remainders)."
        )
    priorities = ", ".join(f"{t} {p:g}" for t, p in facts.model.priority.items())
    return (
        "Synthetic: no row is a real job.",
        exact,
        "Fitted: GPU time by type and by GPU count, through the mean run time of each GPU count.",
        (
            "Modelled: values between knots (log-uniform), arrivals, users, virtual clusters, "
            f"templates, priorities ({priorities}: pretraining holds reserved nodes, evaluation "
            "runs on spare ones)."
        ),
        (
            f"No wait is longer than {facts.trace.max_queue} s and no GPU job than "
            f"{facts.trace.max_duration} s."
        ),
        *facts.trace.notes,
    )
