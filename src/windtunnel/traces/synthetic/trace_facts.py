"""What the facts of every synthetic trace have in common."""

from __future__ import annotations

import msgspec


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


class SizeCdf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Percent of jobs and of GPU time in jobs of at most ``gpus`` GPUs."""

    gpus: list[int]
    jobs: list[float]
    gpu_time: list[float]
