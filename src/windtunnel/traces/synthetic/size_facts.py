"""Facts of the traces whose jobs are grouped by their GPUs: Philly and Helios' clusters."""

from __future__ import annotations

from typing import Literal

import msgspec

from windtunnel.traces.synthetic.knots import Bins, bins_from_points


class TraceFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a trace as a whole.

    Attributes:
        summary: the cluster in a line.
        source: where the facts come from.
        licence: the facts' licence.
        cluster: name of the cluster preset.
        epoch: UTC instant of the local midnight at which the trace begins, ISO 8601.
        zone: IANA zone of the local clock.
        span_days: length of the real trace.
        gpu_jobs: jobs with at least one GPU.
        cpu_jobs: jobs without.
        gpu_time: GPU seconds of all jobs.
        max_duration: no GPU job runs longer, s.
        max_queue: no GPU job waits longer, s.
        mean_queue: mean wait of GPU jobs, s, where published.
        restore_time: whose numbers say what a stopped job needs to go on, a key of
            `windtunnel.traces.resuming.BY_GPUS`; None = not published.
        notes: what a reader must know of this trace, one sentence each.
    """

    summary: str
    source: str
    licence: str
    cluster: str
    epoch: str
    zone: str
    span_days: int
    gpu_jobs: int
    cpu_jobs: int
    gpu_time: int
    max_duration: int
    max_queue: int
    mean_queue: float | None = None
    restore_time: Literal["helios"] | None = None
    notes: tuple[str, ...] = ()


class SizeCdf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Percent of jobs and of GPU time in jobs of at most ``gpus`` GPUs."""

    gpus: list[int]
    jobs: list[float]
    gpu_time: list[float]


class Durations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cumulative job counts of the run time.

    Attributes:
        counts: jobs with a run time of at most 2^k s, k = 0, 1, ...
        marks: further points: s, jobs.
    """

    counts: list[int]
    marks: list[tuple[int, int]] = []

    def bins(self, total: int, maximum: int) -> Bins:
        """Return the bins of ``total`` jobs' run times, from 1 to ``maximum`` s."""
        points = {2**k: count for k, count in enumerate(self.counts)} | dict(self.marks)
        return bins_from_points(points, total, first=1, maximum=maximum)


class CpuJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the jobs without a GPU.

    Attributes:
        counts: jobs with a run time of at most 2^k s, k = 0, 1, ...
        marks: further points: s, jobs.
        mean_duration: s.
        mean_queue: s.
        waiting: share of the jobs that wait at all.
        max_duration: s.
        status: shares of the final states.
    """

    counts: list[int]
    mean_duration: float
    mean_queue: float
    waiting: float
    max_duration: int
    status: dict[str, float]
    marks: list[tuple[int, int]] = []

    @property
    def duration(self) -> Durations:
        """The run times' points."""
        return Durations(self.counts, self.marks)


class Waits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The law of the GPU jobs' waits: points of a distribution, or zero and a log-normal law.

    Attributes:
        marks: points: s, jobs with at most so long a wait.
        waiting: share of the jobs that wait at all, where there are no points.
        sigma: log-normal spread of their waits, where there are no points.
    """

    marks: list[tuple[int, int]] = []
    waiting: float = 0.0
    sigma: float = 0.0


class SizeTotals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs of each GPU count, ascending, and the seconds they run together."""

    gpus: list[int]
    jobs: list[int]
    seconds: list[int]


class StatusBySize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Final states of the jobs of ``gpus[0]`` to ``gpus[1]`` GPUs that no entry before has."""

    gpus: tuple[int, int]
    jobs: dict[str, int]


class SizeStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """GPU seconds by final state, and jobs by final state and size."""

    gpu_time: dict[str, int]
    by_gpus: list[StatusBySize]

    @property
    def names(self) -> list[str]:
        """The final states, in the file's order."""
        return list(self.gpu_time)


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When jobs are submitted.

    Attributes:
        hours: relative submissions an hour of the local day, 24 values; where months are given,
            the number of jobs over all days.
        weekdays: relative submissions a weekday, Monday first, 7 values.
        day_sigma: log-normal swing from day to day.
        months: month as YYYY-MM -> jobs with one GPU, jobs with more.
    """

    hours: list[float]
    weekdays: list[float]
    day_sigma: float
    months: dict[str, tuple[int, int]] = {}


class Users(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many users there are and how much the busiest have.

    Attributes:
        number: users.
        prefix: what tells their names from another cluster's.
        top_percent: percent of the users, ascending.
        gpu_time: percent of the GPU time that the top users have; likewise the others.
        cpu_time: of CPU jobs' core seconds.
        gpu_queue: of GPU jobs' waits.
    """

    number: int
    prefix: str
    top_percent: list[float] = []
    gpu_time: list[float] = []
    cpu_time: list[float] = []
    gpu_queue: list[float] = []


class VirtualClusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Virtual clusters and their shares of GPU time and, where published, of the jobs."""

    names: list[str]
    gpu_time: list[float]
    jobs: list[float] = []


class Cores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cores of a GPU job: ``per_gpu`` a GPU."""

    per_gpu: int


class SizeFacts(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="sized"
):
    """All facts of one cluster, as its TOML file holds them."""

    trace: TraceFacts
    duration: Durations
    queue: Waits
    size_cdf: SizeCdf
    sizes: SizeTotals
    status: SizeStatus
    calendar: Calendar
    users: Users
    vcs: VirtualClusters
    cores: Cores
    cpu: CpuJobs | None = None


class JoinedFacts(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="joined"
):
    """A trace that is several clusters' traces together: their names."""

    trace: TraceFacts
    parts: list[str]
