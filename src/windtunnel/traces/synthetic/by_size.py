"""The jobs of Philly and of the clusters of Helios: GPUs and run time first, then all the rest.

Streams: every subject has its own child of the seed, so that a change to one leaves the others as
they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.schema import conform
from windtunnel.traces.synthetic.arrivals import calendar_times, local_start, submit_times
from windtunnel.traces.synthetic.attributes import cpu_job_cores, job_ids, statuses, templates
from windtunnel.traces.synthetic.concentration import deal, member_users, quotas, vcs_of_users
from windtunnel.traces.synthetic.coupling import joint
from windtunnel.traces.synthetic.final_states import balance, states_by_size
from windtunnel.traces.synthetic.knots import draw, largest_remainder, onto
from windtunnel.traces.synthetic.waits import waits_by_user, waits_from_points, waits_of_few

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.draw_request import DrawRequest
    from windtunnel.traces.synthetic.size_facts import CpuJobs, JoinedFacts, SizeFacts

_GPUS_PER_NODE = 8
_STREAMS = ("duration", "order", "status", "people", "queue", "arrivals", "template", "cpu")
_CPU_SIGMA = 2.2


@dataclass(frozen=True)
class DrawnJobs:
    """Jobs before they have a place in time; every array has shape (jobs,).

    Attributes:
        gpus: GPUs.
        duration: s.
        queue: s.
        cores: CPU cores.
        state: index into the facts' final states.
        user: index of the user.
        vc: index of the virtual cluster.
    """

    gpus: NDArray[np.int64]
    duration: NDArray[np.int64]
    queue: NDArray[np.int64]
    cores: NDArray[np.int64]
    state: NDArray[np.int64]
    user: NDArray[np.int64]
    vc: NDArray[np.int64]

    @property
    def gpu_time(self) -> int:
        """GPU seconds of all jobs."""
        return int(self.gpus @ self.duration)


def jobs_by_size(name: str, facts: SizeFacts, request: DrawRequest) -> pa.Table:
    """Return the jobs table of a trace, ordered by submit time."""
    drawn = draw_jobs(facts, request)
    table = place_jobs(name, facts, request, drawn, request.span(facts.trace, drawn[0].gpu_time))
    return conform(table, source=f"synthetic:{name}", ids_unique=True)


def draw_jobs(facts: SizeFacts, request: DrawRequest) -> list[DrawnJobs]:
    """Draw the GPU jobs and, where they are wanted and known, the CPU jobs."""
    streams = request.streams(_STREAMS)
    gpu = _gpu_jobs(facts, request, streams)
    if not request.cpu_jobs or facts.cpu is None:
        return [gpu]
    vc_of_user = np.zeros(facts.users.number, dtype=np.int64)
    vc_of_user[gpu.user] = gpu.vc
    count = request.scaled(facts.trace.cpu_jobs, facts.trace)
    return [gpu, _cpu_only_jobs(facts, facts.cpu, count, vc_of_user, streams["cpu"])]


def _gpu_jobs(
    facts: SizeFacts, request: DrawRequest, streams: dict[str, np.random.Generator]
) -> DrawnJobs:
    """Draw the GPU jobs, in random order."""
    duration, gpus, low, high = _sized_durations(facts, request.jobs, streams["duration"])
    shuffled = streams["order"].permutation(request.jobs)
    duration, gpus, low, high = (a[shuffled] for a in (duration, gpus, low, high))
    state = states_by_size(facts.status, gpus, duration, streams["status"])
    if request.is_real(facts.trace):
        duration = balance(facts.status, state, gpus, duration, (low, high))
    weight = (duration * gpus).astype(np.float64)
    if facts.users.gpu_time:
        share = quotas(facts.users.top_percent, facts.users.gpu_time, facts.users.number)
        user = deal(weight, share, streams["people"])
        vc = vcs_of_users(share, facts.vcs)[user]
    else:
        user, vc = member_users(facts.vcs, facts.users.number, weight, streams["people"])
    drawn = DrawnJobs(gpus, duration, gpus * 0, gpus * facts.cores.per_gpu, state, user, vc)
    return replace(drawn, queue=_queues(facts, drawn, streams["queue"]))


def _sized_durations(
    facts: SizeFacts, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], ...]:
    """Return run time, GPUs and the run time's bounds of each job, ordered by size.

    At the real size every size's jobs run exactly as long together as the facts say.
    """
    bins = facts.duration.bins(facts.trace.gpu_jobs, facts.trace.max_duration)
    gpus = np.array(facts.sizes.gpus, dtype=np.int64)
    jobs = largest_remainder(facts.sizes.jobs, count)
    seconds = np.array(facts.sizes.seconds) * (jobs / np.array(facts.sizes.jobs))
    table = joint(bins, bins.apportioned(count), jobs, gpus, seconds)
    index = np.repeat(np.tile(np.arange(len(table)), len(gpus)), table.T.ravel())
    values, low, high = draw(bins, index, rng), bins.low[index], bins.high[index]
    edges = np.concatenate([[0], np.cumsum(jobs)]).tolist()
    for (a, b), wanted in zip(pairwise(edges), np.rint(seconds).astype(np.int64), strict=True):
        # In a random order: single seconds go to the first jobs.
        order = a + rng.permutation(b - a)
        values[order] = onto(values[order], low[order], high[order], int(wanted))
    return values, np.repeat(gpus, jobs), low, high


def _queues(facts: SizeFacts, jobs: DrawnJobs, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the waits of the GPU jobs, s."""
    count = len(jobs.gpus)
    total = round((facts.trace.mean_queue or 0.0) * count)
    longest, law = facts.trace.max_queue, facts.queue
    if law.marks:
        values, low, high = waits_from_points(
            dict(law.marks), count, facts.trace.gpu_jobs, maximum=longest, rng=rng
        )
        return onto(values, low, high, total)
    share = quotas(facts.users.top_percent, facts.users.gpu_queue, facts.users.number)
    return waits_by_user(
        jobs.user, share, law.waiting, law.sigma, total=total, maximum=longest, rng=rng
    )


def _cpu_only_jobs(
    facts: SizeFacts,
    cpu: CpuJobs,
    count: int,
    vc_of_user: NDArray[np.int64],
    rng: np.random.Generator,
) -> DrawnJobs:
    """Draw the jobs without a GPU, in random order."""
    bins = cpu.duration.bins(facts.trace.cpu_jobs, cpu.max_duration)
    index = rng.permutation(bins.each(count))
    low, high = bins.low[index], bins.high[index]
    duration = onto(draw(bins, index, rng), low, high, round(cpu.mean_duration * count))
    waits = waits_of_few(
        count,
        cpu.waiting,
        _CPU_SIGMA,
        total=round(cpu.mean_queue * count),
        maximum=facts.trace.max_queue,
        rng=rng,
    )
    cores = cpu_job_cores(count, rng)
    share = quotas(facts.users.top_percent, facts.users.cpu_time, facts.users.number)
    owner = deal((duration * cores).astype(np.float64), share, rng)
    user = rng.permutation(facts.users.number)[owner]
    codes = {state: code for code, state in enumerate(facts.status.names)}
    # Rounded shares do not sum to 1: the same correction for each keeps all within their digits.
    excess = (sum(cpu.status.values()) - 1.0) / len(cpu.status)
    shares = {name: max(part - excess, 0.0) for name, part in cpu.status.items()}
    chosen = statuses(shares, None, duration.astype(np.float64), rng).to_pylist()
    state = np.array([codes[s] for s in chosen], dtype=np.int64)
    none = np.zeros(count, dtype=np.int64)
    return DrawnJobs(none, duration, waits, cores, state, user, vc_of_user[user])


def place_jobs(
    name: str, facts: SizeFacts, request: DrawRequest, parts: list[DrawnJobs], span: int
) -> pa.Table:
    """Place jobs in time and return them as a table, ordered by submit time.

    Args:
        name: what the ids begin with.
        span: seconds from the first submission to the last, where the calendar does not say.
    """
    streams = request.streams(_STREAMS)
    rng = streams["arrivals"]
    real = request.load is None and request.is_real(facts.trace)
    start = local_start(facts.trace)
    submits = []
    for part in parts:
        if real and part is parts[0]:
            submits.append(calendar_times(facts, part.gpus, rng))
        elif len(part.gpus):
            submits.append(submit_times(start, facts.calendar, len(part.gpus), span, rng))
    submit = np.concatenate(submits)
    order = np.argsort(submit, kind="stable")
    submit = submit[order]
    columns = {
        field: np.concatenate([getattr(part, field) for part in parts])[order]
        for field in ("gpus", "duration", "queue", "cores", "state", "user", "vc")
    }
    gpus, duration = columns["gpus"], columns["duration"]
    # Numbered at random: a name tells nothing of its user's rank.
    numbers = (streams["people"].permutation(facts.users.number) + 1).tolist()
    user_names = [f"u{facts.users.prefix}{number:04d}" for number in numbers]
    begin = submit + columns["queue"]
    return pa.table(
        {
            "job_id": job_ids(f"{name}-", len(submit)),
            "submit_time": submit.astype(np.float64),
            "start_time": begin.astype(np.float64),
            "end_time": (begin + duration).astype(np.float64),
            "duration": duration.astype(np.float64),
            "num_gpus": gpus.astype(np.float64),
            "num_tasks": _gang_sizes(gpus),
            "num_cpus": columns["cores"].astype(np.float64),
            "user": pa.array(user_names).take(pa.array(columns["user"])),
            "vc": pa.array(facts.vcs.names).take(pa.array(columns["vc"])),
            "template": templates(
                ["gpu", "cpu"],
                (gpus == 0).astype(np.int64),
                columns["user"],
                user_names,
                gpus=gpus,
                duration=duration,
                rng=streams["template"],
            ),
            "status": pa.array(facts.status.names).take(pa.array(columns["state"])),
        }
    )


def _gang_sizes(gpus: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the fewest equal tasks that each fit a node, shape (jobs,)."""
    sizes, inverse = np.unique(gpus, return_inverse=True)
    tasks = [
        next(t for t in range(max(-(-g // _GPUS_PER_NODE), 1), g + 2) if g % t == 0)
        for g in sizes.tolist()
    ]
    return np.array(tasks, dtype=np.int32)[inverse]


def size_notes(facts: SizeFacts, request: DrawRequest) -> tuple[str, ...]:
    """Return what a reader must know: what is exact, what is modelled."""
    return ("Synthetic: no row is a real job.", *_exact(facts, request), *_modelled(facts, request))


def _exact(facts: SizeFacts, request: DrawRequest) -> tuple[str, ...]:
    if not request.is_real(facts.trace):
        scaled = (
            f"Scaled from {facts.trace.gpu_jobs} to {request.jobs} GPU jobs: counts by run time, "
            "GPU count and final state are nearest whole numbers (largest remainders)."
        )
        return (scaled,)
    exact = (
        "Exact for any seed: jobs at every published knot of run time, jobs and GPU time by GPU "
        "count, mean and median run time and wait, GPU time of each final state."
    )
    if request.load is not None:
        return (exact,)
    if facts.calendar.months:
        return (exact, "Exact too: GPU jobs of each month (one GPU, more) and of each hour.")
    return (exact, "Exact too: jobs of each hour of the day and of each weekday.")


def _modelled(facts: SizeFacts, request: DrawRequest) -> tuple[str, ...]:
    concentration = (
        "Fitted: GPU time, CPU time and waiting of the busiest users, to 0.1 percent of all."
        if facts.users.gpu_time
        else "Fitted: jobs and GPU time by virtual cluster. Modelled: users."
    )
    when = "" if request.load is None and request.is_real(facts.trace) else "months, "
    return (
        concentration,
        (
            "Modelled: values between knots (log-uniform), the law of the waits, "
            f"{when}days, recurrence, cores; which job waits, ends badly or comes when is drawn "
            "apart from the others."
        ),
        *facts.trace.notes,
    )


def jobs_of_parts(
    name: str, parts: dict[str, SizeFacts], facts: JoinedFacts, request: DrawRequest
) -> pa.Table:
    """Return the jobs of all parts in one table, ordered by submit time, then by part.

    Each part is what it is alone with the same seed. ``cluster`` is kept, and stands before the
    job's id and the virtual cluster's name (``Venus/vc01``), as where the real trace is read.

    Args:
        parts: facts of each part by name.
    """
    shares = largest_remainder([p.trace.gpu_jobs for p in parts.values()], request.jobs).tolist()
    requests = [replace(request, jobs=count) for count in shares]
    drawn = {
        one: draw_jobs(part, mine)
        for (one, part), mine in zip(parts.items(), requests, strict=True)
        if mine.jobs
    }
    span = request.span(facts.trace, sum(jobs[0].gpu_time for jobs in drawn.values()))
    tables = []
    for (one, part), mine in zip(parts.items(), requests, strict=True):
        if mine.jobs:
            table = place_jobs(one, part, mine, drawn.pop(one), span)
            tables.append(_named(table, one.rpartition("-")[2].capitalize()))
    joined = pa.concat_tables(tables).combine_chunks()
    order = np.argsort(joined["submit_time"].to_numpy(), kind="stable")
    return conform(joined.take(pa.array(order)), source=f"synthetic:{name}", ids_unique=True)


def _named(table: pa.Table, cluster: str) -> pa.Table:
    """Return a table with its cluster's name before ids and virtual clusters, and in a column."""
    for column in ("job_id", "vc"):
        names = pc.binary_join_element_wise(cluster, table[column], "/")
        table = table.set_column(table.schema.get_field_index(column), column, names)
    return table.append_column("cluster", pa.repeat(cluster, table.num_rows))


def joined_notes(
    parts: dict[str, SizeFacts], facts: JoinedFacts, request: DrawRequest
) -> tuple[str, ...]:
    """Return what a reader must know: what holds for each part, once, and for the whole."""
    shares = largest_remainder([p.trace.gpu_jobs for p in parts.values()], request.jobs).tolist()
    common = f"Joined from {', '.join(parts)}: what stands here holds for each of them."
    notes = [
        note
        for part, count in zip(parts.values(), shares, strict=True)
        for note in size_notes(part, replace(request, jobs=count))
    ]
    return tuple(dict.fromkeys((notes[0], common, *notes[1:], *facts.trace.notes)))
