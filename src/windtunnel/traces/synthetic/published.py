"""The published facts a synthetic trace is made from: one TOML file a cluster in this package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PACKAGE = "windtunnel.traces.synthetic"

#: Names of the synthetic traces, sorted: one a TOML file of this package.
NAMES: tuple[str, ...] = tuple(
    sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files(_PACKAGE).iterdir()
        if entry.name.endswith(".toml")
    )
)


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
    notes: tuple[str, ...] = ()


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
        median_queue: s.
        mean_queue: s.
        max_duration: s.
    """

    duration: list[int]
    median_queue: float
    mean_queue: float
    max_duration: int


class SizeCdf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Percent of jobs and of GPU time in jobs of at most ``gpus`` GPUs."""

    gpus: list[int]
    jobs: list[float]
    gpu_time: list[float]


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


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


@dataclass(frozen=True)
class Bins:
    """Whole seconds ``low[k] <= x <= high[k]`` between neighbouring knots, and jobs in each.

    Attributes:
        low: smallest value, shape (bins,).
        high: largest value, shape (bins,).
        jobs: jobs in the bin, shape (bins,).
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    jobs: NDArray[np.int64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of whole seconds drawn log-uniformly in each bin, about, shape (bins,)."""
        low, high = self.low - 1.0, self.high.astype(np.float64)
        wide = (self.high > self.low) & (self.low > 1)
        ratio = np.log(np.where(wide, high, 2.0) / np.where(wide, low, 1.0))
        # Values are rounded up to whole seconds: half a second on average.
        tail = np.clip((high - low) / ratio + 0.5, self.low, self.high)
        return np.where(wide, tail, (self.low + self.high) / 2.0)


def bins_from_knots(counts: NDArray[np.int64], total: int, *, first: int, maximum: int) -> Bins:
    """Return the bins between the knots 2^0, 2^1, ... and above the last one.

    Args:
        counts: cumulative jobs at each knot, shape (knots,).
        total: all jobs; those above the last knot go up to ``maximum``.
        first: smallest value of the first bin, 0 or 1.
        maximum: largest value, s.
    """
    knots = 2 ** np.arange(len(counts), dtype=np.int64)
    high = np.append(np.minimum(knots, maximum), max(maximum, int(knots[-1])))
    low = np.concatenate([[first], np.minimum(knots + 1, high[1:])])
    return Bins(low, high, np.diff(counts, prepend=0, append=total))


@lru_cache(maxsize=8)
def published(name: str) -> Published:
    """Return the facts of a synthetic trace.

    Raises:
        SpecError: no such trace; the nearest name is suggested.
    """
    key = str(name).lower()
    if key not in NAMES:
        raise SpecError.unknown("synthetic", str(name), NAMES)
    raw = resources.files(_PACKAGE).joinpath(f"{key}.toml").read_bytes()
    return msgspec.toml.decode(raw, type=Published)
