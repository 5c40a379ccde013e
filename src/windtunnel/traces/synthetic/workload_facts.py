"""Facts of the traces whose jobs are grouped by their workload: Seren and Kalos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.traces.synthetic.size_facts import SizeCdf, TraceFacts  # noqa: TC001 (msgspec reads the annotations)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DurationFacts(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"total": "all"}
):
    """Cumulative job counts at 2^k seconds of run time.

    Attributes:
        total: all GPU jobs.
        by_type: the types that are published.
    """

    total: list[int]
    by_type: dict[str, list[int]]


class QueueFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cumulative job counts at 2^k seconds of wait, by type."""

    by_type: dict[str, list[int]]


class CpuFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the jobs without a GPU.

    Attributes:
        duration: cumulative job counts at 2^k seconds.
        mean_duration: s.
        median_queue: s.
        mean_queue: s.
        max_duration: s.
    """

    duration: list[int]
    mean_duration: float
    median_queue: float
    mean_queue: float
    max_duration: int


class StatusFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of the jobs' final states, by jobs and by GPU time, and for CPU jobs."""

    jobs: dict[str, float]
    gpu_time: dict[str, float]
    cpu_jobs: dict[str, float]


class CpuCores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cores of a GPU job: ``max(minimum, per_gpu * GPUs)``."""

    per_gpu: int
    minimum: int


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """GPU counts of one type, modelled: jobs of each size and their mean duration in seconds."""

    gpus: list[int]
    jobs: list[int]
    mean_duration: list[float]


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is not published and is assumed.

    Attributes:
        users: number of users.
        user_exponent: the k-th user submits in proportion to k ** -exponent.
        hours: relative submissions an hour of the local day, 24 values.
        weekdays: relative submissions a weekday, Monday first, 7 values.
        day_sigma: log-normal swing from day to day.
        priority: priority of a job by its type, larger is more urgent.
    """

    users: int
    user_exponent: float
    hours: list[float]
    weekdays: list[float]
    day_sigma: float
    priority: dict[str, float]


class WorkloadFacts(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="workload"
):
    """All facts of one cluster, as its TOML file holds them."""

    trace: TraceFacts
    duration: DurationFacts
    queue: QueueFacts
    cpu: CpuFacts
    box: dict[str, list[float]]
    size_cdf: SizeCdf
    gpu_time_share: dict[str, float]
    status: StatusFacts
    cpus: CpuCores
    sizes: dict[str, Sizes]
    model: Model

    @property
    def types(self) -> tuple[str, ...]:
        """The workload types, in the file's order."""
        return tuple(self.sizes)

    def type_jobs(self) -> NDArray[np.int64]:
        """Return the real number of GPU jobs by type, shape (types,)."""
        return np.array([self.duration_counts(t)[-1] for t in self.types], dtype=np.int64)

    def duration_counts(self, workload: str) -> NDArray[np.int64]:
        """Return jobs with duration <= 2^k s, shape (knots,).

        A type that is not drawn in the figure is what the others leave of all jobs.
        """
        known = self.duration.by_type
        if workload in known:
            return np.array(known[workload], dtype=np.int64)
        return np.array(self.duration.total, dtype=np.int64) - _total(known)

    def queue_counts(self, workload: str) -> NDArray[np.int64]:
        """Return jobs with wait <= 2^k s, shape (knots,); the types' sum where not published."""
        known = self.queue.by_type
        if workload in known:
            return np.array(known[workload], dtype=np.int64)
        return _total(known)

    def queue_jobs(self, workload: str) -> int:
        """Return the number of jobs that `queue_counts` is out of."""
        known = self.queue.by_type
        listed = [workload] if workload in known else list(known)
        return sum(int(self.duration_counts(t)[-1]) for t in listed)


def _total(counts: dict[str, list[int]]) -> NDArray[np.int64]:
    return np.asarray(np.array(list(counts.values()), dtype=np.int64).sum(axis=0))
