"""Facts of the trace whose jobs share GPUs: PAI, where a job asks for a part of a GPU a task."""

from __future__ import annotations

import msgspec

from windtunnel.traces.synthetic.size_facts import (
    Durations,  # noqa: TC001 (msgspec reads the annotations)
    TraceFacts,  # noqa: TC001 (msgspec reads the annotations)
)


class Requests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a task asks for, in percent of a GPU, ascending.

    Attributes:
        plan_gpu: percent of a GPU.
        gpus: percent of the jobs with requests of at most so many GPUs a task.
        jobs: the same percentages of the jobs.
        gpu_time: and of the GPU time (request times run time).
        seconds: how long the jobs of each request with a run time run together, s.
    """

    plan_gpu: list[int]
    seconds: list[int]
    gpus: list[int]
    jobs: list[float]
    gpu_time: list[float]


class GpuType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs on one GPU type, by request: all of them, and those with a run time."""

    name: str
    jobs: list[int]
    timed: list[int]


class WaitLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Waits on some GPU types of requests from ``plan_gpu[0]`` to ``plan_gpu[1]`` percent.

    ``counts`` are jobs with at most so long a wait, at `RequestFacts.wait_points`.
    """

    types: list[str]
    plan_gpu: tuple[int, int]
    counts: list[int]


class Gangs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks of a job and how many jobs have so many; GPU jobs and others alike."""

    tasks: list[int]
    jobs: list[int]


class Recurrence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Users, and the groups of jobs that recur.

    Attributes:
        users: how many there are.
        jobs: points of the number of jobs of a user.
        percent: percent of the users with at most so many.
        most: no user has more.
        runs: a group of at least so many jobs recurs.
        share: share of the jobs in such groups.
    """

    users: int
    jobs: list[int]
    percent: list[float]
    most: int
    runs: int
    share: float


class Amounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request a task, and how often it is made, percent."""

    values: list[float]
    percent: list[float]


class RequestProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When jobs are submitted: relative submissions an hour and a weekday, the days' swing."""

    hours: list[float]
    weekdays: list[float]
    day_sigma: float


class RequestStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of the final states of jobs with a run time, and of those without."""

    timed: dict[str, float]
    untimed: dict[str, float]


class TaskUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of the tasks that use more cores, GPU and memory than asked for, and no GPU."""

    cpu_over: float
    gpu_over: float
    mem_over: float
    gpu_idle: float


class RequestFacts(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="request"
):
    """All facts of one trace, as its TOML file holds them.

    Attributes:
        trace: the trace as a whole; ``gpu_time`` is of one task a job.
        timed_jobs: GPU jobs with a run time.
        mean_duration: their mean run time, s.
        median_atom: whole seconds that stand for the median run time: their jobs' tasks ran a
            third of a second less on average.
        duration: points of the run time.
        requests: what jobs ask for.
        types: GPU types.
        constraints: GPU type -> acceptable types of its jobs joined by |; others take any.
        short_waiting: share of the jobs below the median run time that wait longer than they run.
        wait_points: s.
        waits: waits by GPU type and request.
        gangs: tasks a job.
        recurrence: users and groups.
        plan_cpu: cores a task.
        plan_mem: host memory a task, GB.
        status: final states.
        profile: when jobs are submitted.
        use: what tasks use.
    """

    trace: TraceFacts
    timed_jobs: int
    mean_duration: float
    median_atom: int
    duration: Durations
    requests: Requests
    types: list[GpuType]
    constraints: dict[str, str]
    short_waiting: float
    wait_points: list[int]
    waits: list[WaitLaw]
    gangs: Gangs
    recurrence: Recurrence
    plan_cpu: Amounts
    plan_mem: Amounts
    status: RequestStatus
    profile: RequestProfile
    use: TaskUse
