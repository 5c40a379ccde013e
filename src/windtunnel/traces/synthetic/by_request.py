"""The jobs of PAI: what a task asks for and how long it runs first, then gangs, waits and people.

Streams: every subject has its own child of the seed, so that a change to one leaves the others as
they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.schema import conform
from windtunnel.traces.synthetic.arrivals import local_start, submit_times
from windtunnel.traces.synthetic.attributes import job_ids, statuses
from windtunnel.traces.synthetic.coupling import joint
from windtunnel.traces.synthetic.knots import draw, largest_remainder, onto, settle
from windtunnel.traces.synthetic.recurrence import deal_gangs, groups_of_users, jobs_of_users
from windtunnel.traces.synthetic.waits import calm_short_jobs, waits_from_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.draw_request import DrawRequest
    from windtunnel.traces.synthetic.request_facts import RequestFacts

_STREAMS = (
    "duration",
    "types",
    "gangs",
    "queue",
    "amounts",
    "status",
    "people",
    "arrivals",
    "cpu",
)
_WHOLE_GPU = 100
#: Octaves by which the run times of a group's jobs are blurred before they are sorted.
_GROUP_NOISE = 0.25


@dataclass(frozen=True)
class _Jobs:
    """Jobs before they have a place in time; every array has shape (jobs,).

    Attributes:
        plan: percent of a GPU a task asks for; 0 for CPU jobs.
        kind: index of the GPU type; -1 for CPU jobs.
        duration: s, NaN = unknown.
        queue: s, NaN = unknown.
        tasks: tasks of the gang.
    """

    plan: NDArray[np.int64]
    kind: NDArray[np.int64]
    duration: NDArray[np.float64]
    queue: NDArray[np.float64]
    tasks: NDArray[np.int64]


def jobs_by_request(name: str, facts: RequestFacts, request: DrawRequest) -> pa.Table:
    """Return the jobs table of a trace, ordered by submit time."""
    streams = request.streams(_STREAMS)
    jobs = _gpu_jobs(facts, request, streams)
    known = np.nan_to_num(jobs.duration)
    gpu_time = round(float((known * jobs.plan * jobs.tasks).sum()) / _WHOLE_GPU)
    if request.cpu_jobs:
        jobs = _joined(jobs, _cpu_only_jobs(facts, request, streams["cpu"]))
    return _table(name, facts, jobs, request.span(facts.trace, gpu_time), streams)


def _gpu_jobs(
    facts: RequestFacts, request: DrawRequest, streams: dict[str, np.random.Generator]
) -> _Jobs:
    """Draw the GPU jobs: those with a run time by request, then those without."""
    real = np.array([t.timed for t in facts.types]), np.array([t.jobs for t in facts.types])
    cells = np.stack([real[0], real[1] - real[0]])
    timed, untimed = largest_remainder(cells.ravel(), request.jobs).reshape(cells.shape)
    plan = np.array(facts.requests.plan_gpu, dtype=np.int64)
    duration, low, high = _timed_durations(facts, timed.sum(axis=0), streams["duration"])
    columns = [column for table in (timed, untimed) for column in table.T]
    kind = np.concatenate(
        [streams["types"].permutation(np.repeat(np.arange(len(c)), c)) for c in columns]
    )
    asked = np.repeat(np.tile(plan, 2), [int(c.sum()) for c in columns])
    atom = np.zeros(request.jobs, dtype=bool)
    atom[: len(duration)] = duration == facts.median_atom
    scarce = np.array([t.name in facts.constraints for t in facts.types])[kind]
    tasks = deal_gangs(facts.gangs, asked > _WHOLE_GPU, scarce, atom, streams["gangs"])
    real_size = request.is_real(facts.trace)
    exact = _fractions(
        facts, (duration, low, high), tasks[: len(duration)], real=real_size, rng=streams["gangs"]
    )
    missing = np.full(request.jobs - len(duration), np.nan)
    queue = _queues(facts, kind[: len(exact)], asked[: len(exact)], exact, streams["queue"])
    return _Jobs(
        asked, kind, np.concatenate([exact, missing]), np.concatenate([queue, missing]), tasks
    )


def _timed_durations(
    facts: RequestFacts, columns: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], ...]:
    """Return run time and its bounds of each job that has one, ordered by request, whole s."""
    bins = facts.duration.bins(facts.timed_jobs, facts.trace.max_duration)
    plan = np.array(facts.requests.plan_gpu, dtype=np.int64)
    real = np.array([t.timed for t in facts.types]).sum(axis=0)
    seconds = np.array(facts.requests.seconds) * (columns / real)
    count = int(columns.sum())
    table = joint(bins, bins.apportioned(count), columns, plan, seconds)
    index = np.repeat(np.tile(np.arange(len(table)), len(plan)), table.T.ravel())
    edges = np.concatenate([[0], np.cumsum(columns)]).tolist()
    values, low, high = np.empty_like(index), bins.low[index], bins.high[index]
    for (a, b), wanted in zip(pairwise(edges), seconds.tolist(), strict=True):
        order = a + rng.permutation(b - a)
        low[a:b], high[a:b], index[a:b] = low[order], high[order], index[order]
        values[a:b] = settle(draw(bins, index[a:b], rng), low[a:b], high[a:b], wanted)
    return values, low, high


def _fractions(
    facts: RequestFacts,
    whole: tuple[NDArray[np.int64], ...],
    tasks: NDArray[np.int64],
    *,
    real: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return mean run times of gangs: less than a second below the whole ones, in n-ths of it.

    At the real size the whole seconds first move so that the mean is the published one in the end.

    Args:
        whole: whole run times and their bounds, s, shape (jobs,) each.
        tasks: tasks of each job, shape (jobs,).
    """
    duration, low, high = whole
    less = np.floor(rng.random(len(tasks)) * tasks) / tasks
    less[low == high] = 0.0
    less[(duration == facts.median_atom) & (tasks % 3 == 0)] = 1.0 / 3.0
    total = round(facts.mean_duration * len(tasks) + float(less.sum()))
    if real:
        duration = onto(duration, low, high, total)
    return duration - less


def _queues(
    facts: RequestFacts,
    kind: NDArray[np.int64],
    plan: NDArray[np.int64],
    duration: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw the waits of the jobs with a run time, s: by GPU type and request."""
    queue, low, high, of = (np.zeros(len(kind), dtype=np.int64) for _ in range(4))
    code = {t.name: k for k, t in enumerate(facts.types)}
    timed = {t.name: np.array(t.timed) for t in facts.types}
    asked = np.array(facts.requests.plan_gpu)
    for number, law in enumerate(facts.waits):
        first, last = law.plan_gpu
        of_law = np.isin(kind, [code[t] for t in law.types]) & (plan >= first) & (plan <= last)
        mine = np.flatnonzero(of_law)
        of[mine] = number
        inside = (asked >= first) & (asked <= last)
        real = int(sum(timed[t][inside].sum() for t in law.types))
        points = dict(zip(facts.wait_points, law.counts, strict=True))
        queue[mine], low[mine], high[mine] = waits_from_points(
            points, len(mine), real, maximum=facts.trace.max_queue, rng=rng
        )
    total = round((facts.trace.mean_queue or 0.0) * len(queue))
    queue = onto(queue, low, high, total)
    return calm_short_jobs(queue, duration, of, facts.short_waiting, rng).astype(np.float64)


def _cpu_only_jobs(facts: RequestFacts, request: DrawRequest, rng: np.random.Generator) -> _Jobs:
    """Draw the jobs without a GPU: of them no run time and no wait is published."""
    count = request.scaled(facts.trace.cpu_jobs, facts.trace)
    none = np.zeros(count, dtype=np.int64)
    unknown = np.full(count, np.nan)
    free = np.zeros(count, dtype=bool)
    tasks = deal_gangs(facts.gangs, free, free, free, rng)
    return _Jobs(none, none - 1, unknown, unknown, tasks)


def _joined(first: _Jobs, second: _Jobs) -> _Jobs:
    return _Jobs(
        *(
            np.concatenate([getattr(first, field), getattr(second, field)])
            for field in ("plan", "kind", "duration", "queue", "tasks")
        )
    )


def _table(
    name: str,
    facts: RequestFacts,
    jobs: _Jobs,
    span: int,
    streams: dict[str, np.random.Generator],
) -> pa.Table:
    """Place the jobs in time and return the jobs table, ordered by submit time."""
    count = len(jobs.plan)
    submit = submit_times(
        local_start(facts.trace), facts.profile, count, span, streams["arrivals"]
    ).astype(np.float64)
    order = streams["arrivals"].permutation(count)
    user, group = _people(facts, jobs, streams["people"])
    status = _statuses(facts, jobs, streams["status"])
    cores, memory = (
        np.array(law.values)[
            streams["amounts"].permutation(
                np.repeat(np.arange(len(law.values)), largest_remainder(law.percent, count))
            )
        ]
        for law in (facts.plan_cpu, facts.plan_mem)
    )
    plan, tasks = jobs.plan[order], jobs.tasks[order]
    wait, duration = jobs.queue[order], jobs.duration[order]
    types = pa.array([*(t.name for t in facts.types), None])
    kind = pa.array(np.where(jobs.kind < 0, len(facts.types), jobs.kind)[order])
    accepted = pa.array([*(facts.constraints.get(t.name) for t in facts.types), None], pa.string())
    digits = len(str(count))
    table = pa.table(
        {
            "job_id": job_ids(f"{name}-", count),
            "submit_time": submit,
            "start_time": _known(submit + wait),
            "end_time": _known(submit + wait + duration),
            "duration": _known(duration),
            "num_gpus": plan * tasks / _WHOLE_GPU,
            "num_tasks": tasks.astype(np.int32),
            "num_cpus": cores * tasks,
            "mem_gib": memory * tasks,
            "gpu_type": accepted.take(kind),
            "user": pa.array([f"u{k + 1:04d}" for k in range(facts.recurrence.users)]).take(
                pa.array(user[order])
            ),
            "template": pc.binary_join_element_wise(
                "g", pc.utf8_lpad(pa.array(group[order]).cast(pa.string()), digits, "0"), ""
            ),
            "status": status.take(pa.array(order)),
            "plan_gpu": _known(np.where(plan > 0, plan, np.nan)),
            "plan_cpu": cores * 100.0,
            "plan_mem": memory,
            "gpu_type_assigned": types.take(kind),
            "wait_time": _known(wait),
        }
    )
    return conform(table, source=f"synthetic:{name}", ids_unique=True)


def _known(values: NDArray[np.float64]) -> pa.Array:
    """Return an Arrow column in which NaN is null."""
    return pa.array(values, from_pandas=True)


def _people(
    facts: RequestFacts, jobs: _Jobs, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each job's user and group: jobs of a group ask for the same and run about as long."""
    count = len(jobs.plan)
    gpu_jobs = int((jobs.plan > 0).sum())
    trace = facts.trace
    real = trace.gpu_jobs + (trace.cpu_jobs if gpu_jobs < count else 0)
    of_users = jobs_of_users(facts.recurrence, count, real, rng)
    users, sizes = groups_of_users(facts.recurrence, of_users, rng)
    guessed = np.where(np.isnan(jobs.duration), rng.permutation(jobs.duration), jobs.duration)
    octaves = np.log2(np.nan_to_num(guessed, nan=1.0)) + rng.normal(0.0, _GROUP_NOISE, count)
    order = np.lexsort((octaves, jobs.kind, jobs.plan))
    user, group = (np.empty(count, dtype=np.int64) for _ in range(2))
    user[order] = np.repeat(users, sizes)
    group[order] = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return user, group


def _statuses(facts: RequestFacts, jobs: _Jobs, rng: np.random.Generator) -> pa.Array:
    """Return the jobs' final states: exact shares of those with a run time and those without."""
    timed = ~np.isnan(jobs.duration)
    states = [
        statuses(shares, None, np.zeros(int(those.sum())), rng)
        for shares, those in ((facts.status.timed, timed), (facts.status.untimed, ~timed))
    ]
    place = np.argsort(np.concatenate([np.flatnonzero(timed), np.flatnonzero(~timed)]))
    return pa.concat_arrays(states).take(pa.array(place))


def request_notes(facts: RequestFacts, request: DrawRequest) -> tuple[str, ...]:
    """Return what a reader must know: what is exact, what is modelled."""
    if request.is_real(facts.trace):
        exact = (
            "Exact for any seed: jobs at every published knot of run time, mean and median run "
            "time and wait, jobs by GPU type and request, number of tasks of a job, P90 of the "
            "waits by GPU type and class, jobs in groups of five runs or more."
        )
    else:
        exact = (
            f"Scaled from {facts.trace.gpu_jobs} to {request.jobs} GPU jobs: counts by run time, "
            "GPU type, request, wait and number of tasks are nearest whole numbers (largest "
            "remainders)."
        )
    kept = ", ".join(sorted(facts.constraints))
    return (
        "Synthetic: no row is a real job.",
        exact,
        "Fitted: requests (0.05 points of the size CDF, 1 point of the classes), GPU time by size.",
        (
            "Modelled: values between knots (log-uniform), final states, sizes of groups, cores "
            "and memory but for two quantiles each, hours but for five, days; which job waits, "
            f"ends badly or comes when is drawn apart. Jobs on {kept} ask for that type, "
            "others for any."
        ),
        "Jobs without a GPU have neither run time nor wait: none is published.",
        *facts.trace.notes,
    )
